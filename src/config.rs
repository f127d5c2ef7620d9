//! Configuration: puts together the section struct that each module owns.
//!
//! Layers: defaults (`config/default.toml`, embedded) < file < environment < flags. Everything is validated
//! before anything is opened; every error names its place. The engine is in `config/layers.rs`. Touches the
//! modules' `Config` types only.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

mod effective;
mod environment;
mod error;
mod key;
mod known_keys;
mod layers;
mod protected_files;
mod reference;
mod schema_check;
mod secret_files;
mod suggestion;
mod toml_document;
mod tree;
mod tree_deserializer;

pub use error::{ConfigError, Place, Problem};

use crate::{auth, http, limits, runtime, session, store, telemetry};
use layers::{Complaint, Flag, Layered, Rules, Sources};

/// The reference: every key with its default and a sentence.
pub const DEFAULTS: &str = include_str!("../config/default.toml");

/// Used from the working directory if no file is named.
const USUAL_FILE: &str = "switchboard.toml";
/// Names the file, like `--config`.
const FILE_VARIABLE: &str = "SWITCHBOARD_CONFIG";

const RULES: Rules<'static> = Rules {
    secrets: &[
        "admin.password",
        "auth.signing_key",
        "data.database_url",
        "metrics.token",
    ],
    open_tables: &["agents"],
};

/// The reference page.
pub fn reference() -> String {
    reference::page(DEFAULTS, &RULES)
}

/// All sections.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The HTTP server.
    pub server: http::Config,
    /// Storage.
    pub data: store::Config,
    /// Logins and tokens.
    pub auth: auth::Config,
    /// The first administrator.
    pub admin: auth::AdminConfig,
    /// Rate limits and sizes.
    pub limits: limits::Config,
    /// Sessions.
    pub sessions: session::Config,
    /// Journals.
    pub journal: session::JournalConfig,
    /// The audit log.
    pub audit: store::AuditConfig,
    /// Agents.
    pub agents: runtime::Config,
    /// Limits on running agents.
    pub runtime: runtime::Limits,
    /// Metrics.
    pub metrics: http::MetricsConfig,
    /// Logs.
    pub log: telemetry::Config,
    /// The configuration file and those of secrets: agents may not read them.
    #[serde(skip)]
    pub protected_files: Vec<PathBuf>,
}

/// Flags of the command line that set values.
#[derive(Clone, Debug, Default)]
pub struct Flags {
    /// `--config`
    pub config: Option<PathBuf>,
    /// `--listen`
    pub listen: Option<String>,
    /// `--data-dir`
    pub data_dir: Option<PathBuf>,
}

/// A valid configuration and where its values come from.
#[derive(Debug)]
pub struct Loaded {
    /// The values.
    pub config: Config,
    /// The file that was read, if any.
    pub file: Option<PathBuf>,
    printed: String,
}

impl Loaded {
    /// The effective configuration as TOML, without secrets.
    pub fn print(&self) -> &str {
        &self.printed
    }
}

/// Reads all layers. `variables` is the environment.
pub fn load(flags: &Flags, variables: Vec<(String, String)>) -> Result<Loaded, ConfigError> {
    let file = file(flags, &variables);
    let protected_files = protected_files::find(file.as_deref(), &variables);
    let sources = Sources {
        defaults: DEFAULTS,
        file: file.as_deref(),
        variables,
        flags: set_by(flags),
    };
    let layered: Layered<Config> = layers::load(&sources, &RULES)?;
    let complaints = complaints(&layered.value);
    let layered = layered.unless(complaints)?;
    let printed = layered.print();
    let mut config = layered.value;
    config.protected_files = protected_files;
    Ok(Loaded {
        config,
        file,
        printed,
    })
}

fn file(flags: &Flags, variables: &[(String, String)]) -> Option<PathBuf> {
    let from_variable = || {
        let (_, path) = variables.iter().find(|(name, _)| name == FILE_VARIABLE)?;
        Some(PathBuf::from(path))
    };
    let usual = || Path::new(USUAL_FILE).exists().then(|| USUAL_FILE.into());
    flags.config.clone().or_else(from_variable).or_else(usual)
}

fn set_by(flags: &Flags) -> Vec<Flag> {
    let listen = flags.listen.clone().map(|listen| Flag {
        key: "server.listen",
        value: listen.into(),
        name: "--listen",
    });
    let data_dir = flags.data_dir.as_ref().map(|dir| Flag {
        key: "data.dir",
        value: dir.display().to_string().into(),
        name: "--data-dir",
    });
    listen.into_iter().chain(data_dir).collect()
}

fn complaints(config: &Config) -> Vec<Complaint> {
    [
        config.server.complaints(),
        config.data.complaints(),
        config.auth.complaints(),
        config.admin.complaints(),
        config.agents.complaints(),
        config.sessions.complaints(&config.agents),
        config.metrics.complaints(),
        config.log.complaints(),
    ]
    .into_iter()
    .flatten()
    .map(|(key, message)| Complaint {
        key: key.to_owned(),
        message,
        hint: None,
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    fn problems(pairs: &[(&str, &str)]) -> String {
        load(&Flags::default(), variables(pairs))
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn the_defaults_are_good_and_name_every_key() {
        let loaded = load(&Flags::default(), Vec::new()).unwrap();
        let all = serde_json::to_value(&loaded.config).unwrap();
        for (section, keys) in all.as_object().unwrap() {
            assert!(
                DEFAULTS.contains(&format!("\n[{section}]\n")),
                "[{section}]"
            );
            for key in keys.as_object().unwrap().keys() {
                let named = [format!("\n{key} = "), format!("\n# {key} = ")];
                assert!(
                    named.iter().any(|line| DEFAULTS.contains(line)),
                    "{section}.{key}"
                );
            }
        }
    }

    #[test]
    fn a_variable_outranks_the_defaults_and_a_flag_outranks_it() {
        let listen = [("SWITCHBOARD__SERVER__LISTEN", "127.0.0.1:1")];
        let loaded = load(&Flags::default(), variables(&listen)).unwrap();
        assert_eq!(loaded.config.server.listen.port(), 1);
        let flags = Flags {
            listen: Some("127.0.0.1:2".into()),
            ..Flags::default()
        };
        let loaded = load(&flags, variables(&listen)).unwrap();
        assert_eq!(loaded.config.server.listen.port(), 2);
    }

    #[test]
    fn a_problem_names_the_variable_and_the_nearest_key() {
        let told = problems(&[("SWITCHBOARD__SERVER__LISEN", "127.0.0.1:1")]);
        assert!(told.contains("SWITCHBOARD__SERVER__LISEN"), "{told}");
        assert!(
            told.contains("did you mean `SWITCHBOARD__SERVER__LISTEN`?"),
            "{told}"
        );
    }

    #[test]
    fn values_that_cannot_work_are_refused() {
        for (name, value) in [
            ("SWITCHBOARD__SERVER__LISTEN", "nowhere"),
            ("SWITCHBOARD__SERVER__PUBLIC_URL", "agents.example.org"),
            ("SWITCHBOARD__SERVER__BASE_PATH", "agents/"),
            ("SWITCHBOARD__SERVER__TRUSTED_PROXIES", "10.0.0.0/33"),
            ("SWITCHBOARD__SERVER__MAX_CONNECTIONS", "0"),
            (
                "SWITCHBOARD__DATA__DATABASE_URL",
                "mysql://u:hidden-word@host/db",
            ),
            ("SWITCHBOARD__AUTH__ACCESS_TOKEN_MINUTES", "0"),
            ("SWITCHBOARD__AUTH__SIGNING_KEY", "secret"),
            ("SWITCHBOARD__ADMIN__USERNAME", "admin"),
            ("SWITCHBOARD__LIMITS__LOGINS_PER_MINUTE", "many"),
            ("SWITCHBOARD__METRICS__TOKEN", "short"),
            ("SWITCHBOARD__LOG__FORMAT", "xml"),
            ("SWITCHBOARD__LOG__LEVEL", "=,="),
        ] {
            let told = problems(&[(name, value)]);
            assert!(told.contains(name), "{name}: {told}");
            assert!(!told.contains("hidden-word"), "{told}");
        }
    }

    #[test]
    fn an_example_password_for_the_first_administrator_is_refused() {
        let told = problems(&[
            ("SWITCHBOARD__ADMIN__USERNAME", "admin"),
            ("SWITCHBOARD__ADMIN__PASSWORD", "changeme"),
        ]);
        assert!(told.contains("SWITCHBOARD__ADMIN__PASSWORD"), "{told}");
        assert!(!told.contains("changeme"), "{told}");
    }
}
