//! Tool calls of the current run.

use std::sync::Arc;

use crate::domain::tool::Tool;

pub(super) const MAX_TOOLS: usize = 100;

/// Merges an update into the tool call with its id, or adds it.
pub(super) fn update(tools: &mut Vec<Arc<Tool>>, update: Tool) {
    if let Some(known) = tools.iter_mut().find(|tool| tool.id == update.id) {
        *known = Arc::new(Tool::clone(known).merge(update));
        return;
    }
    tools.push(Arc::new(update.storable()));
    tools.drain(..tools.len().saturating_sub(MAX_TOOLS));
}
