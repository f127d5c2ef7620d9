//! The OpenAPI document tells the truth.

use serde_json::Value;

use crate::actors::{Gateway, program};

const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

#[tokio::test]
async fn the_document_and_the_routes_are_the_same() {
    let gateway = Gateway::start().await;
    let visitor = gateway.visitor();
    let document = visitor.gets("/api/openapi.json").await.is(200).json();
    let paths = document["paths"].as_object().unwrap();
    assert!(paths.len() >= 15, "{}", paths.len());
    for (path, item) in paths {
        let concrete = path.replace("{id}", "x");
        for method in METHODS {
            let described = !item[method].is_null();
            let answer = visitor.sends(&method.to_uppercase(), &concrete, None).await;
            let served = answer.status != 405;
            assert_eq!(served, described, "{method} {path}: {}", answer.status);
            let unknown = answer.text.contains("There is nothing here");
            assert!(!unknown, "{method} {path} is described and not served");
        }
    }
    for page in ["/", "/setup", "/invite"] {
        assert!(!paths.contains_key(page), "pages are not part of the API");
    }
}

#[tokio::test]
async fn the_command_prints_the_same_document() {
    let gateway = Gateway::start().await;
    let served = gateway.visitor().gets("/api/openapi.json").await.json();
    let dir = tempfile::tempdir().unwrap();
    let printed = program(dir.path(), &["schema", "openapi"], &[]);
    assert!(printed.status.success());
    let printed: Value = serde_json::from_slice(&printed.stdout).unwrap();
    assert_eq!(printed, served);
    assert!(
        std::fs::read_dir(dir.path()).unwrap().next().is_none(),
        "printing opens nothing"
    );
}

#[tokio::test]
async fn whoever_needs_a_token_says_so() {
    let gateway = Gateway::start().await;
    let visitor = gateway.visitor();
    let document = visitor.gets("/api/openapi.json").await.json();
    for (path, item) in document["paths"].as_object().unwrap() {
        for method in METHODS {
            let operation = &item[method];
            if operation.is_null() {
                continue;
            }
            let concrete = path.replace("{id}", "x");
            let answer = visitor.sends(&method.to_uppercase(), &concrete, None).await;
            let needs_token = operation["security"]
                .as_array()
                .is_some_and(|list| !list.is_empty());
            if needs_token {
                assert_eq!(answer.status, 401, "{method} {path}");
            } else if path != "/api/auth/refresh" {
                assert_ne!(answer.status, 401, "{method} {path}");
            }
        }
    }
}
