//! Visitor: a person with a browser of their own who reads, clicks, types and waits.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::Chromium;
use super::chromium::{FLAGS, end_browser_in};
use super::webdriver::WebDriver;

/// How long to wait for something to appear.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(20);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The screen of a browser.
#[derive(Clone, Copy)]
pub(crate) struct Screen {
    pub(crate) width: u32,
    pub(crate) height: u32,
    /// Device pixels per CSS pixel.
    pub(crate) density: u32,
    pub(crate) is_dark: bool,
    /// Touch instead of a mouse.
    pub(crate) is_touched: bool,
}

impl Screen {
    pub(crate) const WIDE: Self = Self {
        width: 1280,
        height: 800,
        density: 1,
        is_dark: false,
        is_touched: false,
    };

    /// A phone of that width.
    pub(crate) const fn phone(width: u32) -> Self {
        Self {
            width,
            height: 740,
            is_touched: true,
            ..Self::WIDE
        }
    }
}

/// One entry of a conversation, as it is shown.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) kind: String,
    /// For an answer: its text alone.
    pub(crate) text: String,
    pub(crate) is_complete: bool,
}

/// A person and their browser; closed when dropped, with a report of the page if the test failed.
pub(crate) struct Visitor {
    pub(crate) driver: WebDriver,
    /// The URL of the gateway, without a trailing slash.
    pub(crate) base: String,
    profile: TempDir,
}

impl Visitor {
    /// Starts a browser with an ordinary screen.
    pub(crate) async fn opens_browser(chromium: &Chromium, base: &str) -> Self {
        Self::with_screen(chromium, base, Screen::WIDE).await
    }

    pub(crate) async fn with_screen(chromium: &Chromium, base: &str, screen: Screen) -> Self {
        let profile = tempfile::tempdir().unwrap();
        let size = format!("--window-size={},{}", screen.width.max(500), screen.height);
        let directory = format!("--user-data-dir={}", profile.path().display());
        let flags = FLAGS.map(str::to_owned).into_iter();
        let flags: Vec<String> = flags.chain([size, directory]).collect();
        let driver = WebDriver::start(&chromium.url, &flags).await;
        let visitor = Self {
            driver,
            base: base.trim_end_matches('/').to_owned(),
            profile,
        };
        visitor.sets_screen(screen).await;
        visitor
    }

    /// Changes the screen. No window is as narrow as a phone, so the size is emulated.
    pub(crate) async fn sets_screen(&self, screen: Screen) {
        let metrics = json!({
            "width": screen.width, "height": screen.height,
            "deviceScaleFactor": screen.density, "mobile": false,
        });
        self.sends_devtools_command("Emulation.setDeviceMetricsOverride", metrics)
            .await;
        let touch = json!({ "enabled": screen.is_touched });
        self.sends_devtools_command("Emulation.setTouchEmulationEnabled", touch)
            .await;
        let scheme = if screen.is_dark { "dark" } else { "light" };
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        let media = json!({ "media": "", "features": features });
        self.sends_devtools_command("Emulation.setEmulatedMedia", media)
            .await;
    }

    /// Sends a command of the `DevTools` protocol.
    pub(crate) async fn sends_devtools_command(&self, method: &str, parameters: Value) -> Value {
        let printed = self.driver.sends_devtools_command(method, parameters).await;
        printed.unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    /// Runs a script in every page opened from now on, before the page's own.
    pub(crate) async fn runs_before_page(&self, script: &str) {
        let source = json!({ "source": script });
        self.sends_devtools_command("Page.addScriptToEvaluateOnNewDocument", source)
            .await;
    }

    /// Opens a path of the gateway, or any URL.
    pub(crate) async fn opens(&self, path: &str) {
        let address = if path.starts_with('/') {
            format!("{}{path}", self.base)
        } else {
            path.to_owned()
        };
        let body = json!({ "url": address });
        self.driver.posts("/url", body).await.unwrap();
    }

    pub(crate) async fn reloads(&self) {
        self.driver.posts("/refresh", json!({})).await.unwrap();
    }

    /// The value of a script, or an error while the page is being replaced or an element is missing.
    pub(crate) async fn tries_script<T: DeserializeOwned>(
        &self,
        script: &str,
    ) -> Result<T, String> {
        let found = self.driver.executes(script).await?;
        serde_json::from_value(found).map_err(|error| error.to_string())
    }

    /// The value of a script.
    pub(crate) async fn runs_script<T: DeserializeOwned>(&self, script: &str) -> T {
        match self.tries_script(script).await {
            Ok(seen) => seen,
            Err(error) => panic!("{script}: {error}"),
        }
    }

    /// Polls until there is a value.
    pub(crate) async fn waits_for<T>(
        &self,
        what: &str,
        mut look: impl AsyncFnMut() -> Option<T>,
    ) -> T {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            if let Some(seen) = look().await {
                return seen;
            }
            assert!(
                Instant::now() < deadline,
                "not seen within {TIMEOUT:?}: {what}"
            );
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Waits until a script returns `true`.
    pub(crate) async fn waits_until(&self, what: &str, script: &str) {
        self.waits_for(what, async || {
            self.tries_script(script).await.ok().filter(|is| *is)
        })
        .await;
    }

    /// Waits until an element is shown.
    pub(crate) async fn sees(&self, selector: &str) {
        self.waits_until(selector, &shown(selector, "true")).await;
    }

    /// Waits until no such element is shown.
    pub(crate) async fn sees_no(&self, selector: &str) {
        let gone = format!("return !(() => {{ {} }})()", shown(selector, "true"));
        self.waits_until(&format!("no {selector}"), &gone).await;
    }

    /// Waits until an element with this text is shown.
    pub(crate) async fn sees_text(&self, selector: &str, words: &str) {
        let says = format!("one.innerText.includes({})", json!(words));
        let what = format!("{words:?} in {selector}");
        self.waits_until(&what, &shown(selector, &says)).await;
    }

    /// Whether such an element is shown now.
    pub(crate) async fn has(&self, selector: &str) -> bool {
        self.runs_script(&shown(selector, "true")).await
    }

    /// The visible text of the page.
    pub(crate) async fn reads_page(&self) -> String {
        self.runs_script("return document.body.innerText").await
    }

    /// Clicks the first such element that is shown, as soon as it is clickable.
    pub(crate) async fn clicks(&self, selector: &str) {
        let find = format!(
            "return [...document.querySelectorAll({})].find((one) => one.checkVisibility({{ visibilityProperty: true }}) && !one.disabled && one.ariaDisabled !== 'true') ?? null",
            json!(selector)
        );
        self.waits_for(&format!("something to click on: {selector}"), async || {
            let element = self.driver.finds(&find).await?;
            self.driver.clicks(&element).await.ok()
        })
        .await;
    }

    /// Replaces the content of a field.
    pub(crate) async fn fills_in(&self, selector: &str, words: &str) {
        self.sees(selector).await;
        let find = format!("return document.querySelector({})", json!(selector));
        let field = self.driver.finds(&find).await.unwrap();
        self.driver.clears(&field).await.unwrap();
        self.driver.types(&field, words).await.unwrap();
    }

    /// Chooses a file in a file input, which may be hidden.
    pub(crate) async fn chooses(&self, selector: &str, file: &Path) {
        let find = format!("return document.querySelector({})", json!(selector));
        let field = self.driver.finds(&find).await.unwrap();
        let path = file.to_str().unwrap();
        self.driver.types(&field, path).await.unwrap();
    }

    /// Inserts a text into the focused field, as if pasted.
    pub(crate) async fn pastes(&self, words: &str) {
        self.sends_devtools_command("Input.insertText", json!({ "text": words }))
            .await;
    }

    /// Presses keys, wherever the focus is.
    pub(crate) async fn presses(&self, keys: &str) {
        self.driver.presses(keys).await.unwrap();
    }

    /// Presses a key while Alt or Control is held.
    pub(crate) async fn presses_with(&self, held: char, key: char) {
        self.driver.presses_with(&[held], key).await.unwrap();
    }

    /// The current tab.
    pub(crate) async fn tab(&self) -> String {
        let tab = self.driver.gets("/window").await.unwrap();
        tab.as_str().unwrap().to_owned()
    }

    /// Opens a second tab in the same browser, and switches to it.
    pub(crate) async fn opens_tab(&self) -> String {
        let kind = json!({ "type": "tab" });
        let tab = self.driver.posts("/window/new", kind).await.unwrap();
        let tab = tab["handle"].as_str().unwrap();
        self.switches_to_tab(tab).await;
        tab.to_owned()
    }

    pub(crate) async fn switches_to_tab(&self, tab: &str) {
        let handle = json!({ "handle": tab });
        self.driver.posts("/window", handle).await.unwrap();
    }

    /// A screenshot as PNG.
    pub(crate) async fn takes_screenshot(&self) -> Vec<u8> {
        let picture = self.driver.gets("/screenshot").await.unwrap();
        from_base64(picture.as_str().unwrap()).unwrap()
    }

    /// Sends a command without an async runtime, for the report of a failed test.
    fn asks_driver(&self, path: &str, body: Option<Value>) -> Option<Value> {
        let url = format!("{}/{path}", self.driver.url);
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--max-time", "5", &url]);
        if let Some(body) = body {
            curl.args(["--header", "content-type: application/json"]);
            curl.args(["--data", &body.to_string()]);
        }
        let printed = curl.output().ok()?.stdout;
        let printed: Value = serde_json::from_slice(&printed).ok()?;
        Some(printed["value"].clone())
    }

    /// Prints the page's text, and saves a screenshot.
    fn reports(&self) {
        let script = json!({ "script": "return location.href + '\\n' + document.body.innerText", "args": [] });
        let text = self.asks_driver("execute/sync", Some(script));
        let text = text.as_ref().and_then(Value::as_str).unwrap_or("nothing");
        println!("\n── the page said ──\n{text}");
        let log = self.asks_driver("se/log", Some(json!({ "type": "browser" })));
        for entry in log.as_ref().and_then(Value::as_array).into_iter().flatten() {
            println!("console: {}", entry["message"]);
        }
        let picture = self.asks_driver("screenshot", None);
        let picture = picture.as_ref().and_then(Value::as_str);
        if let Some(bytes) = picture.and_then(from_base64) {
            let file = self.picture_file();
            std::fs::create_dir_all(file.parent().unwrap()).ok();
            std::fs::write(&file, bytes).ok();
            println!("── as it looked: {}", file.display());
        }
    }

    fn picture_file(&self) -> PathBuf {
        let thread = std::thread::current();
        let test = thread.name().unwrap_or("test").replace("::", "-");
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent();
        let person = self.profile.path().file_name().unwrap().to_string_lossy();
        let file = format!("browser-failures/{test}{person}.png");
        target.unwrap().join(file)
    }
}

fn from_base64(text: &str) -> Option<Vec<u8>> {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.decode(text).ok()
}

/// A script: whether a shown element fulfils this condition.
fn shown(selector: &str, is: &str) -> String {
    format!(
        "return [...document.querySelectorAll({})].some((one) => one.checkVisibility({{ visibilityProperty: true }}) && ({is}))",
        json!(selector)
    )
}

impl Drop for Visitor {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.reports();
        }
        end_browser_in(self.profile.path());
    }
}
