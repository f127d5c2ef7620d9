//! Closing handshake: ends a socket so that the client can read why.

use std::io;
use std::time::Duration;

use futures_util::{FutureExt as _, SinkExt, StreamExt as _};
use tokio::io::AsyncWriteExt as _;
use tokio_tungstenite::tungstenite::error::CapacityError;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error, Message};

use super::byte_limits::Overflow;
use super::connection::Socket;
use crate::domain::shared_text::Text;
use crate::member::CloseReason;

const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// What the client did wrong; `None` if it is just gone.
pub(super) fn reason_for(error: &Error) -> Option<CloseReason> {
    match error {
        Error::Capacity(CapacityError::MessageTooLong { .. }) => Some(CloseReason::TOO_LARGE),
        Error::Io(error) => Overflow::behind(error).map(|overflow| match overflow {
            Overflow::Message => CloseReason::TOO_LARGE,
            Overflow::ByteBudget => CloseReason::FLOODING,
        }),
        Error::Utf8(_) => Some(CloseReason::BAD_TEXT),
        Error::Protocol(_) => Some(CloseReason::PROTOCOL_ERROR),
        _ => None,
    }
}

pub(super) fn frame(reason: CloseReason, retry_after_ms: Option<u64>) -> CloseFrame {
    CloseFrame {
        code: CloseCode::from(reason.code),
        reason: reason.text(retry_after_ms).into_owned().into(),
    }
}

/// Sends a last message and a close frame, to a client that may not read any more.
pub(super) async fn send(mut socket: Socket, last_message: Option<Text>, frame: CloseFrame) {
    let close = async {
        if let Some(message) = last_message {
            socket.feed(Message::text(&*message)).await?;
        }
        // Else the library would send a pong that is due after the close.
        socket.flush().await?;
        socket.send(Message::Close(Some(frame))).await?;
        // The client answers with its own close; its data may be under way until then.
        while let Some(Ok(_)) = socket.next().await {}
        Ok(hang_up(&mut socket).await?)
    };
    log(tokio::time::timeout(CLOSE_TIMEOUT, close)
        .await
        .unwrap_or(Ok(())));
}

/// Sends a close frame to a client that seems dead: only if that needs no wait.
pub(super) fn try_send(mut socket: Socket, frame: CloseFrame) {
    drop(socket.send(Message::Close(Some(frame))).now_or_never());
}

/// Answers the client's close, if it sent one.
pub(super) async fn answer(mut socket: Socket) {
    let close = async {
        SinkExt::close(&mut socket).await?;
        Ok(hang_up(&mut socket).await?)
    };
    log(tokio::time::timeout(CLOSE_TIMEOUT, close)
        .await
        .unwrap_or(Ok(())));
}

/// Drops what the client had sent already. A close with bytes unread resets the TCP connection, and
/// the reset may overtake the close frame: the client would never learn why.
async fn hang_up(socket: &mut Socket) -> io::Result<()> {
    let stream = socket.get_mut();
    stream.get_mut().lift_limit();
    stream.shutdown().await?;
    tokio::io::copy(stream, &mut tokio::io::sink()).await?;
    Ok(())
}

fn log(closed: Result<(), Error>) {
    if let Err(error) = closed {
        tracing::debug!(%error, "the client was gone before its socket was closed");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_may_be_sent_and_arrives_as_itself() {
        for reason in CloseReason::ALL {
            let code = frame(reason, None).code;
            assert!(code.is_allowed(), "{code}");
            assert_eq!(u16::from(code), reason.code);
        }
    }
}
