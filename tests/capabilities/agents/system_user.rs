//! System users: agents that run as another user of the machine. Only root can start those.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};
use std::path::Path;

use super::{AgentFleet, FakeAgent, runs_prompt};
use crate::actors::Settings;

/// The user and group ids of `nobody`; none unless the tests run as root.
fn nobody() -> Option<(u32, u32)> {
    if std::fs::metadata("/proc/self").unwrap().uid() != 0 {
        return None;
    }
    let users = std::fs::read_to_string("/etc/passwd").unwrap();
    let line = users.lines().find(|line| line.starts_with("nobody:"));
    let fields: Vec<&str> = line.unwrap().split(':').collect();
    Some((fields[2].parse().unwrap(), fields[3].parse().unwrap()))
}

fn chmod(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// A gateway with an agent that runs as `nobody` in this workspace.
async fn as_nobody(workspace: &Path) -> (AgentFleet, FakeAgent) {
    let mut agents = FakeAgent::all().into_iter();
    let agent = agents.find(|agent| agent.name == "acp").unwrap();
    let file = agent.configuration(&format!(
        "user = \"nobody\"\nworkspace = '{}'",
        workspace.display()
    ));
    let gateway = Settings::new().with_config_file(&file).start().await;
    (AgentFleet::of(vec![agent.clone()], gateway), agent)
}

#[tokio::test]
async fn a_symlink_of_the_agents_account_gives_it_no_foreign_directory() {
    let Some((uid, gid)) = nobody() else { return };
    let dir = tempfile::tempdir().unwrap();
    chmod(dir.path(), 0o755);
    let (spaces, victim) = (dir.path().join("spaces"), dir.path().join("spaces/victim"));
    std::fs::create_dir_all(&victim).unwrap();
    // The account may write where workspaces are made.
    chown(&spaces, Some(uid), Some(gid)).unwrap();
    symlink(&victim, spaces.join("root")).unwrap();
    let (fleet, agent) = as_nobody(&spaces.join("{user}")).await;
    let mut mia = fleet.joins("root", &agent).await;
    let (end, _) = runs_prompt(&mut mia, "/echo hello").await;
    let message = end["error"]["message"].as_str().unwrap();
    assert!(message.contains("can be changed by the user"), "{message}");
    assert_eq!(std::fs::metadata(&victim).unwrap().uid(), 0);
    // The same in a directory that only root can change.
    chown(&spaces, Some(0), Some(0)).unwrap();
    let (end, _) = runs_prompt(&mut mia, "/echo hello").await;
    let message = end["error"]["message"].as_str().unwrap();
    assert!(message.contains("symbolic link"), "{message}");
    assert_eq!(std::fs::metadata(&victim).unwrap().uid(), 0);
    std::fs::remove_file(spaces.join("root")).unwrap();
    let (end, _) = runs_prompt(&mut mia, "/echo hello").await;
    assert_eq!(end["status"], "completed", "{end}");
    assert_eq!(std::fs::metadata(spaces.join("root")).unwrap().uid(), uid);
    fleet.leaves_no_process().await;
}

#[tokio::test]
async fn an_account_that_cannot_reach_its_workspace_is_named_in_the_error() {
    if nobody().is_none() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    chmod(dir.path(), 0o700);
    let (fleet, agent) = as_nobody(&dir.path().join("{session}")).await;
    let mut mia = fleet.joins("root", &agent).await;
    let (end, _) = runs_prompt(&mut mia, "/echo hello").await;
    let message = end["error"]["message"].as_str().unwrap();
    assert!(message.contains("cannot reach"), "{message}");
    chmod(dir.path(), 0o711);
    let (end, _) = runs_prompt(&mut mia, "/echo hello").await;
    assert_eq!(end["status"], "completed", "{end}");
    fleet.leaves_no_process().await;
}
