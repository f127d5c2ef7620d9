//! What only the ids of requests tell: they name runs, so no transcript can have them.

use serde_json::{Value, json};

use super::*;
use crate::domain::run::RunOutcome;
use crate::runtime::dialect::{Act, Person};
use crate::runtime::talk::FromAgent;

/// One connection of a session, and what comes out of it.
struct Life {
    remote: Remote,
    out: Out,
}

impl Life {
    /// A connection that is ready.
    fn begins() -> Self {
        let setup = Setup {
            agent: "tested".into(),
            version: "0.1.0",
            directory: "/w".into(),
            thread: None,
            history: Vec::new(),
            session: "ses_1".into(),
            user: Person {
                id: "usr_1".into(),
                name: "ada".into(),
            },
            options: std::collections::BTreeMap::new(),
        };
        let mut life = Self {
            remote: Remote::new(setup),
            out: Out::default(),
        };
        life.remote.open(&mut life.out);
        life.remote.late(timer::STATE, &mut life.out);
        life.out.take();
        life
    }

    fn prompts(&mut self) -> (RunId, String) {
        let run = RunId::new();
        let brief = Brief::new("hi", Mode::Act);
        self.remote
            .hear(Order::Prompt { run, brief }, &mut self.out);
        (run, self.written())
    }

    fn cancels(&mut self, run: RunId) -> String {
        self.remote.hear(Order::Cancel { run }, &mut self.out);
        self.written()
    }

    /// The id of the one request that was written.
    fn written(&mut self) -> String {
        let lines = self.out.take().into_iter().filter_map(|act| match act {
            Act::Write(_, line) => line["requestId"].as_str().map(str::to_owned),
            _ => None,
        });
        let lines: Vec<String> = lines.collect();
        assert_eq!(lines.len(), 1, "{lines:?}");
        lines.concat()
    }

    /// What comes of a message with this id.
    fn hears(&mut self, kind: &str, request: &str, more: Value) -> Vec<Act> {
        let mut data = json!({ "sessionId": "ses_1", "clientId": "gateway-ses_1" });
        if let (Value::Object(data), Value::Object(more)) = (&mut data, more) {
            data.extend(more);
        }
        let line = json!({ "type": kind, "data": data, "requestId": request });
        self.remote.read(Lane::Main, line, &mut self.out);
        let acts = self.out.take().into_iter();
        acts.filter(|act| !matches!(act, Act::Timer(..))).collect()
    }

    fn response(&mut self, request: &str, task: &str, status: &str) -> Vec<Act> {
        let more = json!({ "taskId": task, "status": status });
        self.hears("RemoteUITaskResponse", request, more)
    }

    fn error(&mut self, request: &str) -> Vec<Act> {
        let more = json!({ "error": { "code": "NO_IDEA", "message": "no model" } });
        self.hears("RemoteUIError", request, more)
    }
}

fn ended(run: RunId, outcome: RunOutcome) -> Vec<Act> {
    let usage = None;
    vec![Act::Tell(FromAgent::Ended {
        run,
        outcome,
        usage,
    })]
}

fn accepted(run: RunId) -> Vec<Act> {
    vec![Act::Tell(FromAgent::Accepted { run })]
}

#[test]
fn an_answer_to_the_life_before_is_not_taken_for_one_to_this_run() {
    let (mut before, mut now) = (Life::begins(), Life::begins());
    let (run, old) = before.prompts();
    let old_cancel = before.cancels(run);
    let (run, new) = now.prompts();
    let new_cancel = now.cancels(run);
    assert_ne!((&old, &old_cancel), (&new, &new_cancel));
    for request in [&old, &old_cancel] {
        let acts = now.response(request, "t1", "completed");
        assert!(matches!(acts.as_slice(), [Act::Stray(_)]), "{acts:?}");
        let acts = now.error(request);
        let told = matches!(acts.as_slice(), [Act::Tell(FromAgent::Notice { .. })]);
        assert!(told, "{acts:?}");
    }
    let acts = now.response(&new, "t2", "completed");
    let mut expected = accepted(run);
    expected.extend(ended(run, RunOutcome::Cancelled));
    assert_eq!(acts, expected);
}

#[test]
fn a_run_fails_with_an_error_about_its_request() {
    let mut life = Life::begins();
    let (run, request) = life.prompts();
    let (code, message) = (Code::TaskFailed, "no model".into());
    let failed = ended(run, RunOutcome::Failed { code, message });
    assert_eq!(life.error(&request), failed);
    assert_eq!(life.error(&request), []);
}

#[test]
fn a_cancelled_run_ends_with_an_error_about_the_cancel() {
    let mut life = Life::begins();
    let (run, request) = life.prompts();
    assert_eq!(life.response(&request, "t1", "started"), accepted(run));
    let cancel = life.cancels(run);
    assert_eq!(life.error(&cancel), ended(run, RunOutcome::Cancelled));
    assert_eq!(life.error(&cancel), []);
}

#[test]
fn a_task_that_was_given_up_is_known_by_its_late_response() {
    let mut life = Life::begins();
    let (first, first_request) = life.prompts();
    life.cancels(first);
    life.remote.late(timer::CANCEL, &mut life.out);
    life.out.take();
    let (second, second_request) = life.prompts();
    assert_eq!(life.response(&first_request, "t1", "started"), []);
    let piece = json!({ "taskId": "t1", "content": "old", "isComplete": false });
    assert_eq!(life.hears("RemoteUITaskProgress", "", piece), []);
    let acts = life.response(&second_request, "t2", "started");
    assert_eq!(acts, accepted(second));
}
