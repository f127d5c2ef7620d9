//! `switchboard health`.

use std::process::ExitCode;

use anyhow::Context as _;

use super::output::Output;
use super::probe;
use crate::config::Loaded;
use crate::gateway::Instance;

pub(super) fn run(loaded: &Loaded, mut out: Output) -> anyhow::Result<ExitCode> {
    let config = &loaded.config;
    let listening = Instance::running(&config.data.dir)
        .map_or(config.server.listen, |running| running.listening);
    let answer = probe::ask(listening)
        .with_context(|| format!("no gateway answers on {listening}; is it running?"))?;
    out.line(answer.body)?;
    Ok(if answer.ready {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
