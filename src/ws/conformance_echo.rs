//! Conformance echo: `GET /echo` sends every message back, without a login. For conformance suites; only in builds
//! with the feature `conformance`.
//!
//! Everything but the echo itself is what `/ws` does: handshake, settings, limits, close codes.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use futures_util::{SinkExt as _, StreamExt as _};
use hyper::upgrade::OnUpgrade;
use tokio_tungstenite::tungstenite::{Error, Message};

use super::connection::Socket;
use super::control_frame_limits::ControlFrameLimits;
use super::{closing_handshake, upgrade};
use crate::member::{CloseReason, Shared};

pub(super) async fn echo(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let Some(key) = upgrade::websocket_key(request.headers()) else {
        return upgrade::upgrade_required();
    };
    let serving = Arc::clone(&shared);
    upgrade::accept(&shared, request, &key, &[], |upgrading| {
        serve(serving, upgrading)
    })
}

async fn serve(shared: Arc<Shared>, upgrading: OnUpgrade) {
    let Some((mut socket, mut limits)) = upgrade::open(&shared, upgrading, None).await else {
        return;
    };
    let reason = tokio::select! {
        biased;
        () = shared.drain.cancelled() => Some(CloseReason::RESTART),
        reason = repeat(&mut socket, &mut limits) => reason,
    };
    match reason {
        Some(reason) => {
            closing_handshake::send(socket, None, closing_handshake::frame(reason, None)).await;
        }
        None => closing_handshake::answer(socket).await,
    }
}

/// Until the client leaves, or gives a reason to close.
async fn repeat(socket: &mut Socket, limits: &mut ControlFrameLimits) -> Option<CloseReason> {
    while let Some(frame) = socket.next().await {
        let answered = match frame {
            Err(error) => Err(error),
            Ok(frame) => {
                if let Err(reason) = limits.count(&frame) {
                    return Some(reason);
                }
                answer(socket, frame).await
            }
        };
        if let Err(error) = answered {
            return closing_handshake::reason_for(&error);
        }
    }
    None
}

async fn answer(socket: &mut Socket, frame: Message) -> Result<(), Error> {
    match frame {
        // Written as every text of a session is.
        Message::Text(text) => {
            socket.get_mut().load(text.as_str().into());
            socket.flush().await
        }
        Message::Binary(_) => socket.send(frame).await,
        // The library answers pings itself, with the next flush.
        Message::Ping(_) => socket.flush().await,
        Message::Close(_) | Message::Pong(_) | Message::Frame(_) => Ok(()),
    }
}
