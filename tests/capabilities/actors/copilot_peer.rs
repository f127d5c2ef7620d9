//! Copilot CLI peer: the other side of the protocol `copilot`, a program written from its contract.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// A Copilot CLI that does what each prompt says, and what it has read so far.
pub(crate) struct CopilotPeer {
    dir: tempfile::TempDir,
}

impl CopilotPeer {
    pub(crate) fn new() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
        }
    }

    /// The configuration of the agent `designer`.
    pub(crate) fn configuration(&self) -> String {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let program = root.join("tests/capabilities/peers/copilot_cli.py");
        let (dir, log) = (self.dir.path().display(), self.log());
        format!(
            "[agents.designer]\nprotocol = \"copilot\"\ncommand = ['python3', '{}', '{}']\n\
             read = ['{}']\nwrite = ['{dir}']\n",
            program.display(),
            log.display(),
            program.parent().unwrap().display(),
        )
    }

    fn log(&self) -> PathBuf {
        self.dir.path().join("read.ndjson")
    }

    /// A file that does not exist yet, for `until`.
    pub(crate) fn file(&self) -> PathBuf {
        self.dir.path().join("go-on")
    }

    /// The lines that it has read, with the process id of the reader.
    pub(crate) fn has_read(&self) -> Vec<(u64, Value)> {
        let text = std::fs::read_to_string(self.log()).unwrap_or_default();
        let entries = text
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap());
        let entry = |mut entry: Value| (entry["pid"].as_u64().unwrap(), entry["line"].take());
        entries.map(entry).collect()
    }

    /// The last request with this method.
    pub(crate) fn last(&self, method: &str) -> Value {
        let lines = self.has_read();
        let line = lines.iter().rfind(|(_, line)| line["method"] == method);
        line.unwrap_or_else(|| panic!("no `{method}`: {lines:?}"))
            .1
            .clone()
    }
}
