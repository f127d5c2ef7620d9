//! Query answers: the JSON in which clients expect an agent's models and skills.

use serde_json::{Value, json};

pub(super) fn models(provider: &str, models: &[impl AsRef<str>], current: Option<&str>) -> Value {
    let models: Vec<&str> = models.iter().map(AsRef::as_ref).collect();
    let mut answer = json!({ "provider": provider, "models": models });
    if let Some(current) = current {
        answer["current"] = current.into();
    }
    answer
}

/// A skill, by the path of its file. `mtime_ms` is 0: these agents do not report it.
pub(super) fn skill(name: &str, description: &str, path: &str, is_in_repo: bool) -> Value {
    json!({
        "id": name,
        "name": name,
        "description": description,
        "path": path,
        "dir": path.rsplit_once('/').map_or("", |(dir, _)| dir),
        "scope": if is_in_repo { "repo" } else { "user" },
        "mtime_ms": 0,
    })
}

pub(super) fn skills(skills: &[Value], errors: &[Value]) -> Value {
    json!({ "skills": skills, "errors": errors, "truncated": false })
}
