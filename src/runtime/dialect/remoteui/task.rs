//! The task under way, and those before it whose last words may still come. Pure.

use std::collections::VecDeque;

use crate::domain::id::RunId;
use crate::domain::run::Usage;

/// How many tasks are remembered after their end. What still comes of one comes soon.
const REMEMBERED: usize = 16;

/// A task from its request to its end.
#[derive(Debug)]
pub(super) struct Task {
    /// Our name for it.
    pub(super) run: RunId,
    /// The request that began it.
    pub(super) request: String,
    /// The extension's name for it, once it is known.
    pub(super) id: Option<String>,
    /// Was it told that it is worked on?
    pub(super) accepted: bool,
    /// Has something been said that is not complete yet?
    pub(super) speaking: bool,
    /// The request to cancel it.
    pub(super) cancel: Option<String>,
    /// What was told of its tokens.
    pub(super) told: Usage,
}

impl Task {
    /// One that was just asked for.
    pub(super) fn new(run: RunId, request: String) -> Self {
        Self {
            run,
            request,
            id: None,
            accepted: false,
            speaking: false,
            cancel: None,
            told: Usage::default(),
        }
    }

    /// Is it this one that the message is about?
    pub(super) fn is_meant(&self, request: Option<&str>, id: Option<&str>) -> bool {
        match (request, id, &self.id) {
            (Some(request), _, _) if request == self.request => true,
            (Some(request), _, _) if self.cancel.as_deref() == Some(request) => true,
            (_, Some(id), Some(known)) => id == known,
            _ => false,
        }
    }
}

/// A task that another life of this session had begun.
#[derive(Debug)]
pub(super) struct Former {
    /// The extension's name for it.
    pub(super) id: String,
    /// The request to cancel it.
    pub(super) cancel: String,
}

/// The tasks before, the latest last.
#[derive(Debug, Default)]
pub(super) struct Past {
    tasks: VecDeque<Task>,
    /// The one that was still at work when this life began.
    pub(super) former: Option<Former>,
}

impl Past {
    /// A task has had its end.
    pub(super) fn add(&mut self, task: Task) {
        if self.tasks.len() == REMEMBERED {
            self.tasks.pop_front();
        }
        self.tasks.push_back(task);
    }

    /// The one that the message is about. Its name is learned if it was not known yet.
    pub(super) fn find(&mut self, request: Option<&str>, id: Option<&str>) -> Option<&mut Task> {
        let mut tasks = self.tasks.iter_mut();
        let task = tasks.find(|task| task.is_meant(request, id))?;
        if task.id.is_none() {
            task.id = id.map(str::to_owned);
        }
        Some(task)
    }

    /// Is the message about one of them, or about the one of another life?
    pub(super) fn knows(&mut self, request: Option<&str>, id: Option<&str>) -> bool {
        let mut former = self.former.iter();
        let former = former.any(|former| {
            id == Some(former.id.as_str()) || request == Some(former.cancel.as_str())
        });
        former || self.find(request, id).is_some()
    }

    /// Is there one whose name was never known? Then a name that nobody knows may be that one's.
    pub(super) fn has_nameless(&self) -> bool {
        self.tasks.iter().any(|task| task.id.is_none())
    }
}
