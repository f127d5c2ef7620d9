//! API specifications: recognises OpenAPI, Swagger and GraphQL among the files of a prompt.

use serde_json::{Value, json};

use crate::runtime::dialect::{Content, File};

/// The specification, if the file is one. JSON is sent as it is; YAML and GraphQL are not parsed and are
/// sent as text.
pub(super) fn parse(file: &File) -> Option<Value> {
    let Content::Text(text) = &file.content else {
        return None;
    };
    if let Ok(value @ Value::Object(_)) = serde_json::from_str::<Value>(text) {
        return is_specification(&value).then_some(value);
    }
    let format = yaml_format(text).or_else(|| graphql_format(&file.name, text))?;
    Some(json!({ "format": format, "name": file.name, "content": text }))
}

fn is_specification(value: &Value) -> bool {
    let is_named = ["openapi", "swagger"]
        .iter()
        .any(|key| value[*key].is_string());
    is_named || value["__schema"].is_object() || value["data"]["__schema"].is_object()
}

/// Recognised by a top-level key with a version.
fn yaml_format(text: &str) -> Option<&'static str> {
    let version_of = |line: &str, key: &str| {
        let rest = line.trim_start_matches(['"', '\'']).strip_prefix(key)?;
        let rest = rest.trim_start_matches(['"', '\'']).strip_prefix(':')?;
        let version = rest.trim_start().trim_start_matches(['"', '\'']);
        version
            .starts_with(|first: char| first.is_ascii_digit())
            .then_some(())
    };
    text.lines().find_map(|line| {
        version_of(line, "openapi")
            .map(|()| "openapi3")
            .or_else(|| version_of(line, "swagger").map(|()| "swagger2"))
    })
}

fn graphql_format(name: &str, text: &str) -> Option<&'static str> {
    let ends = [".graphql", ".graphqls", ".gql"];
    let named = ends.iter().any(|end| name.to_lowercase().ends_with(end));
    // `type Query = {` is TypeScript.
    let opens = |line: &str, word: &str| {
        let rest = line.strip_prefix(word).map(str::trim_start);
        rest.is_some_and(|rest| rest.starts_with('{'))
    };
    let declared = || {
        text.lines()
            .any(|line| opens(line, "type Query") || opens(line, "schema"))
    };
    (named || declared()).then_some("graphql")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_text(name: &str, text: &str) -> Option<Value> {
        parse(&File {
            name: name.into(),
            media_type: "text/plain".into(),
            content: Content::Text(text.into()),
        })
    }

    #[test]
    fn a_specification_is_recognised_by_its_content() {
        for (name, text, format) in [
            ("a.json", r#"{"openapi":"3.0.0"}"#, None),
            ("a.json", r#"{"swagger":"2.0"}"#, None),
            ("a.json", r#"{"data":{"__schema":{}}}"#, None),
            ("a.yaml", "# pets\nopenapi: 3.1.0\n", Some("openapi3")),
            ("a.txt", "'swagger': \"2.0\"\n", Some("swagger2")),
            ("a.gql", "scalar Date", Some("graphql")),
            ("a.txt", "type Query {\n  pets: [Pet]\n}", Some("graphql")),
            ("a.txt", "schema{ query: Q }", Some("graphql")),
        ] {
            let spec = parse_text(name, text).unwrap_or_else(|| panic!("{text}"));
            match format {
                None => assert_eq!(spec, serde_json::from_str::<Value>(text).unwrap()),
                Some(format) => assert_eq!(
                    spec,
                    json!({ "format": format, "name": name, "content": text })
                ),
            }
        }
    }

    #[test]
    fn other_files_are_not_specifications() {
        for text in [
            "",
            "{}",
            r#"{"openapi":3}"#,
            "[1]",
            "openapi: is a word",
            "  openapi: 3.0.0",
            "type Query = { a: string }",
            "type Queryable {",
        ] {
            assert_eq!(parse_text("a.txt", text), None, "{text}");
        }
        let bytes = File {
            name: "a.graphql".into(),
            media_type: "image/png".into(),
            content: Content::Base64("AA==".into()),
        };
        assert_eq!(parse(&bytes), None);
    }
}
