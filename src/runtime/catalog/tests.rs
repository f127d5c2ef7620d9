//! The catalog, without starting anything.

use std::num::NonZeroU32;

use super::*;
use crate::runtime::config::SandboxMode;
use crate::runtime::launch::LauncherConfig;

pub(in crate::runtime) fn catalog(json: &str) -> Catalog {
    let config: Config = serde_json::from_str(json).unwrap();
    Catalog::for_tests(&config)
}

fn names(json: &str) -> Vec<String> {
    catalog(json).names().map(str::to_owned).collect()
}

impl Catalog {
    /// A catalog that cannot start processes: its data directory is gone.
    pub(crate) fn for_tests(config: &Config) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let launcher = Launcher::open(LauncherConfig {
            data: dir.path(),
            binary: "/no/such/binary".into(),
            blobs: None,
            sandbox: SandboxMode::Auto,
            protected: Vec::new(),
        })
        .unwrap();
        let limits = Limits {
            max_agents: NonZeroU32::MAX,
            max_agents_per_user: NonZeroU32::MAX,
            sandbox: SandboxMode::Auto,
        };
        Self::new(config, &limits, launcher, Clock::system())
    }
}

pub(crate) fn start() -> Start {
    Start::of(SessionId::new(), UserId::new())
}

#[test]
fn the_demo_agent_is_there_unless_it_is_disabled() {
    assert_eq!(names("{}"), ["demo"]);
    assert_eq!(names(r#"{"demo": {}}"#), ["demo"]);
    assert!(names(r#"{"demo": {"enabled": false}}"#).is_empty());
    let other = r#"{"demo": {"enabled": false}, "toy": {"protocol": "demo"}}"#;
    assert_eq!(names(other), ["toy"]);
}

#[test]
fn the_operator_sees_disabled_agents_too() {
    let json = r#"{"demo": {"enabled": false}, "toy": {"protocol": "demo"}}"#;
    let described: Vec<_> = catalog(json)
        .described()
        .into_iter()
        .map(|agent| (agent.name, agent.protocol, agent.enabled))
        .collect();
    let demo = || "demo".to_owned();
    assert_eq!(
        described,
        [(demo(), demo(), false), ("toy".into(), demo(), true)]
    );
}

#[tokio::test]
async fn an_agent_that_is_not_in_the_catalog_cannot_be_started() {
    let catalog = catalog(r#"{"demo": {"enabled": false}}"#);
    assert!(!catalog.contains("demo"));
    assert!(catalog.capabilities("demo").is_empty());
    let (sender, _events) = mpsc::channel(1);
    let started = catalog.start(
        "demo",
        start(),
        sender,
        &CancellationToken::new(),
        &TaskTracker::new(),
    );
    assert_eq!(
        started.unwrap_err(),
        StartAgentError::Unknown("demo".into())
    );
}
