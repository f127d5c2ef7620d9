//! `switchboard move`: moves everything from SQLite to Postgres. (`migrate` brings a schema up to date.)

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use serde_json::json;

use super::output::{Output, warn};
use crate::clock::Clock;
use crate::config::Loaded;
use crate::domain::audit::{Action, AuditContext};
use crate::domain::secret::Secret;
use crate::gateway::InstanceLock;
use crate::store::{self, Config, MoveMode, MovedTable};

#[derive(Debug, clap::Args)]
pub(super) struct Options {
    /// An empty Postgres database [default: `data.database_url`]
    #[arg(long, value_name = "URL", conflicts_with = "to_file")]
    to: Option<String>,
    /// A file that holds the URL, for a password that must not show in the process list
    #[arg(long, value_name = "FILE")]
    to_file: Option<PathBuf>,
    /// Only report what would be moved, and whether it can be
    #[arg(long)]
    dry_run: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(
    loaded: Loaded,
    options: Options,
    mut out: Output,
) -> anyhow::Result<ExitCode> {
    let config = loaded.config.data;
    let target = target(&config, &options)?;
    store::make_directory(&config)?;
    // Held to the end: no gateway can start meanwhile.
    let _alone = InstanceLock::claim(&config.dir).await?;
    let rehearsal = if options.dry_run {
        MoveMode::DryRun
    } else {
        MoveMode::Move
    };
    // Nothing left to do if standard error is closed.
    let mut tell =
        |table: &str, rows: u64| drop(writeln!(io::stderr(), "{table}: {rows} rows copied"));
    let moved = store::move_to_postgres(&config, &target, rehearsal, &mut tell).await?;
    let there = Config {
        dir: config.dir.clone(),
        database_url: Some(target),
    };
    if !options.dry_run {
        let recorded = record(&there, config.sqlite_path().display().to_string()).await;
        if let Err(error) = recorded {
            warn(format!(
                "the audit log does not tell of this move: {error:#}"
            ));
        }
    }
    if options.json {
        out.json(&described(&moved, options.dry_run))?;
    } else {
        tell_all(&moved, &options, &config, &mut out)?;
    }
    Ok(ExitCode::SUCCESS)
}

async fn record(there: &Config, from: String) -> anyhow::Result<()> {
    let store = store::open(there).await?;
    let act = AuditContext::operator(Clock::system().wall()).did(Action::Moved, from);
    let recorded = store.record(&act).await;
    store.close().await;
    Ok(recorded?)
}

fn target(config: &Config, options: &Options) -> anyhow::Result<Secret> {
    if let Some(url) = &options.to {
        return Ok(url.clone().into());
    }
    if let Some(file) = &options.to_file {
        let text = std::fs::read_to_string(file)
            .with_context(|| format!("cannot read {}", file.display()))?;
        return Ok(text.trim_end().to_owned().into());
    }
    match &config.database_url {
        Some(url) => Ok(url.clone()),
        None => bail!(
            "where to? Name an empty database with --to postgres://user:password@host/database"
        ),
    }
}

fn described(moved: &[MovedTable], dry_run: bool) -> serde_json::Value {
    let tables: Vec<_> = moved
        .iter()
        .map(|table| json!({ "table": table.table, "rows": table.rows, "checksum": (!dry_run).then_some(&table.checksum) }))
        .collect();
    json!({ "moved": !dry_run, "tables": tables })
}

fn tell_all(
    moved: &[MovedTable],
    options: &Options,
    config: &Config,
    out: &mut Output,
) -> anyhow::Result<()> {
    let rows: Vec<[String; 3]> = moved
        .iter()
        .map(|table| {
            let checksum = table.checksum.get(..16).unwrap_or_default();
            [
                table.table.clone(),
                table.rows.to_string(),
                checksum.to_owned(),
            ]
        })
        .collect();
    out.table(["TABLE", "ROWS", "CHECKSUM"], &rows)?;
    if options.dry_run {
        return Ok(out.line("Nothing was moved: this is what there is, and the target is empty")?);
    }
    out.line("Everything is there, counted and compared")?;
    out.line(format!(
        "Set data.database_url (best as database_url_file) and start; uploaded files stay in {}",
        config.dir.join("attachments").display()
    ))?;
    Ok(out.line(format!(
        "{} is as it was, and knows that it was moved: a gateway that is started on it gives its journals \
         new epochs. Remove it once all is well",
        config.sqlite_path().display()
    ))?)
}
