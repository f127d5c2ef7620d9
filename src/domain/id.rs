//! Ids: a prefix for the kind, then a time-ordered UUID.
//!
//! The prefix is part of the type, so a login id is never taken for a user id, in code or on the
//! wire.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};
use uuid::Uuid;

/// A text that is not an id of the expected kind.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("not an id of the form {prefix}…")]
pub struct BadId {
    prefix: &'static str,
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(Uuid);

        impl $name {
            /// A new id, later than every one made before on this machine.
            #[expect(clippy::new_without_default, reason = "an id is never a default value")]
            pub fn new() -> Self {
                Self(Uuid::now_v7())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(formatter, concat!($prefix, "{}"), self.0.simple())
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, formatter)
            }
        }

        impl FromStr for $name {
            type Err = BadId;

            fn from_str(text: &str) -> Result<Self, BadId> {
                parse(text, $prefix).map(Self)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                let text = ObjectBuilder::new()
                    .schema_type(Type::String)
                    .pattern(Some(concat!("^", $prefix, "[0-9a-f]{32}$")))
                    .examples([concat!($prefix, "0193f7c4a1b27c3d8e4f5a6b7c8d9e0f")]);
                text.into()
            }
        }

        impl ToSchema for $name {}

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
                text.parse().map_err(de::Error::custom)
            }
        }
    };
}

id!(
    /// Names an account.
    UserId, "usr_"
);
id!(
    /// Names one login of a browser or program.
    LoginId, "lgn_"
);
id!(
    /// Names a session: the isolation boundary.
    SessionId, "ses_"
);
id!(
    /// Names one open socket or stream.
    ConnectionId, "con_"
);
id!(
    /// Names a run.
    RunId, "run_"
);
id!(
    /// Names a question that an agent asks.
    QuestionId, "qst_"
);
id!(
    /// Names one message of a conversation.
    MessageId, "msg_"
);
id!(
    /// Names a file that was uploaded to a session.
    AttachmentId, "att_"
);
id!(
    /// Names an epoch of a journal; offsets of different epochs are not comparable.
    Epoch, "epo_"
);
id!(
    /// Names a database, for the data directories that belong to it.
    StoreId, "sto_"
);
id!(
    /// Names a signing key (`kid`).
    KeyId, "key_"
);
id!(
    /// Names one issued token (`jti`).
    TokenId, "tok_"
);
id!(
    /// Names one HTTP request, in its response and in the logs.
    RequestId, "req_"
);

impl KeyId {
    /// The id derived from a key.
    pub fn from_digest(digest: &[u8; 32]) -> Self {
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&digest[..16]);
        Self(Uuid::from_bytes(bytes))
    }
}

/// One canonical spelling: the prefix and 32 lower-case hexadecimal digits.
fn parse(text: &str, prefix: &'static str) -> Result<Uuid, BadId> {
    let digits = text.strip_prefix(prefix).ok_or(BadId { prefix })?;
    let canonical = digits.len() == 32
        && digits
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if !canonical {
        return Err(BadId { prefix });
    }
    Uuid::try_parse(digits).map_err(|_| BadId { prefix })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_reads_back_as_itself() {
        let id = UserId::new();
        assert_eq!(id.to_string().parse::<UserId>(), Ok(id));
    }

    #[test]
    fn an_id_of_another_kind_is_refused() {
        assert!(LoginId::new().to_string().parse::<UserId>().is_err());
    }

    #[test]
    fn an_id_has_one_spelling() {
        let text = UserId::new().to_string();
        let hyphenated = format!("usr_{}", Uuid::now_v7());
        for other in [
            text.to_uppercase(),
            format!(" {text}"),
            hyphenated,
            "usr_".into(),
        ] {
            assert!(other.parse::<UserId>().is_err(), "{other}");
        }
    }

    #[test]
    fn later_ids_sort_after_earlier_ones() {
        let ids: Vec<UserId> = (0..100).map(|_| UserId::new()).collect();
        assert!(ids.is_sorted());
    }
}
