//! Service manager: systemd-style notifications of the gateway.

use std::io::{BufRead as _, BufReader};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::process::{Command, Stdio};
use std::time::Duration;

fn receives(socket: &UnixDatagram) -> String {
    let mut bytes = [0; 1024];
    let length = socket.recv(&mut bytes).expect("the gateway says something");
    String::from_utf8_lossy(&bytes[..length]).into_owned()
}

/// Starts a gateway with this notification socket, and stops it again.
fn sees_watchdog_notification(socket: &UnixDatagram, place: &str) {
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
    let ready = receives(socket);
    assert!(
        ready.starts_with("READY=1\nSTATUS=Serving http://127.0.0.1:"),
        "{ready}"
    );
    for _ in 0..2 {
        assert_eq!(receives(socket), "WATCHDOG=1");
    }
    let pid = gateway.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-TERM", &pid])
            .status()
            .unwrap()
            .success()
    );
    while !receives(socket).starts_with("STOPPING=1") {}
    assert!(gateway.wait().unwrap().success());
}

#[test]
fn a_service_manager_is_notified_of_readiness_liveness_and_stop() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    sees_watchdog_notification(&socket, path.to_str().unwrap());
    let name = format!("switchboard-test-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    let socket = UnixDatagram::bind_addr(&address).unwrap();
    sees_watchdog_notification(&socket, &format!("@{name}"));
}
