//! What a service manager hears from the gateway.

use std::io::{BufRead as _, BufReader};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::process::{Command, Stdio};
use std::time::Duration;

fn hears(socket: &UnixDatagram) -> String {
    let mut bytes = [0; 1024];
    let length = socket.recv(&mut bytes).expect("the gateway says something");
    String::from_utf8_lossy(&bytes[..length]).into_owned()
}

/// Starts a gateway under a manager that listens here, and ends it again.
fn is_told_of_its_life(socket: &UnixDatagram, place: &str) {
    socket
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    let dir = tempfile::tempdir().unwrap();
    let mut gateway = Command::new(env!("CARGO_BIN_EXE_switchboard"))
        .args(["--listen", "127.0.0.1:0", "--data-dir"])
        .arg(dir.path().join("data"))
        .current_dir(&dir)
        .env("NOTIFY_SOCKET", place)
        .env("WATCHDOG_USEC", "200000")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut greeting = BufReader::new(gateway.stdout.take().unwrap()).lines();
    let first = greeting.next().expect("a greeting").unwrap();
    assert!(first.starts_with("Switchboard"), "{first}");
    let ready = hears(socket);
    assert!(
        ready.starts_with("READY=1\nSTATUS=Serving http://127.0.0.1:"),
        "{ready}"
    );
    for _ in 0..2 {
        assert_eq!(hears(socket), "WATCHDOG=1");
    }
    let pid = gateway.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-TERM", &pid])
            .status()
            .unwrap()
            .success()
    );
    while !hears(socket).starts_with("STOPPING=1") {}
    assert!(gateway.wait().unwrap().success());
}

#[test]
fn a_service_manager_hears_of_readiness_life_and_end() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    is_told_of_its_life(&socket, path.to_str().unwrap());
    let name = format!("switchboard-test-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    let socket = UnixDatagram::bind_addr(&address).unwrap();
    is_told_of_its_life(&socket, &format!("@{name}"));
}
