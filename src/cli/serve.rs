//! `switchboard serve`.

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::output::Output;
use crate::clock::Clock;
use crate::config::Loaded;
use crate::gateway::{Gateway, Supervisor};
use crate::shutdown::{Shutdown, Signals};
use crate::telemetry::{self, Destination};

/// Once draining is over, threads that are still busy are not waited for longer than this.
const LAST_MOMENT: Duration = Duration::from_millis(200);

pub(super) fn run(loaded: Loaded, out: Output) -> anyhow::Result<ExitCode> {
    telemetry::start_logging(&loaded.config.log);
    raise_descriptor_limit();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let served = runtime.block_on(serve(loaded, out));
    runtime.shutdown_timeout(LAST_MOMENT);
    served?;
    Ok(ExitCode::SUCCESS)
}

async fn serve(loaded: Loaded, mut out: Output) -> anyhow::Result<()> {
    // Before anything is started: whoever reads the greeting may stop us at once.
    let signals = Signals::install().context("cannot follow signals")?;
    let shutdown = Shutdown::default();
    let supervisor = Supervisor::from_environment();
    let gateway = Gateway::build(loaded.config, Clock::system()).await?;
    let gateway = gateway.traced(traces_to());
    greet(&gateway, &mut out).await?;
    tracing::info!(address = %gateway.listening(), version = env!("CARGO_PKG_VERSION"), "serving");
    supervisor.ready(gateway.addresses().base());
    tokio::select! {
        served = gateway.run(shutdown.clone()) => served?,
        () = supervisor.attend(&shutdown) => {}
        // Ends only after both wishes.
        () = shutdown.follow(signals) => {}
    }
    Ok(())
}

/// Where traces go, if anywhere. What is wrong with that is no reason not to serve.
fn traces_to() -> Option<Destination> {
    let variables = std::env::vars_os();
    let text = |(name, value): (OsString, OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    match Destination::from_variables(variables.filter_map(text)) {
        Ok(Some(destination)) => {
            tracing::info!(collector = destination.place(), "traces are on");
            Some(destination)
        }
        Ok(None) => None,
        Err(error) => {
            tracing::warn!(%error, "traces are off: a variable cannot be used");
            None
        }
    }
}

/// To people, on standard output: the link is a secret and does not belong into a log.
async fn greet(gateway: &Gateway, out: &mut Output) -> anyhow::Result<()> {
    let addresses = gateway.addresses();
    let link = gateway.issue_setup_link().await?;
    let greeted = (|| {
        out.line(format!("Switchboard {}", env!("CARGO_PKG_VERSION")))?;
        if let Some(link) = link {
            out.line(format!(
                "  set up    {}",
                addresses.setup(link.secret.expose())
            ))?;
            out.line(
                "            works once, for an hour; `switchboard setup-url` prints a new one",
            )?;
        }
        out.line(format!("  open      {}", addresses.page()))
    })();
    if let Err(error) = greeted {
        // A gateway serves whether or not anybody reads its greeting.
        tracing::debug!(%error, "nobody reads standard output");
    }
    Ok(())
}

/// Every connection needs a descriptor, and shells start programs with a low limit out of caution
/// for old ones. What cannot be raised shows in `switchboard doctor`.
fn raise_descriptor_limit() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let wished = Rlimit {
        current: maximum,
        maximum,
    };
    if let Err(error) = setrlimit(Resource::Nofile, wished) {
        tracing::debug!(%error, "the limit on open files stays as it is");
    }
}
