//! Page tokens: the tokens with which clients ask for the next page of a list.

use jiff::Timestamp;

use super::error::ApiError;
use crate::domain::id::SessionId;

/// The token of the next page; none if this page is not full and so is the last.
pub(super) fn next_token<T, U>(page: &[T], limit: u32, token: impl FnOnce(&T) -> U) -> Option<U> {
    let is_full = page.len() == limit as usize;
    page.last().filter(|_| is_full).map(token)
}

/// The token of a session in a list ordered by last change: `milliseconds.id`.
pub(super) fn session_token(updated_at: Timestamp, id: SessionId) -> String {
    format!("{}.{id}", updated_at.as_millisecond())
}

pub(super) fn parse_session_token(text: &str) -> Result<(Timestamp, SessionId), ApiError> {
    let parse = || {
        let (millis, id) = text.split_once('.')?;
        let at = Timestamp::from_millisecond(millis.parse().ok()?).ok()?;
        Some((at, id.parse().ok()?))
    };
    parse().ok_or_else(|| ApiError::invalid("`before` is what a page before gave as `next`."))
}
