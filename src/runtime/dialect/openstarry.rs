//! `OpenStarry`: a daemon that serves many conversations with one loop, over a Unix socket.
//!
//! The option `wire` selects one of two wire formats: `daemon`, which the real daemon speaks, or
//! `document`, which the written specification describes, for cores that follow it.

use super::{
    Actions, CarriedSettings, Dialect, Framing, PromptContent, Protocol, Setup, StreamKind,
    ToAgent, Transport,
};
use crate::domain::command::Mode;
use crate::domain::error_code::ErrorCode;
use crate::domain::event::Level;

mod daemon;
mod specification;

pub(super) const PROTOCOL: Protocol = Protocol {
    name: "openstarry",
    about: "OpenStarry, over the socket of its daemon",
    capabilities: "cancel thoughts tools questions queue followUp branch images attachments resume",
    transport: Transport::Unix,
    framing: Framing::Newline,
    resumes: true,
    // A core that follows the specification has one conversation for all its clients.
    shares: |options| options.get("wire").is_none_or(|wire| wire != "document"),
    restart_after: &[],
    options: &[(
        "wire",
        "`daemon` (the default) or `document`: which of its two wires the socket speaks",
    )],
    settings: CarriedSettings::Only(&[]),
    build,
};

fn build(setup: Setup) -> Box<dyn Dialect> {
    match setup.options.get("wire").map(|wire| wire.as_str()) {
        None | Some(Some("daemon")) => Box::new(daemon::DaemonWire::new(setup)),
        Some(Some("document")) => Box::new(specification::SpecificationWire::new(setup)),
        Some(_) => Box::new(UnknownWire { agent: setup.agent }),
    }
}

struct UnknownWire {
    agent: String,
}

impl Dialect for UnknownWire {
    fn open(&mut self, out: &mut Actions) {
        let agent = &self.agent;
        out.fail(
            ErrorCode::ValidationError,
            format!("The option `wire` of the agent `{agent}` must be `daemon` or `document`."),
        );
    }

    fn handle(&mut self, _command: ToAgent, _out: &mut Actions) {}

    fn read(&mut self, _stream: StreamKind, _line: serde_json::Value, _out: &mut Actions) {}

    fn on_timer(&mut self, _timer: u64, _out: &mut Actions) {}
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ImageSupport {
    Supported,
    Unsupported,
}

/// The text of a prompt with its files; the error completes "The agent cannot …".
fn prompt_text(content: &PromptContent, images: ImageSupport) -> Result<String, String> {
    if content.mode == Mode::Plan {
        return Err("plan without acting".into());
    }
    if images == ImageSupport::Unsupported && !content.images.is_empty() {
        return Err("look at images".into());
    }
    match content.text_with_files() {
        (text, others) if others.is_empty() => Ok(text),
        (_, others) => Err(format!(
            "read files that are not text ({})",
            others.join(", ")
        )),
    }
}

/// Neither wire can stop a run: it ends for the user only.
fn warn_run_continues(agent: &str, out: &mut Actions) {
    out.emit_notice(
        Level::Warn,
        format!(
            "The agent `{agent}` cannot be stopped: it goes on with what was cancelled, unheard, and \
             begins the next prompt after that."
        ),
    );
}

/// Guesses the kind from the tool's name. A harmful word counts anywhere in it, a harmless one only
/// at the start of a word.
fn tool_kind(name: &str) -> &'static str {
    let name = name.to_lowercase();
    let contains = |words: &[&str]| words.iter().any(|word| name.contains(word));
    let has_word_start = |words: &[&str]| {
        let mut parts = name.split(|letter: char| !letter.is_alphanumeric());
        parts.any(|part| words.iter().any(|word| part.starts_with(word)))
    };
    if contains(&["delete", "remove", "unlink"]) {
        "delete"
    } else if contains(&["shell", "exec", "bash", "command"]) || has_word_start(&["run"]) {
        "execute"
    } else if contains(&["write", "edit", "patch", "create"]) {
        "edit"
    } else if has_word_start(&["search", "find", "grep"]) {
        "search"
    } else if has_word_start(&["fetch", "http", "browse"]) {
        "fetch"
    } else if has_word_start(&["read", "list"]) {
        "read"
    } else {
        "other"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_could_mean_harm_is_not_taken_as_harmless() {
        for (name, kind) in [
            ("fs.read", "read"),
            ("readFile", "read"),
            ("list_files", "read"),
            ("spread", "other"),
            ("read_and_delete", "delete"),
            ("myShell", "execute"),
            ("run:tests", "execute"),
            ("truncate", "other"),
            ("fs.write", "edit"),
            ("web/search", "search"),
            ("http.get", "fetch"),
            ("", "other"),
        ] {
            assert_eq!(tool_kind(name), kind, "{name}");
        }
    }
}
