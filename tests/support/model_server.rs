//! Model server: an OpenAI-compatible server on this machine that answers by the last user message.
//!
//! - `run: COMMAND` → the tool `bash` is called with it, and its result quoted afterwards;
//! - `write: FILE` → the same with the tool `write`, and [`WRITTEN`] as what to write;
//! - `slow: N` → N pieces, one after the other;
//! - `what was the word?` → the one of an earlier `remember: WORD`;
//! - anything else → [`HELLO`] in pieces.
//!
//! A request without tools is an agent's own affair (it wants a title) and gets [`TITLE`].

use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Json;
use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use futures_util::stream;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// The model's name.
pub(crate) const MODEL: &str = "small";
/// The expected bearer token.
pub(crate) const KEY: &str = "key-of-the-model-4711";
/// The usual answer.
pub(crate) const HELLO: &str = "Hello, this is an answer.";
/// The content written to files.
pub(crate) const WRITTEN: &str = "written by a model\n";
/// The title of every conversation.
const TITLE: &str = "A conversation";
/// Pause between chunks, so that they are not read as one.
const PAUSE: Duration = Duration::from_millis(50);

/// A running server; stops when dropped.
pub(crate) struct ModelServer {
    port: u16,
    seen: Arc<Seen>,
    _tasks: JoinSet<()>,
}

#[derive(Default)]
struct Seen {
    conversations: Mutex<Vec<Value>>,
    calls: AtomicUsize,
    abandoned: AtomicUsize,
}

impl ModelServer {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = Arc::new(Seen::default());
        let routes = Router::new()
            .route("/v1/models", get(models))
            .route("/v1/chat/completions", post(complete))
            .with_state(Arc::clone(&seen));
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { axum::serve(listener, routes).await.unwrap() });
        Self {
            port,
            seen,
            _tasks: tasks,
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/v1", self.port)
    }

    /// The messages of each request with tools, oldest first.
    pub(crate) fn conversations(&self) -> Vec<Value> {
        self.seen.conversations.lock().unwrap().clone()
    }

    /// The number of such answers whose client left before the end.
    pub(crate) fn abandoned(&self) -> usize {
        self.seen.abandoned.load(Ordering::SeqCst)
    }
}

async fn models() -> Json<Value> {
    Json(json!({ "object": "list", "data": [{ "id": MODEL, "object": "model" }] }))
}

async fn complete(
    State(seen): State<Arc<Seen>>,
    headers: HeaderMap,
    Json(request): Json<Value>,
) -> Response {
    let shown = headers.get(header::AUTHORIZATION);
    if shown.is_none_or(|shown| shown != &format!("Bearer {KEY}")) {
        return refusal(StatusCode::UNAUTHORIZED, "that is not the key");
    }
    let (Some(messages), true) = (request["messages"].as_array(), request["stream"] == true) else {
        return refusal(StatusCode::BAD_REQUEST, "messages, and answers as a stream");
    };
    let is_asked = request["tools"].is_array();
    let reply = if is_asked {
        let mut conversations = seen.conversations.lock().unwrap();
        conversations.push(request["messages"].clone());
        drop(conversations);
        Reply::to(messages, seen.calls.fetch_add(1, Ordering::SeqCst))
    } else {
        Reply::saying([TITLE.to_owned()])
    };
    let kind = [(header::CONTENT_TYPE, "text/event-stream")];
    let listening = Listening {
        seen,
        left: is_asked,
    };
    (kind, stream_body(reply, listening)).into_response()
}

fn refusal(status: StatusCode, why: &str) -> Response {
    let error = json!({ "error": { "message": why, "type": "invalid_request_error" } });
    (status, Json(error)).into_response()
}

/// Counts a client that leaves before the end.
struct Listening {
    seen: Arc<Seen>,
    left: bool,
}

impl Drop for Listening {
    fn drop(&mut self) {
        let left = usize::from(self.left);
        self.seen.abandoned.fetch_add(left, Ordering::SeqCst);
    }
}

fn stream_body(reply: Reply, listening: Listening) -> Body {
    let events = reply.events().into_iter();
    let state = (events, listening, Duration::ZERO);
    Body::from_stream(stream::unfold(state, async |mut state| {
        let Some(event) = state.0.next() else {
            state.1.left = false;
            return None;
        };
        tokio::time::sleep(std::mem::replace(&mut state.2, PAUSE)).await;
        Some((Ok::<_, Infallible>(format!("data: {event}\n\n")), state))
    }))
}

/// A reply: chunks of text, and maybe a tool call at the end.
struct Reply {
    pieces: Vec<String>,
    call: Option<Call>,
}

struct Call {
    id: String,
    tool: &'static str,
    arguments: Value,
}

impl Reply {
    fn saying(pieces: impl IntoIterator<Item = String>) -> Self {
        Self {
            pieces: pieces.into_iter().collect(),
            call: None,
        }
    }

    fn calling(tool: &'static str, arguments: Value, number: usize) -> Self {
        let id = format!("call_{number}");
        let mut reply = Self::saying(["I will try. ".to_owned()]);
        reply.call = Some(Call {
            id,
            tool,
            arguments,
        });
        reply
    }

    /// The reply to a conversation; a tool call gets this number.
    fn to(messages: &[Value], number: usize) -> Self {
        let last = messages.last().unwrap_or(&Value::Null);
        if last["role"] == "tool" {
            return Self::saying([verdict(&text(last))]);
        }
        let by_user = |message: &&Value| message["role"] == "user";
        let asked: Vec<String> = messages.iter().filter(by_user).map(text).collect();
        let asked: Vec<&str> = asked.iter().map(String::as_str).collect();
        let [.., last] = asked[..] else {
            return Self::saying([HELLO.to_owned()]);
        };
        if let Some(command) = after(last, "run: ") {
            let arguments = json!({ "command": command, "description": "Runs a command" });
            Self::calling("bash", arguments, number)
        } else if let Some(file) = after(last, "write: ") {
            let arguments = json!({ "filePath": file, "content": WRITTEN });
            Self::calling("write", arguments, number)
        } else if let Some(count) = after(last, "slow: ") {
            let count: usize = count.parse().unwrap_or(1);
            Self::saying((1..=count).map(|number| format!("piece {number}, ")))
        } else if last.contains("what was the word?") {
            let word = asked
                .iter()
                .rev()
                .find_map(|text| after(text, "remember: "));
            let word = word.unwrap_or("never said");
            Self::saying([format!("The word was {word}.")])
        } else {
            Self::saying(HELLO.split_inclusive(' ').map(str::to_owned))
        }
    }

    /// The events of the stream, with its end mark.
    fn events(self) -> Vec<String> {
        let chunk = |choices: Value, usage: Value| {
            json!({
                "id": "completion", "object": "chat.completion.chunk", "created": 1, "model": MODEL,
                "choices": choices, "usage": usage,
            })
            .to_string()
        };
        let delta = |delta: Value, finish: Value| {
            let choice = json!([{ "index": 0, "delta": delta, "finish_reason": finish }]);
            chunk(choice, Value::Null)
        };
        let of_call = |call: Value| delta(json!({ "tool_calls": [call] }), Value::Null);
        let mut events = Vec::new();
        for piece in &self.pieces {
            let piece = json!({ "role": "assistant", "content": piece });
            events.push(delta(piece, Value::Null));
        }
        let finish = if self.call.is_some() {
            "tool_calls"
        } else {
            "stop"
        };
        if let Some(call) = self.call {
            let function = json!({ "name": call.tool, "arguments": "" });
            events.push(of_call(
                json!({ "index": 0, "id": call.id, "type": "function", "function": function }),
            ));
            // In two parts, as real models do.
            let arguments = call.arguments.to_string();
            let (one, two) = arguments.split_at("{\"".len());
            for part in [one, two] {
                events.push(of_call(
                    json!({ "index": 0, "function": { "arguments": part } }),
                ));
            }
        }
        events.push(delta(json!({}), json!(finish)));
        let usage = json!({ "prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15 });
        events.push(chunk(json!([]), usage));
        events.push("[DONE]".to_owned());
        events
    }
}

/// The model's comment on a tool result.
fn verdict(result: &str) -> String {
    if result.contains("rejected permission") {
        "I was not allowed to.".to_owned()
    } else {
        format!("It worked: {result}")
    }
}

/// The text of a message: a string, or a list of parts.
fn text(message: &Value) -> String {
    let content = &message["content"];
    if let Some(text) = content.as_str() {
        return text.to_owned();
    }
    let parts = content.as_array().into_iter().flatten();
    let parts: Vec<&str> = parts.filter_map(|part| part["text"].as_str()).collect();
    parts.join("\n")
}

/// The rest of the line behind a word.
fn after<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(word)?;
    rest.lines().next().map(str::trim)
}

#[test]
fn the_model_server_answers_by_its_script() {
    let user = |text: &str| json!({ "role": "user", "content": text });
    let printed = |messages: &[Value]| Reply::to(messages, 7).pieces.concat();
    assert_eq!(printed(&[user("hi")]), HELLO);
    assert_eq!(printed(&[user("slow: 2")]), "piece 1, piece 2, ");
    let parts =
        json!({ "role": "user", "content": [{ "type": "text", "text": "remember: otter" }] });
    let asks = user("what was the word?");
    assert_eq!(printed(&[parts, asks.clone()]), "The word was otter.");
    assert_eq!(printed(&[asks]), "The word was never said.");
    let call = |text: &str| Reply::to(&[user(text)], 7).call.unwrap();
    let runs = call("run: ls -l\nplease");
    assert_eq!((runs.id.as_str(), runs.tool), ("call_7", "bash"));
    assert_eq!(runs.arguments["command"], "ls -l");
    assert_eq!(call("write: a.txt").arguments["filePath"], "a.txt");
    let result = |text: &str| [user("run: ls"), json!({ "role": "tool", "content": text })];
    assert_eq!(printed(&result("a b")), "It worked: a b");
    let rejected = "The user rejected permission to use this specific tool call.";
    assert_eq!(printed(&result(rejected)), "I was not allowed to.");
}
