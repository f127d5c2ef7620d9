//! Local health check: one request to `/readyz` of a gateway on this machine, without an HTTP library.

use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(3);
const MAX_ANSWER_BYTES: u64 = 64 * 1024;

/// The gateway's answer.
pub(super) struct Readiness {
    pub(super) ready: bool,
    pub(super) body: String,
}

/// Requests `/readyz`.
pub(super) fn ask(listening: SocketAddr) -> io::Result<Readiness> {
    let address = reachable(listening);
    let mut stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    let request = format!("GET /readyz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.take(MAX_ANSWER_BYTES).read_to_string(&mut answer)?;
    let (head, body) = answer
        .split_once("\r\n\r\n")
        .ok_or_else(|| io::Error::other("that is not an HTTP answer"))?;
    Ok(Readiness {
        ready: head.starts_with("HTTP/1.1 200 "),
        body: body.to_owned(),
    })
}

/// A wildcard address is reached over loopback.
fn reachable(listening: SocketAddr) -> SocketAddr {
    let ip = match listening.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, listening.port())
}
