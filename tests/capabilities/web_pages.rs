//! Web pages: the full page and the fallback pages as they are served.

use crate::actors::{Gateway, Settings};

#[tokio::test]
async fn pages_are_served_with_all_their_assets_and_a_strict_csp() {
    for (pages, fewest) in [("full", 2), ("plain", 3)] {
        let gateway = Settings::new().with("SERVER__PAGES", pages).start().await;
        let visitor = gateway.anonymous();
        for page in ["/", "/setup", "/invite"] {
            let answer = visitor.gets(page).await.is(200);
            assert_eq!(answer.header("content-type"), "text/html; charset=utf-8");
            let policy = answer.header("content-security-policy");
            assert!(
                policy.contains("script-src 'self'") && !policy.contains("unsafe"),
                "{policy}"
            );
            assert!(policy.contains("frame-ancestors 'none'"), "{policy}");
            let typed = "require-trusted-types-for 'script'; trusted-types 'none'";
            assert!(policy.contains(typed), "{policy}");
            assert_eq!(answer.header("x-content-type-options"), "nosniff");
            assert_eq!(answer.header("referrer-policy"), "no-referrer");
            assert!(
                !answer.text.contains("<script>") && !answer.text.contains("style="),
                "inline code in {page}"
            );
            let seen = follow(&visitor, &answer.text).await;
            assert!(seen.len() >= fewest, "{pages} {page} names {seen:?}");
        }
    }
}

/// Downloads every asset that a page references, recursively.
async fn follow(visitor: &crate::actors::HttpClient, page: &str) -> Vec<String> {
    let mut waiting = named(page);
    let mut seen = Vec::new();
    while let Some(name) = waiting.pop() {
        if seen.contains(&name) {
            continue;
        }
        let asset = visitor.gets(&format!("/assets/{name}")).await.is(200);
        let end = name.rsplit('.').next();
        let kind = match end {
            Some("js") => "text/javascript; charset=utf-8",
            _ => "text/css; charset=utf-8",
        };
        assert_eq!(asset.header("content-type"), kind, "{name}");
        waiting.extend(named(&asset.text));
        seen.push(name);
    }
    seen
}

fn is(name: &str, kind: &str) -> bool {
    name.rsplit('.').next() == Some(kind)
}

/// Assets that a page (`assets/x`) or a module (`'./x.js'`) references.
fn named(text: &str) -> Vec<String> {
    let after = |mark: &str| -> Vec<String> {
        text.split(mark)
            .skip(1)
            .map(|rest| rest.split(['"', '\'']).next().unwrap().to_owned())
            .filter(|name| is(name, "js") || is(name, "css"))
            .collect()
    };
    [after("=\"assets/"), after("'./"), after("\"./")].concat()
}

#[tokio::test]
async fn an_unchanged_page_is_answered_with_304() {
    for pages in ["full", "plain"] {
        let gateway = Settings::new().with("SERVER__PAGES", pages).start().await;
        let first = gateway.anonymous().gets("/").await.is(200);
        assert_eq!(first.header("cache-control"), "no-cache");
        let mut again = gateway.anonymous();
        again
            .headers
            .push(("if-none-match", first.header("etag").to_owned()));
        assert_eq!(again.gets("/").await.is(304).text, "");
    }
}

#[tokio::test]
async fn hashed_assets_are_immutable_and_compressed() {
    let gateway = Gateway::start().await;
    let visitor = gateway.anonymous();
    let page = visitor.gets("/").await.is(200).text;
    let script = named(&page)
        .into_iter()
        .find(|name| is(name, "js"))
        .unwrap();
    let path = format!("/assets/{script}");
    let whole = visitor.gets(&path).await.is(200);
    assert_eq!(
        whole.header("cache-control"),
        "public, max-age=31536000, immutable"
    );
    let mut packing = gateway.anonymous();
    packing.headers.push(("accept-encoding", "gzip".to_owned()));
    let packed = packing.gets(&path).await.is(200);
    assert_eq!(packed.header("content-encoding"), "gzip");
    assert_eq!(packed.header("vary"), "Accept-Encoding");
    let length = |answer: &crate::actors::HttpResponse| -> usize {
        answer.header("content-length").parse().unwrap()
    };
    assert!(length(&packed) * 2 < length(&whole));
    visitor.gets("/assets/nothing.js").await.is(404);
    visitor.gets("/assets/index.html").await.is(404);
}

#[tokio::test]
async fn csp_reports_are_counted() {
    let gateway = Gateway::start().await;
    let root = gateway.logged_in("root").await;
    let counted = async || {
        let metrics = root.gets("/metrics").await.is(200).text;
        let line = metrics
            .lines()
            .find_map(|line| line.strip_prefix("switchboard_csp_reports_total "));
        line.unwrap().to_owned()
    };
    assert_eq!(counted().await, "0");
    let visitor = gateway.anonymous();
    let report = serde_json::json!({ "csp-report": { "effective-directive": "script-src" } });
    visitor
        .posts("/api/csp-reports", report.clone())
        .await
        .is(204);
    assert_eq!(counted().await, "1");
    // A report needs no `Origin`; on other routes it is still checked.
    for origin in ["null", "https://elsewhere.example.org"] {
        let mut page = gateway.anonymous();
        page.headers.push(("origin", origin.to_owned()));
        page.posts("/api/csp-reports", report.clone()).await.is(204);
        page.gets("/api/csp-reports").await.is(403);
        page.gets("/api/version").await.is(403);
        page.posts("/api/csp-reports/", report.clone())
            .await
            .is(403);
        let much = serde_json::json!({ "csp-report": "x".repeat(100_000) });
        page.posts("/api/csp-reports", much).await.is(413);
    }
    assert_eq!(counted().await, "3");
}
