//! `switchboard doctor`: diagnoses problems and says how to fix them.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::ExitCode;

use jiff::Timestamp;
use rustix::process::{Resource, getrlimit};

mod finding;
mod http_client;
mod proxy_advice;
mod public_url;

use super::local_health;
use super::output::Output;
use crate::config::{Config, Loaded};
use crate::gateway::InstanceLock;
use crate::runtime::{AgentFinding, KernelSupport, Preflight, preflight};
use crate::store::{self, BlobOwner, Store};
use finding::Finding;

/// Below this much free space, warn.
const MIN_FREE_BYTES: u64 = 500 * 1024 * 1024;
/// Descriptors needed beside connections: database, logs, listeners.
const OWN_DESCRIPTORS: u64 = 64;

#[derive(Debug, clap::Args)]
pub(super) struct Options {
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Check the public address, and say what a proxy in front lacks
    /// [default: `server.public_url` and `server.base_path`]
    #[arg(long, value_name = "URL", num_args = 0..=1, default_missing_value = "")]
    url: Option<String>,
    /// Accept certificates of this authority only (PEM)
    #[arg(long, value_name = "FILE", requires = "url")]
    ca: Option<PathBuf>,
    /// Accept any certificate
    #[arg(long, requires = "url", conflicts_with = "ca")]
    insecure: bool,
    /// Do not test whether a quiet WebSocket stays open
    #[arg(long, requires = "url")]
    quick: bool,
    /// Port that must redirect plain HTTP to https
    #[arg(long, value_name = "PORT", requires = "url", default_value_t = 80)]
    http_port: u16,
}

pub(super) async fn run(
    loaded: Loaded,
    options: Options,
    mut out: Output,
) -> anyhow::Result<ExitCode> {
    let findings = match options.url {
        Some(_) => public_url::examine(loaded, &options).await?,
        None => examine(&loaded).await,
    };
    if options.json {
        out.json(&findings)?;
    } else {
        for finding in &findings {
            finding.print(&mut out)?;
        }
    }
    Ok(if findings.iter().any(Finding::is_problem) {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

async fn examine(loaded: &Loaded) -> Vec<Finding> {
    let config = &loaded.config;
    let mut findings = vec![configuration(loaded), clock(), descriptors(config)];
    findings.extend(names(config));
    match store::open(&config.data).await {
        Ok(store) => {
            findings.push(directory(config));
            findings.push(space(config));
            findings.push(database(store.as_ref()).await);
            findings.extend(home(store.as_ref()).await);
            findings.push(files(config, store.as_ref()).await);
            findings.push(accounts(store.as_ref()).await);
            store.close().await;
        }
        Err(error) => findings.push(Finding::problem(
            "database",
            error.to_string(),
            "Check data.dir and data.database_url.",
        )),
    }
    findings.extend(agents(config));
    findings.push(sandbox());
    findings.push(gateway(config));
    findings
}

/// Can the configured agents work on this machine?
fn agents(config: &Config) -> impl Iterator<Item = Finding> {
    let found = preflight(&config.agents, &config.data.dir).into_iter();
    let sentence = |fix: &str| {
        let mut letters = fix.chars();
        let first = letters.next().into_iter().flat_map(char::to_uppercase);
        first.chain(letters).chain(['.']).collect::<String>()
    };
    found.map(move |AgentFinding { agent, verdict }| match verdict {
        Preflight::Ready(about) => Finding::ok("agents", format!("{agent}: {about}")),
        Preflight::Doubt { found, fix } => {
            Finding::warning("agents", format!("{agent}: {found}"), sentence(&fix))
        }
        Preflight::Problem { found, fix } => {
            Finding::problem("agents", format!("{agent}: {found}"), sentence(&fix))
        }
    })
}

/// Can the kernel confine agents?
fn sandbox() -> Finding {
    let support = KernelSupport::detect();
    let found = format!("Landlock {}", support.landlock_abi);
    let missing = support.missing();
    if !support.has_landlock() {
        Finding::warning(
            "sandbox",
            "this kernel has no Landlock: agents reach every file that their system user can",
            "Use Linux 5.13 or later with Landlock enabled (`lsm=landlock,…`).",
        )
    } else if missing.is_empty() {
        Finding::ok("sandbox", found)
    } else {
        Finding::ok(
            "sandbox",
            format!("{found}; without {}", missing.join("; ")),
        )
    }
}

fn configuration(loaded: &Loaded) -> Finding {
    let found = match &loaded.file {
        Some(file) => file.display().to_string(),
        None => "defaults and the environment; no file".to_owned(),
    };
    Finding::ok("configuration", found)
}

fn clock() -> Finding {
    let now = Timestamp::now();
    let built_after = Timestamp::from_second(1_760_000_000).expect("a time in 2025");
    if now < built_after {
        Finding::problem(
            "clock",
            format!("{now:.0}"),
            "Set the time: tokens carry it.",
        )
    } else {
        Finding::ok("clock", format!("{now:.0}"))
    }
}

/// The hard limit on open files, to which the gateway raises its own.
fn descriptors(config: &Config) -> Finding {
    let needed = u64::from(config.server.max_connections.get()) + OWN_DESCRIPTORS;
    match getrlimit(Resource::Nofile).maximum {
        Some(allowed) if allowed < needed => Finding::warning(
            "open files",
            format!("at most {allowed}, but server.max_connections wants {needed}"),
            "Raise the limit (ulimit -n, LimitNOFILE=) or lower server.max_connections.",
        ),
        allowed => Finding::ok(
            "open files",
            allowed.map_or("no limit".to_owned(), |allowed| {
                format!("at most {allowed}")
            }),
        ),
    }
}

fn names(config: &Config) -> Vec<Finding> {
    let server = &config.server;
    let mut findings = Vec::new();
    match &server.public_url {
        None if !server.listen.ip().is_loopback() => findings.push(Finding::warning(
            "public_url",
            format!("not set, but listening on {}", server.listen),
            "Set server.public_url to where people find the gateway; other names are refused.",
        )),
        Some(url) if !url.is_https() => findings.push(Finding::warning(
            "public_url",
            format!("{url} is not encrypted"),
            "Put a proxy with TLS in front and use https.",
        )),
        Some(url) => findings.push(Finding::ok("public_url", url.to_string())),
        None => {}
    }
    if server
        .public_url
        .as_ref()
        .is_some_and(crate::http::Origin::is_https)
        && server.trusted_proxies.is_empty()
    {
        findings.push(Finding::warning(
            "proxies",
            "server.trusted_proxies is empty: everybody behind the proxy counts as one address",
            "Set it to the proxy's address, so that X-Forwarded-For is believed.",
        ));
    }
    findings
}

fn directory(config: &Config) -> Finding {
    let dir = &config.data.dir;
    let place = dir.display().to_string();
    match std::fs::metadata(dir) {
        Ok(about) if about.permissions().mode() & 0o077 != 0 => Finding::warning(
            "data directory",
            format!("{place} can be entered by others"),
            format!("It holds keys and password hashes: chmod 700 {place}"),
        ),
        Ok(_) => Finding::ok("data directory", place),
        Err(error) => Finding::problem(
            "data directory",
            format!("{place}: {error}"),
            "Check data.dir.",
        ),
    }
}

fn space(config: &Config) -> Finding {
    match rustix::fs::statvfs(&config.data.dir) {
        Ok(disk) => {
            let free = disk.f_bavail.saturating_mul(disk.f_frsize);
            let found = format!("{} MiB free", free / (1024 * 1024));
            if free < MIN_FREE_BYTES {
                Finding::warning("disk", found, "Make room: a full disk stops all work.")
            } else {
                Finding::ok("disk", found)
            }
        }
        Err(error) => Finding::warning("disk", error.to_string(), "Check data.dir."),
    }
}

async fn database(store: &dyn Store) -> Finding {
    let place = format!(
        "{} (schema version {})",
        store.location(),
        store.schema_version()
    );
    match store.integrity().await {
        Ok(complaints) if complaints.is_empty() => Finding::ok("database", place),
        Ok(complaints) => Finding::problem(
            "database",
            format!("{place}: {}", complaints.join("; ")),
            "The file is damaged: restore a backup.",
        ),
        Err(error) => Finding::problem(
            "database",
            format!("{place}: {error}"),
            "Check the database.",
        ),
    }
}

/// Was the database copied from elsewhere?
async fn home(store: &dyn Store) -> Option<Finding> {
    match store.identity().await {
        Ok(Some(_)) => None,
        Ok(None) => Some(Finding::warning(
            "home",
            "the database was restored or moved, or a standby took over, since a gateway was started on it",
            "If it is the right one: start the gateway (again), which gives its journals a new epoch.",
        )),
        Err(error) => Some(Finding::problem(
            "home",
            error.to_string(),
            "Check the database.",
        )),
    }
}

/// Do the uploaded files belong to the database?
async fn files(config: &Config, store: &dyn Store) -> Finding {
    let place = config.data.dir.join("attachments").display().to_string();
    match BlobOwner::find(&config.data.dir, store).await {
        Ok(BlobOwner::ThisDatabase | BlobOwner::Other { unknown: 0 }) => {
            Finding::ok("files", place)
        }
        Ok(BlobOwner::Other { unknown }) => Finding::warning(
            "files",
            format!(
                "{unknown} files in {place} are unknown to the database, which may be the wrong one: none is removed"
            ),
            "Check data.dir and data.database_url. If both are right: switchboard migrate --adopt-files",
        ),
        Err(error) => Finding::problem("files", format!("{place}: {error}"), "Check data.dir."),
    }
}

async fn accounts(store: &dyn Store) -> Finding {
    match store.has_admin().await {
        Ok(true) => Finding::ok("accounts", "there is an administrator"),
        Ok(false) => Finding::warning(
            "accounts",
            "there is no administrator yet",
            "Open the link that `switchboard setup-url` prints.",
        ),
        Err(error) => Finding::problem("accounts", error.to_string(), "Check the database."),
    }
}

fn gateway(config: &Config) -> Finding {
    let Some(running) = InstanceLock::running(&config.data.dir) else {
        return port(config);
    };
    let found = format!("process {} on {}", running.pid, running.listening);
    match local_health::ask(running.listening) {
        Ok(answer) if answer.ready => Finding::ok("gateway", found),
        Ok(answer) => Finding::problem(
            "gateway",
            format!("{found}: {}", answer.body),
            "See its logs.",
        ),
        Err(error) => Finding::problem("gateway", format!("{found}: {error}"), "See its logs."),
    }
}

fn port(config: &Config) -> Finding {
    let listen = config.server.listen;
    match TcpListener::bind(listen) {
        Ok(_) => Finding::ok("gateway", format!("not running; {listen} is free")),
        Err(error) => Finding::problem(
            "gateway",
            format!("not running, and cannot listen on {listen}: {error}"),
            "Stop what uses that address, or choose another with --listen.",
        ),
    }
}
