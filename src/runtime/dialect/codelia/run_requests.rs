//! Run requests: `run.start`, `run.cancel` and `session.list`, and their responses. Pure.

use serde_json::{Value, json};

use super::super::{Action, Actions, ErrorCode, FromAgent, PromptContent, RunId, RunOutcome};
use super::run_events::Run;
use super::{
    BUSY, BUSY_RETRY_DELAY, BUSY_RETRY_TIMER, Codelia, MAX_BUSY_RETRIES, PendingRequest,
    RUN_END_TIMER, RUN_NOT_FOUND, RUN_START_TIMEOUT, SESSION_NOT_FOUND, SESSION_NOT_LOADED,
    USER_CANCELLED, error_code,
};
use crate::runtime::jsonrpc::RpcError;

impl Codelia {
    pub(super) fn prompt(&mut self, run: RunId, content: &PromptContent, out: &mut Actions) {
        let agent = &self.setup.agent;
        if self.run.is_some() {
            let message = format!("The agent `{agent}` has a run under way.");
            return out.fail_run(run, ErrorCode::Busy, message);
        }
        let text = match content.as_text(agent) {
            Ok(text) => text,
            Err(declined) => return out.refuse_run(run, declined),
        };
        let mut params = json!({ "input": super::super::text_block(&text) });
        if let Some(context) = &content.context {
            params["ui_context"] = self.ui_context(context);
        }
        if let Some(meta) = &content.meta {
            // Under a key of its own: the runtime keeps its settings beside it.
            params["meta"] = json!({ "client": meta });
        }
        self.run = Some(Run::new(run, params));
        self.send_run_start(out);
    }

    pub(super) fn send_run_start(&mut self, out: &mut Actions) {
        let is_unsent = |run: &&Run| run.native_id.is_none() && run.start_request.is_none();
        let Some(run) = self.run.as_ref().filter(is_unsent) else {
            return;
        };
        let mut params = run.params.clone();
        if let Some(thread) = &self.thread {
            params["session_id"] = thread.as_str().into();
        }
        let number = self.request(PendingRequest::RunStart, "run.start", params, out);
        if let Some(run) = &mut self.run {
            run.start_request = Some(number);
        }
        out.set_timer(number, RUN_START_TIMEOUT);
    }

    pub(super) fn run_started(&mut self, result: &Value, out: &mut Actions) {
        let Some(run) = &mut self.run else {
            return out.unexpected("a run began that nobody waits for");
        };
        run.start_request = None;
        let native_id = result["run_id"].as_str().filter(|id| !id.is_empty());
        let Some(native_id) = native_id.map(str::to_owned) else {
            let message = format!(
                "The agent `{}` began a run without a name.",
                self.setup.agent
            );
            let code = ErrorCode::TaskFailed;
            return self.end_run(RunOutcome::Failed { code, message }, out);
        };
        run.native_id = Some(native_id.clone());
        let cancelling = run.cancelling;
        out.emit(FromAgent::RunAccepted { run: run.id });
        if cancelling {
            self.send_run_cancel(native_id, out);
        } else if self.thread.is_none() {
            self.request_session_list(native_id, out);
        }
    }

    pub(super) fn run_start_failed(&mut self, fault: RpcError, out: &mut Actions) {
        let Some(run) = &mut self.run else { return };
        run.start_request = None;
        if run.cancelling || fault.code == USER_CANCELLED {
            return self.end_run(RunOutcome::Cancelled, out);
        }
        // Busy although its last run has ended: it still cleans up.
        if fault.code == BUSY && self.previous_run.is_some() && run.busy_retries < MAX_BUSY_RETRIES
        {
            run.busy_retries += 1;
            return out.set_timer(BUSY_RETRY_TIMER, BUSY_RETRY_DELAY);
        }
        let is_lost = matches!(fault.code, SESSION_NOT_FOUND | SESSION_NOT_LOADED);
        if is_lost && self.thread.take().is_some() {
            out.notice_fresh_start(&self.setup.agent);
            return self.send_run_start(out);
        }
        let (code, message) = (error_code(fault.code), fault.message);
        self.end_run(RunOutcome::Failed { code, message }, out);
    }

    pub(super) fn request_session_list(&mut self, native_id: String, out: &mut Actions) {
        let params = json!({ "limit": 50 });
        self.request(
            PendingRequest::SessionList(native_id),
            "session.list",
            params,
            out,
        );
    }

    pub(super) fn find_thread(&mut self, native_id: &str, list: &Value, out: &mut Actions) {
        let sessions = list["sessions"].as_array();
        let mut sessions = sessions.into_iter().flatten();
        let found = sessions.find(|session| session["run_id"] == native_id);
        let Some(thread) = found.and_then(|session| session["session_id"].as_str()) else {
            return;
        };
        if self.thread.is_none() {
            self.thread = Some(thread.to_owned());
            out.emit(FromAgent::Thread(thread.to_owned()));
        }
    }

    pub(super) fn cancel(&mut self, run: RunId, out: &mut Actions) {
        let Some(current) = self.run.as_mut().filter(|current| current.id == run) else {
            return;
        };
        if std::mem::replace(&mut current.cancelling, true) {
            return;
        }
        if let Some(native_id) = current.native_id.clone() {
            self.send_run_cancel(native_id, out);
        } else if current.start_request.is_none() {
            // It waits for the busy retry.
            out.clear_timer(BUSY_RETRY_TIMER);
            self.end_run(RunOutcome::Cancelled, out);
        }
    }

    pub(super) fn send_run_cancel(&mut self, native_id: String, out: &mut Actions) {
        if self.missing.contains("cancel") {
            self.end_run(RunOutcome::Cancelled, out);
            return out.push(Action::Finish);
        }
        let params = json!({ "run_id": native_id, "reason": "cancelled by the user" });
        self.request(
            PendingRequest::RunCancel(native_id),
            "run.cancel",
            params,
            out,
        );
    }

    /// The run has usually ended by now, or ends in a moment.
    pub(super) fn handle_cancel_response(
        &mut self,
        native_id: &str,
        answer: &Result<Value, RpcError>,
        out: &mut Actions,
    ) {
        let run = self.run.as_ref();
        if run.is_none_or(|run| run.native_id.as_deref() != Some(native_id)) {
            return;
        }
        match answer {
            Ok(result) if result["ok"] != false => {}
            Ok(_) => self.end_run(RunOutcome::Cancelled, out),
            Err(fault) if fault.code == RUN_NOT_FOUND => self.end_run(RunOutcome::Cancelled, out),
            Err(_) => {
                self.end_run(RunOutcome::Cancelled, out);
                out.push(Action::Finish);
            }
        }
    }

    /// Reports the one end of the current run.
    pub(super) fn end_run(&mut self, outcome: RunOutcome, out: &mut Actions) {
        let Some(mut run) = self.run.take() else {
            return;
        };
        out.clear_timer(RUN_END_TIMER);
        run.finish_message(out);
        out.end_run(run.id, outcome, None);
        if let Some(native_id) = run.native_id {
            self.previous_run = Some(native_id.clone());
            if self.thread.is_none() {
                self.request_session_list(native_id, out);
            }
        }
        if let Some(model) = self.deferred_model.take() {
            self.set_model(model, out);
        }
    }
}
