//! Sandbox test: runs the probe in an agent's sandbox and reports what it reached.

use std::path::PathBuf;
use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use tokio::time::timeout;

use super::agent_test::{AgentTestError, Report, TESTER};
use super::config::SandboxMode;
use super::launch::SessionOwner;
use super::sandbox::KernelSupport;
use super::sandbox::probe::{Attempt, SUBCOMMAND, Tried};
use super::{Catalog, StartAgentError};
use crate::domain::id::{SessionId, UserId};

const PROBE_TIMEOUT: Duration = Duration::from_secs(30);
const END_TIMEOUT: Duration = Duration::from_secs(2);

/// What everything is denied that an agent must not do, and everything allowed that it needs.
struct Expected {
    denied: Vec<Attempt>,
    allowed: Vec<Attempt>,
}

impl Catalog {
    /// Tries an agent's sandbox from inside, and returns whether it holds. Starts no agent, but a probe in
    /// its place; `binary` is this program.
    pub(crate) async fn try_sandbox(
        &self,
        name: &str,
        binary: PathBuf,
        report: Report<'_>,
    ) -> Result<bool, AgentTestError> {
        let unknown = || StartAgentError::Unknown(name.into());
        let config = self.config(name).ok_or_else(unknown)?;
        let (Some(protocol), false) = (config.dialect(), config.command.is_empty()) else {
            report(format!("`{name}` is not a process of the gateway's."));
            return Ok(true);
        };
        if self.launcher().sandbox(config) == SandboxMode::Off {
            report(format!(
                "FAILED: `{name}` has no sandbox (`sandbox = \"off\"`)."
            ));
            return Ok(false);
        }
        for missing in KernelSupport::detect().missing() {
            report(format!("this kernel cannot restrict {missing}"));
        }
        let _lock = self.lock_test().ok_or(AgentTestError::Busy)?;
        let expected = self.expected();
        let attempts: Vec<&Attempt> = expected.denied.iter().chain(&expected.allowed).collect();
        let mut config = config.clone();
        let attempts = serde_json::to_string(&attempts).unwrap_or_default();
        let program = binary.to_string_lossy().into_owned();
        config.command = vec![program, SUBCOMMAND.into(), attempts];
        let owner = SessionOwner {
            session: SessionId::new(),
            user: UserId::new(),
            user_name: TESTER.into(),
        };
        let prepared = self.launcher().prepare(&config, protocol, &owner);
        let tried = match prepared {
            Ok(plan) => self.launcher().run_to_end(plan, PROBE_TIMEOUT).await,
            Err(error) => Err(error.to_string()),
        };
        self.remove_traces(name, &owner.session);
        match tried {
            Ok(output) => Ok(judge(&output, &expected, report)),
            Err(error) => {
                report(format!("FAILED: {error}"));
                Ok(false)
            }
        }
    }

    fn expected(&self) -> Expected {
        let own = std::process::id();
        let launcher = self.launcher();
        let data = launcher.data();
        let mut denied = vec![
            Attempt::List(data.to_owned()),
            Attempt::List(data.join("workspaces")),
            Attempt::List(data.join("homes")),
            Attempt::Write(data.to_owned()),
            Attempt::List("/etc/switchboard".into()),
            Attempt::Read("/etc/shadow".into()),
            Attempt::Write("/etc".into()),
            Attempt::Write("/usr".into()),
            Attempt::Write("/tmp".into()),
            Attempt::Write("/var/tmp".into()),
            Attempt::Environment(own),
            Attempt::Memory(own),
            Attempt::Signal(own.cast_signed()),
            Attempt::ParentEnvironment,
        ];
        let entries = std::fs::read_dir(data).into_iter().flatten().flatten();
        let files = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
        denied.extend(files.map(|entry| Attempt::Read(entry.path())));
        denied.extend(launcher.protected().iter().cloned().map(Attempt::Read));
        let allowed = vec![
            Attempt::Write(".".into()),
            Attempt::WriteVariable("HOME".into()),
            Attempt::WriteVariable("TMPDIR".into()),
            Attempt::Read("/etc/hosts".into()),
            Attempt::Read("/usr/bin/env".into()),
        ];
        Expected { denied, allowed }
    }
}

/// Reports what was tried; false if anything was not as it must be.
fn judge(output: &[u8], expected: &Expected, report: Report<'_>) -> bool {
    let Ok(tried) = serde_json::from_slice::<Vec<Tried>>(output) else {
        report("FAILED: the probe did not answer.".into());
        return false;
    };
    let mut holds = tried.len() == expected.denied.len() + expected.allowed.len();
    for Tried { attempt, error } in tried {
        let is_denied = expected.denied.contains(&attempt);
        let word = match (is_denied, &error) {
            (true, Some(_)) => "denied",
            (false, None) => "allowed",
            (true, None) => "REACHED",
            (false, Some(_)) => "MISSING",
        };
        holds &= is_denied == error.is_some();
        let error = error.map(|error| format!(" ({error})")).unwrap_or_default();
        report(format!("{word}: {attempt}{error}"));
    }
    report(if holds {
        "the sandbox holds.".into()
    } else {
        "FAILED: the sandbox does not hold.".into()
    });
    holds
}

impl super::launch::Launcher {
    /// Runs a prepared process to its end and returns what it printed.
    async fn run_to_end(
        &self,
        plan: super::launch::LaunchPlan,
        within: Duration,
    ) -> Result<Vec<u8>, String> {
        let process = self.start_process(plan).await;
        let mut process = process.map_err(|error| error.to_string())?;
        let mut output = Vec::new();
        let Some((mut stdout, _stdin)) = process.pipes() else {
            return Err("it has no pipes".into());
        };
        let reading = timeout(within, stdout.read_to_end(&mut output)).await;
        process.end(END_TIMEOUT, END_TIMEOUT).await;
        match reading {
            Ok(Ok(_)) => Ok(output),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err("it did not end in time".into()),
        }
    }
}
