//! The tools that a run uses. The daemon names no single use, so each gets a number here: per run, by
//! the name of its tool. What ends is the use that began first.

use std::collections::{HashMap, VecDeque};

use serde_json::Value;

use crate::domain::tool::Tool;
use crate::runtime::dialect::openstarry::kind_of_tool;
use crate::runtime::dialect::text_of;

/// The tools of one run.
#[derive(Debug, Default)]
pub(super) struct Tools {
    seen: HashMap<String, Uses>,
}

#[derive(Debug, Default)]
struct Uses {
    count: u64,
    open: VecDeque<u64>,
}

impl Tools {
    /// What an `agent.tool` event says; nothing if its status is none that is known.
    pub(super) fn see(&mut self, data: &Value) -> Option<Tool> {
        let status = match data["status"].as_str()? {
            "started" => "running",
            "completed" => "completed",
            "failed" => "failed",
            // Nobody can confirm anything on this wire: what wants it is denied.
            "blocked" | "denied" => "denied",
            _ => return None,
        };
        let name = match text_of(&data["toolName"]) {
            name if name.is_empty() => "unknown".to_owned(),
            name => name,
        };
        let uses = self.seen.entry(name.clone()).or_default();
        let number = match uses.open.front() {
            Some(first) if status != "running" => *first,
            _ => {
                uses.count += 1;
                uses.open.push_back(uses.count);
                uses.count
            }
        };
        let mut tool = Tool::new(format!("{name}-{number}"), name, status);
        if !tool.is_open() {
            uses.open.pop_front();
        }
        tool.kind = kind_of_tool(&tool.name).into();
        tool.input = data.get("args").cloned();
        tool.output = ["result", "error", "reason"]
            .into_iter()
            .find_map(|field| data.get(field).cloned());
        Some(tool.storable())
    }
}
