//! Agent readiness: whether a configured agent could be started, as far as that is known without starting it.

use std::collections::BTreeMap;

use super::agent_status::StatusReport;
use super::config::AgentConfig;
use super::process_environment::Environment;
use crate::domain::run::FailureCause;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AgentReadiness {
    /// It has been ready since the gateway started, or is built in.
    Ready,
    /// Nothing speaks against it; it was not started yet.
    Untested,
    /// Its program is not on this machine.
    NotInstalled,
    /// It did not become ready the last time.
    Failed,
}

impl AgentReadiness {
    pub(super) fn of(config: &AgentConfig, report: &StatusReport) -> Self {
        if config.is_demo() {
            return Self::Ready;
        }
        if is_missing(config) {
            return Self::NotInstalled;
        }
        match report.last_cause {
            // It was installed since.
            Some(FailureCause::NotInstalled) | None if report.ready == 0 => Self::Untested,
            Some(FailureCause::NotStarted) => Self::Failed,
            _ if report.ready == 0 => Self::Failed,
            _ => Self::Ready,
        }
    }
}

/// Looked up as at a start. A path with a placeholder is known only for a session.
fn is_missing(config: &AgentConfig) -> bool {
    let Some(program) = config.command.first().filter(|word| !word.contains('{')) else {
        return false;
    };
    let own = |name: &str| std::env::var_os(name);
    let environment = Environment::new(own, &config.pass_env, &config.env, &BTreeMap::new());
    environment.is_ok_and(|environment| environment.program(program).is_err())
}
