//! A socket for `switchboard doctor --url`: it belongs to no session, says one word, and is as quiet
//! as a socket can be in which nothing happens.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use hyper::upgrade::OnUpgrade;
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::{Error, Message};

use super::budget::Budget;
use super::connection::Socket;
use super::{farewell, upgrade};
use crate::desk::{CloseReason, Reception};

/// Nobody looks longer than this.
const LONGEST: Duration = Duration::from_mins(2);
const WORD: &str = r#"{"type":"PROBE"}"#;

/// Serves a socket until the other end leaves, the gateway stops, or it has been long enough.
pub(super) async fn serve(door: Arc<Reception>, upgrading: OnUpgrade) {
    let Some((mut socket, _, mut budget)) = upgrade::open(&door, upgrading).await else {
        return;
    };
    let reason = tokio::select! {
        biased;
        () = door.stop.cancelled() => Some(CloseReason::RESTART),
        () = tokio::time::sleep(LONGEST) => Some(CloseReason::UNAUTHENTICATED),
        reason = keep_quiet(&mut socket, &mut budget, door.ping) => reason,
    };
    match reason {
        Some(reason) => farewell::say(socket, None, reason.frame()).await,
        None => farewell::answer(socket).await,
    }
}

async fn keep_quiet(
    socket: &mut Socket,
    budget: &mut Budget,
    ping: Duration,
) -> Option<CloseReason> {
    let quiet = async {
        socket.send(Message::text(WORD)).await?;
        let mut due = Instant::now() + ping;
        loop {
            tokio::select! {
                biased;
                () = tokio::time::sleep_until(due) => {
                    socket.send(Message::Ping(Vec::new().into())).await?;
                    due = Instant::now() + ping;
                }
                frame = socket.next() => match frame {
                    None => return Ok(None),
                    Some(frame) => if let Err(reason) = budget.count(&frame?) {
                        return Ok(Some(reason));
                    }
                }
            }
        }
    };
    let ended: Result<_, Error> = quiet.await;
    ended.unwrap_or_else(|error| farewell::reason_for(&error))
}
