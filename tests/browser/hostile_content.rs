//! Hostile content: agent output never runs as script or markup.

use serde_json::{Value, json};

use crate::actors::{Chromium, ForbiddenServer, Visitor};
use crate::api_actors::{Gateway, HttpClient, Settings};

/// Markdown and HTML that would run script, load a resource or navigate.
fn hostile(beacon: &str) -> String {
    format!(
        r#"Look:

<script>window.pwned = 'script'; alert(1)</script>
<img src=x onerror="window.pwned = 'onerror'">
<img src="{beacon}">
![x]({beacon})
![y][far]
<svg onload="window.pwned = 'svg'"><a href="javascript:window.pwned = 'svg link'"><text>svg</text></a></svg>

<iframe src="{beacon}"></iframe>
<iframe srcdoc="<script>parent.pwned = 'frame'</script>"></iframe>
<style>body {{ background: url({beacon}) }}</style>
<link rel="stylesheet" href="{beacon}">
<base href="{beacon}">
<meta http-equiv="refresh" content="0;url={beacon}">
<object data="{beacon}"></object>
<form action="{beacon}"><button autofocus onfocus="window.pwned = 'focus'">go</button></form>
<details open ontoggle="window.pwned = 'toggle'">toggled</details>

[one](javascript:window.pwned='link') [two](JaVaScRiPt:window.pwned='link') [three](data:text/html,<script>window.pwned='data'</script>)
[four](vbscript:pwned) [five](&#106;avascript:window.pwned='entity') [six](<java
script:window.pwned='line'>) [seven][bad] <javascript:window.pwned='auto'>

[far]: {beacon}
[bad]: javascript:window.pwned='reference'

```html"><script>window.pwned = 'fence'</script>
<script>window.pwned = 'code'</script>
```

| a | b |
|---|---|
| <img src=x onerror="window.pwned = 'cell'"> | [x](javascript:window.pwned='cell') |

the end of it"#
    )
}

/// Replaces a text everywhere in a protocol file.
fn reword(value: &mut Value, from: &str, to: &str) {
    match value {
        Value::String(text) if text == from => to.clone_into(text),
        Value::Array(items) => items.iter_mut().for_each(|item| reword(item, from, to)),
        Value::Object(fields) => fields.values_mut().for_each(|item| reword(item, from, to)),
        _ => {}
    }
}

/// An agent whose thoughts, questions and tools carry hostile text; returns its configuration.
fn hostile_agent(dir: &std::path::Path, words: &str) -> String {
    let book = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/transcripts/acp/protocol.json"
    );
    let book = std::fs::read_to_string(book).unwrap();
    let mut book: Value = serde_json::from_str(&book).unwrap();
    let scene = &mut book["run"];
    reword(&mut scene["thought"], "$text", words);
    for part in ["tool", "ask", "tool_done"] {
        for known in ["bash", "ls tests", "a\n", "Allow once"] {
            reword(&mut scene[part], known, words);
        }
    }
    let file = dir.join("hostile.json");
    std::fs::write(&file, book.to_string()).unwrap();
    let command = json!([env!("CARGO_BIN_EXE_fake-runtime"), file]);
    format!("[agents.hostile]\nprotocol = \"acp\"\ncommand = {command}\n")
}

/// The number of reported CSP violations.
async fn reports(root: &HttpClient) -> u64 {
    let metrics = root.gets("/metrics").await.is(200).text;
    let line = metrics
        .lines()
        .find(|line| line.starts_with("switchboard_csp_reports_total"));
    let line = line.unwrap_or_else(|| panic!("not counted: {metrics}"));
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Finds forbidden elements in the conversation.
const FORBIDDEN: &str = "
    const room = document.querySelector('main');
    const bad = [...room.querySelectorAll('script, iframe, frame, style, link, base, meta, object, embed, svg a, [srcdoc], [formaction]')]
        .concat([...room.querySelectorAll('form')].filter((one) => one.hasAttribute('action')))
        .concat([...room.querySelectorAll('a[href]')].filter((one) => !['http:', 'https:', 'mailto:'].includes(one.protocol)))
        .concat([...room.querySelectorAll('img, audio, video, source')].filter((one) => !/^(data|blob):/.test(one.src) && new URL(one.src, location).origin !== location.origin))
        .concat([...room.querySelectorAll('*')].filter((one) => one.getAttributeNames().some((name) => name.startsWith('on'))));
    return bad.map((one) => one.outerHTML.slice(0, 200));";

async fn nothing_has_run(
    visitor: &Visitor,
    beacon: &ForbiddenServer,
    root: &HttpClient,
    place: &str,
) {
    let bad: Vec<String> = visitor.runs_script(FORBIDDEN).await;
    assert_eq!(bad, [""; 0], "{place}");
    let ran: Option<String> = visitor.runs_script("return window.pwned ?? null").await;
    assert_eq!(ran, None, "{place}");
    assert!(
        !beacon.was_reached(),
        "{place}: the page loads from elsewhere"
    );
    assert_eq!(
        reports(root).await,
        0,
        "{place}: left to the policy to stop"
    );
}

#[tokio::test]
async fn agent_output_never_runs_script_or_loads_a_resource() {
    let beacon = ForbiddenServer::start();
    let words = hostile(&beacon.url());
    let dir = tempfile::tempdir().unwrap();
    let gateway = Settings::new()
        .with_config_file(&hostile_agent(dir.path(), &words))
        .start()
        .await;
    gateway.adds_user("mia", "member");
    let root = gateway.logged_in("root").await;
    let chromium = Chromium::start();
    let mia = Visitor::opens_browser(&chromium, &format!("http://{}", gateway.address())).await;
    mia.logs_in("mia").await;

    // In prompts and answers, while streaming and after a reload.
    let api = gateway.logged_in("mia").await;
    mia.opens_new(&api, "demo").await;
    mia.prompts(&format!("/echo {words}")).await;
    mia.sees_answer("the end of it").await;
    nothing_has_run(&mia, &beacon, &root, "an answer").await;
    mia.reloads().await;
    mia.sees_answer("the end of it").await;
    nothing_has_run(&mia, &beacon, &root, "an answer, loaded").await;

    // In a title, and in everything that a configured agent sends.
    mia.prompts(&format!(
        "/title <img src=x onerror=\"window.pwned = 'title'\"> {}",
        beacon.url()
    ))
    .await;
    mia.sees_text("[data-part=sessions]", "<img src=x").await;
    nothing_has_run(&mia, &beacon, &root, "a title").await;
    mia.opens_new(&api, "hostile").await;
    mia.prompts("/think").await;
    mia.sees("[data-entry=thought]").await;
    mia.sees_idle().await;
    mia.unfolds("[data-entry=thought]").await;
    mia.sees_text("[data-entry=thought]", "the end of it").await;
    nothing_has_run(&mia, &beacon, &root, "a thought").await;
    mia.prompts("/tool").await;
    mia.sees("[data-part=question][data-state=open]").await;
    nothing_has_run(&mia, &beacon, &root, "a question").await;
    mia.allows().await;
    mia.sees_answer("allowed").await;
    mia.unfolds("[data-entry=tool]").await;
    mia.sees_text("[data-entry=tool]", "the end of it").await;
    nothing_has_run(&mia, &beacon, &root, "a tool").await;
}

#[tokio::test]
async fn injected_script_is_blocked_by_csp_and_counted() {
    let beacon = ForbiddenServer::start();
    let gateway = Gateway::start().await;
    let root = gateway.logged_in("root").await;
    let chromium = Chromium::start();
    let mia = Visitor::opens_browser(&chromium, &format!("http://{}", gateway.address())).await;
    mia.logs_in("root").await;
    assert_eq!(reports(&root).await, 0);

    mia.runs_script::<()>(
        "const script = document.createElement('script');
         script.append(\"window.pwned = 'injected'\");
         document.body.append(script);",
    )
    .await;
    let counted = async |least: u64| {
        let seen = async || (reports(&root).await >= least).then_some(());
        mia.waits_for("a report", seen).await;
    };
    counted(1).await;
    let inject = format!("const one = new Image(); one.src = {}", json!(beacon.url()));
    mia.runs_script::<()>(&inject).await;
    counted(2).await;
    let ran: Option<String> = mia.runs_script("return window.pwned ?? null").await;
    assert_eq!(ran, None);
    assert!(!beacon.was_reached());
    // The server is reachable for a client without a CSP.
    std::net::TcpStream::connect(beacon.url().split('/').nth(2).unwrap()).unwrap();
    assert!(beacon.was_reached());
}

#[tokio::test]
async fn script_cannot_write_markup_into_the_page() {
    const WRITE: &str = r#"
        const refused = (write) => { try { write(); return 'done'; } catch (error) { return error.name; } };
        const box = document.body.appendChild(document.createElement('div'));
        const image = '<img src=x onerror="window.pwned = 1">';
        return [
            refused(() => { box.innerHTML = image; }),
            refused(() => box.insertAdjacentHTML('beforeend', image)),
            refused(() => { document.createElement('script').src = 'x.js'; }),
            refused(() => trustedTypes.createPolicy('default', { createHTML: (text) => text })),
            String(box.childNodes.length),
        ];"#;
    let gateway = Gateway::start().await;
    let chromium = Chromium::start();
    let root = Visitor::opens_browser(&chromium, &format!("http://{}", gateway.address())).await;
    root.logs_in("root").await;
    root.starts_session("/echo *here* I am").await;
    root.sees_answer("here I am").await;
    let seen: Vec<String> = root.runs_script(WRITE).await;
    assert_eq!(seen[..4], ["TypeError"; 4], "{seen:?}");
    assert_eq!(seen[4], "0");
    let pwned: bool = root.runs_script("return 'pwned' in window").await;
    assert!(!pwned);
}
