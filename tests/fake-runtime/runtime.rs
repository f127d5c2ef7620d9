//! What all connections of the program share: the phrasebook, the ids that were given out, and the
//! switches in the environment.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::moment;
use crate::phrasebook::{Framing, Lane, Line, Phrasebook};
use crate::template::{Variables, fill};
use crate::wire::{Listeners, Log, lock};

/// Shared by all connections.
pub(crate) struct Stage {
    pub(crate) book: Phrasebook,
    pub(crate) log: Arc<Log>,
    pub(crate) listeners: Arc<Listeners>,
    /// `FAKE_HANDSHAKE`: what goes wrong when somebody introduces themselves.
    pub(crate) handshake: String,
    /// `FAKE_RESUME=lost`: no conversation can be gone on with.
    pub(crate) forgetful: bool,
    /// Somebody was told to hear nothing any more, not even the end of the input.
    pub(crate) deaf: AtomicBool,
    given: Mutex<HashMap<String, u64>>,
    lines: AtomicU64,
    stamp: AtomicU64,
}

impl Stage {
    pub(crate) fn new(book: Phrasebook, log: Log) -> Self {
        let switch = |name| std::env::var(name).unwrap_or_default();
        Self {
            book,
            log: Arc::new(log),
            listeners: Arc::default(),
            handshake: switch("FAKE_HANDSHAKE"),
            forgetful: switch("FAKE_RESUME") == "lost",
            deaf: AtomicBool::new(false),
            given: Mutex::default(),
            lines: AtomicU64::new(0),
            stamp: AtomicU64::new(0),
        }
    }

    /// A fresh id of this kind, in the shape that the phrasebook gives it.
    pub(crate) fn fresh(&self, kind: &str) -> Value {
        let number = {
            let mut given = lock(&self.given);
            let number = given.entry(kind.to_owned()).or_default();
            *number += 1;
            *number
        };
        let usual = format!("{kind}-$n");
        let shape = self.book.ids.get(kind).unwrap_or(&usual).clone();
        let filled = fill(&Value::String(shape), &mut |hole| match hole {
            "n" => Some(number.into()),
            "i" => Some((number - 1).into()),
            "random" => Some(format!("{:016x}", random()).into()),
            "uuid" => Some(uuid().into()),
            _ => None,
        });
        filled.unwrap_or(Value::Null)
    }

    /// Milliseconds that no other stamp has.
    pub(crate) fn stamp(&self) -> u64 {
        let now = moment::milliseconds();
        let next = |last: u64| Some(now.max(last + 1));
        let last = self
            .stamp
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        now.max(last.unwrap_or_default() + 1)
    }

    /// What is inside, if lines come in something.
    pub(crate) fn unwrapped(&self, mut line: Value) -> Value {
        match self.book.framing {
            Framing::NodeIpc => line.get_mut("data").map(Value::take).unwrap_or_default(),
            Framing::Newline | Framing::FormFeed => line,
        }
    }

    /// A line with its holes filled. `seq` counts the lines of a scene that mention it.
    pub(crate) fn word(&self, line: &Line, known: &Variables, seq: &mut u64) -> (Lane, Vec<u8>) {
        let (mut number, mut place) = (None, None);
        let filled = fill(&line.template, &mut |hole| match hole {
            "n" => Some(
                (*number.get_or_insert_with(|| self.lines.fetch_add(1, Ordering::Relaxed) + 1))
                    .into(),
            ),
            "seq" => Some(
                (*place.get_or_insert_with(|| {
                    *seq += 1;
                    *seq - 1
                }))
                .into(),
            ),
            "ts" => Some(moment::text().into()),
            "ms" => Some(moment::milliseconds().into()),
            name => known.get(name).cloned(),
        });
        let mut filled = filled.unwrap_or_default();
        if self.book.framing == Framing::NodeIpc {
            filled = json!({ "type": "message", "data": filled });
        }
        (line.lane, filled.to_string().into_bytes())
    }
}

fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

fn uuid() -> String {
    let (one, other) = (random(), random());
    let (group, family) = (one & 0xffff_ffff, other & 0xfff);
    format!(
        "{group:08x}-{:04x}-4{family:03x}-a{:03x}-{:012x}",
        (one >> 32) & 0xffff,
        (one >> 48) & 0xfff,
        other >> 16,
    )
}
