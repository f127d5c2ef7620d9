//! `switchboard setup-url`.

use std::process::ExitCode;

use super::desk::Desk;
use super::output::Output;
use crate::config::Loaded;

pub(super) async fn run(loaded: Loaded, mut out: Output) -> anyhow::Result<ExitCode> {
    let desk = Desk::open(loaded).await?;
    let link = desk.auth.issue_setup_link(desk.auth.operator()).await?;
    let addresses = desk.addresses();
    desk.close().await;
    let Some(link) = link else {
        anyhow::bail!(
            "there is an administrator already; `switchboard user list` shows who, \
             `switchboard user passwd NAME` prints a link for a new password"
        );
    };
    out.line(addresses.setup(link.secret.expose()))?;
    Ok(ExitCode::SUCCESS)
}
