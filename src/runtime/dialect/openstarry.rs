//! `OpenStarry`: a daemon that serves many conversations with one loop, over a Unix socket.
//!
//! Two wires, chosen by the option `wire`: the one that its daemon really speaks, and the one that
//! its document describes, for cores that follow the document. What both have in common is here.

use super::{Brief, Dialect, Framing, Lane, Order, Out, Protocol, Setup, Transport};
use crate::domain::code::Code;
use crate::domain::command::Mode;
use crate::domain::event::Level;

mod daemon;
mod document;

/// What is known about `OpenStarry` beforehand.
pub(super) const PROTOCOL: Protocol = Protocol {
    name: "openstarry",
    about: "OpenStarry, over the socket of its daemon",
    capabilities: &[
        "cancel",
        "thoughts",
        "tools",
        "questions",
        "queue",
        "followUp",
        "branch",
        "images",
        "attachments",
        "resume",
    ],
    transport: Transport::Unix,
    framing: Framing::Newline,
    resumes: true,
    // Whoever implements the document has one conversation for all who connect.
    shares: |options| options.get("wire").is_none_or(|wire| wire != "document"),
    restart_after: &[],
    options: &[(
        "wire",
        "`daemon` (the default) or `document`: which of its two wires the socket speaks",
    )],
    speaker,
};

fn speaker(setup: Setup) -> Box<dyn Dialect> {
    match setup.options.get("wire").map(|wire| wire.as_str()) {
        None | Some(Some("daemon")) => Box::new(daemon::Daemon::new(setup)),
        Some(Some("document")) => Box::new(document::Document::new(setup)),
        Some(_) => Box::new(NoSuchWire { agent: setup.agent }),
    }
}

/// Stands in when the option names a wire that there is not: it says so, and nothing else.
struct NoSuchWire {
    agent: String,
}

impl Dialect for NoSuchWire {
    fn open(&mut self, out: &mut Out) {
        let agent = &self.agent;
        out.fail(
            Code::ValidationError,
            format!("The option `wire` of the agent `{agent}` must be `daemon` or `document`."),
        );
    }

    fn hear(&mut self, _order: Order, _out: &mut Out) {}

    fn read(&mut self, _lane: Lane, _line: serde_json::Value, _out: &mut Out) {}

    fn late(&mut self, _timer: u64, _out: &mut Out) {}
}

/// Can images be sent over this wire?
#[derive(Clone, Copy, PartialEq, Eq)]
enum Images {
    Carried,
    NotCarried,
}

/// The text of a prompt with its files, or what cannot be carried: completes "The agent cannot …".
fn text_of_brief(brief: &Brief, images: Images) -> Result<String, String> {
    if brief.mode == Mode::Plan {
        return Err("plan without acting".into());
    }
    if images == Images::NotCarried && !brief.images.is_empty() {
        return Err("look at images".into());
    }
    match brief.text_with_files() {
        (text, others) if others.is_empty() => Ok(text),
        (_, others) => Err(format!(
            "read files that are not text ({})",
            others.join(", ")
        )),
    }
}

/// The run is over for the user, and the agent goes on all the same.
fn goes_on(agent: &str, out: &mut Out) {
    out.notice(
        Level::Warn,
        format!(
            "The agent `{agent}` cannot be stopped: it goes on with what was cancelled, unheard, and \
             begins the next prompt after that."
        ),
    );
}

/// What a tool of this name does, as far as its name says it. What could do harm is looked for
/// anywhere in it, what is harmless only where a word begins.
fn kind_of_tool(name: &str) -> &'static str {
    let name = name.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| name.contains(word));
    let begins = |words: &[&str]| {
        let mut parts = name.split(|letter: char| !letter.is_alphanumeric());
        parts.any(|part| words.iter().any(|word| part.starts_with(word)))
    };
    if says(&["delete", "remove", "unlink"]) {
        "delete"
    } else if says(&["shell", "exec", "bash", "command"]) || begins(&["run"]) {
        "execute"
    } else if says(&["write", "edit", "patch", "create"]) {
        "edit"
    } else if begins(&["search", "find", "grep"]) {
        "search"
    } else if begins(&["fetch", "http", "browse"]) {
        "fetch"
    } else if begins(&["read", "list"]) {
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
            assert_eq!(kind_of_tool(name), kind, "{name}");
        }
    }
}
