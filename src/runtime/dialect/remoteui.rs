//! The remote UI messages of Roo (`RemoteUI…`): tasks over a socket that several sessions may share.
//!
//! Here is what the gateway says; what the extension says is read in `inbox`. The task under way and
//! those before it are kept in `task`, the tokens in `ledger`. Every message names its session and
//! its client, and one that names others is dropped.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::{
    Brief, Content, Dialect, File, Framing, Lane, Order, Out, Protocol, Setup, Transport,
    unsupported,
};
use crate::domain::code::Code;
use crate::domain::command::{Inquiry, Mode, SettingsChange};
use crate::domain::id::RunId;

mod inbox;
mod ledger;
mod task;
#[cfg(test)]
mod tests;

use ledger::Ledger;
use task::{Past, Task};

/// What is known about it.
pub(super) const PROTOCOL: Protocol = Protocol {
    name: "remoteui",
    about: "Roo's remote UI messages over a Unix socket",
    capabilities: &[
        "cancel",
        "usage",
        "queue",
        "followUp",
        "branch",
        "images",
        "attachments",
        "modes",
        "resume",
    ],
    transport: Transport::Unix,
    framing: Framing::Newline,
    resumes: true,
    shares: |_| true,
    restart_after: &[],
    options: &[
        (
            "client_id",
            "the `clientId` of every message (`gateway-` and the session by default)",
        ),
        (
            "token",
            "shown to the other side in a `RemoteUIAuth` message before anything else",
        ),
    ],
    speaker: |setup| Box::new(Remote::new(setup)),
};

/// The timers, by name.
mod timer {
    /// The state that was asked for at the start.
    pub(super) const STATE: u64 = 1;
    /// The word that a prompt was taken.
    pub(super) const TAKEN: u64 = 2;
    /// The end of a task that was cancelled.
    pub(super) const CANCEL: u64 = 3;
}

/// How long the state is waited for; without it things begin all the same.
const STATE_WAIT: Duration = Duration::from_secs(5);
/// How long a prompt may wait to be taken.
const TAKEN_WAIT: Duration = Duration::from_secs(30);
/// How long the end of a cancelled task is waited for: the protocol does not promise one.
const CANCEL_WAIT: Duration = Duration::from_secs(3);

/// Speaks with one extension, for one session.
struct Remote {
    setup: Setup,
    client: String,
    wrapped: bool,
    requests: u64,
    /// The request for the state, while orders are held back because of it.
    greeting: Option<String>,
    settings: Map<String, Value>,
    task: Option<Task>,
    past: Past,
    ledger: Ledger,
}

impl Remote {
    fn new(setup: Setup) -> Self {
        let client = match setup.option("client_id") {
            Some(client) => client.to_owned(),
            None => format!("gateway-{}", setup.session),
        };
        Self {
            client,
            wrapped: setup.option("framing") == Some("node-ipc"),
            setup,
            requests: 0,
            greeting: None,
            settings: Map::new(),
            task: None,
            past: Past::default(),
            ledger: Ledger::default(),
        }
    }

    fn write(&self, line: Value, out: &mut Out) {
        if self.wrapped {
            out.write(json!({ "type": "message", "data": line }));
        } else {
            out.write(line);
        }
    }

    /// Sends a message of this session, and gives back the id that it went out under. The id names
    /// the session, too: others may send over the same socket.
    fn send(&mut self, kind: &str, more: Value, out: &mut Out) -> String {
        self.requests += 1;
        let number = self.requests;
        self.send_as(&number.to_string(), kind, more, out)
    }

    /// The same under an id that ends like this. What belongs to a run has its name there: numbers
    /// begin anew with every connection, and an answer that comes later must not be taken for one to
    /// another run.
    fn send_as(&self, which: &str, kind: &str, more: Value, out: &mut Out) -> String {
        let request = format!("{}-{which}", self.client);
        let mut data = json!({ "sessionId": self.setup.session, "clientId": self.client });
        if let (Value::Object(data), Value::Object(more)) = (&mut data, more) {
            data.extend(more);
        }
        let line = json!({ "type": kind, "data": data, "requestId": request });
        self.write(line, out);
        request
    }

    /// Has something been said in this session before?
    fn goes_on(&self) -> bool {
        self.setup.thread.is_some() || !self.setup.history.is_empty()
    }

    fn prompt(&mut self, run: RunId, brief: &Brief, out: &mut Out) {
        if self.task.is_some() {
            let message = format!("The agent `{}` is busy.", self.setup.agent);
            return out.fail_run(run, Code::Busy, message);
        }
        let mut request = json!({ "prompt": prompt(brief) });
        if !self.settings.is_empty() {
            request["settings"] = Value::Object(self.settings.clone());
        }
        let request = self.send_as(&run.to_string(), "RemoteUITaskRequest", request, out);
        self.task = Some(Task::new(run, request));
        out.timer(timer::TAKEN, TAKEN_WAIT);
    }

    fn cancel(&mut self, run: RunId, out: &mut Out) {
        let Some(task) = self.task.as_ref().filter(|task| task.run == run) else {
            return;
        };
        if task.cancel.is_some() {
            return;
        }
        let which = task
            .id
            .as_ref()
            .map_or_else(|| json!({}), |id| json!({ "taskId": id }));
        let name = format!("{run}-cancel");
        let request = self.send_as(&name, "RemoteUITaskCancel", which, out);
        if let Some(task) = &mut self.task {
            task.cancel = Some(request);
        }
        out.no_timer(timer::TAKEN);
        out.timer(timer::CANCEL, CANCEL_WAIT);
    }

    fn change(&mut self, change: &SettingsChange, out: &mut Out) {
        let named = [
            ("model", change.model.as_ref().map(|model| json!(model))),
            ("maxTokens", change.max_tokens.map(|tokens| json!(tokens))),
            (
                "temperature",
                change.temperature.map(|warmth| json!(warmth)),
            ),
            ("mode", change.mode.as_ref().map(|mode| json!(mode))),
        ];
        let changed: Map<String, Value> = named
            .into_iter()
            .filter_map(|(name, value)| Some((name.to_owned(), value?)))
            .collect();
        if changed.is_empty() {
            return;
        }
        self.settings.extend(changed.clone());
        // Nothing answers this but an error, and that says by itself what it is about.
        self.send(
            "RemoteUISettingsUpdate",
            json!({ "settings": changed }),
            out,
        );
    }

    /// The greeting is over. Does the other side remember what was said before?
    fn ready(&mut self, remembers: bool, out: &mut Out) {
        if self.greeting.take().is_none() {
            return;
        }
        out.no_timer(timer::STATE);
        if self.goes_on() && !remembers {
            out.starts_fresh(&self.setup.agent);
        }
        out.ready(Vec::new());
    }
}

impl Dialect for Remote {
    fn open(&mut self, out: &mut Out) {
        if let Some(token) = self.setup.option("token") {
            let line = json!({ "type": "RemoteUIAuth", "data": { "token": token } });
            self.write(line, out);
        }
        let user = json!({ "id": self.setup.user.id, "username": self.setup.user.name });
        self.send("RemoteUISessionInit", json!({ "userInfo": user }), out);
        // What was said is asked for only to learn whether the other side knows it.
        let wanted = json!({ "includeHistory": self.goes_on(), "includeSettings": true });
        let request = self.send("RemoteUIStateRequest", wanted, out);
        self.greeting = Some(request);
        out.timer(timer::STATE, STATE_WAIT);
    }

    fn hear(&mut self, order: Order, out: &mut Out) {
        match order {
            Order::Prompt { run, brief } => self.prompt(run, &brief, out),
            Order::Cancel { run } => self.cancel(run, out),
            Order::Settings(change) => self.change(&change, out),
            Order::Inquire { id, inquiry } => {
                let what = match inquiry {
                    Inquiry::Query { .. } => "tell that about itself".to_owned(),
                    Inquiry::Extension { name, .. } => format!("do `{name}`"),
                };
                out.decline_with(id, unsupported(&self.setup.agent, &what));
            }
            Order::Steer { .. }
            | Order::Answer { .. }
            | Order::Tools(_)
            | Order::Context(_)
            | Order::QueueModes(_) => {}
        }
    }

    fn read(&mut self, _lane: Lane, line: Value, out: &mut Out) {
        self.receive(&line, out);
    }

    fn late(&mut self, timer: u64, out: &mut Out) {
        match timer {
            timer::STATE => self.ready(false, out),
            timer::TAKEN => self.not_taken(out),
            timer::CANCEL => self.cancelled(out),
            _ => {}
        }
    }

    fn close(&mut self, out: &mut Out) {
        self.send("RemoteUISessionEnd", json!({}), out);
    }
}

fn prompt(brief: &Brief) -> Value {
    let mode = match brief.mode {
        Mode::Plan => "plan",
        Mode::Act => "act",
    };
    let mut prompt = json!({ "text": brief.text, "mode": mode });
    if !brief.images.is_empty() {
        let images = brief.images.iter().map(|image| json!(image.base64));
        prompt["images"] = images.collect();
    }
    if !brief.files.is_empty() {
        prompt["attachments"] = brief.files.iter().map(attachment).collect();
    }
    prompt
}

/// A file as the document has it; what is not text goes as base64.
fn attachment(file: &File) -> Value {
    let (content, size) = match &file.content {
        Content::Text(text) => (text, text.len()),
        Content::Base64(coded) => {
            let padding = coded.bytes().rev().take_while(|byte| *byte == b'=').count();
            (coded, (coded.len() / 4 * 3).saturating_sub(padding))
        }
    };
    json!({ "name": file.name, "content": content, "type": file.media_type, "size": size })
}
