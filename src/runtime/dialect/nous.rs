//! Nous: commands over one Unix socket, events over a second one.
//!
//! The core has one conversation and one run at a time, and never asks for permission. Events
//! travel on a socket of their own and may overtake the response to their prompt: they are held
//! until the id of the run is known.

use std::time::Duration;

use serde_json::{Value, json};

use self::command_queue::{CommandError, CommandQueue, Purpose};
use self::follow_ups::FollowUps;
use self::run_events::{Gap, Run};
use super::super::messages::FromAgent;
use super::{
    Action, Actions, AgentRequest, CarriedSettings, Dialect, ErrorCode, Framing, Level,
    PromptContent, Protocol, RunId, RunOutcome, Setup, StreamKind, ToAgent, Transport, text_of,
    unsupported_request,
};
use crate::domain::command::Topic;
use crate::domain::queue::{QueueMode, QueueModes};

mod branching;
mod command_queue;
mod follow_ups;
mod handshake;
mod recovery;
mod run_events;

pub(super) const PROTOCOL: Protocol = Protocol {
    name: "nous",
    about: "The nous core, over its two Unix sockets",
    capabilities: "cancel usage tools queue steer followUp followUpInRun setTools query tree extension branch \
        attachments resume",
    transport: Transport::UnixPair,
    framing: Framing::Newline,
    resumes: true,
    shares: |_| false,
    restart_after: &[],
    options: &[(
        "ping_secs",
        "Seconds of silence in a run after which the core is asked whether it is there: 15 by default",
    )],
    settings: CarriedSettings::Only(&[]),
    build: |setup| Box::new(Nous::new(setup)),
};

/// The response to a prompt is due within seconds.
const MAX_HELD_EVENTS: usize = 10_000;

/// Commands use their number as the name of their timer.
const IDLE_CHECK_TIMER: u64 = u64::MAX;
const PING_TIMER: u64 = u64::MAX - 1;
/// A core that is silent for this long during a run is asked whether it is there.
const PING_INTERVAL: Duration = Duration::from_secs(15);

struct Nous {
    setup: Setup,
    queue: CommandQueue,
    /// `session_id` of the core.
    thread: Option<String>,
    /// How often the core was found busy during the handshake.
    busy_checks: u8,
    run: Option<Run>,
    /// `run_id` of the run before.
    previous_run: Option<String>,
    /// How queued prompts are to be taken, and how the core says that it takes them.
    modes: QueueModes,
    reported_modes: QueueModes,
    follow_ups: FollowUps,
    /// The core said something since the last look.
    was_heard: bool,
    ping_interval: Duration,
}

impl Dialect for Nous {
    fn open(&mut self, out: &mut Actions) {
        self.queue.send(Purpose::State, "get_state", json!({}), out);
    }

    fn handle(&mut self, command: ToAgent, out: &mut Actions) {
        match command {
            ToAgent::Prompt { run, prompt } => self.prompt(run, &prompt, out),
            ToAgent::Resume { run, .. } => out.refuse_resume(run),
            ToAgent::Steer { run, text } => {
                if self.run.as_ref().is_some_and(|current| current.id == run) {
                    let payload = json!({ "text": text });
                    return self.queue.send(Purpose::Steer, "steer", payload, out);
                }
                self.steer_failed("the run is over", out);
            }
            ToAgent::FollowUp { run, queued, text } => self.follow_up(run, queued, &text, out),
            ToAgent::Cancel { run } => self.cancel(run, out),
            ToAgent::Request { id, request } => self.query(id, &request, out),
            ToAgent::Tools(tools) => {
                let payload = json!({ "tools": tools });
                self.queue
                    .send(Purpose::Setting, "set_active_tools", payload, out);
            }
            ToAgent::QueueModes(modes) => self.set_queue_modes(modes, out),
            // The protocol has no questions, settings or context.
            ToAgent::Answer { .. } | ToAgent::Settings(_) | ToAgent::Context(_) => {}
        }
    }

    fn read(&mut self, stream: StreamKind, line: Value, out: &mut Actions) {
        self.was_heard = true;
        match stream {
            StreamKind::Main => self.handle_response(&line, out),
            StreamKind::Events => self.handle_event(line, out),
        }
    }

    fn on_timer(&mut self, timer: u64, out: &mut Actions) {
        if timer == IDLE_CHECK_TIMER {
            return self.open(out);
        }
        if timer == PING_TIMER {
            return self.check_alive(out);
        }
        let Some((purpose, command)) = self.queue.timed_out(timer, out) else {
            return;
        };
        let agent = &self.setup.agent;
        let message = format!("The agent `{agent}` did not answer `{command}` in time.");
        if let Purpose::AgentRequest(id) = purpose {
            return out.decline(id, ErrorCode::ConnectionLost, message);
        }
        self.run = None;
        out.fail(ErrorCode::ConnectionLost, message);
    }

    fn can_reconnect(&self) -> bool {
        true
    }

    fn reconnected(&mut self, out: &mut Actions) {
        self.begin_recovery(out);
    }
}

impl Nous {
    fn new(setup: Setup) -> Self {
        Self {
            queue: CommandQueue::default(),
            thread: setup.thread.clone(),
            busy_checks: 0,
            run: None,
            previous_run: None,
            modes: QueueModes::default(),
            reported_modes: QueueModes::default(),
            follow_ups: FollowUps::default(),
            was_heard: false,
            ping_interval: setup
                .options
                .get("ping_secs")
                .and_then(Value::as_u64)
                .filter(|seconds| *seconds > 0)
                .map_or(PING_INTERVAL, Duration::from_secs),
            setup,
        }
    }

    fn handle_response(&mut self, line: &Value, out: &mut Actions) {
        let Some((purpose, answer)) = self.queue.response(line, out) else {
            return;
        };
        match purpose {
            Purpose::State => self.handle_state(answer, out),
            // Whatever the response: the core must be idle before it is used.
            Purpose::AbortStale => self.open(out),
            Purpose::Session => self.session_opened(answer, out),
            Purpose::Branch => self.branched(answer, out),
            Purpose::BranchPath => self.cut_branch(answer, out),
            Purpose::Leaf(leaf) => self.leaf_set(leaf, answer.is_ok(), out),
            Purpose::LeafPath(leaf) => self.check_leaf(&leaf, answer, out),
            Purpose::Prompt(run) => self.handle_prompt_response(run, answer, out),
            Purpose::Abort(run) => self.handle_abort_response(run, answer.err().as_ref(), out),
            Purpose::Steer => {
                if let Err(error) = answer {
                    self.steer_failed(&error.text, out);
                }
            }
            Purpose::FollowUp(queued) => self.follow_up_answered(queued, answer.is_ok()),
            Purpose::Pending(run) => self.take_up_follow_ups(run, answer.ok().as_ref(), out),
            Purpose::Setting => {
                if let Err(error) = answer {
                    let agent = &self.setup.agent;
                    let text = format!("The agent `{agent}` did not take it: {}", error.text);
                    out.emit_notice(Level::Warn, text);
                }
            }
            Purpose::AgentRequest(id) => match answer {
                Ok(answer) => out.respond(id, answer),
                Err(error) => out.decline(id, error.code, error.text),
            },
            Purpose::Recovery => self.recover(answer, out),
            Purpose::Missed { run, is_over } => self.catch_up(run, is_over, answer, out),
            Purpose::Ping | Purpose::Ignored => {}
        }
    }

    fn steer_failed(&self, why: &str, out: &mut Actions) {
        let agent = &self.setup.agent;
        let text = format!("The agent `{agent}` did not hear what was said to it: {why}");
        out.emit_notice(Level::Warn, text);
    }

    fn set_queue_modes(&mut self, modes: QueueModes, out: &mut Actions) {
        (self.modes, self.reported_modes) = (modes, modes);
        self.send_steering_mode(out);
        self.send_follow_up_mode(out);
    }

    fn send_steering_mode(&mut self, out: &mut Actions) {
        let payload = json!({ "mode": mode_word(self.modes.steering) });
        self.queue
            .send(Purpose::Setting, "set_steering_mode", payload, out);
    }

    fn send_follow_up_mode(&mut self, out: &mut Actions) {
        let payload = json!({ "mode": mode_word(self.modes.follow_up) });
        self.queue
            .send(Purpose::Setting, "set_follow_up_mode", payload, out);
    }

    fn query(&mut self, id: u64, request: &AgentRequest, out: &mut Actions) {
        let (command, payload) = match request {
            AgentRequest::Extension { name, payload } => {
                if !payload.is_object() && !payload.is_null() {
                    let message = format!("`{name}` takes an object.");
                    return out.decline(id, ErrorCode::ValidationError, message);
                }
                let payload = json!({ "name": name, "payload": payload });
                ("extension_command", payload)
            }
            AgentRequest::Query { topic, .. } if *topic == Topic::Tree => {
                ("get_tree", json!({ "session_id": self.thread }))
            }
            AgentRequest::Query { .. } => {
                let declined = unsupported_request(&self.setup.agent, request);
                return out.decline_with(id, declined);
            }
        };
        self.queue
            .send(Purpose::AgentRequest(id), command, payload, out);
    }
}

impl Nous {
    fn prompt(&mut self, run: RunId, content: &PromptContent, out: &mut Actions) {
        let agent = &self.setup.agent;
        if self.run.is_some() {
            let message = format!("The agent `{agent}` has a run under way.");
            return out.fail_run(run, ErrorCode::Busy, message);
        }
        let text = match content.as_text(agent) {
            Ok(text) => text,
            Err(declined) => return out.refuse_run(run, declined),
        };
        self.run = Some(Run::new(run));
        self.was_heard = false;
        out.set_timer(PING_TIMER, self.ping_interval);
        self.reconcile_modes(out);
        // Without `wait: false` the core would hold its response until the end of the run.
        let payload = json!({ "text": text, "wait": false });
        self.queue
            .send(Purpose::Prompt(run), "prompt", payload, out);
    }

    fn handle_prompt_response(
        &mut self,
        id: RunId,
        answer: Result<Value, CommandError>,
        out: &mut Actions,
    ) {
        let Some(run) = self.run.as_mut().filter(|run| run.id == id) else {
            return;
        };
        let held = std::mem::take(&mut run.held);
        match answer {
            Err(_) if run.cancelling => self.end_run(RunOutcome::Cancelled, out),
            Err(error) => {
                out.keep_error(id, error.agent);
                let (code, message) = (error.code, error.text);
                self.end_run(RunOutcome::Failed { code, message }, out);
            }
            Ok(accepted) => self.accepted(&accepted, out),
        }
        for event in held {
            self.handle_event(event, out);
        }
    }

    fn accepted(&mut self, accepted: &Value, out: &mut Actions) {
        let Some(run) = &mut self.run else { return };
        let agent = &self.setup.agent;
        let native_id = accepted["run_id"].as_str().filter(|id| !id.is_empty());
        let Some(native_id) = native_id else {
            let message = format!("The agent `{agent}` began a run without a name.");
            let code = ErrorCode::TaskFailed;
            return self.end_run(RunOutcome::Failed { code, message }, out);
        };
        let session = accepted["session_id"].as_str();
        if session.is_some() && session != self.thread.as_deref() {
            // Another client uses the same core: neither conversation may see the other.
            self.run = None;
            let message = format!("The agent `{agent}` was taken to another conversation.");
            return out.fail(ErrorCode::TaskFailed, message);
        }
        run.native_id = Some(native_id.to_owned());
        out.emit(FromAgent::RunAccepted { run: run.id });
    }

    fn cancel(&mut self, run: RunId, out: &mut Actions) {
        let Some(current) = self.run.as_mut().filter(|current| current.id == run) else {
            return;
        };
        if std::mem::replace(&mut current.cancelling, true) {
            return;
        }
        if self
            .queue
            .withdraw(|purpose| *purpose == Purpose::Prompt(run))
        {
            return self.end_run(RunOutcome::Cancelled, out);
        }
        self.queue
            .send_first(Purpose::Abort(run), "abort", json!({}), out);
    }

    /// Ignored if the run has ended meanwhile.
    fn handle_abort_response(
        &mut self,
        run: RunId,
        error: Option<&CommandError>,
        out: &mut Actions,
    ) {
        if self.run.as_ref().is_none_or(|current| current.id != run) {
            return;
        }
        if let Some(error) = error {
            self.end_run(RunOutcome::Cancelled, out);
            if !error.says("no_active_run") {
                out.push(Action::Finish);
            }
        }
    }

    /// Reports the one end of the current run.
    fn end_run(&mut self, outcome: RunOutcome, out: &mut Actions) {
        let Some(mut run) = self.run.take() else {
            return;
        };
        run.finish_message(out);
        self.follow_ups = FollowUps::default();
        out.end_run(run.id, outcome, None);
        if run.native_id.is_some() {
            self.previous_run = run.native_id;
        }
    }
}

impl Nous {
    fn handle_event(&mut self, event: Value, out: &mut Actions) {
        let kind = text_of(&event["type"]);
        let shown_kind = command_queue::printable(&event["type"]);
        let payload = &event["payload"];
        let Some(named) = payload["run_id"].as_str() else {
            return handle_event_outside_runs(&kind, event, out);
        };
        if let Some(run) = &mut self.run {
            let is_early = run.native_id.is_none() && self.previous_run.as_deref() != Some(named);
            if is_early || run.is_catching_up {
                if run.held.len() < MAX_HELD_EVENTS {
                    return run.held.push(event);
                }
                return out.unexpected(format!("`{shown_kind}` too long before its run"));
            }
            if run.native_id.as_deref() == Some(named) {
                if run.closes_gap(&kind) {
                    run.held.push(event);
                    run.gap = Gap::Closing;
                    return self.ask_for_missed(false, out);
                }
                if kind == "turn_start" && self.follow_ups.is_unsettled() {
                    run.held.push(event);
                    return self.ask_for_pending(out);
                }
                if kind == "agent_end" {
                    let outcome = run.outcome(out);
                    self.follow_ups.take_rest(run, out);
                    return self.end_run(outcome, out);
                }
                if !run.apply(&kind, payload, out) {
                    out.emit_raw(PROTOCOL.name, event);
                }
                return;
            }
        }
        let name = command_queue::printable(&event["payload"]["run_id"]);
        let what = format!("`{shown_kind}` of the run `{name}`");
        out.push(if self.previous_run.as_deref() == Some(named) {
            Action::Unexpected(format!("{what}, which is over"))
        } else {
            Action::Misrouted(what)
        });
    }
}

fn mode_word(mode: QueueMode) -> &'static str {
    match mode {
        QueueMode::One => "one-at-a-time",
        QueueMode::All => "all",
    }
}

fn handle_event_outside_runs(kind: &str, event: Value, out: &mut Actions) {
    let text = run_events::error_text(&event["payload"]);
    match kind {
        "warning" => out.emit_notice(Level::Warn, text),
        "error" => out.emit_notice(Level::Error, text),
        "agent_start"
        | "agent_end"
        | "turn_start"
        | "turn_end"
        | "message_start"
        | "message_update"
        | "message_end"
        | "tool_execution_start"
        | "tool_execution_update"
        | "tool_execution_end" => out.unexpected(format!("`{kind}` of no run")),
        _ if event.is_object() => out.emit_raw(PROTOCOL.name, event),
        _ => out.unexpected("a line that is not an event"),
    }
}
