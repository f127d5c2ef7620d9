//! As much of the `WebDriver` protocol as these tests speak, to one browser.
//!
//! Written here: the clients that there are ask `serde_json` for another kind of map, and cargo would then
//! build the gateway under test with it, too.

use serde_json::{Value, json};

/// The key by which the protocol names an element.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// A browser that chromedriver has started.
pub(crate) struct Driver {
    client: reqwest::Client,
    /// Where its commands go.
    pub(crate) url: String,
}

/// Something in a page, by the name that chromedriver has for it.
pub(crate) struct Element(String);

/// What a command came to, or in which words it was refused.
pub(crate) type Reply = Result<Value, String>;

impl Driver {
    /// Lets the chromedriver at that address start a browser.
    pub(crate) async fn start(chromedriver: &str, flags: &[String]) -> Self {
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let wanted = json!({ "capabilities": { "alwaysMatch": {
            "browserName": "chrome",
            "goog:chromeOptions": { "args": flags },
            "goog:loggingPrefs": { "browser": "ALL" },
            // A dialog of the page is left open, and every command after it fails.
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

    /// Runs a script in the page, with what it returns.
    pub(crate) async fn executes(&self, script: &str) -> Reply {
        let body = json!({ "script": script, "args": [] });
        self.posts("/execute/sync", body).await
    }

    /// The element that a script returns, if it does.
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

    /// Types into a field; into one for files, their paths.
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

    /// A command of the browser's own protocol.
    pub(crate) async fn tells_browser(&self, method: &str, parameters: Value) -> Reply {
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
