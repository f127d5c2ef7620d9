//! `switchboard serve`: runs the gateway.

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use rustix::process::{
    DumpableBehavior, Resource, Rlimit, getrlimit, set_dumpable_behavior, setrlimit,
};

use super::output::Output;
use crate::clock::Clock;
use crate::config::Loaded;
use crate::gateway::{Gateway, ServiceManager};
use crate::shutdown::{OsSignals, Shutdown};
use crate::telemetry::{self, Destination};

/// How long busy threads are waited for once draining is over.
const THREAD_TIMEOUT: Duration = Duration::from_millis(200);

pub(super) fn run(loaded: Loaded, out: Output) -> anyhow::Result<ExitCode> {
    telemetry::start_logging(&loaded.config.log);
    raise_descriptor_limit();
    hide_memory();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let served = runtime.block_on(serve(loaded, out));
    runtime.shutdown_timeout(THREAD_TIMEOUT);
    served?;
    Ok(ExitCode::SUCCESS)
}

async fn serve(loaded: Loaded, mut out: Output) -> anyhow::Result<()> {
    // Before anything starts: a supervisor that reads the banner may signal at once.
    let signals = OsSignals::install().context("cannot follow signals")?;
    let shutdown = Shutdown::default();
    let service_manager = ServiceManager::from_environment();
    let gateway = Gateway::build(loaded.config, Clock::system()).await?;
    let gateway = gateway.traced(trace_destination());
    print_banner(&gateway, &mut out).await?;
    tracing::info!(address = %gateway.listening(), version = env!("CARGO_PKG_VERSION"), "serving");
    service_manager.ready(gateway.urls().base());
    tokio::select! {
        served = gateway.run(shutdown.clone()) => served?,
        () = service_manager.keep_notified(&shutdown) => {}
        // Returns only after the second signal.
        () = shutdown.follow_signals(signals) => {}
    }
    Ok(())
}

/// Closes this process's memory and environment to other processes of the same system user, such as agents.
fn hide_memory() {
    if let Err(error) = set_dumpable_behavior(DumpableBehavior::NotDumpable) {
        tracing::warn!(%error, "the gateway's memory is open to processes of its system user");
    }
}

/// The trace collector, if one is configured. A wrong setting only turns traces off.
fn trace_destination() -> Option<Destination> {
    let variables = std::env::vars_os();
    let text = |(name, value): (OsString, OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    match Destination::from_variables(variables.filter_map(text)) {
        Ok(Some(destination)) => {
            tracing::info!(collector = destination.place(), "sending traces");
            Some(destination)
        }
        Ok(None) => None,
        Err(error) => {
            tracing::warn!(%error, "traces are off: cannot use an OTEL_ variable");
            None
        }
    }
}

/// Prints URLs on standard output. Not logged: the setup link is a secret.
async fn print_banner(gateway: &Gateway, out: &mut Output) -> anyhow::Result<()> {
    let urls = gateway.urls();
    let link = gateway.issue_setup_link().await?;
    let printed = (|| {
        out.line(format!("Switchboard {}", env!("CARGO_PKG_VERSION")))?;
        if let Some(link) = link {
            out.line(format!("  set up    {}", urls.setup(link.secret.expose())))?;
            out.line(
                "            works once, for an hour; `switchboard setup-url` prints a new one",
            )?;
        }
        out.line(format!("  open      {}", urls.page()))
    })();
    if let Err(error) = printed {
        // The gateway serves without it.
        tracing::debug!(%error, "cannot write to standard output");
    }
    Ok(())
}

/// Raises the limit on open files: every connection needs a descriptor, and shells set it low.
/// `switchboard doctor` shows a limit that cannot be raised.
fn raise_descriptor_limit() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: maximum,
        maximum,
    };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::debug!(%error, "cannot raise the limit on open files");
    }
}
