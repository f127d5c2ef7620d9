//! A place on this machine that no page may ever reach.

use std::io::ErrorKind;
use std::net::TcpListener;

/// Listens, and answers nobody.
pub(crate) struct Beacon {
    listener: TcpListener,
}

impl Beacon {
    pub(crate) fn light() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        Self { listener }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/beacon", self.listener.local_addr().unwrap())
    }

    /// Whether anybody has come since this was asked last.
    pub(crate) fn was_reached(&self) -> bool {
        match self.listener.accept() {
            Ok(_) => true,
            Err(error) if error.kind() == ErrorKind::WouldBlock => false,
            Err(error) => panic!("{error}"),
        }
    }
}
