//! The rights beyond its sandbox that the agent asks for, in words.

use serde_json::Value;

/// All of them.
pub(super) fn words(permissions: &Value) -> String {
    let mut words = Vec::new();
    for (name, value) in fields(permissions) {
        match name.as_str() {
            "network" if value["enabled"] == true => words.push("use the network".into()),
            "fileSystem" if value.is_object() => {
                let kinds = fields(value);
                words.extend(kinds.flat_map(|(access, paths)| paths_of(access, paths)));
            }
            _ => words.push(format!("{name}: {value}")),
        }
    }
    if words.is_empty() {
        return "it does not say which".into();
    }
    words.join(", ")
}

/// Those that say something.
fn fields(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    let all = value.as_object().into_iter().flatten();
    all.filter(|(_, value)| !value.is_null())
}

fn paths_of(access: &str, paths: &Value) -> Vec<String> {
    let path = |path: &Value| Some(format!("{access} {}", path.as_str()?));
    let all = paths.as_array();
    let all: Option<Vec<String>> = all.and_then(|all| all.iter().map(path).collect());
    // Of a shape that is not known, it is shown as it is.
    all.unwrap_or_else(|| vec![format!("{access}: {paths}")])
}
