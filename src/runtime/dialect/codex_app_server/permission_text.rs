//! Permissions: describes the rights beyond its sandbox that Codex asks for.

use serde_json::Value;

pub(super) fn describe(permissions: &Value) -> String {
    let mut rights = Vec::new();
    for (name, value) in fields(permissions) {
        match name.as_str() {
            "network" if value["enabled"] == true => rights.push("use the network".into()),
            "fileSystem" if value.is_object() => {
                let kinds = fields(value);
                rights.extend(kinds.flat_map(|(access, paths)| path_rights(access, paths)));
            }
            _ => rights.push(format!("{name}: {value}")),
        }
    }
    if rights.is_empty() {
        return "it does not say which".into();
    }
    rights.join(", ")
}

fn fields(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    let all = value.as_object().into_iter().flatten();
    all.filter(|(_, value)| !value.is_null())
}

fn path_rights(access: &str, paths: &Value) -> Vec<String> {
    let path = |path: &Value| Some(format!("{access} {}", path.as_str()?));
    let all = paths.as_array();
    let all: Option<Vec<String>> = all.and_then(|all| all.iter().map(path).collect());
    // An unknown shape is shown as it is.
    all.unwrap_or_else(|| vec![format!("{access}: {paths}")])
}
