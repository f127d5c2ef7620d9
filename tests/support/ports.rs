//! Ports: free ones for servers that need a number before they start.
//!
//! A port that was free a moment ago may be taken by then. These are below the kernel's ephemeral range,
//! and each is held by a lock until this process ends.

use std::fs::File;
use std::net::TcpListener;
use std::sync::Mutex;

const FIRST: u32 = 21_000;
const COUNT: u32 = 10_000;

static HELD: Mutex<Vec<File>> = Mutex::new(Vec::new());

/// A free port that no other test gets.
pub(crate) fn free_port() -> u16 {
    let locks = std::env::temp_dir().join("switchboard-test-ports");
    std::fs::create_dir_all(&locks).expect("a place for locks");
    // Each process starts elsewhere.
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
