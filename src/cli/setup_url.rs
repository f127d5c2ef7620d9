//! `switchboard setup-url`: prints a new setup link.

use std::process::ExitCode;

use super::context::CommandContext;
use super::output::Output;
use crate::config::Loaded;

pub(super) async fn run(loaded: Loaded, mut out: Output) -> anyhow::Result<ExitCode> {
    let context = CommandContext::open(loaded).await?;
    let link = context
        .auth
        .issue_setup_link(context.auth.operator())
        .await?;
    let urls = context.urls();
    context.close().await;
    let Some(link) = link else {
        anyhow::bail!(
            "there is an administrator already; `switchboard user list` shows who, \
             `switchboard user passwd NAME` prints a link for a new password"
        );
    };
    out.line(urls.setup(link.secret.expose()))?;
    Ok(ExitCode::SUCCESS)
}
