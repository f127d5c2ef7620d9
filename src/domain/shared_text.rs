//! Text: shared, immutable UTF-8. A clone shares the bytes, so one serialised frame serves every member.

use std::ops::Deref;
use std::sync::Arc;

use bytes::Bytes;

/// Shared, immutable UTF-8.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text(Arc<str>);

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl AsRef<[u8]> for Text {
    fn as_ref(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl From<Text> for Bytes {
    fn from(text: Text) -> Self {
        Self::from_owner(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_a_clone_nor_its_bytes_are_copied() {
        let text = Text::from("x".repeat(100_000));
        let bytes = Bytes::from(text.clone());
        assert_eq!(bytes.as_ptr(), text.as_bytes().as_ptr());
    }
}
