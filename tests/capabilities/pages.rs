//! The plain pages.

use crate::actors::Gateway;

#[tokio::test]
async fn pages_come_with_everything_they_name_and_a_strict_policy() {
    let gateway = Gateway::start().await;
    let visitor = gateway.visitor();
    for page in ["/", "/setup", "/invite"] {
        let answer = visitor.gets(page).await.is(200);
        assert_eq!(answer.header("content-type"), "text/html; charset=utf-8");
        let policy = answer.header("content-security-policy");
        assert!(
            policy.contains("script-src 'self'") && !policy.contains("unsafe"),
            "{policy}"
        );
        assert!(policy.contains("frame-ancestors 'none'"), "{policy}");
        assert_eq!(answer.header("x-content-type-options"), "nosniff");
        assert_eq!(answer.header("referrer-policy"), "no-referrer");
        assert!(
            !answer.text.contains("<script>") && !answer.text.contains("style="),
            "inline code in {page}"
        );
        let mut waiting: Vec<String> = named(&answer.text);
        let mut seen = Vec::new();
        while let Some(name) = waiting.pop() {
            if seen.contains(&name) {
                continue;
            }
            let asset = visitor.gets(&format!("/assets/{name}")).await.is(200);
            let kind = asset.header("content-type").to_owned();
            let script = std::path::Path::new(&name)
                .extension()
                .is_some_and(|end| end == "js");
            assert!(
                kind.starts_with(if script {
                    "text/javascript"
                } else {
                    "text/css"
                }),
                "{name}: {kind}"
            );
            waiting.extend(named(&asset.text));
            seen.push(name);
        }
        assert!(seen.len() >= 3, "{page} names {seen:?}");
    }
}

/// Assets that a page (`assets/x`) or a module (`'./x.js'`) names.
fn named(text: &str) -> Vec<String> {
    let after = |mark: &str| -> Vec<String> {
        text.split(mark)
            .skip(1)
            .map(|rest| rest.split(['"', '\'']).next().unwrap().to_owned())
            .collect()
    };
    [after("=\"assets/"), after("from './")].concat()
}

#[tokio::test]
async fn a_browser_that_has_a_page_is_told_so() {
    let gateway = Gateway::start().await;
    let first = gateway.visitor().gets("/").await.is(200);
    let mut again = gateway.visitor();
    again
        .headers
        .push(("if-none-match", first.header("etag").to_owned()));
    assert_eq!(again.gets("/").await.is(304).text, "");
}
