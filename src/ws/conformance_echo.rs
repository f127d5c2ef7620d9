//! `GET /echo`: sends every message back, to anybody. For conformance suites, which judge a server by
//! its echo; only in builds with the feature `conformance`.
//!
//! Everything but the echo itself is what `/ws` does: handshake, settings, budgets, close codes.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use futures_util::{SinkExt as _, StreamExt as _};
use hyper::upgrade::OnUpgrade;
use tokio_tungstenite::tungstenite::{Error, Message};

use super::budget::Budget;
use super::connection::Socket;
use super::{farewell, upgrade};
use crate::desk::{CloseReason, Reception};

/// `GET /echo`
pub(super) async fn echo(State(door): State<Arc<Reception>>, request: Request) -> Response {
    let Some(key) = upgrade::websocket_key(request.headers()) else {
        return upgrade::no_handshake();
    };
    let serving = Arc::clone(&door);
    upgrade::accept(&door, request, &key, &[], |upgrading| {
        serve(serving, upgrading)
    })
}

async fn serve(door: Arc<Reception>, upgrading: OnUpgrade) {
    let Some((mut socket, _, mut budget)) = upgrade::open(&door, upgrading).await else {
        return;
    };
    let reason = tokio::select! {
        biased;
        () = door.stop.cancelled() => Some(CloseReason::RESTART),
        reason = repeat(&mut socket, &mut budget) => reason,
    };
    match reason {
        Some(reason) => farewell::say(socket, None, reason.frame()).await,
        None => farewell::answer(socket).await,
    }
}

/// Until the other end leaves, or gives a reason to close.
async fn repeat(socket: &mut Socket, budget: &mut Budget) -> Option<CloseReason> {
    while let Some(frame) = socket.next().await {
        let answered = match frame {
            Err(error) => Err(error),
            Ok(frame) => {
                if let Err(reason) = budget.count(&frame) {
                    return Some(reason);
                }
                answer(socket, frame).await
            }
        };
        if let Err(error) = answered {
            return farewell::reason_for(&error);
        }
    }
    None
}

async fn answer(socket: &mut Socket, frame: Message) -> Result<(), Error> {
    match frame {
        // As every text of a session goes out.
        Message::Text(text) => {
            socket.get_mut().load(text);
            socket.flush().await
        }
        Message::Binary(_) => socket.send(frame).await,
        // The library answers pings itself, with the next flush.
        Message::Ping(_) => socket.flush().await,
        Message::Close(_) | Message::Pong(_) | Message::Frame(_) => Ok(()),
    }
}
