//! Cases that depend on request ids: they contain run ids, so a transcript cannot hold them.

use serde_json::{Value, json};

use super::*;
use crate::domain::run::{AgentError, RunOutcome};
use crate::runtime::dialect::{Action, transcripts};
use crate::runtime::messages::FromAgent;

struct Connection {
    dialect: RemoteUi,
    out: Actions,
}

impl Connection {
    fn ready() -> Self {
        let setup = transcripts::setup(&Value::Null);
        let mut connection = Self {
            dialect: RemoteUi::new(setup),
            out: Actions::default(),
        };
        connection.dialect.open(&mut connection.out);
        connection
            .dialect
            .on_timer(timer::STATE, &mut connection.out);
        connection.out.take();
        connection
    }

    fn prompt(&mut self) -> (RunId, String) {
        let run = RunId::new();
        let prompt = PromptContent::new("hi", Mode::Act);
        self.dialect
            .handle(ToAgent::Prompt { run, prompt }, &mut self.out);
        (run, self.written_request())
    }

    fn cancel(&mut self, run: RunId) -> String {
        self.dialect.handle(ToAgent::Cancel { run }, &mut self.out);
        self.written_request()
    }

    fn written_request(&mut self) -> String {
        let lines = self.out.take().into_iter().filter_map(|act| match act {
            Action::Write(_, line) => line["requestId"].as_str().map(str::to_owned),
            _ => None,
        });
        let lines: Vec<String> = lines.collect();
        assert_eq!(lines.len(), 1, "{lines:?}");
        lines.concat()
    }

    /// The actions that follow a message with this request id.
    fn receive(&mut self, kind: &str, request: &str, more: Value) -> Vec<Action> {
        let mut data = json!({ "sessionId": "ses_1", "clientId": "gateway-ses_1" });
        if let (Value::Object(data), Value::Object(more)) = (&mut data, more) {
            data.extend(more);
        }
        let line = json!({ "type": kind, "data": data, "requestId": request });
        self.dialect.read(StreamKind::Main, line, &mut self.out);
        let acts = self.out.take().into_iter();
        acts.filter(|act| !matches!(act, Action::SetTimer(..)))
            .collect()
    }

    fn response(&mut self, request: &str, task: &str, status: &str) -> Vec<Action> {
        let more = json!({ "taskId": task, "status": status });
        self.receive("RemoteUITaskResponse", request, more)
    }

    fn error(&mut self, request: &str) -> Vec<Action> {
        let more = json!({ "error": { "code": "NO_IDEA", "message": "no model" } });
        self.receive("RemoteUIError", request, more)
    }
}

fn ended(run: RunId, outcome: RunOutcome) -> Vec<Action> {
    let usage = None;
    vec![Action::Emit(FromAgent::RunEnded {
        run,
        outcome,
        usage,
    })]
}

fn accepted(run: RunId) -> Vec<Action> {
    vec![Action::Emit(FromAgent::RunAccepted { run })]
}

#[test]
fn a_late_answer_to_an_earlier_connection_does_not_end_a_run_of_this_one() {
    let (mut before, mut now) = (Connection::ready(), Connection::ready());
    let (run, old) = before.prompt();
    let old_cancel = before.cancel(run);
    let (run, new) = now.prompt();
    let new_cancel = now.cancel(run);
    assert_ne!((&old, &old_cancel), (&new, &new_cancel));
    for request in [&old, &old_cancel] {
        let acts = now.response(request, "t1", "completed");
        assert!(
            matches!(acts.as_slice(), [Action::Misrouted(_)]),
            "{acts:?}"
        );
        let acts = now.error(request);
        let is_notice = matches!(acts.as_slice(), [Action::Emit(FromAgent::Notice { .. })]);
        assert!(is_notice, "{acts:?}");
    }
    let acts = now.response(&new, "t2", "completed");
    let mut expected = accepted(run);
    expected.extend(ended(run, RunOutcome::Cancelled));
    assert_eq!(acts, expected);
}

#[test]
fn a_run_fails_with_an_error_about_its_request() {
    let mut connection = Connection::ready();
    let (run, request) = connection.prompt();
    let (code, message) = (ErrorCode::TaskFailed, "no model".into());
    let error = AgentError {
        code: "NO_IDEA".into(),
        message: "no model".into(),
        data: Value::Null,
    };
    let mut failed = vec![Action::Emit(FromAgent::RunError {
        run,
        error: Box::new(error),
    })];
    failed.extend(ended(run, RunOutcome::Failed { code, message }));
    assert_eq!(connection.error(&request), failed);
    assert_eq!(connection.error(&request), []);
}

#[test]
fn a_cancelled_run_ends_with_an_error_about_the_cancel() {
    let mut connection = Connection::ready();
    let (run, request) = connection.prompt();
    assert_eq!(
        connection.response(&request, "t1", "started"),
        accepted(run)
    );
    let cancel = connection.cancel(run);
    assert_eq!(connection.error(&cancel), ended(run, RunOutcome::Cancelled));
    assert_eq!(connection.error(&cancel), []);
}

#[test]
fn a_late_response_of_a_cancelled_task_does_not_reach_the_next_run() {
    let mut connection = Connection::ready();
    let (first, first_request) = connection.prompt();
    connection.cancel(first);
    connection
        .dialect
        .on_timer(timer::CANCEL, &mut connection.out);
    connection.out.take();
    let (second, second_request) = connection.prompt();
    assert_eq!(connection.response(&first_request, "t1", "started"), []);
    let piece = json!({ "taskId": "t1", "content": "old", "isComplete": false });
    assert_eq!(connection.receive("RemoteUITaskProgress", "", piece), []);
    let acts = connection.response(&second_request, "t2", "started");
    assert_eq!(acts, accepted(second));
}
