//! Doctor socket: a socket without a session for `switchboard doctor --url`, as quiet as an idle one.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use hyper::upgrade::OnUpgrade;
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::{Error, Message};

use super::connection::Socket;
use super::control_frame_limits::ControlFrameLimits;
use super::{closing_handshake, upgrade};
use crate::member::{CloseReason, Shared};

const MAX_LIFETIME: Duration = Duration::from_mins(2);
const GREETING: &str = r#"{"type":"PROBE"}"#;

/// Serves a socket until the client leaves, the gateway shuts down, or its lifetime is over.
pub(super) async fn serve(shared: Arc<Shared>, upgrading: OnUpgrade) {
    let Some((mut socket, mut limits)) = upgrade::open(&shared, upgrading, None).await else {
        return;
    };
    let reason = tokio::select! {
        biased;
        () = shared.drain.cancelled() => Some(CloseReason::RESTART),
        () = tokio::time::sleep(MAX_LIFETIME) => Some(CloseReason::UNAUTHENTICATED),
        reason = serve_quietly(&mut socket, &mut limits, shared.ping_interval) => reason,
    };
    match reason {
        Some(reason) => {
            closing_handshake::send(socket, None, closing_handshake::frame(reason, None)).await;
        }
        None => closing_handshake::answer(socket).await,
    }
}

async fn serve_quietly(
    socket: &mut Socket,
    limits: &mut ControlFrameLimits,
    ping_interval: Duration,
) -> Option<CloseReason> {
    let served = async {
        socket.send(Message::text(GREETING)).await?;
        let mut due = Instant::now() + ping_interval;
        loop {
            tokio::select! {
                biased;
                () = tokio::time::sleep_until(due) => {
                    socket.send(Message::Ping(Vec::new().into())).await?;
                    due = Instant::now() + ping_interval;
                }
                frame = socket.next() => match frame {
                    None => return Ok(None),
                    Some(frame) => if let Err(reason) = limits.count(&frame?) {
                        return Ok(Some(reason));
                    }
                }
            }
        }
    };
    let ended: Result<_, Error> = served.await;
    ended.unwrap_or_else(|error| closing_handshake::reason_for(&error))
}
