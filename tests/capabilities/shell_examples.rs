//! Shell examples: the documented terminal commands run as written.

use std::process::{Command, Stdio};

use crate::actors::{Gateway, WsClient};

/// The shell blocks of a page after a heading.
fn blocks(page: &str, heading: &str) -> Vec<String> {
    let after = page.split(heading).nth(1).expect("the heading is there");
    let lines = |block: &str| block.split("```").next().unwrap().to_owned();
    after.split("```sh\n").skip(1).map(lines).collect()
}

#[tokio::test]
async fn the_documented_shell_examples_run_every_demo_prompt() {
    let page = include_str!("../../docs/agents.md");
    let script = blocks(page, "### In a terminal").concat();
    let table = page.lines().filter_map(|line| line.strip_prefix("| `/"));
    for prompt in table {
        let word = prompt.split([' ', '`']).next().unwrap();
        assert!(
            script.contains(&format!("ask /{word}")),
            "/{word} is not tried"
        );
    }
    let gateway = Gateway::start().await;
    let own = gateway.shell_function("switchboard");
    let script = format!("set -u\n{own}\n{script}\necho \"tried $SESSION\"\n");
    let address = gateway.address();
    let ran = tokio::task::spawn_blocking(move || {
        Command::new("bash")
            .args(["-c", &script])
            .env("URL", format!("http://{address}"))
            .env("NAME", "root")
            .stdin(Stdio::null())
            .output()
            .unwrap()
    });
    let ran = ran.await.unwrap();
    let printed = String::from_utf8_lossy(&ran.stdout).into_owned();
    let complaints = String::from_utf8_lossy(&ran.stderr);
    assert!(
        ran.status.success() && complaints.is_empty(),
        "{complaints}{printed}"
    );
    assert!(!printed.contains("ERROR_MESSAGE"), "{printed}");
    let session = printed.split("tried ").nth(1).unwrap().trim().to_owned();
    let browser = gateway.logged_in("root").await;
    let token = browser.token.clone().unwrap();
    let query = format!("?session={session}&after=0");
    let mut root = WsClient::connects(gateway.address(), &token, &query).await;
    while !root.text().contains("I am the demo agent") || root.ends().len() < 16 {
        root.receives().await.unwrap();
    }
    for text in [
        "Hello",
        "1 2 3 4 5 ",
        "I ran `date`",
        "You said yes.",
        "You said: Ada",
        "You picked: blue",
        "I thought about it.",
        "The plan is carried out.",
        "cost 0.0125",
        "I made an image",
        "I am about to crash.",
    ] {
        assert!(root.text().contains(text), "{text}: {}", root.text());
    }
}
