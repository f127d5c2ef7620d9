//! Copilot CLI: makes user interfaces out of API specifications. JSON-RPC over stdio, one request at a
//! time.
//!
//! It is stateless: the generated code and the messages are kept here and sent again; the specification
//! is kept as the conversation's thread, so that it survives a restart. Its queue of 100 requests is the
//! session's own. A request cannot be cancelled, so a cancel ends the process.
//!
//! While the pipe is full, a request waits for it within its own timeout. An attempt that is given up
//! before any of it was written is not written any more.

use std::time::Duration;

use serde_json::{Value, json};

use super::{
    Action, Actions, CarriedSettings, Dialect, Framing, PromptContent, Protocol, Setup, StreamKind,
    ToAgent, Transport, text_of, unsupported,
};
use crate::domain::command::{AgentRequest, Mode};
use crate::domain::error_code::ErrorCode;
use crate::domain::event::Level;
use crate::domain::id::RunId;
use crate::domain::question::Resolution;
use crate::domain::run::{AgentError, RunOutcome};
use crate::runtime::jsonrpc::{self, Message, RpcError};
use crate::runtime::messages::FromAgent;

mod attached_api_specs;
mod clarification;
mod handshake;
mod request;
mod response;
mod session_context;
mod stream;

use clarification::Clarification;
use handshake::Handshake;
use request::{GenerateOptions, Request};
use response::Response;
use session_context::SessionContext;
use stream::{Chunk, ChunkStream};

pub(super) const PROTOCOL: Protocol = Protocol {
    name: "copilot",
    about: "The Copilot CLI that makes user interfaces out of API specifications",
    capabilities: "cancel questions queue followUp branch attachments resume",
    transport: Transport::Stdio,
    framing: Framing::Newline,
    resumes: true,
    shares: |_| false,
    restart_after: &[
        Duration::from_secs(5),
        Duration::from_secs(10),
        Duration::from_secs(30),
    ],
    options: &[
        ("format", "what code is made: `react` by default"),
        ("theme", "how it looks: `light` by default"),
        ("layout", "how it is laid out: `default` by default"),
        ("include_auth", "whether it has a login: true by default"),
        ("pagination", "whether lists have pages: true by default"),
    ],
    settings: CarriedSettings::Only(&[]),
    build: |setup| Box::new(Copilot::new(setup)),
};

/// Those of the handshake are 1 and 2.
const REQUEST_TIMER: u64 = 3;
const RETRY_TIMER: u64 = 4;

struct Copilot {
    agent: String,
    version: &'static str,
    session: String,
    generate_options: GenerateOptions,
    next_id: u64,
    handshake: Handshake,
    context: SessionContext,
    run: Option<Run>,
}

struct Run {
    id: RunId,
    /// The prompt, and the clarifications since.
    text: String,
    request: Request,
    failed_attempts: usize,
    /// Of the attempt under way.
    request_id: Option<u64>,
    stream: ChunkStream,
    clarification: Option<Clarification>,
}

/// Why a run fails, with the agent's own words if it has said any.
struct Failure {
    code: ErrorCode,
    message: String,
    agent_error: Option<AgentError>,
}

impl Failure {
    fn of(agent: &str, error: &RpcError) -> Self {
        let (code, message) = response::error_message(agent, error);
        Self {
            code,
            message,
            agent_error: Some(error.in_its_words()),
        }
    }
}

impl Copilot {
    fn new(setup: Setup) -> Self {
        Self {
            generate_options: GenerateOptions::from(&setup),
            context: SessionContext::restore(&setup.history, setup.thread.as_deref()),
            agent: setup.agent,
            version: setup.version,
            session: setup.session,
            next_id: 1,
            handshake: Handshake::default(),
            run: None,
        }
    }

    fn next_request_id(&mut self) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        id
    }

    fn initialize(&mut self, out: &mut Actions) {
        let id = self.next_request_id();
        self.handshake.send(id, self.version, out);
    }

    fn prompt(&mut self, run: RunId, content: &PromptContent, out: &mut Actions) {
        let agent = &self.agent;
        if self.run.is_some() {
            let message = format!("The agent `{agent}` is busy with another prompt.");
            return out.fail_run(run, ErrorCode::Busy, message);
        }
        match self.choose_request(content) {
            Ok((text, request)) => {
                out.emit(FromAgent::RunAccepted { run });
                self.run = Some(Run {
                    id: run,
                    text,
                    stream: ChunkStream::new(request.is_code()),
                    request,
                    failed_attempts: 0,
                    request_id: None,
                    clarification: None,
                });
                self.send(out);
            }
            Err(what) => {
                out.refuse_run(run, unsupported(agent, &what));
            }
        }
    }

    /// The request for a prompt; or what is unsupported, completing "The agent cannot …".
    fn choose_request(&self, content: &PromptContent) -> Result<(String, Request), String> {
        if content.mode == Mode::Plan {
            return Err("plan without acting".into());
        }
        if !content.images.is_empty() {
            return Err("look at images".into());
        }
        let mut content = content.clone();
        let spec = content
            .files
            .iter()
            .enumerate()
            .find_map(|(index, file)| Some((index, attached_api_specs::parse(file)?)));
        if let Some((index, _)) = spec {
            content.files.remove(index);
        }
        let (text, binary_files) = content.text_with_files();
        if !binary_files.is_empty() {
            let binary_files = binary_files.join(", ");
            return Err(format!("read files that are not text ({binary_files})"));
        }
        let request = match spec {
            Some(_) if self.handshake.lacks("codeGeneration") => {
                return Err("generate code".into());
            }
            Some((_, spec)) => Request::Generate { spec },
            None if self.context.has_code() && !self.handshake.lacks("customization") => {
                Request::Customize
            }
            None => Request::Chat,
        };
        Ok((text, request))
    }

    fn send(&mut self, out: &mut Actions) {
        let id = self.next_request_id();
        let Some(run) = &mut self.run else { return };
        let params = match &run.request {
            Request::Generate { spec } => self.generate_options.generate(spec, &run.text),
            Request::Customize => self.context.customize(&run.text),
            Request::Chat => self.context.chat(&self.session, &run.text),
        };
        run.request_id = Some(id);
        run.stream = ChunkStream::new(run.request.is_code());
        out.write(jsonrpc::request(id, run.request.method(), params));
        out.set_timer(REQUEST_TIMER, run.request.timeout());
    }

    fn handle_response(&mut self, id: &Value, answer: Result<Value, RpcError>, out: &mut Actions) {
        if self.handshake.is_pending(id) {
            return self.handshake.handle_response(&self.agent, answer, out);
        }
        let sent = self.run.as_ref().and_then(|run| run.request_id);
        if sent.is_none() || id.as_u64() != sent {
            // Most likely of an abandoned attempt.
            let id = text_of(id);
            return out.unexpected(format!("an answer to nothing: id {id:.64}"));
        }
        out.clear_timer(REQUEST_TIMER);
        match answer {
            Ok(result) if result["clarificationNeeded"] == true => {
                self.ask_clarification(&result, out);
            }
            Ok(result) => self.finish(Response::parse(&result), out),
            Err(error) => {
                let failure = Failure::of(&self.agent, &error);
                if response::is_retryable(&error) {
                    self.retry(failure, out);
                } else {
                    self.fail(failure, out);
                }
            }
        }
    }

    /// An attempt failed; the run ends with this error if it was the last one.
    fn retry(&mut self, failure: Failure, out: &mut Actions) {
        let Some(run) = &mut self.run else { return };
        run.request_id = None;
        let Some(delay) = run.request.retry_delays().get(run.failed_attempts) else {
            return self.fail(failure, out);
        };
        run.failed_attempts += 1;
        run.stream.withdraw(run.id, out);
        if delay.is_zero() {
            self.send(out);
        } else {
            out.set_timer(RETRY_TIMER, *delay);
        }
    }

    fn fail(&mut self, failure: Failure, out: &mut Actions) {
        let Failure {
            code,
            message,
            agent_error,
        } = failure;
        if let (Some(run), Some(error)) = (&self.run, agent_error) {
            out.keep_error(run.id, error);
        }
        self.end_run(RunOutcome::Failed { code, message }, out);
    }

    fn finish(&mut self, mut response: Response, out: &mut Actions) {
        let Some(mut run) = self.run.take() else {
            return;
        };
        let id = run.id;
        if run.request.is_code() && run.stream.is_whole() {
            // The response need not repeat a stream that said that it is all.
            response.code.get_or_insert(run.stream.text().to_owned());
        }
        if response.confirms(&run.request, run.stream.text()) {
            run.stream.close_code_fence(id, out);
            let rest = response.text_after_stream(&run.request);
            run.stream.append(id, &rest, out);
            run.stream.finish(id, out);
        } else {
            run.stream.withdraw(id, out);
            let mut text = response.text();
            if text.is_empty() {
                run.stream.text().clone_into(&mut text);
            }
            if !text.is_empty() {
                let text = Some(text);
                out.emit(FromAgent::MessageFinal { run: id, text });
            }
        }
        let spec = self.context.record(&run.text, run.request, &response);
        self.keep_spec(spec, out);
        out.end_run(id, RunOutcome::Completed, None);
    }

    /// Has the specification kept for the process after this one.
    fn keep_spec(&self, spec: Option<Value>, out: &mut Actions) {
        match spec.map(|spec| session_context::thread(&spec)) {
            Some(Some(thread)) => out.emit(FromAgent::Thread(thread)),
            Some(None) => {
                out.emit(FromAgent::Thread(String::new()));
                let agent = &self.agent;
                let text = format!(
                    "The specification is too large to be kept: when the agent `{agent}` is started \
                     again, attach it again."
                );
                out.emit_notice(Level::Warn, text);
            }
            None => {}
        }
    }

    fn end_run(&mut self, outcome: RunOutcome, out: &mut Actions) {
        if let Some(mut run) = self.run.take() {
            run.stream.abandon(run.id, out);
            out.end_run(run.id, outcome, None);
        }
    }

    fn ask_clarification(&mut self, result: &Value, out: &mut Actions) {
        let Some(run) = &mut self.run else { return };
        let question_id = run.request_id.take().unwrap_or_default().to_string();
        run.stream.withdraw(run.id, out);
        let clarification = Clarification::parse(question_id, result);
        out.emit(FromAgent::QuestionAsked {
            run: run.id,
            question: clarification.id().to_owned(),
            content: Box::new(clarification.question()),
            timeout: None,
        });
        run.clarification = Some(clarification);
    }

    fn answer(&mut self, question: &str, resolution: &Resolution, out: &mut Actions) {
        let Some(run) = &mut self.run else { return };
        let pending = &mut run.clarification;
        let Some(clarification) = pending.take_if(|pending| pending.id() == question) else {
            return;
        };
        match resolution {
            Resolution::Answered(answer) => match clarification.answer_text(answer) {
                Some(text) => {
                    run.text = format!("{}\n\n{text}", run.text);
                    let request = std::mem::replace(&mut run.request, Request::Customize);
                    run.failed_attempts = 0;
                    if let Request::Generate { spec } = request {
                        self.context.set_spec(spec.clone());
                        self.keep_spec(Some(spec), out);
                    }
                    self.send(out);
                }
                None => self.end_run(RunOutcome::Cancelled, out),
            },
            Resolution::Cancelled => self.end_run(RunOutcome::Cancelled, out),
            Resolution::Expired => {
                let code = ErrorCode::TaskFailed;
                let agent = &self.agent;
                let message = format!(
                    "Nobody answered what the agent `{agent}` had to know, so it did nothing."
                );
                self.end_run(RunOutcome::Failed { code, message }, out);
            }
        }
    }

    fn cancel(&mut self, run: RunId, out: &mut Actions) {
        if self.run.as_ref().is_some_and(|current| current.id == run) {
            out.clear_timer(REQUEST_TIMER);
            out.clear_timer(RETRY_TIMER);
            self.end_run(RunOutcome::Cancelled, out);
            out.push(Action::Finish);
        }
    }

    fn chunk(&mut self, params: &Value, out: &mut Actions) {
        let request_id = params["requestId"].as_u64();
        match (&mut self.run, request_id) {
            (Some(run), Some(_)) if run.request_id == request_id => {
                let chunk = Chunk {
                    index: params["index"].as_u64(),
                    text: text_of(&params["chunk"]),
                    is_last: params["done"] == true,
                };
                run.stream.push(run.id, chunk, out);
            }
            // Of an abandoned attempt.
            (_, Some(id)) if id < self.next_id => {
                out.unexpected(format!("`stream/chunk` of request {id}, late"));
            }
            _ => {
                let id = text_of(&params["requestId"]);
                out.misrouted(format!("`stream/chunk` of request {id:.64}"));
            }
        }
    }
}

impl Dialect for Copilot {
    fn open(&mut self, out: &mut Actions) {
        self.initialize(out);
    }

    fn handle(&mut self, command: ToAgent, out: &mut Actions) {
        match command {
            ToAgent::Prompt { run, prompt } => self.prompt(run, &prompt, out),
            ToAgent::Resume { run, .. } => out.refuse_resume(run),
            ToAgent::Cancel { run } => self.cancel(run, out),
            ToAgent::Answer {
                question,
                resolution,
            } => self.answer(&question, &resolution, out),
            ToAgent::Request { id, request } => {
                let what = match request {
                    AgentRequest::Query { .. } => "answer questions about itself".to_owned(),
                    AgentRequest::Extension { name, .. } => format!("do `{name}`"),
                };
                out.decline_with(id, unsupported(&self.agent, &what));
            }
            // Not in the protocol.
            ToAgent::Steer { .. }
            | ToAgent::FollowUp { .. }
            | ToAgent::Settings(_)
            | ToAgent::Tools(_)
            | ToAgent::Context(_)
            | ToAgent::QueueModes(_) => {}
        }
    }

    fn read(&mut self, _stream: StreamKind, line: Value, out: &mut Actions) {
        match jsonrpc::parse(line) {
            Message::Response { id, result } => self.handle_response(&id, result, out),
            Message::Notification { method, params } if method == "stream/chunk" => {
                self.chunk(&params, out);
            }
            Message::Notification { method, params } => {
                out.emit_raw(PROTOCOL.name, json!({ "method": method, "params": params }));
            }
            Message::Request { id, method, .. } => {
                let message = format!("no such method: {method}");
                out.write(jsonrpc::error(id, jsonrpc::METHOD_NOT_FOUND, &message));
            }
            Message::Invalid(_) => {
                out.unexpected("a line that is not JSON-RPC");
            }
        }
    }

    fn open_questions(&self) -> Vec<String> {
        let run = self.run.as_ref();
        let open = run.and_then(|run| run.clarification.as_ref());
        open.map(|open| open.id().to_owned()).into_iter().collect()
    }

    fn on_timer(&mut self, timer: u64, out: &mut Actions) {
        match timer {
            handshake::TIMEOUT_TIMER => self.handshake.timed_out(&self.agent, out),
            handshake::RETRY_TIMER => self.initialize(out),
            REQUEST_TIMER => {
                let Some(run) = self.run.as_ref().filter(|run| run.request_id.is_some()) else {
                    return;
                };
                let message = format!(
                    "The agent `{}` did not answer within {} s.",
                    self.agent,
                    run.request.timeout().as_secs()
                );
                let failure = Failure {
                    code: ErrorCode::TaskFailed,
                    message,
                    agent_error: None,
                };
                out.push(Action::DropUnwritten);
                self.retry(failure, out);
            }
            RETRY_TIMER if self.run.as_ref().is_some_and(Run::awaits_retry) => {
                self.send(out);
            }
            _ => {}
        }
    }

    fn close(&mut self, out: &mut Actions) {
        out.write(jsonrpc::notification("exit", json!({})));
    }
}

impl Run {
    fn awaits_retry(&self) -> bool {
        self.request_id.is_none() && self.clarification.is_none()
    }
}
