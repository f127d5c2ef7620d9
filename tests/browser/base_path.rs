//! Base path: the page under a path behind nginx.

use crate::actors::{Chromium, Nginx, Visitor};
use crate::api_actors::{PASSWORD, Settings};
use crate::first_run::setup_link;
use crate::ports::free_port;

#[tokio::test]
async fn everything_works_under_a_path_behind_nginx() {
    let port = free_port();
    let public = format!("http://127.0.0.1:{port}");
    let gateway = Settings::without_admin()
        .with("SERVER__BASE_PATH", "/agents")
        .with("SERVER__PUBLIC_URL", &public)
        .with("SERVER__TRUSTED_PROXIES", "[\"127.0.0.1\"]")
        .start()
        .await;
    let _nginx = Nginx::start(port, "/agents", gateway.address());
    let chromium = Chromium::start();
    let base = format!("{public}/agents");
    let ada = Visitor::opens_browser(&chromium, &base).await;

    ada.runs_before_page(
        "window.sockets = [];
         window.WebSocket = class extends WebSocket {
             constructor(...all) { super(...all); window.sockets.push(this); }
         };",
    )
    .await;
    let link = setup_link(gateway.startup_output());
    assert!(link.starts_with(&base), "{link}");
    ada.opens(&link).await;
    ada.fills_in("#setup #username", "ada").await;
    ada.fills_in("#setup #password", PASSWORD).await;
    ada.fills_in("#setup #repeat", PASSWORD).await;
    ada.clicks("#setup button[type=submit]").await;
    ada.sees_workbench().await;
    ada.starts_session("/stream 50 2").await;
    ada.sees_answer("50").await;
    ada.sees_connection("live").await;
    let is_socket = "return window.sockets.some((one) => one.readyState === WebSocket.OPEN && one.url.includes('/agents/ws'))";
    assert!(
        ada.runs_script::<bool>(is_socket).await,
        "no WebSocket is open"
    );
    // A new run over the open connection.
    ada.prompts("/echo over the same line").await;
    ada.sees_answer("over the same line").await;
    ada.reloads().await;
    ada.sees_answer("over the same line").await;

    ada.opens("/#/admin/users").await;
    let link = ada.invites("zoe").await;
    assert!(link.starts_with(&base), "{link}");
    let zoe = Visitor::opens_browser(&chromium, &base).await;
    zoe.accepts(&link).await;
    zoe.starts_session("/echo thank you").await;
    zoe.sees_answer("thank you").await;
    zoe.reloads().await;
    zoe.sees_answer("thank you").await;

    // Log out and in again.
    zoe.loses_login().await;
    zoe.logs_in("zoe").await;
}
