//! Somebody in front of a browser of their own: looks, clicks, types and waits.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::Chromium;
use super::chromium::{FLAGS, end_browser_in};
use super::driver::Driver;

/// How long somebody waits for something to appear.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
const GLANCE: Duration = Duration::from_millis(20);

/// What somebody looks at the page with.
#[derive(Clone, Copy)]
pub(crate) struct Screen {
    pub(crate) width: u32,
    pub(crate) height: u32,
    /// Device pixels for each of the page's.
    pub(crate) density: u32,
    pub(crate) is_dark: bool,
    /// Is it touched, in place of a mouse?
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
    /// Of an answer: its text alone.
    pub(crate) text: String,
    pub(crate) is_complete: bool,
}

/// A person and their browser; it is closed when dropped, and tells what it showed if the test fails.
pub(crate) struct Visitor {
    pub(crate) driver: Driver,
    /// The address of the gateway, without a slash at its end.
    pub(crate) base: String,
    profile: TempDir,
}

impl Visitor {
    /// Somebody with an ordinary screen.
    pub(crate) async fn comes(chromium: &Chromium, base: &str) -> Self {
        Self::with_screen(chromium, base, Screen::WIDE).await
    }

    pub(crate) async fn with_screen(chromium: &Chromium, base: &str, screen: Screen) -> Self {
        let profile = tempfile::tempdir().unwrap();
        let size = format!("--window-size={},{}", screen.width.max(500), screen.height);
        let directory = format!("--user-data-dir={}", profile.path().display());
        let flags = FLAGS.map(str::to_owned).into_iter();
        let flags: Vec<String> = flags.chain([size, directory]).collect();
        let driver = Driver::start(&chromium.url, &flags).await;
        let visitor = Self {
            driver,
            base: base.trim_end_matches('/').to_owned(),
            profile,
        };
        visitor.looks_through(screen).await;
        visitor
    }

    /// Changes the screen. No window is as narrow as a phone, so its measures are only told to the page.
    pub(crate) async fn looks_through(&self, screen: Screen) {
        let metrics = json!({
            "width": screen.width, "height": screen.height,
            "deviceScaleFactor": screen.density, "mobile": false,
        });
        self.tells_browser("Emulation.setDeviceMetricsOverride", metrics)
            .await;
        let touch = json!({ "enabled": screen.is_touched });
        self.tells_browser("Emulation.setTouchEmulationEnabled", touch)
            .await;
        let scheme = if screen.is_dark { "dark" } else { "light" };
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        let media = json!({ "media": "", "features": features });
        self.tells_browser("Emulation.setEmulatedMedia", media)
            .await;
    }

    /// A command of the browser's own protocol.
    pub(crate) async fn tells_browser(&self, method: &str, parameters: Value) -> Value {
        let said = self.driver.tells_browser(method, parameters).await;
        said.unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    /// Lets a script run in every page that is opened from now on, before the page's own.
    pub(crate) async fn prepares(&self, script: &str) {
        let source = json!({ "source": script });
        self.tells_browser("Page.addScriptToEvaluateOnNewDocument", source)
            .await;
    }

    /// Opens a path of the gateway, or any address.
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

    /// What a script gives back; nothing while the page is being replaced, or what it looks at is not there.
    pub(crate) async fn glances<T: DeserializeOwned>(&self, script: &str) -> Result<T, String> {
        let found = self.driver.executes(script).await?;
        serde_json::from_value(found).map_err(|error| error.to_string())
    }

    /// What a script gives back.
    pub(crate) async fn looks<T: DeserializeOwned>(&self, script: &str) -> T {
        match self.glances(script).await {
            Ok(seen) => seen,
            Err(error) => panic!("{script}: {error}"),
        }
    }

    /// Looks again and again, until there is something.
    pub(crate) async fn awaits<T>(
        &self,
        what: &str,
        mut look: impl AsyncFnMut() -> Option<T>,
    ) -> T {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(seen) = look().await {
                return seen;
            }
            assert!(
                Instant::now() < deadline,
                "not seen within {PATIENCE:?}: {what}"
            );
            tokio::time::sleep(GLANCE).await;
        }
    }

    /// Waits until a script says `true`.
    pub(crate) async fn awaits_that(&self, what: &str, script: &str) {
        self.awaits(what, async || {
            self.glances(script).await.ok().filter(|is| *is)
        })
        .await;
    }

    /// Waits until something is shown.
    pub(crate) async fn sees(&self, selector: &str) {
        self.awaits_that(selector, &shown(selector, "true")).await;
    }

    /// Waits until nothing of that kind is shown.
    pub(crate) async fn sees_no(&self, selector: &str) {
        let gone = format!("return !(() => {{ {} }})()", shown(selector, "true"));
        self.awaits_that(&format!("no {selector}"), &gone).await;
    }

    /// Waits until something is shown that says these words.
    pub(crate) async fn reads(&self, selector: &str, words: &str) {
        let says = format!("one.innerText.includes({})", json!(words));
        let what = format!("{words:?} in {selector}");
        self.awaits_that(&what, &shown(selector, &says)).await;
    }

    /// Is something of that kind shown now?
    pub(crate) async fn has(&self, selector: &str) -> bool {
        self.looks(&shown(selector, "true")).await
    }

    /// Everything that is to be read on the page.
    pub(crate) async fn reads_page(&self) -> String {
        self.looks("return document.body.innerText").await
    }

    /// Clicks on the first that is shown, as soon as it can be clicked.
    pub(crate) async fn clicks(&self, selector: &str) {
        let find = format!(
            "return [...document.querySelectorAll({})].find((one) => one.checkVisibility({{ visibilityProperty: true }}) && !one.disabled && one.ariaDisabled !== 'true') ?? null",
            json!(selector)
        );
        self.awaits(&format!("something to click on: {selector}"), async || {
            let element = self.driver.finds(&find).await?;
            self.driver.clicks(&element).await.ok()
        })
        .await;
    }

    /// Writes into a field, in the place of what was there.
    pub(crate) async fn writes(&self, selector: &str, words: &str) {
        self.sees(selector).await;
        let find = format!("return document.querySelector({})", json!(selector));
        let field = self.driver.finds(&find).await.unwrap();
        self.driver.clears(&field).await.unwrap();
        self.driver.types(&field, words).await.unwrap();
    }

    /// Chooses a file in a field for files, which need not be shown.
    pub(crate) async fn chooses(&self, selector: &str, file: &Path) {
        let find = format!("return document.querySelector({})", json!(selector));
        let field = self.driver.finds(&find).await.unwrap();
        let path = file.to_str().unwrap();
        self.driver.types(&field, path).await.unwrap();
    }

    /// Puts a text into the field that has the focus, as if it was pasted.
    pub(crate) async fn pastes(&self, words: &str) {
        self.tells_browser("Input.insertText", json!({ "text": words }))
            .await;
    }

    /// Presses keys, wherever the focus is.
    pub(crate) async fn presses(&self, keys: &str) {
        self.driver.presses(keys).await.unwrap();
    }

    /// The tab that is looked at.
    pub(crate) async fn tab(&self) -> String {
        let tab = self.driver.gets("/window").await.unwrap();
        tab.as_str().unwrap().to_owned()
    }

    /// Opens a second tab in the same browser, and turns to it.
    pub(crate) async fn opens_tab(&self) -> String {
        let kind = json!({ "type": "tab" });
        let tab = self.driver.posts("/window/new", kind).await.unwrap();
        let tab = tab["handle"].as_str().unwrap();
        self.turns_to(tab).await;
        tab.to_owned()
    }

    pub(crate) async fn turns_to(&self, tab: &str) {
        let handle = json!({ "handle": tab });
        self.driver.posts("/window", handle).await.unwrap();
    }

    /// What the page has on the screen, as PNG.
    pub(crate) async fn photographs(&self) -> Vec<u8> {
        let picture = self.driver.gets("/screenshot").await.unwrap();
        from_base64(picture.as_str().unwrap()).unwrap()
    }

    /// Asks chromedriver without a runtime, for the end of a test that has failed.
    fn asks_driver(&self, path: &str, body: Option<Value>) -> Option<Value> {
        let url = format!("{}/{path}", self.driver.url);
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--max-time", "5", &url]);
        if let Some(body) = body {
            curl.args(["--header", "content-type: application/json"]);
            curl.args(["--data", &body.to_string()]);
        }
        let said = curl.output().ok()?.stdout;
        let said: Value = serde_json::from_slice(&said).ok()?;
        Some(said["value"].clone())
    }

    /// Prints what the page says, and keeps a picture of it.
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

/// A script: is one of those shown for which this is true?
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
