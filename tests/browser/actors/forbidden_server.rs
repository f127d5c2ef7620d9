//! Forbidden server: a listener that no page may ever reach.

use std::io::ErrorKind;
use std::net::TcpListener;

/// Listens and never answers.
pub(crate) struct ForbiddenServer {
    listener: TcpListener,
}

impl ForbiddenServer {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        Self { listener }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/beacon", self.listener.local_addr().unwrap())
    }

    /// Whether there was a connection since the last call.
    pub(crate) fn was_reached(&self) -> bool {
        match self.listener.accept() {
            Ok(_) => true,
            Err(error) if error.kind() == ErrorKind::WouldBlock => false,
            Err(error) => panic!("{error}"),
        }
    }
}
