//! Bare server: the yardstick, an axum broadcast server with tuned buffers, no login and no storage.
//!
//! Speaks enough of the protocol for the same clients: an acknowledgement, then for the prompt
//! `/stream N [MS]` the same frames as the demo agent's answer. Sockets that name a session share one
//! broadcast, each of the others has a stream of its own.

use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::{CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, UPGRADE};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use axum::serve::ListenerExt as _;
use futures_util::{SinkExt as _, StreamExt as _};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::{broadcast, mpsc};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};
use tokio_util::task::TaskTracker;

/// Makes this program the bare server.
pub(crate) const ARGUMENT: &str = "--bare";

/// Frames that wait for a socket. Full: an own stream waits, a broadcast drops the oldest.
const QUEUE: usize = 1_024;
/// Frames per flush: fewer bytes than the socket's buffer holds.
const BATCH: usize = 256;
const MESSAGE_BYTES: usize = 4 * 1024 * 1024;
/// As long as the ids of the gateway.
const RUN: &str = "run_00000000000000000000000000000000";
const MESSAGE: &str = "msg_00000000000000000000000000000000";
const SESSION: &str = "ses_00000000000000000000000000000000";

#[derive(Clone)]
struct AppState {
    tasks: TaskTracker,
    crowd: broadcast::Sender<Utf8Bytes>,
}

/// Serves until the process is killed.
pub(crate) async fn serve() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("  open http://{}", listener.local_addr().unwrap());
    let state = AppState {
        tasks: TaskTracker::new(),
        crowd: broadcast::Sender::new(QUEUE),
    };
    let routes = Router::new().route("/ws", get(upgrade)).with_state(state);
    let listener = listener.tap_io(|stream| stream.set_nodelay(true).unwrap());
    axum::serve(listener, routes).await.unwrap();
}

async fn upgrade(State(state): State<AppState>, mut request: Request) -> Response {
    let key = request.headers()[SEC_WEBSOCKET_KEY].as_bytes();
    let accept = derive_accept_key(key);
    let upgrading = request.extensions_mut().remove::<OnUpgrade>().unwrap();
    let source = match request.uri().query() {
        Some(_) => Source::Crowd(state.crowd.subscribe()),
        None => Source::Nothing,
    };
    state.tasks.clone().spawn(async move {
        let config = WebSocketConfig::default()
            .read_buffer_size(4 * 1024)
            .write_buffer_size(128 * 1024)
            .max_write_buffer_size(2 * MESSAGE_BYTES)
            .max_message_size(Some(MESSAGE_BYTES))
            .max_frame_size(Some(MESSAGE_BYTES));
        let stream = TokioIo::new(upgrading.await.unwrap());
        let socket = WebSocketStream::from_raw_socket(stream, Role::Server, Some(config)).await;
        talk(state, socket, source).await;
    });
    let headers = [
        (CONNECTION, "upgrade"),
        (UPGRADE, "websocket"),
        (SEC_WEBSOCKET_ACCEPT, accept.as_str()),
    ];
    (StatusCode::SWITCHING_PROTOCOLS, headers).into_response()
}

/// One task per socket: whatever waits is fed, then flushed once.
async fn talk(state: AppState, mut socket: WebSocketStream<TokioIo<Upgraded>>, mut source: Source) {
    let ack = Envelope::around(
        "CONNECTION_ACK",
        Acknowledgement {
            session_id: SESSION,
        },
        0,
    );
    socket.send(Message::Text(ack)).await.unwrap();
    let mut batch = Vec::new();
    loop {
        tokio::select! {
            biased;
            frame = socket.next() => match frame {
                Some(Ok(Message::Text(text))) => begin(&state, &mut source, &text),
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return,
            },
            () = source.take(&mut batch) => {
                for frame in batch.drain(..) {
                    if socket.feed(Message::Text(frame)).await.is_err() {
                        return;
                    }
                }
                if socket.flush().await.is_err() {
                    return;
                }
            }
        }
    }
}

/// Starts what a prompt asks for.
fn begin(state: &AppState, source: &mut Source, frame: &str) {
    let command: Value = serde_json::from_str(frame).unwrap();
    let text = command["payload"]["text"].as_str().unwrap();
    let mut words = text.strip_prefix("/stream ").unwrap().split(' ');
    let count: u64 = words.next().unwrap().parse().unwrap();
    let pause = Duration::from_millis(words.next().map_or(0, |word| word.parse().unwrap()));
    match source {
        Source::Crowd(_) => {
            let crowd = state.crowd.clone();
            state.tasks.spawn(async move {
                for offset in 1..=count + 1 {
                    tokio::time::sleep(pause).await;
                    // Everybody may have left.
                    crowd.send(event(offset, count)).ok();
                }
            });
        }
        Source::Nothing | Source::Own(_) => {
            let (sender, receiver) = mpsc::channel(QUEUE);
            *source = Source::Own(receiver);
            state.tasks.spawn(async move {
                for offset in 1..=count + 1 {
                    if !pause.is_zero() {
                        tokio::time::sleep(pause).await;
                    }
                    if sender.send(event(offset, count)).await.is_err() {
                        return;
                    }
                }
            });
        }
    }
}

/// Where a socket's frames come from.
enum Source {
    /// It has not asked for any.
    Nothing,
    Own(mpsc::Receiver<Utf8Bytes>),
    Crowd(broadcast::Receiver<Utf8Bytes>),
}

impl Source {
    /// What waits, at least one. Cancel-safe, as both channels are.
    async fn take(&mut self, batch: &mut Vec<Utf8Bytes>) {
        match self {
            Self::Nothing => std::future::pending().await,
            Self::Own(frames) => {
                if frames.recv_many(batch, BATCH).await == 0 {
                    std::future::pending::<()>().await;
                }
            }
            Self::Crowd(frames) => {
                batch.push(frames.recv().await.expect("nobody reads so slowly here"));
                while batch.len() < BATCH
                    && let Ok(frame) = frames.try_recv()
                {
                    batch.push(frame);
                }
            }
        }
    }
}

/// The frame at an offset: a piece of text, and after the last one the end of the run.
fn event(offset: u64, count: u64) -> Utf8Bytes {
    if offset > count {
        let ended = Ended {
            task_id: RUN,
            status: "completed",
        };
        return Envelope::around("TASK_STATUS_UPDATE", ended, offset);
    }
    let piece = Piece {
        content: &format!("{offset} "),
        is_complete: false,
        chunk_index: offset - 1,
        task_id: RUN,
        channel: "text",
        message_id: MESSAGE,
    };
    Envelope::around("TASK_OUTPUT_CHUNK", piece, offset)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Envelope<P> {
    r#type: &'static str,
    payload: P,
    timestamp: String,
    session_id: &'static str,
    offset: u64,
}

impl<P: Serialize> Envelope<P> {
    fn around(r#type: &'static str, payload: P, offset: u64) -> Utf8Bytes {
        let envelope = Self {
            r#type,
            payload,
            timestamp: format!("{:.3}", Timestamp::now()),
            session_id: SESSION,
            offset,
        };
        serde_json::to_string(&envelope).unwrap().into()
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Acknowledgement {
    session_id: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Ended {
    task_id: &'static str,
    status: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Piece<'a> {
    content: &'a str,
    is_complete: bool,
    chunk_index: u64,
    task_id: &'static str,
    channel: &'static str,
    message_id: &'static str,
}
