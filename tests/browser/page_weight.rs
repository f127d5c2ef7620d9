//! Page weight: what the page loads, and from where.

use serde::Deserialize;

use crate::actors::{Chromium, Visitor};
use crate::api_actors::Gateway;

/// Limit for the whole page, as transferred.
const MAX_BYTES: u64 = 120 * 1024;

#[derive(Debug, Deserialize)]
struct Load {
    url: String,
    kind: String,
    /// Compressed, with headers.
    bytes: u64,
}

const LOADS: &str = "
    return [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]
        .map((one) => ({ url: one.name, kind: one.initiatorType, bytes: one.transferSize }));";

#[tokio::test]
async fn a_conversation_loads_little_and_only_from_the_gateway() {
    let gateway = Gateway::start().await;
    gateway.adds_user("mia", "member");
    let chromium = Chromium::start();
    let base = format!("http://{}", gateway.address());
    let mia = Visitor::opens_browser(&chromium, &base).await;
    mia.logs_in("mia").await;
    mia.starts_session("/echo **hello** `there`").await;
    mia.sees_answer("hello").await;
    mia.sends_devtools_command("Network.clearBrowserCache", serde_json::json!({}))
        .await;
    mia.reloads().await;
    mia.sees_answer("hello").await;

    let loads: Vec<Load> = mia.runs_script(LOADS).await;
    for load in &loads {
        println!("{:>7} {:<10} {}", load.bytes, load.kind, load.url);
    }
    let all: u64 = loads.iter().map(|load| load.bytes).sum();
    println!("{all} bytes in all");
    assert!(
        loads
            .iter()
            .any(|load| load.kind == "script" && load.bytes > 10_000)
    );
    assert!(all <= MAX_BYTES, "{all} bytes");
    let foreign: Vec<&Load> = loads
        .iter()
        .filter(|load| !load.url.starts_with(&base))
        .collect();
    assert!(foreign.is_empty(), "{foreign:?}");
}

#[tokio::test]
async fn the_first_paint_waits_for_the_page_alone() {
    let gateway = Gateway::start().await;
    let chromium = Chromium::start();
    let mia = Visitor::opens_browser(&chromium, &format!("http://{}", gateway.address())).await;
    // API responses never arrive.
    mia.runs_before_page("window.asked = 0; window.fetch = () => { window.asked += 1; return new Promise(() => {}); };")
        .await;
    mia.opens("/").await;
    mia.waits_until(
        "the first paint",
        "return performance.getEntriesByName('first-contentful-paint').length > 0",
    )
    .await;
    mia.waits_until("a question to the gateway", "return window.asked > 0")
        .await;
    let loads: Vec<Load> = mia.runs_script(LOADS).await;
    for load in &loads {
        let is_page = ["navigation", "script", "link", "css"].contains(&load.kind.as_str());
        assert!(is_page || load.url.starts_with("data:"), "{load:?}");
    }
    let at: f64 = mia
        .runs_script("return performance.getEntriesByName('first-contentful-paint')[0].startTime")
        .await;
    println!("first paint after {at:.0} ms, of {} requests", loads.len());
}
