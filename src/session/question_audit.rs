//! Audit row of a resolved question: who decided, about which tool, with which arguments.

use std::fmt::Write as _;

use crate::domain::audit::{Action, AuditContext, AuditEntry};
use crate::domain::id::SessionId;
use crate::domain::question::OpenQuestion;

const MAX_NAME_CHARS: usize = 100;

/// The row of a resolved question. Arguments appear as a digest only: they may hold the session's
/// secrets.
pub(super) fn act(
    by: AuditContext,
    session: SessionId,
    open: &OpenQuestion,
    granted: bool,
) -> AuditEntry {
    let outcome = if granted { "granted" } else { "denied" };
    let mut target = format!("{session} {} {outcome}", open.id);
    if let Some(tool) = &open.question.tool {
        let args = tool.args.to_string();
        let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, args.as_bytes());
        write!(target, " tool={} args=sha256:", single_word(&tool.name))
            .expect("a string takes it");
        for byte in digest.as_ref() {
            write!(target, "{byte:02x}").expect("a string takes it");
        }
    }
    by.did(Action::QuestionAnswered, target)
}

/// Without spaces and control characters, so that a name cannot forge other fields of the row.
fn single_word(name: &str) -> String {
    let plain = |letter: char| {
        if letter.is_control() || letter.is_whitespace() {
            '_'
        } else {
            letter
        }
    };
    name.chars().take(MAX_NAME_CHARS).map(plain).collect()
}
