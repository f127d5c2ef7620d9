//! The tools that a run uses.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How many tools of a run are kept.
pub(super) const KEPT: usize = 100;

/// One use of a tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Tool {
    /// The agent's own id of this use.
    pub(crate) id: String,
    /// What kind of tool.
    pub(crate) name: String,
    /// What a person reads.
    pub(crate) title: String,
    /// How it stands, in the words of the event.
    pub(crate) status: String,
    /// What it was given.
    pub(crate) input: Option<Value>,
    /// What came out.
    pub(crate) output: Option<Value>,
}

/// Puts what was seen of a tool in its place: the first sight of its id creates it.
///
/// An update need not repeat what it was given or what came out; a null counts as absent, because
/// that is how it reads once stored.
pub(super) fn update(tools: &mut Vec<Tool>, seen: Tool) {
    let present = |value: Option<Value>| value.filter(|value| !value.is_null());
    let (input, output) = (present(seen.input), present(seen.output));
    if let Some(known) = tools.iter_mut().find(|tool| tool.id == seen.id) {
        *known = Tool {
            input: input.or(known.input.take()),
            output: output.or(known.output.take()),
            ..seen
        };
        return;
    }
    tools.push(Tool {
        input,
        output,
        ..seen
    });
    tools.drain(..tools.len().saturating_sub(KEPT));
}
