//! Tool calls of one run. The daemon does not name single calls, so each gets a number per tool
//! name. An end belongs to the call that began first.

use std::collections::{HashMap, VecDeque};

use serde_json::Value;

use crate::domain::tool::Tool;
use crate::runtime::dialect::openstarry::tool_kind;
use crate::runtime::dialect::text_of;

#[derive(Debug, Default)]
pub(super) struct ToolCalls {
    by_name: HashMap<String, CallsOfTool>,
}

#[derive(Debug, Default)]
struct CallsOfTool {
    count: u64,
    open: VecDeque<u64>,
}

impl ToolCalls {
    /// Reads an `agent.tool` event; `None` for an unknown status.
    pub(super) fn update(&mut self, data: &Value) -> Option<Tool> {
        let status = match data["status"].as_str()? {
            "started" => "running",
            "completed" => "completed",
            "failed" => "failed",
            // This wire carries no confirmations: a call that needs one is denied.
            "blocked" | "denied" => "denied",
            _ => return None,
        };
        let name = match text_of(&data["toolName"]) {
            name if name.is_empty() => "unknown".to_owned(),
            name => name,
        };
        let calls = self.by_name.entry(name.clone()).or_default();
        let number = match calls.open.front() {
            Some(first) if status != "running" => *first,
            _ => {
                calls.count += 1;
                calls.open.push_back(calls.count);
                calls.count
            }
        };
        let mut tool = Tool::new(format!("{name}-{number}"), name, status);
        if !tool.is_open() {
            calls.open.pop_front();
        }
        tool.kind = tool_kind(&tool.name).into();
        tool.input = data.get("args").cloned();
        tool.output = ["result", "error", "reason"]
            .into_iter()
            .find_map(|field| data.get(field).cloned());
        Some(tool.storable())
    }
}
