//! What a page loads, and from where.

use serde::Deserialize;

use crate::actors::{Chromium, Visitor};
use crate::staff::Gateway;

/// All of the page, as it comes over the wire.
const MOST_BYTES: u64 = 120 * 1024;

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
async fn a_conversation_loads_little_and_nothing_from_elsewhere() {
    let gateway = Gateway::start().await;
    gateway.has_user("mia", "member");
    let chromium = Chromium::start();
    let base = format!("http://{}", gateway.address());
    let mia = Visitor::comes(&chromium, &base).await;
    mia.logs_in("mia").await;
    mia.begins("/echo **hello** `there`").await;
    mia.sees_answer("hello").await;
    mia.tells_browser("Network.clearBrowserCache", serde_json::json!({}))
        .await;
    mia.reloads().await;
    mia.sees_answer("hello").await;

    let loads: Vec<Load> = mia.looks(LOADS).await;
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
    assert!(all <= MOST_BYTES, "{all} bytes");
    let foreign: Vec<&Load> = loads
        .iter()
        .filter(|load| !load.url.starts_with(&base))
        .collect();
    assert!(foreign.is_empty(), "{foreign:?}");
}

#[tokio::test]
async fn the_first_paint_waits_for_nothing_but_the_page_itself() {
    let gateway = Gateway::start().await;
    let chromium = Chromium::start();
    let mia = Visitor::comes(&chromium, &format!("http://{}", gateway.address())).await;
    // The gateway's answers never come.
    mia.prepares("window.asked = 0; window.fetch = () => { window.asked += 1; return new Promise(() => {}); };")
        .await;
    mia.opens("/").await;
    mia.awaits_that(
        "the first paint",
        "return performance.getEntriesByName('first-contentful-paint').length > 0",
    )
    .await;
    mia.awaits_that("a question to the gateway", "return window.asked > 0")
        .await;
    let loads: Vec<Load> = mia.looks(LOADS).await;
    for load in &loads {
        let is_page = ["navigation", "script", "link", "css"].contains(&load.kind.as_str());
        assert!(is_page || load.url.starts_with("data:"), "{load:?}");
    }
    let at: f64 = mia
        .looks("return performance.getEntriesByName('first-contentful-paint')[0].startTime")
        .await;
    println!("first paint after {at:.0} ms, of {} requests", loads.len());
}
