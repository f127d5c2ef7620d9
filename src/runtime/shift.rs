//! The working life of one agent: started, spoken with, ended, all in one task.
//!
//! Carries bytes between the line and the [`Interpreter`], and what is said between that and the
//! session. Nothing is read from the agent while the session does not keep up, and nothing is taken
//! from the session while the agent does not: the pressure goes down to the pipe.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

mod line;
mod mouth;

use super::briefing::brief;
use super::catalog::Entry;
use super::config::FramingName;
use super::dialect::{Lane, Order, Person, Protocol, Setup, Utterance};
use super::interpreter::{Interpreter, Verdict, lost};
use super::last_words::LastWords;
use super::lines::Lines;
use super::pace::Pace;
use super::process::Process;
use super::room::Room;
use super::seats::Seat;
use super::talk::{Declined, FromAgent, ToAgent};
use super::transport::Wire;
use super::transport::hub::Hub;
use super::trouble::Trouble;
use super::workshop::{Opened, Place, Prepared, Turn, Workshop};
use line::{LAST_LINES, ended, goodbye, read_events, rest, take, until};
use mouth::{Ears, Mouth, tell};

use crate::clock::Clock;
use crate::domain::code::Code;

/// An agent that is not ready after so long never will be.
const READY_WITHIN: Duration = Duration::from_mins(3);
/// After the goodbye and the end of its input, it may go by itself for so long; then it is asked to,
/// then forced.
const LEAVE: Duration = Duration::from_secs(2);
const GRACE: Duration = Duration::from_secs(2);
/// The same when the gateway itself has to go.
const QUICKLY: Duration = Duration::from_millis(300);
/// How long the session may take to hear the last of it: before the process is ended, and after.
const SOON: Duration = Duration::from_secs(2);
const AT_LAST: Duration = Duration::from_mins(1);
const BUFFER: usize = 64 * 1024;

/// One agent that is to be started.
pub(super) struct Shift {
    pub(super) entry: Arc<Entry>,
    pub(super) protocol: &'static Protocol,
    pub(super) workshop: Arc<Workshop>,
    pub(super) hub: Option<Arc<Hub>>,
    pub(super) place: Place,
    pub(super) thread: Option<String>,
    pub(super) history: Vec<Utterance>,
    /// Waited for before anything is started: it has crashed before.
    pub(super) rest: Duration,
    pub(super) room: Room,
    pub(super) clock: Clock,
    /// Given back when the agent is gone.
    pub(super) seat: Seat,
}

/// Why it ended.
enum End {
    /// Nobody needs it any more.
    Dismissed,
    /// It has done its part.
    Finished,
    /// Something went wrong.
    Trouble(Trouble),
}

impl Shift {
    /// Works until dismissed, finished or in trouble.
    pub(super) async fn run(
        self,
        mut ears: Ears,
        back: mpsc::Sender<FromAgent>,
        stop: CancellationToken,
        gateway_stop: CancellationToken,
    ) {
        let room = self.room.clone();
        let mouth = Mouth { back, room };
        self.entry.record.note(|told| {
            told.live += 1;
            told.starts += 1;
        });
        let declined = self
            .run_inner(&mut ears, &mouth, &stop, &gateway_stop)
            .await;
        self.entry.record.note(|told| told.live -= 1);
        drop(self.seat);
        if let Some(declined) = declined {
            mouth.refuse(&mut ears, &declined).await;
        }
    }

    /// Says why whoever asks next has to be refused, if nobody has heard it yet.
    async fn run_inner(
        &self,
        ears: &mut Ears,
        mouth: &Mouth,
        stop: &CancellationToken,
        gateway_stop: &CancellationToken,
    ) -> Option<Declined> {
        let config = &self.entry.config;
        let prepared = match self.workshop.prepare(config, self.protocol, &self.place) {
            Ok(prepared) => prepared,
            Err(trouble) => return Some(self.blame(&trouble, None, None)),
        };
        let delimiter = config.framing(self.protocol).delimiter();
        let seconds = config.question_timeout_secs;
        let patience = seconds.map(|seconds| Duration::from_secs(seconds.get().into()));
        let setup = match self.setup(&prepared) {
            Ok(setup) => setup,
            Err(trouble) => return Some(self.blame(&trouble, None, None)),
        };
        let mut interpreter = Interpreter::new((self.protocol.speaker)(setup), delimiter, patience);
        let mut turn = None;
        let opened = self
            .open(prepared, &mut turn, ears, mouth, &mut interpreter, stop)
            .await;
        let (end, process, mut opened) = match opened {
            Ok(mut opened) => {
                let (record, group) = (&self.entry.record, opened.group());
                record.note(|told| told.groups.extend(group));
                let end = self
                    .talk(&mut opened, ears, mouth, &mut interpreter, stop)
                    .await;
                record.note(|told| told.groups.retain(|known| Some(*known) != group));
                (end, opened.process.take(), Some(opened))
            }
            Err((end, process)) => (end, process, None),
        };
        let hurry = gateway_stop.is_cancelled();
        let declined = match &end {
            End::Dismissed | End::Finished => None,
            End::Trouble(trouble) => {
                let words = process.as_ref().map(Process::words);
                let noise = interpreter.noise();
                let noise =
                    noise.map(|noise| words.map_or(noise.to_owned(), |words| words.clean(noise)));
                let words = words.and_then(LastWords::brief);
                Some(self.blame(trouble, words, noise))
            }
        };
        let mut heard = true;
        if let Some(declined) = &declined {
            heard = interpreter.lose(declined);
        }
        if heard {
            // Nothing more is taken in: whoever wants something starts another one.
            ears.close();
        }
        mouth.tell_all(&mut interpreter, SOON).await;
        if let Some(opened) = &mut opened {
            if !matches!(end, End::Trouble(_)) {
                goodbye(opened, &mut interpreter).await;
            }
            opened.main = Wire::closed();
            opened.events = None;
        }
        if let Some(process) = process {
            self.end(process, &end, hurry).await;
        }
        if let Some(opened) = &mut opened {
            opened.clear();
        }
        // The next life of this session's agent may begin.
        drop(turn);
        mouth.tell_all(&mut interpreter, AT_LAST).await;
        declined.filter(|_| !heard)
    }

    fn setup(&self, prepared: &Prepared) -> Result<Setup, Trouble> {
        let mut options = self.entry.config.options.clone();
        if self.entry.config.framing == Some(FramingName::NodeIpc) {
            options.insert("framing".into(), "node-ipc".into());
        }
        if let Some(path) = options.get("token_file").and_then(|path| path.as_str()) {
            let token = std::fs::read_to_string(path).map_err(|source| Trouble::EnvFile {
                variable: "options.token_file".into(),
                path: path.into(),
                source,
            })?;
            options.insert("token".into(), token.trim().into());
        }
        Ok(Setup {
            agent: self.entry.name.clone(),
            version: env!("CARGO_PKG_VERSION"),
            directory: prepared.directory.to_string_lossy().into_owned(),
            thread: self.thread.clone(),
            history: self.history.clone(),
            session: self.place.session.to_string(),
            user: Person {
                id: self.place.user.to_string(),
                name: self.place.user_name.clone(),
            },
            options,
        })
    }

    /// Starts and connects, while orders are taken in.
    async fn open(
        &self,
        prepared: Prepared,
        turn: &mut Option<Turn>,
        ears: &mut Ears,
        mouth: &Mouth,
        interpreter: &mut Interpreter,
        stop: &CancellationToken,
    ) -> Result<Opened, (End, Option<Process>)> {
        let config = &self.entry.config;
        let mut opening = pin!(async {
            *turn = Some(self.workshop.turn(self.place.session).await);
            tokio::time::sleep(self.rest).await;
            let hub = self.hub.as_deref();
            let (protocol, session) = (self.protocol, self.place.session);
            self.workshop
                .connect(prepared, config, protocol, hub, session)
                .await
        });
        loop {
            // Dropping `opening` ends the process that it may have started.
            tokio::select! {
                biased;
                () = stop.cancelled() => return Err((End::Dismissed, None)),
                command = ears.recv(), if interpreter.has_room() => match command {
                    Some(command) => self.hear(command, interpreter).await,
                    None => return Err((End::Dismissed, None)),
                },
                place = mouth.place(interpreter.next_told()) => match place {
                    Some(place) => tell(place, interpreter),
                    None => return Err((End::Dismissed, None)),
                },
                opened = &mut opening => return opened.map_err(|(trouble, process)| {
                    (End::Trouble(trouble), process)
                }),
            }
        }
    }

    async fn hear(&self, command: ToAgent, interpreter: &mut Interpreter) {
        let now = Instant::now();
        let order = match command {
            ToAgent::Prompt { run, prompt } => {
                match brief(prompt, self.workshop.contents()).await {
                    Ok(brief) => Order::Prompt { run, brief },
                    Err(message) => {
                        let code = Code::TaskFailed;
                        return interpreter.refuse(run, Declined { code, message });
                    }
                }
            }
            // Told only to agents that can; these begin anew.
            ToAgent::Resume { run, .. } => {
                let message = "The agent cannot go on with a run; ask again.".into();
                let code = Code::ConnectionLost;
                return interpreter.refuse(run, Declined { code, message });
            }
            ToAgent::Steer { run, text } => Order::Steer { run, text },
            ToAgent::Cancel { run } => Order::Cancel { run },
            ToAgent::Answer {
                question,
                resolution,
            } => Order::Answer {
                question,
                resolution,
            },
            ToAgent::Inquire { id, inquiry } => Order::Inquire { id, inquiry },
            ToAgent::Settings(change) => Order::Settings(change),
            ToAgent::Tools(tools) => Order::Tools(tools),
            ToAgent::Context(context) => Order::Context(context),
            ToAgent::QueueModes(modes) => Order::QueueModes(modes),
        };
        interpreter.hear(order, now);
    }

    async fn talk(
        &self,
        opened: &mut Opened,
        ears: &mut Ears,
        mouth: &Mouth,
        interpreter: &mut Interpreter,
        stop: &CancellationToken,
    ) -> End {
        let config = &self.entry.config;
        let framing = config.framing(self.protocol);
        let longest = config.max_line_bytes.get() as usize;
        let mut lines = [Lines::new(framing, longest), Lines::new(framing, longest)];
        let silence = Duration::from_secs(config.timeout_secs.get().into());
        let mut buffers = (
            vec![0; BUFFER],
            vec![0; if opened.events.is_some() { BUFFER } else { 0 }],
        );
        let begun = Instant::now();
        let (mut pace, mut last_heard, mut run_bytes) = (Pace::new(begun), begun, 0_u64);
        let (mut was_ready, mut was_awaited, mut was_running) = (false, false, false);
        interpreter.open(begun);
        loop {
            let now = Instant::now();
            self.count(interpreter);
            match interpreter.verdict() {
                Some(Verdict::Failed(declined)) => return End::Trouble(Trouble::Refused(declined)),
                Some(Verdict::Finished) => return End::Finished,
                None => {}
            }
            if interpreter.is_ready() != was_ready {
                was_ready = true;
                self.entry.record.learn(interpreter.lacks());
            }
            if interpreter.is_awaited() != was_awaited {
                was_awaited = !was_awaited;
                last_heard = now;
            }
            if interpreter.is_running() != was_running {
                was_running = !was_running;
                run_bytes = 0;
            }
            if run_bytes > config.max_run_bytes {
                let bytes = config.max_run_bytes;
                return End::Trouble(Trouble::TooMuch { bytes });
            }
            let patience = if was_ready {
                last_heard + silence
            } else {
                begun + READY_WITHIN
            };
            let paused = pace.waits_until(now);
            let is_heard = interpreter.is_heard() && paused.is_none();
            let timer = interpreter.next_timer();
            let Opened {
                main,
                events,
                process,
                ..
            } = &mut *opened;
            // Every branch is cancel-safe: commands and places stay in their channels, `read` and `write`
            // have done nothing when they are dropped, and what is written is counted afterwards.
            tokio::select! {
                biased;
                () = stop.cancelled() => return End::Dismissed,
                // A cancel must not wait for a stream.
                command = ears.recv(), if interpreter.has_room() => match command {
                    Some(command) => self.hear(command, interpreter).await,
                    None => return End::Dismissed,
                },
                place = mouth.place(interpreter.next_told()) => match place {
                    Some(place) => {
                        tell(place, interpreter);
                        mouth.tell_at_once(interpreter);
                    }
                    None => return End::Dismissed,
                },
                written = main.writer.write(interpreter.unwritten(Lane::Main)),
                    if !interpreter.unwritten(Lane::Main).is_empty() => match written {
                    Ok(written @ 1..) => interpreter.wrote(Lane::Main, written),
                    _ => return self.gone(opened, &mut lines, mouth, interpreter).await,
                },
                read = main.reader.read(&mut buffers.0), if is_heard => match read {
                    Ok(read @ 1..) => {
                        // Not the time when the wait for it began.
                        let now = Instant::now();
                        (last_heard, run_bytes) = (now, run_bytes + read as u64);
                        pace.spend(read, now);
                        lines[0].push(&buffers.0[..read]);
                        take(&mut lines[0], Lane::Main, interpreter, now);
                    }
                    _ => return self.gone(opened, &mut lines, mouth, interpreter).await,
                },
                read = read_events(events, &mut buffers.1), if is_heard => match read {
                    Some(read) => {
                        // Not the time when the wait for it began.
                        let now = Instant::now();
                        (last_heard, run_bytes) = (now, run_bytes + read as u64);
                        pace.spend(read, now);
                        lines[1].push(&buffers.1[..read]);
                        take(&mut lines[1], Lane::Events, interpreter, now);
                    }
                    None => return self.gone(opened, &mut lines, mouth, interpreter).await,
                },
                () = ended(process) => return self.gone(opened, &mut lines, mouth, interpreter).await,
                () = until(timer) => interpreter.wake(Instant::now()),
                () = until(paused) => {}
                () = sleep_until(patience), if !was_ready || (interpreter.is_awaited() && is_heard) => {
                    let trouble = if was_ready {
                        Trouble::Silent { after: silence }
                    } else {
                        Trouble::NotReady { after: READY_WITHIN }
                    };
                    return End::Trouble(trouble);
                }
            }
        }
    }

    /// The line is closed, or the process has ended: the last lines are read, and it is found out why.
    async fn gone(
        &self,
        opened: &mut Opened,
        lines: &mut [Lines; 2],
        mouth: &Mouth,
        interpreter: &mut Interpreter,
    ) -> End {
        let events = opened.events.as_mut().map(|wire| (wire, Lane::Events));
        for (wire, lane) in [(&mut opened.main, Lane::Main)].into_iter().chain(events) {
            let lines = &mut lines[usize::from(lane == Lane::Events)];
            rest(wire, lane, lines, mouth, interpreter).await;
        }
        self.count(interpreter);
        match interpreter.verdict() {
            Some(Verdict::Failed(declined)) => return End::Trouble(Trouble::Refused(declined)),
            Some(Verdict::Finished) => return End::Finished,
            None => {}
        }
        let Some(process) = &mut opened.process else {
            return End::Trouble(Trouble::Closed);
        };
        let status = timeout(LAST_LINES, process.wait()).await;
        process.last_breath().await;
        End::Trouble(match status {
            Ok(Ok(status)) => Trouble::Ended { status },
            _ => Trouble::Closed,
        })
    }

    /// Ends a process, as gently as there is reason to.
    async fn end(&self, process: Process, end: &End, hurry: bool) {
        let words = process.words().clone();
        match end {
            _ if hurry => process.end(QUICKLY, QUICKLY).await,
            End::Trouble(_) => process.end(Duration::ZERO, QUICKLY).await,
            End::Dismissed | End::Finished => process.end(LEAVE, GRACE).await,
        }
        self.entry.record.note(|told| told.last_words = words.all());
    }

    /// What was of no use, since this was asked last.
    fn count(&self, interpreter: &mut Interpreter) {
        let tally = interpreter.tally();
        if tally != super::interpreter::Tally::default() {
            self.entry.record.note(|told| {
                told.strays += tally.strays;
                told.odd += tally.odd;
            });
        }
        if interpreter.has_worked() {
            self.entry.record.worked(self.place.session);
        }
    }

    /// Notes what went wrong, for the operator; and puts it into words for whoever has asked.
    fn blame(&self, trouble: &Trouble, words: Option<String>, noise: Option<String>) -> Declined {
        let name = &self.entry.name;
        let mut why = trouble.to_string();
        if let Some(noise) = noise.filter(|_| !matches!(trouble, Trouble::Silent { .. })) {
            why = format!(
                "{why}; it wrote to its standard output what is not its protocol, such as {noise:?}"
            );
        }
        let at = self.clock.wall();
        let error = why.clone();
        self.entry
            .record
            .note(|told| told.last_error = Some((at, error)));
        if trouble.is_crash() {
            let now = Instant::now();
            self.entry.record.crashed(self.place.session, now);
        }
        tracing::warn!(
            agent = name,
            dialect = self.protocol.name,
            session.id = %self.place.session,
            error = %trouble,
            "an agent cannot be used any more"
        );
        if let Some(words) = words {
            why = format!("{why}. Its last words: {words}");
        }
        match trouble {
            Trouble::Refused(declined) => declined.clone(),
            _ => lost(name, trouble.code(), &why),
        }
    }
}
