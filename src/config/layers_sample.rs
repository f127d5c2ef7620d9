//! A small configuration with one key of each kind, and ways to load it.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::SocketAddr;

use serde::{Deserialize, Serialize, Serializer};
use tempfile::NamedTempFile;

use super::super::{Layered, Rules, Sources, load};

pub(super) const DEFAULTS: &str = r#"
[server]
listen = "127.0.0.1:8080"
max_connections = 100
trusted_proxies = []
ports = []
quiet = false
[log]
format = "text"
[admin]
[agents.demo]
protocol = "demo"
"#;

pub(super) const RULES: Rules<'_> = Rules {
    secrets: &["admin.password", "agents.*.env.*"],
    open_tables: &["agents"],
};

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Sample {
    pub(super) server: Server,
    pub(super) log: Log,
    pub(super) admin: Admin,
    pub(super) agents: BTreeMap<String, Agent>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Server {
    pub(super) listen: SocketAddr,
    pub(super) max_connections: u16,
    pub(super) trusted_proxies: Vec<String>,
    pub(super) ports: Vec<u16>,
    pub(super) quiet: bool,
    pub(super) public_port: Option<u16>,
}

#[derive(Deserialize, Serialize)]
pub(super) struct Log {
    pub(super) format: Format,
}

#[derive(Debug, Deserialize, Serialize, PartialEq)]
#[serde(rename_all = "lowercase")]
pub(super) enum Format {
    Text,
    Json,
}

#[derive(Deserialize, Serialize)]
pub(super) struct Admin {
    pub(super) username: Option<String>,
    pub(super) password: Option<Password>,
}

#[derive(Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Password(pub(super) String);

impl TryFrom<String> for Password {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match text.len() {
            0..8 => Err(format!("`{text}` is too short")),
            _ => Ok(Self(text)),
        }
    }
}

impl Serialize for Password {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("set")
    }
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Agent {
    pub(super) protocol: Protocol,
    pub(super) command: Option<Vec<String>>,
    #[serde(default)]
    pub(super) enabled: bool,
    #[serde(default)]
    pub(super) env: BTreeMap<String, String>,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Protocol {
    Demo,
    Acp,
}

pub(super) fn file(text: &str) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

pub(super) fn variables(list: &[(&str, &str)]) -> Vec<(String, String)> {
    let owned = |(key, value): &(&str, &str)| (format!("SWITCHBOARD__{key}"), (*value).to_owned());
    list.iter().map(owned).collect()
}

pub(super) fn load_from(text: &str, list: &[(&str, &str)]) -> Result<Layered<Sample>, String> {
    let file = file(text);
    let sources = Sources {
        defaults: DEFAULTS,
        file: Some(file.path()),
        variables: variables(list),
        flags: Vec::new(),
    };
    let name = file.path().to_str().unwrap().to_owned();
    load(&sources, &RULES).map_err(|error| error.to_string().replace(&name, "s.toml"))
}

pub(super) fn problems(text: &str, list: &[(&str, &str)]) -> String {
    load_from(text, list).unwrap_err()
}
