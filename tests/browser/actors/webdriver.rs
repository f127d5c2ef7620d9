//! `WebDriver`: the part of the protocol that these tests need, for one browser.
//!
//! Written here: existing crates enable `serde_json/preserve_order`, and cargo would then build the gateway
//! under test with it, too.

use serde_json::{Value, json};

/// The key by which the protocol names an element.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// Key codes of the protocol.
pub(crate) const TAB: &str = "\u{e004}";
pub(crate) const ENTER: &str = "\u{e007}";
pub(crate) const ALT: char = '\u{e00a}';

/// A browser that chromedriver has started.
pub(crate) struct WebDriver {
    client: reqwest::Client,
    /// The URL of its commands.
    pub(crate) url: String,
}

/// An element of a page, by chromedriver's id.
pub(crate) struct Element(String);

/// The value of a command, or the error's text.
pub(crate) type Reply = Result<Value, String>;

impl WebDriver {
    /// Starts a browser through the chromedriver at this address.
    pub(crate) async fn start(chromedriver: &str, flags: &[String]) -> Self {
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let wanted = json!({ "capabilities": { "alwaysMatch": {
            "browserName": "chrome",
            "goog:chromeOptions": { "args": flags },
            "goog:loggingPrefs": { "browser": "ALL" },
            // A dialog of the page stays open, so that every later command fails.
            "unhandledPromptBehavior": "ignore",
        } } });
        let sessions = format!("{chromedriver}/session");
        let mut driver = Self {
            client,
            url: sessions.clone(),
        };
        let made = driver.posts("", wanted).await.unwrap();
        driver.url = format!("{sessions}/{}", made["sessionId"].as_str().unwrap());
        driver
    }

    pub(crate) async fn posts(&self, path: &str, body: Value) -> Reply {
        let request = self.client.post(format!("{}{path}", self.url));
        reply(request.json(&body)).await
    }

    pub(crate) async fn gets(&self, path: &str) -> Reply {
        reply(self.client.get(format!("{}{path}", self.url))).await
    }

    /// Runs a script in the page, and returns its value.
    pub(crate) async fn executes(&self, script: &str) -> Reply {
        let body = json!({ "script": script, "args": [] });
        self.posts("/execute/sync", body).await
    }

    /// The element that a script returns, if any.
    pub(crate) async fn finds(&self, script: &str) -> Option<Element> {
        let found = self.executes(script).await.ok()?;
        Some(Element(found[ELEMENT].as_str()?.to_owned()))
    }

    pub(crate) async fn clicks(&self, Element(id): &Element) -> Reply {
        self.posts(&format!("/element/{id}/click"), json!({})).await
    }

    pub(crate) async fn clears(&self, Element(id): &Element) -> Reply {
        self.posts(&format!("/element/{id}/clear"), json!({})).await
    }

    /// Types into a field; for a file input, the path.
    pub(crate) async fn types(&self, Element(id): &Element, text: &str) -> Reply {
        let body = json!({ "text": text });
        self.posts(&format!("/element/{id}/value"), body).await
    }

    /// Presses one key after the other, wherever the focus is.
    pub(crate) async fn presses(&self, keys: &str) -> Reply {
        let strokes: Vec<Value> = keys
            .chars()
            .flat_map(|key| ["keyDown", "keyUp"].map(|kind| json!({ "type": kind, "value": key })))
            .collect();
        let keyboard = json!({ "type": "key", "id": "keyboard", "actions": strokes });
        self.posts("/actions", json!({ "actions": [keyboard] }))
            .await
    }

    /// Presses one key while others are held.
    pub(crate) async fn presses_with(&self, held: &[char], key: char) -> Reply {
        let stroke = |kind: &str, key: char| json!({ "type": kind, "value": key });
        let down = held.iter().map(|key| stroke("keyDown", *key));
        let up = held.iter().rev().map(|key| stroke("keyUp", *key));
        let strokes: Vec<Value> = down
            .chain([stroke("keyDown", key), stroke("keyUp", key)])
            .chain(up)
            .collect();
        let keyboard = json!({ "type": "key", "id": "keyboard", "actions": strokes });
        self.posts("/actions", json!({ "actions": [keyboard] }))
            .await
    }

    /// Sends a command of the `DevTools` protocol.
    pub(crate) async fn sends_devtools_command(&self, method: &str, parameters: Value) -> Reply {
        let body = json!({ "cmd": method, "params": parameters });
        self.posts("/goog/cdp/execute", body).await
    }
}

async fn reply(request: reqwest::RequestBuilder) -> Reply {
    let response = request.send().await.map_err(|error| error.to_string())?;
    let is_good = response.status().is_success();
    let mut body: Value = response.json().await.map_err(|error| error.to_string())?;
    let value = body["value"].take();
    if is_good {
        Ok(value)
    } else {
        Err(format!("{}: {}", value["error"], value["message"]))
    }
}
