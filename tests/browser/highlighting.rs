//! Highlighting: code and diffs in colour, loaded only when there is code.

use crate::actors::{Chromium, Visitor};
use crate::api_actors::Gateway;

/// The scripts that the page has loaded.
const SCRIPTS: &str = "return performance.getEntriesByType('resource').filter((one) => one.name.endsWith('.js')).map((one) => one.name.split('/').pop())";

#[tokio::test]
async fn code_and_diffs_are_coloured_and_the_highlighter_is_loaded_only_for_them() {
    let gateway = Gateway::start().await;
    gateway.adds_user("mia", "member");
    let chromium = Chromium::start();
    let mia = Visitor::opens_browser(&chromium, &format!("http://{}", gateway.address())).await;
    mia.logs_in("mia").await;
    mia.starts_session("/echo **no code** here").await;
    mia.sees_answer("no code here").await;
    let scripts: Vec<String> = mia.runs_script(SCRIPTS).await;
    let is_highlighter = |name: &String| name.starts_with("highlighter-");
    assert!(!scripts.iter().any(is_highlighter), "{scripts:?}");

    mia.prompts("/markdown").await;
    mia.sees_answer("See the guide").await;
    mia.sees_text(".code-block .tk-keyword", "fn").await;
    mia.sees_text(".code-block .tk-comment", "// A refusal stays one")
        .await;
    let scripts: Vec<String> = mia.runs_script(SCRIPTS).await;
    assert!(scripts.iter().any(is_highlighter), "{scripts:?}");
    // The text is the text, and it is copied without the colours.
    let code: String = mia
        .runs_script("return document.querySelector('.code-block code').textContent")
        .await;
    assert!(code.starts_with("fn is_final(error: &Error) -> bool {\n    // A refusal"));
    let colours: Vec<String> = mia
        .runs_script("return ['.tk-keyword', '.tk-comment', '.tk-type', '.code-block code'].map((one) => getComputedStyle(document.querySelector(one)).color)")
        .await;
    let distinct: std::collections::BTreeSet<_> = colours.iter().collect();
    assert_eq!(distinct.len(), 4, "{colours:?}");

    mia.prompts("/edit").await;
    mia.sees_text(".change tr.added .tk-keyword", "if").await;
    mia.sees_text(".change tr.removed .tk-keyword", "return")
        .await;
    mia.prompts("/tool").await;
    mia.sees(".question-code").await;
    mia.allows().await;
}
