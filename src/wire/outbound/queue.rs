//! What waits for its turn, as clients see it.

use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::id::RunId;
use crate::domain::queue::{InLine, QueueModes, Take, Waiting};
use crate::wire::words;

/// The queue, all of it.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Queue<'a> {
    queue: Vec<Place<'a>>,
    queue_modes: Modes,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = QueueModes)]
struct Modes {
    #[schema(schema_with = words::take)]
    steering: &'static str,
    #[schema(schema_with = words::take)]
    follow_up: &'static str,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = QueuedTask)]
struct Place<'a> {
    task_id: RunId,
    #[schema(schema_with = words::waiting)]
    kind: &'static str,
    /// The beginning of it.
    text: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<&'a str>,
}

impl<'a> Queue<'a> {
    pub(super) fn new(line: &'a [InLine], modes: QueueModes) -> Self {
        let place = |place: &'a InLine| Place {
            task_id: place.run,
            kind: match place.why {
                Waiting::Steer => "steer",
                Waiting::FollowUp => "followUp",
                Waiting::Prompt => "prompt",
            },
            text: &place.text,
            by: place.by.as_deref(),
        };
        Self {
            queue: line.iter().map(place).collect(),
            queue_modes: Modes {
                steering: take(modes.steering),
                follow_up: take(modes.follow_up),
            },
        }
    }
}

fn take(take: Take) -> &'static str {
    match take {
        Take::One => "one-at-a-time",
        Take::All => "all",
    }
}
