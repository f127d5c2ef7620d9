//! Task: the current one, and the ended ones that may still send messages. Pure.

use std::collections::VecDeque;

use crate::domain::id::RunId;
use crate::domain::run::Usage;

/// Late messages of a task come soon after its end.
const MAX_ENDED_TASKS: usize = 16;

#[derive(Debug)]
pub(super) struct Task {
    pub(super) run: RunId,
    /// Id of its `RemoteUITaskRequest`.
    pub(super) request: String,
    /// `taskId` of the extension, once known.
    pub(super) id: Option<String>,
    pub(super) accepted: bool,
    pub(super) has_open_message: bool,
    /// Id of its `RemoteUITaskCancel`.
    pub(super) cancel_request: Option<String>,
    /// Usage reported for it.
    pub(super) reported: Usage,
}

impl Task {
    pub(super) fn new(run: RunId, request: String) -> Self {
        Self {
            run,
            request,
            id: None,
            accepted: false,
            has_open_message: false,
            cancel_request: None,
            reported: Usage::default(),
        }
    }

    pub(super) fn matches(&self, request: Option<&str>, id: Option<&str>) -> bool {
        match (request, id, &self.id) {
            (Some(request), _, _) if request == self.request => true,
            (Some(request), _, _) if self.cancel_request.as_deref() == Some(request) => true,
            (_, Some(id), Some(known)) => id == known,
            _ => false,
        }
    }
}

/// A task from an earlier connection that was still running.
#[derive(Debug)]
pub(super) struct StaleTask {
    pub(super) id: String,
    /// Id of its `RemoteUITaskCancel`.
    pub(super) cancel_request: String,
}

/// Ended tasks, the latest last.
#[derive(Debug, Default)]
pub(super) struct EndedTasks {
    tasks: VecDeque<Task>,
    pub(super) stale: Option<StaleTask>,
}

impl EndedTasks {
    pub(super) fn add(&mut self, task: Task) {
        if self.tasks.len() == MAX_ENDED_TASKS {
            self.tasks.pop_front();
        }
        self.tasks.push_back(task);
    }

    /// Finds the task of a message, and learns its id.
    pub(super) fn find(&mut self, request: Option<&str>, id: Option<&str>) -> Option<&mut Task> {
        let mut tasks = self.tasks.iter_mut();
        let task = tasks.find(|task| task.matches(request, id))?;
        if task.id.is_none() {
            task.id = id.map(str::to_owned);
        }
        Some(task)
    }

    /// Includes the stale task.
    pub(super) fn contains(&mut self, request: Option<&str>, id: Option<&str>) -> bool {
        let mut stale = self.stale.iter();
        let stale = stale.any(|stale| {
            id == Some(stale.id.as_str()) || request == Some(stale.cancel_request.as_str())
        });
        stale || self.find(request, id).is_some()
    }

    /// An unknown task id may belong to an ended task without one.
    pub(super) fn has_unnamed(&self) -> bool {
        self.tasks.iter().any(|task| task.id.is_none())
    }
}
