//! Why a command was not carried out, and what its sender hears.

use super::ask::Refused;
use crate::domain::code::Code;
use crate::store::StoreError;

/// Why a command was not carried out.
pub(super) enum Failure {
    Refused(Refused),
    Over,
}

/// Storage failed: logged here, where it is turned into an answer.
pub(super) fn unavailable(error: &StoreError) -> Failure {
    tracing::warn!(%error, "a command had no effect");
    Failure::Refused(out_of_reach())
}

/// What somebody hears while storage is away.
pub(super) fn out_of_reach() -> Refused {
    Refused::new(
        Code::StorageUnavailable,
        "The database is unavailable at the moment; nothing was changed.",
    )
}

/// What somebody hears whose session is written elsewhere now.
pub(super) fn moved_away() -> Refused {
    Refused::new(Code::Busy, "The session is moving; try again in a moment.")
}
