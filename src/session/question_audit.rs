//! What the audit log says about a decision: who, about which tool, with which arguments.

use std::fmt::Write as _;

use crate::domain::act::{Act, Action, By};
use crate::domain::id::SessionId;
use crate::domain::question::OpenQuestion;

/// How much of a tool's name is told.
const NAME_CHARS: usize = 100;

/// The row for a question that has its end. Arguments are there as a digest only: they may hold what
/// belongs to nobody but the session.
pub(super) fn act(by: By, session: SessionId, open: &OpenQuestion, granted: bool) -> Act {
    let outcome = if granted { "granted" } else { "denied" };
    let mut target = format!("{session} {} {outcome}", open.id);
    if let Some(tool) = &open.question.tool {
        let args = tool.args.to_string();
        let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, args.as_bytes());
        write!(target, " tool={} args=sha256:", word(&tool.name)).expect("a string takes it");
        for byte in digest.as_ref() {
            write!(target, "{byte:02x}").expect("a string takes it");
        }
    }
    by.did(Action::QuestionAnswered, target)
}

/// A name as one word, whatever the agent calls it: it must not look like more than it is.
fn word(name: &str) -> String {
    let plain = |letter: char| {
        if letter.is_control() || letter.is_whitespace() {
            '_'
        } else {
            letter
        }
    };
    name.chars().take(NAME_CHARS).map(plain).collect()
}
