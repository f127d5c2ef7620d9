//! The tools that a run uses.

use std::sync::Arc;

use crate::domain::tool::Tool;

/// How many tools of a run are kept.
pub(super) const KEPT: usize = 100;

/// Puts what was seen of a tool in its place: the first sight of its id creates it.
pub(super) fn update(tools: &mut Vec<Arc<Tool>>, seen: Tool) {
    if let Some(known) = tools.iter_mut().find(|tool| tool.id == seen.id) {
        *known = Arc::new(Tool::clone(known).seen_again(seen));
        return;
    }
    tools.push(Arc::new(seen.storable()));
    tools.drain(..tools.len().saturating_sub(KEPT));
}
