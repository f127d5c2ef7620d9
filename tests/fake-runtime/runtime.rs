//! Runtime: state shared by all connections, i.e. the protocol, the ids and the switches of the
//! environment.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::clock;
use crate::protocol::{Framing, Lane, Line, Protocol};
use crate::template::{Variables, fill};
use crate::wire::{EventClients, Log, lock};

pub(crate) struct Runtime {
    pub(crate) protocol: Protocol,
    pub(crate) log: Arc<Log>,
    pub(crate) event_clients: Arc<EventClients>,
    /// `FAKE_HANDSHAKE`: the fault of the handshake.
    pub(crate) handshake: String,
    /// `FAKE_RESUME=lost`: no conversation can be resumed.
    pub(crate) loses_conversations: bool,
    /// `/hang deaf`: ignores everything, even the end of the input.
    pub(crate) ignores_input: AtomicBool,
    id_counters: Mutex<HashMap<String, u64>>,
    lines: AtomicU64,
    unique_millis: AtomicU64,
}

impl Runtime {
    pub(crate) fn new(protocol: Protocol, log: Log) -> Self {
        let switch = |name| std::env::var(name).unwrap_or_default();
        Self {
            protocol,
            log: Arc::new(log),
            event_clients: Arc::default(),
            handshake: switch("FAKE_HANDSHAKE"),
            loses_conversations: switch("FAKE_RESUME") == "lost",
            ignores_input: AtomicBool::new(false),
            id_counters: Mutex::default(),
            lines: AtomicU64::new(0),
            unique_millis: AtomicU64::new(0),
        }
    }

    /// A new id in the shape that the protocol file gives it.
    pub(crate) fn new_id(&self, kind: &str) -> Value {
        let number = {
            let mut id_counters = lock(&self.id_counters);
            let number = id_counters.entry(kind.to_owned()).or_default();
            *number += 1;
            *number
        };
        let usual = format!("{kind}-$n");
        let shape = self.protocol.ids.get(kind).unwrap_or(&usual).clone();
        let filled = fill(&Value::String(shape), &mut |hole| match hole {
            "n" => Some(number.into()),
            "i" => Some((number - 1).into()),
            "random" => Some(format!("{:016x}", random()).into()),
            "uuid" => Some(uuid().into()),
            _ => None,
        });
        filled.unwrap_or(Value::Null)
    }

    /// Milliseconds that are never returned twice.
    pub(crate) fn unique_millis(&self) -> u64 {
        let now = clock::milliseconds();
        let next = |last: u64| Some(now.max(last + 1));
        let last = self
            .unique_millis
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        now.max(last.unwrap_or_default() + 1)
    }

    /// The content of a framed line.
    pub(crate) fn unwrap_line(&self, mut line: Value) -> Value {
        match self.protocol.framing {
            Framing::NodeIpc => line.get_mut("data").map(Value::take).unwrap_or_default(),
            Framing::Newline | Framing::FormFeed => line,
        }
    }

    /// Fills a template. `seq` counts the lines of a run that mention it.
    pub(crate) fn render(&self, line: &Line, known: &Variables, seq: &mut u64) -> (Lane, Vec<u8>) {
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
            "ts" => Some(clock::timestamp().into()),
            "ms" => Some(clock::milliseconds().into()),
            name => known.get(name).cloned(),
        });
        let mut filled = filled.unwrap_or_default();
        if self.protocol.framing == Framing::NodeIpc {
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
