//! Queue part: the prompts that wait, as clients see them.

use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::id::RunId;
use crate::domain::queue::{QueueEntry, QueueModes};
use crate::wire::enums::{self, WireEnum as _};

/// The queue, all of it.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Queue<'a> {
    queue: Vec<QueuedTask<'a>>,
    queue_modes: Modes,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = QueueModes)]
struct Modes {
    #[schema(schema_with = enums::queue_mode)]
    steering: &'static str,
    #[schema(schema_with = enums::queue_mode)]
    follow_up: &'static str,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct QueuedTask<'a> {
    task_id: RunId,
    #[schema(schema_with = enums::prompt_kind)]
    kind: &'static str,
    /// The beginning of it.
    text: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<&'a str>,
}

impl<'a> Queue<'a> {
    pub(super) fn new(entries: &'a [QueueEntry], modes: QueueModes) -> Self {
        let task = |entry: &'a QueueEntry| QueuedTask {
            task_id: entry.run,
            kind: entry.kind.word(),
            text: &entry.text,
            by: entry.by.as_deref(),
        };
        Self {
            queue: entries.iter().map(task).collect(),
            queue_modes: Modes {
                steering: modes.steering.word(),
                follow_up: modes.follow_up.word(),
            },
        }
    }
}
