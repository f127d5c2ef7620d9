//! Chromium: a chromedriver and its browsers, which end with it.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// Browser flags, besides screen and profile.
pub(crate) const FLAGS: [&str; 12] = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--disable-dev-shm-usage",
    // Background pages must not be throttled.
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
    "--lang=en-US",
];

/// A running chromedriver.
pub(crate) struct Chromium {
    driver: Child,
    /// The URL for commands.
    pub(crate) url: String,
}

impl Chromium {
    pub(crate) fn start() -> Self {
        let mut driver = Command::new("chromedriver")
            .arg("--port=0")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("chromedriver is installed (Debian: chromium-driver)");
        let mut lines = BufReader::new(driver.stdout.take().unwrap()).lines();
        let port = lines.find_map(|line| {
            let line = line.unwrap();
            let port = line.split_once("started successfully on port ")?.1;
            Some(port.trim_end_matches('.').to_owned())
        });
        let port = port.expect("chromedriver says where it listens");
        Self {
            driver,
            url: format!("http://127.0.0.1:{port}"),
        }
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        let tree = descendants(self.driver.id());
        self.driver.kill().ok();
        self.driver.wait().ok();
        end(&tree);
    }
}

/// Ends the browser with this profile directory.
pub(crate) fn end_browser_in(profile: &Path) {
    let mark = format!("--user-data-dir={}", profile.display());
    let is_it = |pid: &u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0)
            .any(|word| word == mark.as_bytes())
    };
    for browser in processes().into_iter().filter(is_it) {
        let mut tree = descendants(browser);
        tree.push(browser);
        end(&tree);
    }
}

fn processes() -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let names = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    names.collect()
}

/// All descendants of a process.
fn descendants(of: u32) -> Vec<u32> {
    let parents: Vec<(u32, u32)> = processes()
        .into_iter()
        .filter_map(|pid| Some((pid, stat(pid)?.1)))
        .collect();
    let mut found = vec![of];
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        let children = parents.iter().filter(|(_, of)| *of == parent);
        found.extend(children.map(|(pid, _)| *pid));
        next += 1;
    }
    found.split_off(1)
}

/// State and parent of a process, while it exists.
fn stat(pid: u32) -> Option<(char, u32)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may contain anything.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?.chars().next()?;
    Some((state, fields.next()?.parse().ok()?))
}

/// Ends processes, and waits until they are gone: their files are removed next.
fn end(pids: &[u32]) {
    for pid in pids {
        let pid = i32::try_from(*pid).ok().and_then(Pid::from_raw);
        if let Some(pid) = pid {
            // The process may have ended meanwhile.
            kill_process(pid, Signal::KILL).ok();
        }
    }
    let deadline = Instant::now() + Duration::from_secs(5);
    let runs = |pid: &u32| stat(*pid).is_some_and(|(state, _)| state != 'Z');
    while pids.iter().any(runs) && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(5));
    }
}
