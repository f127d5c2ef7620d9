//! Third-party clients: Node's ws and Python's websockets.

use std::path::Path;
use std::process::Command;

use crate::actors::Gateway;

fn printed(program: &str, script: &str, arguments: &[&str]) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/clients")
        .join(script);
    let output = Command::new(program)
        .env("NODE_PATH", "/usr/share/nodejs")
        .arg(script)
        .args(arguments)
        .output()
        .unwrap_or_else(|error| panic!("{program}: {error}; ./scripts/test installs it"));
    let shown = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{shown}");
    String::from_utf8(output.stdout)
        .unwrap()
        .trim_end_matches('\n')
        .to_owned()
}

#[tokio::test]
async fn node_ws_connects_with_a_subprotocol() {
    let gateway = Gateway::start().await;
    let token = gateway.logged_in("root").await.token.unwrap();
    let address = gateway.address().to_string();
    let answer =
        tokio::task::spawn_blocking(move || printed("node", "subprotocol.js", &[&address, &token]));
    assert_eq!(answer.await.unwrap(), "switchboard.v1|1 2 3 4 5 ");
}

#[tokio::test]
async fn python_websockets_connects_with_a_header_and_with_a_ticket() {
    let gateway = Gateway::start().await;
    let page = gateway.logged_in("root").await;
    let ticket = page.sends("POST", "/api/auth/ticket", None).await.json();
    let secrets = [
        ("header", page.token.clone().unwrap()),
        ("ticket", ticket["ticket"].as_str().unwrap().to_owned()),
    ];
    for (way, secret) in secrets {
        let address = gateway.address().to_string();
        let answer = tokio::task::spawn_blocking(move || {
            printed("/usr/bin/python3", "header.py", &[&address, way, &secret])
        });
        assert_eq!(answer.await.unwrap(), format!("{way}|1 2 3 4 5 "));
    }
}
