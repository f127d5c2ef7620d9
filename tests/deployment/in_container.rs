//! In the container: what the gateway may write, what it keeps, and how it stops.
//!
//! With `SWITCHBOARD_TEST_IMAGE` these run a really built image, see `scripts/image/try`.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::container::{Container, Image, is_possible};
use crate::{USER, root, services, text};

/// The output of a command that must succeed.
fn output_text(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let shown = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{shown}");
    String::from_utf8(output.stdout).unwrap()
}

fn visitor(container: &Container, arguments: &[&str]) -> String {
    let script = root().join("tests/clients/visitor.py");
    let mut command = container.visited_by("/usr/bin/python3");
    output_text(command.arg(script).args(arguments))
}

/// The mounts that processes of the container can write to.
fn writable_mounts(pid: u64) -> BTreeSet<String> {
    let mounts = fs::read_to_string(format!("/proc/{pid}/mountinfo")).unwrap();
    let mounts = mounts
        .lines()
        .map(|line| line.split(' ').collect::<Vec<_>>());
    mounts
        .filter(|mount| mount[5].split(',').any(|option| option == "rw"))
        .map(|mount| mount[4].to_owned())
        .collect()
}

#[test]
fn a_container_persists_writes_only_in_its_volume() {
    if !is_possible() {
        return;
    }
    let image = Image::under_test();
    let volume = image.volume("/data");
    let container = Container::start(&image, &volume);
    let pid = container.pid();

    let process = |pid: &str| {
        let file = |name: &str| fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap();
        let status = file("status");
        for line in [
            format!("Uid:\t{USER}\t{USER}\t{USER}\t{USER}\n"),
            format!("Gid:\t{USER}\t{USER}\t{USER}\t{USER}\n"),
            "CapPrm:\t0000000000000000\n".to_owned(),
            "CapBnd:\t0000000000000000\n".to_owned(),
            "NoNewPrivs:\t1\n".to_owned(),
        ] {
            assert!(status.contains(&line), "{line} in {status}");
        }
        file("comm")
    };
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    assert_eq!(process(&pid.to_string()), "tini\n");
    assert_eq!(process(children.trim()), "switchboard\n");

    let kernel = ["/proc", "/dev", "/dev/pts", "/dev/shm"];
    let ours = ["/data", "/tmp"].into_iter().chain(kernel);
    // Masked by the null device.
    let masks = ["/proc/kcore", "/proc/keys", "/proc/timer_list"];
    let mut writable = writable_mounts(pid);
    writable.retain(|place| !masks.contains(&place.as_str()));
    assert_eq!(writable, ours.map(str::to_owned).collect());
    // Not even root can write there from inside the container.
    let inside = Path::new("/proc").join(pid.to_string()).join("root");
    for place in ["", "etc", "usr/local/bin", "run", "run/secrets"] {
        let written = fs::write(inside.join(place).join("x"), "x");
        let kind = written.unwrap_err().kind();
        assert_eq!(kind, io::ErrorKind::ReadOnlyFilesystem, "/{place}");
    }
    let backup = |file: &str| container.runs(&["switchboard", "backup", file]);
    let refused = backup("/usr/local/backup.db");
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    for file in ["/data/backup.db", "/tmp/backup.db"] {
        let made = backup(file);
        assert!(made.status.success(), "{made:?}");
    }
    let doctor = container.runs(&["switchboard", "doctor"]);
    assert!(doctor.status.success(), "{doctor:?}");
}

#[test]
fn conversations_survive_a_new_container() {
    if !is_possible() {
        return;
    }
    let image = Image::under_test();
    let volume = image.volume("/data");
    let container = Container::start(&image, &volume);
    let printed = container.output("stdout");
    let (_, link) = printed
        .split_once("http://localhost:7717/setup#t=")
        .expect("a setup link with the public address");
    let link = link.split_whitespace().next().unwrap();

    let seen: Value = serde_json::from_str(&visitor(&container, &["first", link])).unwrap();
    assert_eq!(seen["answer"], "1 2 3 4 5 ");
    assert!(seen["metrics"].as_u64().unwrap() > 10, "{seen}");
    let is_whole = seen["page"].as_str().unwrap().contains("assets/page-");
    assert!(is_whole || !image.is_built(), "built without its page");

    // A run is active and uses the grace period.
    let grace = services()["switchboard"]["stop_grace_period"].clone();
    let grace: u64 = grace
        .as_str()
        .unwrap()
        .trim_end_matches('s')
        .parse()
        .unwrap();
    let (status, took) = container.stops();
    assert_eq!(status.code(), Some(0));
    assert!(
        took < Duration::from_secs(grace),
        "docker would have killed it: {took:?}"
    );

    let container = Container::start(&image, &volume);
    assert!(!container.output("stdout").contains("setup#t="));
    let session = seen["session"].as_str().unwrap();
    let read = visitor(&container, &["again", session]);
    assert!(
        read.contains("/stream 5") && read.contains("1 2 3 4 5"),
        "{read}"
    );
    let (status, _) = container.stops();
    assert_eq!(status.code(), Some(0));
}

/// As the head of the Dockerfile documents.
#[test]
#[ignore = "needs an image with an agent in it: scripts/image/try --agents"]
fn the_agent_in_the_image_answers() {
    let image = Image::under_test();
    assert!(image.root.join("usr/local/bin/opencode").exists());
    let head = text("deploy/docker/agents.Dockerfile");
    let shown = head.lines().skip_while(|line| !line.contains("[agents."));
    let shown = shown.map_while(|line| line.strip_prefix("#   "));
    let settings = shown.collect::<Vec<_>>().join("\n");
    let volume = image.volume("/data");
    fs::write(volume.path().join("volume/switchboard.toml"), settings).unwrap();
    let container = Container::start(&image, &volume);
    let tried = container.runs(&["switchboard", "agent", "test", "opencode"]);
    let output = String::from_utf8_lossy(&tried.stdout);
    assert!(tried.status.success(), "{output}{tried:?}");
    assert!(output.contains("`opencode` works."), "{output}");
    for program in ["git", "ssh", "rg", "node"] {
        let found = container.runs(&["sh", "-c", "command -v \"$0\"", program]);
        assert!(found.status.success(), "{program}");
    }
}
