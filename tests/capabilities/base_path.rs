//! Base path: routes and links of a gateway under a path of a proxy.

use crate::actors::Settings;

#[tokio::test]
async fn everything_is_under_the_base_path() {
    let gateway = Settings::without_admin()
        .with("SERVER__BASE_PATH", "/agents")
        .start()
        .await;
    let greeting = gateway.startup_output().to_owned();
    assert!(greeting.contains("/agents/setup#t="), "{greeting}");
    let visitor = gateway.anonymous();
    for path in [
        "/agents/",
        "/agents/setup",
        "/agents/invite",
        "/agents/version",
        "/agents/api/openapi.json",
    ] {
        visitor.gets(path).await.is(200);
    }
    let page = visitor.gets("/agents/").await.text;
    let asset = page.split("=\"assets/").nth(1).unwrap();
    let asset = asset.split('"').next().unwrap();
    visitor
        .gets(&format!("/agents/assets/{asset}"))
        .await
        .is(200);
    let moved = visitor.gets("/agents").await.is(308);
    assert_eq!(moved.header("location"), "/agents/");
    for path in ["/", "/setup", "/version", "/agents2/", "/agents/agents/"] {
        visitor.gets(path).await.refuses(404, "NOT_FOUND");
    }
    let document = visitor.gets("/agents/api/openapi.json").await.json();
    assert_eq!(document["servers"][0]["url"], "/agents");
}

#[tokio::test]
async fn links_use_the_public_url() {
    let gateway = Settings::without_admin()
        .with("SERVER__PUBLIC_URL", "https://agents.example.org")
        .start()
        .await;
    assert!(
        gateway
            .startup_output()
            .contains("https://agents.example.org/setup#t="),
        "{}",
        gateway.startup_output()
    );
    let printed = gateway.prints(&["user", "add", "mia"]);
    assert!(
        printed.contains("https://agents.example.org/invite#t="),
        "{printed}"
    );
}
