//! `switchboard health`: asks the running gateway whether it is ready.

use std::process::ExitCode;

use anyhow::Context as _;

use super::local_health;
use super::output::Output;
use crate::config::Loaded;
use crate::gateway::InstanceLock;

pub(super) fn run(loaded: &Loaded, mut out: Output) -> anyhow::Result<ExitCode> {
    let config = &loaded.config;
    let listening = InstanceLock::running(&config.data.dir)
        .map_or(config.server.listen, |running| running.listening);
    let answer = local_health::ask(listening)
        .with_context(|| format!("no gateway answers on {listening}; is it running?"))?;
    out.line(answer.body)?;
    Ok(if answer.ready {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
