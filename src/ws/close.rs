//! How a socket is closed: for what, with which last word, and so that the other end can read it.
//!
//! Touches `meter` and `desk`.

use std::io;
use std::time::Duration;

use futures_util::{FutureExt as _, SinkExt, StreamExt as _};
use tokio::io::AsyncWriteExt as _;
use tokio_tungstenite::tungstenite::error::CapacityError;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes};

use super::connection::Socket;
use super::meter::Overflow;
use crate::desk::CloseReason;

/// How long a close may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// What the other end did wrong; `None` if it is just gone.
pub(super) fn reason_for(error: &Error) -> Option<CloseReason> {
    match error {
        Error::Capacity(CapacityError::MessageTooLong { .. }) => Some(CloseReason::TOO_LARGE),
        Error::Io(error) => Overflow::behind(error).map(|overflow| match overflow {
            Overflow::Endless => CloseReason::TOO_LARGE,
            Overflow::Crowded => CloseReason::FLOODING,
        }),
        Error::Utf8(_) => Some(CloseReason::BAD_TEXT),
        Error::Protocol(_) => Some(CloseReason::PROTOCOL_ERROR),
        _ => None,
    }
}

/// A last word and a close frame, to a peer that may not listen any more.
pub(super) async fn say(mut socket: Socket, word: Option<Utf8Bytes>, frame: CloseFrame) {
    let goodbye = async {
        if let Some(word) = word {
            socket.feed(Message::Text(word)).await?;
        }
        // The library would send a pong that is still due after the close.
        socket.flush().await?;
        socket.send(Message::Close(Some(frame))).await?;
        // The peer answers with its own close; until then its data may be under way.
        while let Some(Ok(_)) = socket.next().await {}
        Ok(hang_up(&mut socket).await?)
    };
    log(tokio::time::timeout(PATIENCE, goodbye)
        .await
        .unwrap_or(Ok(())));
}

/// A close frame to a peer that gives no sign of life: if it can be sent at once, and nothing is awaited.
pub(super) fn drop_a_word(mut socket: Socket, frame: CloseFrame) {
    drop(socket.send(Message::Close(Some(frame))).now_or_never());
}

/// Answers the peer's close, if that is how it went.
pub(super) async fn answer(mut socket: Socket) {
    let goodbye = async {
        SinkExt::close(&mut socket).await?;
        Ok(hang_up(&mut socket).await?)
    };
    log(tokio::time::timeout(PATIENCE, goodbye)
        .await
        .unwrap_or(Ok(())));
}

/// Drops what the peer had sent already. To end with bytes unread resets the connection, and a reset
/// may overtake the close frame: the peer would never learn why.
async fn hang_up(socket: &mut Socket) -> io::Result<()> {
    let stream = socket.get_mut();
    stream.get_mut().lift_limit();
    stream.shutdown().await?;
    tokio::io::copy(stream, &mut tokio::io::sink()).await?;
    Ok(())
}

fn log(closed: Result<(), Error>) {
    if let Err(error) = closed {
        tracing::debug!(%error, "a socket was gone before its close");
    }
}
