//! Words that want to be more than words, wherever an agent can say them.

use serde_json::{Value, json};

use crate::actors::{Beacon, Chromium, Visitor};
use crate::staff::{Browser, Gateway, Settings};

/// Markdown and HTML that would run, load or lead somewhere.
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

/// Puts words in the place of others, everywhere in a phrasebook.
fn reword(value: &mut Value, from: &str, to: &str) {
    match value {
        Value::String(text) if text == from => to.clone_into(text),
        Value::Array(items) => items.iter_mut().for_each(|item| reword(item, from, to)),
        Value::Object(fields) => fields.values_mut().for_each(|item| reword(item, from, to)),
        _ => {}
    }
}

/// An agent that thinks, asks and uses tools with hostile words; returns its configuration.
fn hostile_agent(dir: &std::path::Path, words: &str) -> String {
    let book = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/transcripts/acp/phrasebook.json"
    );
    let book = std::fs::read_to_string(book).unwrap();
    let mut book: Value = serde_json::from_str(&book).unwrap();
    let scene = &mut book["scene"];
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

/// How many violations of the policy browsers have reported.
async fn reports(root: &Browser) -> u64 {
    let metrics = root.gets("/metrics").await.is(200).text;
    let line = metrics
        .lines()
        .find(|line| line.starts_with("switchboard_csp_reports_total"));
    let line = line.unwrap_or_else(|| panic!("not counted: {metrics}"));
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// What is in the conversation that must not be there.
const FORBIDDEN: &str = "
    const room = document.querySelector('main');
    const bad = [...room.querySelectorAll('script, iframe, frame, style, link, base, meta, object, embed, svg a, [srcdoc], [formaction]')]
        .concat([...room.querySelectorAll('form')].filter((one) => one.hasAttribute('action')))
        .concat([...room.querySelectorAll('a[href]')].filter((one) => !['http:', 'https:', 'mailto:'].includes(one.protocol)))
        .concat([...room.querySelectorAll('img, audio, video, source')].filter((one) => !/^(data|blob):/.test(one.src) && new URL(one.src, location).origin !== location.origin))
        .concat([...room.querySelectorAll('*')].filter((one) => one.getAttributeNames().some((name) => name.startsWith('on'))));
    return bad.map((one) => one.outerHTML.slice(0, 200));";

async fn nothing_has_run(visitor: &Visitor, beacon: &Beacon, root: &Browser, place: &str) {
    let bad: Vec<String> = visitor.looks(FORBIDDEN).await;
    assert_eq!(bad, [""; 0], "{place}");
    let ran: Option<String> = visitor.looks("return window.pwned ?? null").await;
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
async fn nothing_that_an_agent_says_runs_or_loads_anything() {
    let beacon = Beacon::light();
    let words = hostile(&beacon.url());
    let dir = tempfile::tempdir().unwrap();
    let gateway = Settings::new()
        .configured(&hostile_agent(dir.path(), &words))
        .start()
        .await;
    gateway.has_user("mia", "member");
    let root = gateway.browser("root").await;
    let chromium = Chromium::start();
    let mia = Visitor::comes(&chromium, &format!("http://{}", gateway.address())).await;
    mia.logs_in("mia").await;

    // In prompts and answers, while they come and after they were loaded.
    let api = gateway.browser("mia").await;
    mia.opens_new(&api, "demo").await;
    mia.prompts(&format!("/echo {words}")).await;
    mia.sees_answer("the end of it").await;
    nothing_has_run(&mia, &beacon, &root, "an answer").await;
    mia.reloads().await;
    mia.sees_answer("the end of it").await;
    nothing_has_run(&mia, &beacon, &root, "an answer, loaded").await;

    // In a title, and in everything that an agent of the operator tells.
    mia.prompts(&format!(
        "/title <img src=x onerror=\"window.pwned = 'title'\"> {}",
        beacon.url()
    ))
    .await;
    mia.reads("[data-part=sessions]", "<img src=x").await;
    nothing_has_run(&mia, &beacon, &root, "a title").await;
    mia.opens_new(&api, "hostile").await;
    mia.prompts("/think").await;
    mia.sees("[data-entry=thought]").await;
    mia.sees_rest().await;
    mia.unfolds("[data-entry=thought]").await;
    mia.reads("[data-entry=thought]", "the end of it").await;
    nothing_has_run(&mia, &beacon, &root, "a thought").await;
    mia.prompts("/tool").await;
    mia.sees("[data-part=question][data-state=open]").await;
    nothing_has_run(&mia, &beacon, &root, "a question").await;
    mia.allows().await;
    mia.sees_answer("allowed").await;
    mia.unfolds("[data-entry=tool]").await;
    mia.reads("[data-entry=tool]", "the end of it").await;
    nothing_has_run(&mia, &beacon, &root, "a tool").await;
}

#[tokio::test]
async fn what_gets_into_the_page_in_spite_of_it_is_blocked_and_counted() {
    let beacon = Beacon::light();
    let gateway = Gateway::start().await;
    let root = gateway.browser("root").await;
    let chromium = Chromium::start();
    let mia = Visitor::comes(&chromium, &format!("http://{}", gateway.address())).await;
    mia.logs_in("root").await;
    assert_eq!(reports(&root).await, 0);

    mia.looks::<()>(
        "const script = document.createElement('script');
         script.textContent = \"window.pwned = 'injected'\";
         document.body.append(script);",
    )
    .await;
    let counted = async |least: u64| {
        let seen = async || (reports(&root).await >= least).then_some(());
        mia.awaits("a report", seen).await;
    };
    counted(1).await;
    let inject = format!("const one = new Image(); one.src = {}", json!(beacon.url()));
    mia.looks::<()>(&inject).await;
    counted(2).await;
    let ran: Option<String> = mia.looks("return window.pwned ?? null").await;
    assert_eq!(ran, None);
    assert!(!beacon.was_reached());
    // It can be reached, by whom no policy binds.
    std::net::TcpStream::connect(beacon.url().split('/').nth(2).unwrap()).unwrap();
    assert!(beacon.was_reached());
}
