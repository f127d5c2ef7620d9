//! Codelia: JSON-RPC over the standard streams of one runtime per session.
//!
//! The runtime has one run at a time and asks its human through requests of its own. It names its
//! conversation only in a list, by the last run in it, so that list is asked for after a run began,
//! and again after its end.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Value, json};

use self::asking::{Ask, Kind};
use self::run::Run;
use super::super::jsonrpc::{self, Fault, Message};
use super::super::pending::Pending;
use super::super::talk::FromAgent;
use super::{
    Act, Brief, Code, Dialect, Framing, Lane, Level, Order, Out, Protocol, RunId, RunOutcome,
    Setup, Transport, text_of,
};

mod asking;
mod inquiry;
mod news;
mod run;

/// What is known about it.
pub(super) const PROTOCOL: Protocol = Protocol {
    name: "codelia",
    about: "Codelia's UI protocol, over the standard streams",
    capabilities: &[
        "cancel",
        "thoughts",
        "tools",
        "questions",
        "queue",
        "followUp",
        "context",
        "query",
        "models",
        "mcp",
        "skills",
        "branch",
        "attachments",
        "resume",
    ],
    transport: Transport::Stdio,
    framing: Framing::Newline,
    resumes: true,
    shares: |_| false,
    restart_after: &[],
    options: &[(
        "questions",
        "which questions the runtime may ask: `all` (the default) or `confirm`",
    )],
    speaker: |setup| Box::new(Codelia::new(setup)),
};

const VERSION: &str = "0";
/// How long the runtime may take to introduce itself.
const HANDSHAKE: Duration = Duration::from_secs(30);
/// How long it may take to begin a run: it starts its MCP servers first.
const START: Duration = Duration::from_mins(1);
/// How long it may take to answer an inquiry.
const INQUIRY: Duration = Duration::from_secs(15);
/// It still tidies up for a moment after it said that a run is over, and is busy then.
const TIDYING: Duration = Duration::from_millis(250);
const TRIES: u8 = 8;
/// How long after the last word of a run its end may be waited for: it need not be told.
const SETTLING: Duration = Duration::from_secs(30);

// Timers are named by the number of the request that they watch; these two watch none.
const TRY_AGAIN: u64 = 0;
const SETTLED: u64 = u64::MAX;

const BUSY: i64 = -32001;
const RUN_NOT_FOUND: i64 = -32002;
const USER_CANCELLED: i64 = -32003;
const SESSION_NOT_FOUND: i64 = -32004;
const SESSION_NOT_LOADED: i64 = -32005;
const INVALID_PARAMS: i64 = -32602;

/// What a request was for.
#[derive(Debug)]
enum Waiting {
    Hello,
    Start,
    Cancel(String),
    /// The list in which the run with this name tells the conversation.
    Sessions(String),
    Inquiry(u64),
    Model(String),
}

struct Codelia {
    setup: Setup,
    pending: Pending<Waiting>,
    /// The runtime's own name for this conversation.
    thread: Option<String>,
    run: Option<Run>,
    /// The runtime's name of the run before.
    ended: Option<String>,
    questions: BTreeMap<String, Ask>,
    /// How many were asked: the name of the next one comes from this.
    asked: u64,
    /// The model to be chosen once the run is over: the runtime takes none before.
    model: Option<String>,
    lacks: BTreeSet<&'static str>,
}

impl Dialect for Codelia {
    fn open(&mut self, out: &mut Out) {
        let only_confirm = self.setup.option("questions") == Some("confirm");
        let params = json!({
            "protocol_version": VERSION,
            "client": { "name": "switchboard", "version": self.setup.version },
            "ui_capabilities": {
                "supports_confirm": true,
                "supports_prompt": !only_confirm,
                "supports_pick": !only_confirm,
                "supports_permission_preflight_events": true,
            },
        });
        let number = self.request(Waiting::Hello, "initialize", params, out);
        out.timer(number, HANDSHAKE);
    }

    fn hear(&mut self, order: Order, out: &mut Out) {
        match order {
            Order::Prompt { run, brief } => self.prompt(run, &brief, out),
            Order::Cancel { run } => self.cancel(run, out),
            Order::Answer {
                question,
                resolution,
            } => self.answer(&question, &resolution, out),
            Order::Inquire { id, inquiry } => self.inquire(id, inquiry, out),
            Order::Settings(change) => {
                if let Some(model) = change.model {
                    self.choose(model, out);
                }
            }
            Order::Context(context) => {
                let context = self.place(&context);
                out.write(jsonrpc::notification("ui.context.update", context));
            }
            // None of these is a capability of it, and the gateway keeps its queue itself.
            Order::Steer { .. } | Order::Tools(_) | Order::QueueModes(_) => {}
        }
    }

    fn read(&mut self, _lane: Lane, line: Value, out: &mut Out) {
        match jsonrpc::read(line) {
            Message::Answer { id, answer } => self.answered(&id, answer, out),
            Message::Notification { method, params } => self.noted(&method, params, out),
            Message::Request { id, method, params } => {
                if let Some(kind) = Kind::of(&method) {
                    return self.asked(id, kind, &params, out);
                }
                let message = format!("`{method}` is not known here");
                out.write(jsonrpc::error(id, jsonrpc::UNKNOWN_METHOD, &message));
            }
            Message::Odd(_) => out.act(Act::Odd("a line that is not JSON-RPC".into())),
        }
    }

    fn late(&mut self, timer: u64, out: &mut Out) {
        match timer {
            TRY_AGAIN => return self.start(out),
            SETTLED => return self.settle(out),
            _ => {}
        }
        // A human may be slow to answer what the runtime wants to know before it begins.
        let starts = self.run.as_ref().and_then(|run| run.started);
        if starts == Some(timer) && self.is_asking() {
            return out.timer(timer, START);
        }
        let agent = self.setup.agent.clone();
        match self.pending.take(timer) {
            Some(Waiting::Hello) => self.give_up("introduce itself", out),
            Some(Waiting::Start) => self.give_up("begin the run", out),
            Some(Waiting::Inquiry(id)) => {
                let message = format!("The agent `{agent}` did not answer in time.");
                out.decline(id, Code::ConnectionLost, message);
            }
            _ => {}
        }
    }
}

/// Requests of ours, and what comes of them.
impl Codelia {
    fn new(setup: Setup) -> Self {
        Self {
            pending: Pending::from(1),
            thread: setup.thread.clone(),
            run: None,
            ended: None,
            questions: BTreeMap::new(),
            asked: 0,
            model: None,
            lacks: BTreeSet::new(),
            setup,
        }
    }

    /// Asks the runtime for something; gives the number of the request.
    fn request(&mut self, what: Waiting, method: &str, params: Value, out: &mut Out) -> u64 {
        let number = self.pending.add(what);
        out.write(jsonrpc::request(number.to_string(), method, params));
        number
    }

    fn answered(&mut self, id: &Value, answer: Result<Value, Fault>, out: &mut Out) {
        // Ids are texts; a number counts as well.
        let number = id.as_u64().or_else(|| id.as_str()?.parse().ok());
        let waited = number.and_then(|number| Some((number, self.pending.take(number)?)));
        let Some((number, waited)) = waited else {
            let id = text_of(id);
            return out.act(Act::Odd(format!("an answer to nothing: {id:.64}")));
        };
        match waited {
            Waiting::Hello => {
                out.no_timer(number);
                self.greeted(answer, out);
            }
            Waiting::Start => {
                out.no_timer(number);
                match answer {
                    Ok(result) => self.started(&result, out),
                    Err(fault) => self.not_started(fault, out),
                }
            }
            Waiting::Cancel(native) => self.cancelled(&native, &answer, out),
            Waiting::Sessions(native) => match answer {
                Ok(list) => self.listed(&native, &list, out),
                Err(fault) => out.act(Act::Odd(format!("no sessions: error {}", fault.code))),
            },
            Waiting::Inquiry(id) => {
                out.no_timer(number);
                match answer {
                    Ok(answer) => out.answer(id, answer),
                    Err(fault) => out.decline(id, code(fault.code), fault.message),
                }
            }
            Waiting::Model(model) => {
                if let Err(fault) = answer {
                    let agent = &self.setup.agent;
                    let text = format!(
                        "The agent `{agent}` did not take the model `{model}`: {}",
                        fault.message
                    );
                    out.notice(Level::Warn, text);
                }
            }
        }
    }

    fn greeted(&mut self, answer: Result<Value, Fault>, out: &mut Out) {
        let agent = self.setup.agent.clone();
        let hello = match answer {
            Ok(hello) => hello,
            Err(fault) => {
                let message = format!("The agent `{agent}` refused to begin: {}", fault.message);
                return out.fail(code(fault.code), message);
            }
        };
        let version = text_of(&hello["protocol_version"]);
        if version != VERSION {
            let message = format!(
                "The agent `{agent}` speaks version `{version}` of its protocol; `{VERSION}` is needed."
            );
            return out.fail(Code::Unsupported, message);
        }
        let can = |what: &str| hello["server_capabilities"][what].as_bool();
        for (word, there) in [
            ("cancel", can("supports_run_cancel") != Some(false)),
            ("questions", can("supports_ui_requests") != Some(false)),
            ("mcp", can("supports_mcp_list") == Some(true)),
            ("skills", can("supports_skills_list") == Some(true)),
        ] {
            if !there {
                self.lacks.insert(word);
            }
        }
        let place = self.place(&Value::Null);
        out.write(jsonrpc::notification("ui.context.update", place));
        out.ready(self.lacks.iter().copied().collect());
        if self.thread.is_none() && !self.setup.history.is_empty() {
            self.forgot(out);
        }
    }

    fn forgot(&self, out: &mut Out) {
        out.starts_fresh(&self.setup.agent);
    }

    fn give_up(&mut self, what: &str, out: &mut Out) {
        self.run = None;
        let message = format!("The agent `{}` did not {what} in time.", self.setup.agent);
        out.fail(Code::ConnectionLost, message);
    }

    /// Where the user is, as the client says it; where the agent works is not for clients to say.
    fn place(&self, context: &Value) -> Value {
        let mut place = context.as_object().cloned().unwrap_or_default();
        for name in ["cwd", "workspace_root"] {
            place.insert(name.into(), self.setup.directory.clone().into());
        }
        Value::Object(place)
    }
}

/// The life of a run.
impl Codelia {
    fn prompt(&mut self, run: RunId, brief: &Brief, out: &mut Out) {
        let agent = &self.setup.agent;
        if self.run.is_some() {
            let message = format!("The agent `{agent}` has a run under way.");
            return out.fail_run(run, Code::Busy, message);
        }
        let text = match brief.as_text(agent) {
            Ok(text) => text,
            Err(declined) => return out.refuse(run, declined),
        };
        let mut params = json!({ "input": super::text_block(&text) });
        if let Some(context) = &brief.context {
            params["ui_context"] = self.place(context);
        }
        if let Some(meta) = &brief.meta {
            // Under a name of its own: the runtime keeps its settings beside it.
            params["meta"] = json!({ "client": meta });
        }
        self.run = Some(Run::new(run, params));
        self.start(out);
    }

    fn start(&mut self, out: &mut Out) {
        let waits = |run: &&Run| run.native.is_none() && run.started.is_none();
        let Some(run) = self.run.as_ref().filter(waits) else {
            return;
        };
        let mut params = run.params.clone();
        if let Some(thread) = &self.thread {
            params["session_id"] = thread.as_str().into();
        }
        let number = self.request(Waiting::Start, "run.start", params, out);
        if let Some(run) = &mut self.run {
            run.started = Some(number);
        }
        out.timer(number, START);
    }

    fn started(&mut self, result: &Value, out: &mut Out) {
        let Some(run) = &mut self.run else {
            return out.act(Act::Odd("a run began that nobody waits for".into()));
        };
        run.started = None;
        let native = result["run_id"].as_str().filter(|id| !id.is_empty());
        let Some(native) = native.map(str::to_owned) else {
            let message = format!(
                "The agent `{}` began a run without a name.",
                self.setup.agent
            );
            let code = Code::TaskFailed;
            return self.finish(RunOutcome::Failed { code, message }, out);
        };
        run.native = Some(native.clone());
        let cancelling = run.cancelling;
        out.tell(FromAgent::Accepted { run: run.id });
        if cancelling {
            self.send_cancel(native, out);
        } else if self.thread.is_none() {
            self.look_for_thread(native, out);
        }
    }

    fn not_started(&mut self, fault: Fault, out: &mut Out) {
        let Some(run) = &mut self.run else { return };
        run.started = None;
        if run.cancelling || fault.code == USER_CANCELLED {
            return self.finish(RunOutcome::Cancelled, out);
        }
        // Busy although its last run is over: it tidies up.
        if fault.code == BUSY && self.ended.is_some() && run.tries < TRIES {
            run.tries += 1;
            return out.timer(TRY_AGAIN, TIDYING);
        }
        let lost = matches!(fault.code, SESSION_NOT_FOUND | SESSION_NOT_LOADED);
        if lost && self.thread.take().is_some() {
            self.forgot(out);
            return self.start(out);
        }
        let (code, message) = (code(fault.code), fault.message);
        self.finish(RunOutcome::Failed { code, message }, out);
    }

    fn look_for_thread(&mut self, native: String, out: &mut Out) {
        let params = json!({ "limit": 50 });
        self.request(Waiting::Sessions(native), "session.list", params, out);
    }

    fn listed(&mut self, native: &str, list: &Value, out: &mut Out) {
        let sessions = list["sessions"].as_array();
        let mut sessions = sessions.into_iter().flatten();
        let found = sessions.find(|session| session["run_id"] == native);
        let Some(thread) = found.and_then(|session| session["session_id"].as_str()) else {
            return;
        };
        if self.thread.is_none() {
            self.thread = Some(thread.to_owned());
            out.tell(FromAgent::Thread(thread.to_owned()));
        }
    }

    fn cancel(&mut self, run: RunId, out: &mut Out) {
        let Some(current) = self.run.as_mut().filter(|current| current.id == run) else {
            return;
        };
        if std::mem::replace(&mut current.cancelling, true) {
            return;
        }
        if let Some(native) = current.native.clone() {
            self.send_cancel(native, out);
        } else if current.started.is_none() {
            // It waits to be begun again.
            out.no_timer(TRY_AGAIN);
            self.finish(RunOutcome::Cancelled, out);
        }
    }

    fn send_cancel(&mut self, native: String, out: &mut Out) {
        if self.lacks.contains("cancel") {
            self.finish(RunOutcome::Cancelled, out);
            return out.act(Act::Finish);
        }
        let params = json!({ "run_id": native, "reason": "cancelled by the user" });
        self.request(Waiting::Cancel(native), "run.cancel", params, out);
    }

    /// What came of a cancel. Its run has usually had its end by now, or gets it in a moment.
    fn cancelled(&mut self, native: &str, answer: &Result<Value, Fault>, out: &mut Out) {
        let run = self.run.as_ref();
        if run.is_none_or(|run| run.native.as_deref() != Some(native)) {
            return;
        }
        match answer {
            Ok(result) if result["ok"] != false => {}
            Ok(_) => self.finish(RunOutcome::Cancelled, out),
            Err(fault) if fault.code == RUN_NOT_FOUND => self.finish(RunOutcome::Cancelled, out),
            Err(_) => {
                self.finish(RunOutcome::Cancelled, out);
                out.act(Act::Finish);
            }
        }
    }

    /// The one end of the run under way.
    fn finish(&mut self, outcome: RunOutcome, out: &mut Out) {
        let Some(mut run) = self.run.take() else {
            return;
        };
        out.no_timer(SETTLED);
        run.close_utterance(out);
        out.end(run.id, outcome, None);
        if let Some(native) = run.native {
            self.ended = Some(native.clone());
            if self.thread.is_none() {
                self.look_for_thread(native, out);
            }
        }
        if let Some(model) = self.model.take() {
            self.choose(model, out);
        }
    }
}

/// What the codes of the protocol mean to a client.
fn code(code: i64) -> Code {
    match code {
        jsonrpc::UNKNOWN_METHOD => Code::Unsupported,
        INVALID_PARAMS => Code::ValidationError,
        BUSY => Code::Busy,
        RUN_NOT_FOUND | SESSION_NOT_FOUND => Code::NotFound,
        _ => Code::TaskFailed,
    }
}
