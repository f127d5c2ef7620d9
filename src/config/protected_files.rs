//! Protected files: the configuration file and the files of secrets that the configuration names. Agents may
//! not read them. Touches nothing else.

use std::path::{Path, PathBuf};

use toml::Value;

const PREFIX: &str = "SWITCHBOARD__";

/// The files, absolute. A file that cannot be read was complained about already.
pub(crate) fn find(file: Option<&Path>, variables: &[(String, String)]) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = file.map(Path::to_owned).into_iter().collect();
    let text = file.and_then(|file| std::fs::read_to_string(file).ok());
    if let Some(Ok(table)) = text.map(|text| text.parse::<toml::Table>()) {
        walk("", &Value::Table(table), &mut found);
    }
    let named = variables
        .iter()
        .filter(|(name, _)| name.starts_with(PREFIX) && name.ends_with("_FILE"));
    found.extend(named.map(|(_, path)| PathBuf::from(path)));
    let absolute = found.iter().map(std::path::absolute);
    absolute.filter_map(Result::ok).collect()
}

fn walk(key: &str, value: &Value, found: &mut Vec<PathBuf>) {
    match value {
        Value::Table(entries) if key == "env_files" => {
            let paths = entries.values().filter_map(Value::as_str);
            found.extend(paths.map(PathBuf::from));
        }
        Value::Table(entries) => {
            for (key, value) in entries {
                walk(key, value, found);
            }
        }
        Value::String(path) if key.ends_with("_file") => found.push(path.into()),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_with_a_secret_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("switchboard.toml");
        let text = r#"
            data.database_url_file = "/run/a"
            [agents.x]
            env_files = { KEY = "/run/b" }
            options.token_file = "/run/c"
            env = { NAME = "/run/no" }
        "#;
        std::fs::write(&file, text).unwrap();
        let variables = [
            ("SWITCHBOARD__AUTH__SIGNING_KEY_FILE", "/run/d"),
            ("SWITCHBOARD__DATA__DIR", "/run/no"),
            ("OTHER_FILE", "/run/no"),
        ];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let mut found = find(Some(&file), &variables);
        found.sort();
        let mut expected = ["/run/a", "/run/b", "/run/c", "/run/d"]
            .map(PathBuf::from)
            .to_vec();
        expected.push(file);
        expected.sort();
        assert_eq!(found, expected);
    }
}
