//! Tool part: one tool call, as clients see it.

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::domain::tool::Tool;
use crate::wire::enums;

/// One use of a tool.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolState<'a> {
    tool_call_id: &'a str,
    name: &'a str,
    title: &'a str,
    kind: &'a str,
    #[schema(schema_with = enums::tool_status)]
    status: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    input: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    output: Option<&'a Value>,
}

impl<'a> From<&'a Tool> for ToolState<'a> {
    fn from(tool: &'a Tool) -> Self {
        Self {
            tool_call_id: &tool.id,
            name: &tool.name,
            title: &tool.title,
            kind: &tool.kind,
            status: &tool.status,
            input: present(tool.input.as_ref()),
            output: present(tool.output.as_ref()),
        }
    }
}

/// A null counts as absent, because that is how it reads once stored: a replayed frame is the same.
fn present(value: Option<&Value>) -> Option<&Value> {
    value.filter(|value| !value.is_null())
}
