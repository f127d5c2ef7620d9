//! Link task: starts one agent, runs its link, and ends it.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::drain::write_farewell;
use super::events_out::{Commands, EventsOut, send_next};
use super::io_loop::LinkLoop;
use crate::clock::Clock;
use crate::domain::error_code::ErrorCode;
use crate::limits::ByteBudget;
use crate::runtime::catalog::{Entry, Origin};
use crate::runtime::config::FramingName;
use crate::runtime::dialect::{PastMessage, Protocol, Setup, UserInfo};
use crate::runtime::dialect_driver::{DialectDriver, unusable};
use crate::runtime::error::AgentError;
use crate::runtime::launch::{LaunchPlan, LaunchedAgent, Launcher, SessionLock, SessionOwner};
use crate::runtime::link_failure::LinkFailure;
use crate::runtime::messages::{Declined, FromAgent, ToAgent};
use crate::runtime::process::Process;
use crate::runtime::slots::Slot;
use crate::runtime::stderr_tail::StderrTail;
use crate::runtime::transport::ByteStream;
use crate::runtime::transport::shared_socket::SharedSocket;

/// After its input is closed, a process may exit by itself for this long; then it gets SIGTERM, and
/// after the second time SIGKILL.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);
const TERM_TIMEOUT: Duration = Duration::from_secs(2);
/// Both of them while the gateway shuts down.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(300);
/// How long the session may take to receive the last events: before the process is ended, and after.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);
const FINAL_FLUSH_TIMEOUT: Duration = Duration::from_mins(1);

pub(in crate::runtime) struct LinkTask {
    pub(in crate::runtime) entry: Arc<Entry>,
    pub(in crate::runtime) protocol: &'static Protocol,
    pub(in crate::runtime) launcher: Arc<Launcher>,
    pub(in crate::runtime) shared_socket: Option<Arc<SharedSocket>>,
    pub(in crate::runtime) owner: SessionOwner,
    pub(in crate::runtime) thread: Option<String>,
    pub(in crate::runtime) origin: Option<Origin>,
    pub(in crate::runtime) history: Vec<PastMessage>,
    /// The delay before the start, after crashes.
    pub(in crate::runtime) backoff: Duration,
    pub(in crate::runtime) budget: ByteBudget,
    pub(in crate::runtime) clock: Clock,
    /// Held until the process has ended.
    pub(in crate::runtime) slot: Slot,
}

pub(super) enum LinkEnd {
    Stopped,
    /// The dialect said so.
    Finished,
    Failed(AgentError),
}

/// What a link that ended leaves to be ended.
struct Remains {
    end: LinkEnd,
    agent: Option<LaunchedAgent>,
    process: Option<Process>,
}

impl Remains {
    /// The agent ended by itself, as opposed to one that is ended for what it did.
    fn is_gone(&self) -> bool {
        use AgentError::{Closed, Ended};
        matches!(self.end, LinkEnd::Failed(Ended { .. } | Closed))
    }
}

impl LinkTask {
    /// Runs until stopped, finished or failed. `gateway_stop` tells the gateway's shutdown from the
    /// end of this link alone.
    pub(in crate::runtime) async fn run(
        self,
        commands: Commands,
        events: mpsc::Sender<FromAgent>,
        stop: CancellationToken,
        gateway_stop: CancellationToken,
    ) {
        let span = tracing::info_span!(
            "link",
            session.id = %self.owner.session,
            agent = self.entry.name,
            dialect = self.protocol.name,
        );
        let running = self.run_supervised(commands, events, stop, gateway_stop);
        Box::pin(running).instrument(span).await;
    }

    /// Keeps the status and the slot around the link's life.
    async fn run_supervised(
        self,
        mut commands: Commands,
        events: mpsc::Sender<FromAgent>,
        stop: CancellationToken,
        gateway_stop: CancellationToken,
    ) {
        let budget = self.budget.clone();
        let events_out = EventsOut { events, budget };
        self.entry.status.update(|report| {
            report.live += 1;
            report.starts += 1;
        });
        let unsent = self
            .run_inner(&mut commands, &events_out, &stop, &gateway_stop)
            .await;
        self.entry.status.update(|report| report.live -= 1);
        drop(self.slot);
        if let Some(failure) = unsent {
            events_out.refuse_next(&mut commands, &failure).await;
        }
    }

    /// Start, handshake, loop, drain, end. Returns a failure that no run or request has received yet.
    async fn run_inner(
        &self,
        commands: &mut Commands,
        events_out: &EventsOut,
        stop: &CancellationToken,
        gateway_stop: &CancellationToken,
    ) -> Option<LinkFailure> {
        let (plan, mut driver) = match self.prepare() {
            Ok(prepared) => prepared,
            Err(error) => return Some(self.record_failure(&error, None, None)),
        };
        let mut lock = None;
        let started = self
            .start(plan, &mut lock, commands, events_out, &mut driver, stop)
            .await;
        let mut remains = match started {
            Ok(agent) => {
                self.run_loop(agent, commands, events_out, &mut driver, stop)
                    .await
            }
            Err((end, process)) => Remains {
                end,
                agent: None,
                process,
            },
        };
        let is_shutdown = gateway_stop.is_cancelled();
        let failure = self.failure(&remains, &driver);
        if let (true, Some(failure)) = (remains.is_gone(), &failure) {
            driver.return_prompt(&failure.declined);
        }
        let is_received = failure
            .as_ref()
            .is_none_or(|failure| driver.fail_pending(failure));
        // An agent that never was ready gives its reason to the command that started it.
        let is_received = is_received || driver.is_ready();
        if is_received {
            // No more commands: the next one starts another link.
            commands.close();
            let reason = failure.as_ref().map(|failure| failure.declined.clone());
            let reason = reason.unwrap_or_else(|| self.ended());
            while let Some(command) = commands.recv().await {
                driver.return_command(&command, &reason);
            }
        }
        events_out.flush(&mut driver, FLUSH_TIMEOUT).await;
        self.end(&mut remains, &mut driver, is_shutdown).await;
        // The session's next agent may start.
        drop(lock);
        events_out.flush(&mut driver, FINAL_FLUSH_TIMEOUT).await;
        failure.filter(|_| !is_received)
    }

    fn prepare(&self) -> Result<(LaunchPlan, DialectDriver), AgentError> {
        let config = &self.entry.config;
        let plan = self.launcher.prepare(config, self.protocol, &self.owner)?;
        if let Some(origin) = &self.origin {
            self.launcher.copy_memory(&plan, origin.session);
        }
        let dialect = (self.protocol.build)(self.setup(&plan)?);
        let delimiter = config.framing(self.protocol).delimiter();
        Ok((plan, DialectDriver::new(dialect, delimiter)))
    }

    fn setup(&self, plan: &LaunchPlan) -> Result<Setup, AgentError> {
        let mut options = self.entry.config.options.clone();
        if self.entry.config.framing == Some(FramingName::NodeIpc) {
            options.insert("framing".into(), "node-ipc".into());
        }
        if let Some(path) = options.get("token_file").and_then(|path| path.as_str()) {
            let token = std::fs::read_to_string(path).map_err(|source| AgentError::EnvFile {
                variable: "options.token_file".into(),
                path: path.into(),
                source,
            })?;
            options.insert("token".into(), token.trim().into());
        }
        Ok(Setup {
            agent: self.entry.name.clone(),
            version: env!("CARGO_PKG_VERSION"),
            directory: plan.directory.to_string_lossy().into_owned(),
            thread: self.thread.clone(),
            branch_of: self.origin.as_ref().map(|origin| origin.thread.clone()),
            history: self.history.clone(),
            session: self.owner.session.to_string(),
            user: UserInfo {
                id: self.owner.user.to_string(),
                name: self.owner.user_name.clone(),
            },
            private_home: self.launcher.has_private_home(&self.entry.config),
            options,
        })
    }

    /// Starts the process and connects to it, while commands are taken.
    async fn start(
        &self,
        plan: LaunchPlan,
        lock: &mut Option<SessionLock>,
        commands: &mut Commands,
        events_out: &EventsOut,
        driver: &mut DialectDriver,
        stop: &CancellationToken,
    ) -> Result<LaunchedAgent, (LinkEnd, Option<Process>)> {
        let mut starting = pin!(async {
            *lock = Some(self.launcher.lock_session(self.owner.session).await);
            tokio::time::sleep(self.backoff).await;
            let (config, shared_socket) = (&self.entry.config, self.shared_socket.as_deref());
            let (protocol, session) = (self.protocol, self.owner.session);
            self.launcher
                .launch(plan, config, protocol, shared_socket, session)
                .await
        });
        loop {
            // Dropping `starting` ends the process that it may have started.
            tokio::select! {
                biased;
                () = stop.cancelled() => return Err((LinkEnd::Stopped, None)),
                command = commands.recv(), if driver.can_take_command() => match command {
                    Some(command) => self.handle(command, driver).await,
                    None => return Err((LinkEnd::Stopped, None)),
                },
                permit = events_out.reserve(driver.next_event_bytes()) => match permit {
                    Some(permit) => send_next(permit, driver),
                    None => return Err((LinkEnd::Stopped, None)),
                },
                launched = &mut starting => return launched.map_err(|(error, process)| {
                    (LinkEnd::Failed(error), process)
                }),
            }
        }
    }

    async fn run_loop(
        &self,
        mut agent: LaunchedAgent,
        commands: &mut Commands,
        events_out: &EventsOut,
        driver: &mut DialectDriver,
        stop: &CancellationToken,
    ) -> Remains {
        let (status, group) = (&self.entry.status, agent.group());
        status.update(|report| report.groups.extend(group));
        let end = LinkLoop::new(self, &mut agent, commands, events_out, driver)
            .run(stop)
            .await;
        status.update(|report| report.groups.retain(|known| Some(*known) != group));
        Remains {
            end,
            process: agent.process.take(),
            agent: Some(agent),
        }
    }

    /// Hands a command to the driver, after reading the prompt's uploaded files.
    pub(super) async fn handle(&self, mut command: ToAgent, driver: &mut DialectDriver) {
        if let ToAgent::Prompt { run, prompt } = &mut command
            && let Err(message) = prompt.resolve(self.launcher.blobs()).await
        {
            let code = ErrorCode::TaskFailed;
            return driver.refuse(*run, Declined { code, message });
        }
        driver.handle(command, Instant::now());
    }

    /// How long a run may wait for the agent without a byte from it.
    pub(super) fn silence_timeout(&self) -> Duration {
        Duration::from_secs(self.entry.config.timeout_secs.get().into())
    }

    /// Closes the streams and ends the process, as gently as there is reason to.
    async fn end(&self, remains: &mut Remains, driver: &mut DialectDriver, is_shutdown: bool) {
        let is_failure = matches!(remains.end, LinkEnd::Failed(_));
        if let Some(agent) = &mut remains.agent {
            if !is_failure {
                write_farewell(&mut agent.main, driver).await;
            }
            agent.main = ByteStream::closed();
            agent.events = None;
        }
        if let Some(process) = remains.process.take() {
            let stderr = process.stderr().clone();
            let (exit, term) = if is_shutdown {
                (SHUTDOWN_TIMEOUT, SHUTDOWN_TIMEOUT)
            } else if is_failure {
                (Duration::ZERO, SHUTDOWN_TIMEOUT)
            } else {
                (EXIT_TIMEOUT, TERM_TIMEOUT)
            };
            process.end(exit, term).await;
            let status = &self.entry.status;
            status.update(|report| report.stderr_tail = stderr.all());
        }
        if let Some(agent) = &mut remains.agent {
            agent.release().await;
        }
    }

    /// Why a command after the agent's regular end did not reach it.
    fn ended(&self) -> Declined {
        unusable(
            &self.entry.name,
            ErrorCode::ConnectionLost,
            "it ended before this reached it",
        )
    }

    /// Records a failure; none if the link did not fail.
    fn failure(&self, remains: &Remains, driver: &DialectDriver) -> Option<LinkFailure> {
        let LinkEnd::Failed(error) = &remains.end else {
            return None;
        };
        let stderr = remains.process.as_ref().map(Process::stderr);
        let non_json = driver.first_non_json();
        let non_json =
            non_json.map(|line| stderr.map_or(line.to_owned(), |stderr| stderr.clean(line)));
        let excerpt = stderr.and_then(StderrTail::excerpt);
        Some(self.record_failure(error, excerpt, non_json))
    }

    /// Records and logs a failure for the operator; returns it as the session's users get it.
    fn record_failure(
        &self,
        error: &AgentError,
        stderr: Option<String>,
        non_json: Option<String>,
    ) -> LinkFailure {
        let (name, session) = (&self.entry.name, self.owner.session);
        let mut why = error.to_string();
        if let Some(line) = non_json.filter(|_| !matches!(error, AgentError::Silent { .. })) {
            why = format!(
                "{why}; it wrote to its standard output what is not its protocol, such as {line:?}"
            );
        }
        let last_error = Some((self.clock.wall(), why.clone()));
        let status = &self.entry.status;
        status.update(|report| {
            report.last_error = last_error;
            report.last_cause = error.cause();
        });
        if error.is_crash() {
            status.record_crash(session, Instant::now());
        }
        tracing::warn!(
            agent = name,
            dialect = self.protocol.name,
            session.id = %session,
            error = %error,
            "agent failed"
        );
        if let Some(stderr) = stderr {
            why = format!("{why}. Its last words: {stderr}");
        }
        let declined = match error {
            AgentError::Refused(declined) => declined.clone(),
            _ => unusable(name, error.code(), &why),
        };
        LinkFailure {
            cause: error.cause(),
            declined,
        }
    }
}
