//! Ports for servers that have to be told one before they start.
//!
//! A port that was free a moment ago may be somebody else's by then. These are below those that the
//! kernel hands out by itself, and each is held by a lock until this process ends.

use std::fs::File;
use std::net::TcpListener;
use std::sync::Mutex;

const FIRST: u32 = 21_000;
const COUNT: u32 = 10_000;

static HELD: Mutex<Vec<File>> = Mutex::new(Vec::new());

/// A port that nobody listens on, and that no other test is given.
pub(crate) fn free_port() -> u16 {
    let locks = std::env::temp_dir().join("switchboard-test-ports");
    std::fs::create_dir_all(&locks).expect("a place for locks");
    // Each process begins elsewhere.
    let start = std::process::id() % COUNT;
    let ports = (0..COUNT).map(|step| FIRST + (start + step) % COUNT);
    for port in ports.filter_map(|port| u16::try_from(port).ok()) {
        let lock = File::create(locks.join(port.to_string())).expect("a lock");
        if lock.try_lock().is_ok() && TcpListener::bind(("127.0.0.1", port)).is_ok() {
            HELD.lock().expect("not poisoned").push(lock);
            return port;
        }
    }
    panic!("no free port between {FIRST} and {}", FIRST + COUNT);
}
