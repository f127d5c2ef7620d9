//! `RemoteUI`: tasks over a socket that several sessions may share.
//!
//! This file sends messages; `inbound` handles those of the extension, `task` keeps the current and
//! the ended tasks, `usage` the reported tokens. Every message names its session and its client;
//! one that names others is dropped.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::{
    Actions, CarriedSettings, Content, Dialect, File, Framing, PromptContent, Protocol, Setup,
    StreamKind, ToAgent, Transport, unsupported,
};
use crate::domain::command::{AgentRequest, Mode, SettingsChange};
use crate::domain::error_code::ErrorCode;
use crate::domain::id::RunId;

mod inbound;
mod settings;
mod task;
#[cfg(test)]
mod tests;
mod usage;

use task::{EndedTasks, Task};
use usage::ReportedUsage;

pub(super) const PROTOCOL: Protocol = Protocol {
    name: "remoteui",
    about: "Roo's remote UI messages over a Unix socket",
    capabilities: "cancel usage queue followUp branch images attachments modes resume",
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
    settings: CarriedSettings::Any,
    build: |setup| Box::new(RemoteUi::new(setup)),
};

mod timer {
    /// The response to the first `RemoteUIStateRequest`.
    pub(super) const STATE: u64 = 1;
    /// The first response to a prompt.
    pub(super) const ACCEPT: u64 = 2;
    /// The end of a cancelled task.
    pub(super) const CANCEL: u64 = 3;
}

/// Without the state the session begins all the same.
const STATE_TIMEOUT: Duration = Duration::from_secs(5);
const ACCEPT_TIMEOUT: Duration = Duration::from_secs(30);
/// The protocol promises no end for a cancelled task.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(3);

struct RemoteUi {
    setup: Setup,
    client_id: String,
    is_node_ipc: bool,
    request_count: u64,
    /// Id of the first state request; `None` once the handshake is over.
    state_request: Option<String>,
    /// The settings that were chosen, for every task.
    settings: Map<String, Value>,
    /// The settings that the extension reported.
    reported_settings: SettingsChange,
    task: Option<Task>,
    ended: EndedTasks,
    usage: ReportedUsage,
}

impl RemoteUi {
    fn new(setup: Setup) -> Self {
        let client_id = match setup.option("client_id") {
            Some(client) => client.to_owned(),
            None => format!("gateway-{}", setup.session),
        };
        Self {
            client_id,
            is_node_ipc: setup.option("framing") == Some("node-ipc"),
            setup,
            request_count: 0,
            state_request: None,
            settings: Map::new(),
            reported_settings: SettingsChange::default(),
            task: None,
            ended: EndedTasks::default(),
            usage: ReportedUsage::default(),
        }
    }

    fn write(&self, line: Value, out: &mut Actions) {
        if self.is_node_ipc {
            out.write(json!({ "type": "message", "data": line }));
        } else {
            out.write(line);
        }
    }

    /// Sends a message and returns its request id, which names the session, too: others may use the
    /// same socket.
    fn send(&mut self, kind: &str, more: Value, out: &mut Actions) -> String {
        self.request_count += 1;
        let number = self.request_count;
        self.send_with_id(&number.to_string(), kind, more, out)
    }

    /// The same with a suffix instead of a number. What belongs to a run uses the run id: numbers
    /// start again with every connection, and a late answer must not match another run.
    fn send_with_id(&self, suffix: &str, kind: &str, more: Value, out: &mut Actions) -> String {
        let request = format!("{}-{suffix}", self.client_id);
        let mut data = json!({ "sessionId": self.setup.session, "clientId": self.client_id });
        if let (Value::Object(data), Value::Object(more)) = (&mut data, more) {
            data.extend(more);
        }
        let line = json!({ "type": kind, "data": data, "requestId": request });
        self.write(line, out);
        request
    }

    fn has_history(&self) -> bool {
        self.setup.thread.is_some() || !self.setup.history.is_empty()
    }

    fn prompt(&mut self, run: RunId, content: &PromptContent, out: &mut Actions) {
        if self.task.is_some() {
            let message = format!("The agent `{}` is busy.", self.setup.agent);
            return out.fail_run(run, ErrorCode::Busy, message);
        }
        let mut request = json!({ "prompt": prompt_json(content) });
        if !self.settings.is_empty() {
            request["settings"] = Value::Object(self.settings.clone());
        }
        let request = self.send_with_id(&run.to_string(), "RemoteUITaskRequest", request, out);
        self.task = Some(Task::new(run, request));
        out.set_timer(timer::ACCEPT, ACCEPT_TIMEOUT);
    }

    fn cancel(&mut self, run: RunId, out: &mut Actions) {
        let Some(task) = self.task.as_ref().filter(|task| task.run == run) else {
            return;
        };
        if task.cancel_request.is_some() {
            return;
        }
        let target = task
            .id
            .as_ref()
            .map_or_else(|| json!({}), |id| json!({ "taskId": id }));
        let name = format!("{run}-cancel");
        let request = self.send_with_id(&name, "RemoteUITaskCancel", target, out);
        if let Some(task) = &mut self.task {
            task.cancel_request = Some(request);
        }
        out.clear_timer(timer::ACCEPT);
        out.set_timer(timer::CANCEL, CANCEL_TIMEOUT);
    }

    fn update_settings(&mut self, change: &SettingsChange, out: &mut Actions) {
        let changed = settings::to_wire(change);
        if changed.is_empty() {
            return;
        }
        self.settings.extend(changed.clone());
        // Only an error answers this, and it speaks for itself.
        self.send(
            "RemoteUISettingsUpdate",
            json!({ "settings": changed }),
            out,
        );
    }

    fn finish_handshake(&mut self, remembers: bool, out: &mut Actions) {
        if self.state_request.take().is_none() {
            return;
        }
        out.clear_timer(timer::STATE);
        if self.has_history() && !remembers {
            out.notice_fresh_start(&self.setup.agent);
        }
        out.ready(Vec::new());
    }
}

impl Dialect for RemoteUi {
    fn open(&mut self, out: &mut Actions) {
        if let Some(token) = self.setup.option("token") {
            let line = json!({ "type": "RemoteUIAuth", "data": { "token": token } });
            self.write(line, out);
        }
        let user = json!({ "id": self.setup.user.id, "username": self.setup.user.name });
        self.send("RemoteUISessionInit", json!({ "userInfo": user }), out);
        // The history is requested only to learn whether the extension has it.
        let wanted = json!({ "includeHistory": self.has_history(), "includeSettings": true });
        let request = self.send("RemoteUIStateRequest", wanted, out);
        self.state_request = Some(request);
        out.set_timer(timer::STATE, STATE_TIMEOUT);
    }

    fn handle(&mut self, command: ToAgent, out: &mut Actions) {
        match command {
            ToAgent::Prompt { run, prompt } => self.prompt(run, &prompt, out),
            ToAgent::Resume { run, .. } => out.refuse_resume(run),
            ToAgent::Cancel { run } => self.cancel(run, out),
            ToAgent::Settings(change) => self.update_settings(&change, out),
            ToAgent::Request { id, request } => {
                let what = match request {
                    AgentRequest::Query { .. } => "tell that about itself".to_owned(),
                    AgentRequest::Extension { name, .. } => format!("do `{name}`"),
                };
                out.decline_with(id, unsupported(&self.setup.agent, &what));
            }
            ToAgent::Steer { .. }
            | ToAgent::FollowUp { .. }
            | ToAgent::Answer { .. }
            | ToAgent::Tools(_)
            | ToAgent::Context(_)
            | ToAgent::QueueModes(_) => {}
        }
    }

    fn read(&mut self, _stream: StreamKind, line: Value, out: &mut Actions) {
        self.handle_message(&line, out);
    }

    fn settings(&self) -> SettingsChange {
        self.reported_settings.clone()
    }

    fn on_timer(&mut self, timer: u64, out: &mut Actions) {
        match timer {
            timer::STATE => self.finish_handshake(false, out),
            timer::ACCEPT => self.accept_timed_out(out),
            timer::CANCEL => self.cancel_timed_out(out),
            _ => {}
        }
    }

    fn close(&mut self, out: &mut Actions) {
        self.send("RemoteUISessionEnd", json!({}), out);
    }
}

fn prompt_json(content: &PromptContent) -> Value {
    let mode = match content.mode {
        Mode::Plan => "plan",
        Mode::Act => "act",
    };
    let mut prompt = json!({ "text": content.text, "mode": mode });
    if !content.images.is_empty() {
        let images = content.images.iter().map(|image| json!(image.base64));
        prompt["images"] = images.collect();
    }
    if !content.files.is_empty() {
        prompt["attachments"] = content.files.iter().map(attachment).collect();
    }
    prompt
}

/// An attachment as the specification has it; binary content as base64.
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
