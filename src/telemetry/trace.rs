//! Tracing: what a command led to, as spans that show where the time went.
//!
//! A [`Tracer`] is handed to modules like a counter; a [`Context`], two numbers, travels with a command from
//! task to task. Without a collector all of it does nothing. Attributes are fixed words, numbers or our own
//! ids: text written by a user or an agent cannot be set.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::mpsc;

use super::sampler::Sampler;
use crate::clock::Clock;
use crate::domain::id;

/// The position of a span in its trace, for its children.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Context {
    pub(super) trace: u128,
    pub(super) span: u64,
}

/// A context from outside, and whether its sender samples the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Remote {
    pub(super) context: Context,
    pub(super) sampled: bool,
}

impl Remote {
    /// Parses the W3C header `traceparent`; `None` if it is malformed.
    pub(crate) fn parse(header: &str) -> Option<Self> {
        let bytes = header.as_bytes();
        let lower_hex = |part: &str| {
            part.bytes()
                .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        };
        if bytes.len() < 55 || !header.is_ascii() {
            return None;
        }
        let (version, trace, span, flags) = (
            &header[..2],
            &header[3..35],
            &header[36..52],
            &header[53..55],
        );
        let is_divided = [2, 35, 52].iter().all(|place| bytes[*place] == b'-');
        // Version 00 ends here; later versions may continue after a dash.
        let ends_well = bytes.len() == 55 || (version != "00" && bytes[55] == b'-');
        let is_hex = [version, trace, span, flags].into_iter().all(lower_hex);
        if !is_divided || !ends_well || !is_hex || version == "ff" {
            return None;
        }
        let context = Context {
            trace: u128::from_str_radix(trace, 16).ok().filter(|id| *id > 0)?,
            span: u64::from_str_radix(span, 16).ok().filter(|id| *id > 0)?,
        };
        let sampled = u8::from_str_radix(flags, 16).ok()? & 1 == 1;
        Some(Self { context, sampled })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Work inside the gateway.
    Internal,
    /// A request to the gateway.
    Server,
    /// A request of the gateway to an agent.
    Client,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Word(&'static str),
    Number(u64),
    Truth(bool),
    /// One of our ids, or a name chosen by the operator.
    Name(String),
}

impl From<&'static str> for Value {
    fn from(word: &'static str) -> Self {
        Self::Word(word)
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

impl From<usize> for Value {
    fn from(number: usize) -> Self {
        Self::Number(number as u64)
    }
}

impl From<bool> for Value {
    fn from(truth: bool) -> Self {
        Self::Truth(truth)
    }
}

/// Ids are random and reveal nothing.
macro_rules! ids {
    ($($id:ident),*) => {
        $(impl From<id::$id> for Value {
            fn from(id: id::$id) -> Self {
                Self::Name(id.to_string())
            }
        })*
    };
}

ids!(SessionId, ConnectionId, RunId, UserId, QuestionId);

/// A name chosen by the operator, such as an agent's.
pub(crate) fn operator_name(name: &str) -> Value {
    Value::Name(name.to_owned())
}

#[derive(Debug)]
pub(super) struct Finished {
    pub(super) context: Context,
    pub(super) parent: Option<u64>,
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) start_nanos: u64,
    pub(super) end_nanos: u64,
    pub(super) attributes: Vec<(&'static str, Value)>,
    pub(super) error: Option<&'static str>,
}

/// Starts spans; does nothing without a collector. Clones share the queue.
#[derive(Clone, Default)]
pub(crate) struct Tracer(Option<Arc<Inner>>);

struct Inner {
    sampler: Sampler,
    clock: Clock,
    queue: mpsc::Sender<Finished>,
    lost: prometheus_client::metrics::counter::Counter,
}

impl fmt::Debug for Tracer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_tuple("Tracer")
            .field(&self.0.is_some())
            .finish()
    }
}

impl Tracer {
    /// Finished spans go into this queue and are lost if it is full.
    pub(super) fn new(
        sampler: Sampler,
        clock: Clock,
        queue: mpsc::Sender<Finished>,
        lost: prometheus_client::metrics::counter::Counter,
    ) -> Self {
        Self(Some(Arc::new(Inner {
            sampler,
            clock,
            queue,
            lost,
        })))
    }

    /// Is there a collector?
    pub(crate) fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Starts our first span of a trace, which may have begun elsewhere.
    pub(crate) fn enter(&self, name: &'static str, remote: Option<Remote>) -> Span {
        let Some(inner) = &self.0 else {
            return Span(None);
        };
        let trace = remote.map_or_else(random, |remote| remote.context.trace);
        if !inner.sampler.keeps(trace, remote) {
            return Span(None);
        }
        let parent = remote.map(|remote| remote.context.span);
        self.open(name, Kind::Server, trace, parent)
    }

    /// Starts a child span; does nothing if the parent is not traced.
    pub(crate) fn child(&self, name: &'static str, kind: Kind, of: Option<Context>) -> Span {
        match of {
            Some(parent) => self.open(name, kind, parent.trace, Some(parent.span)),
            None => Span(None),
        }
    }

    fn open(&self, name: &'static str, kind: Kind, trace: u128, parent: Option<u64>) -> Span {
        let Some(inner) = &self.0 else {
            return Span(None);
        };
        let wall = inner.clock.wall().as_nanosecond();
        let start_nanos = u64::try_from(wall).unwrap_or_default();
        Span(Some(Box::new(Open {
            started: Instant::now(),
            span: Finished {
                context: Context {
                    trace,
                    span: random_span(),
                },
                parent,
                name,
                kind,
                start_nanos,
                end_nanos: start_nanos,
                attributes: Vec::new(),
                error: None,
            },
            inner: Arc::clone(inner),
        })))
    }
}

/// A running span; it ends when dropped.
#[derive(Default)]
pub(crate) struct Span(Option<Box<Open>>);

struct Open {
    span: Finished,
    started: Instant,
    inner: Arc<Inner>,
}

impl Span {
    pub(crate) fn context(&self) -> Option<Context> {
        Some(self.0.as_ref()?.span.context)
    }

    pub(crate) fn set(&mut self, key: &'static str, value: impl Into<Value>) {
        if let Some(open) = &mut self.0 {
            open.span.attributes.push((key, value.into()));
        }
    }

    pub(crate) fn fail(&mut self, code: &'static str) {
        if let Some(open) = &mut self.0 {
            open.span.error = Some(code);
        }
    }
}

impl Open {
    /// Monotonic: start time plus elapsed time.
    fn now(&self) -> u64 {
        let elapsed = u64::try_from(self.started.elapsed().as_nanos()).unwrap_or_default();
        self.span.start_nanos.saturating_add(elapsed)
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        let Some(mut open) = self.0.take() else {
            return;
        };
        open.span.end_nanos = open.now();
        let Open { span, inner, .. } = *open;
        // Full: the span is dropped, nothing waits for a collector.
        if inner.queue.try_send(span).is_err() {
            inner.lost.inc();
        }
    }
}

fn random() -> u128 {
    let mut bytes = [0; 16];
    fill(&mut bytes);
    u128::from_be_bytes(bytes).max(1)
}

fn random_span() -> u64 {
    let mut bytes = [0; 8];
    fill(&mut bytes);
    u64::from_be_bytes(bytes).max(1)
}

fn fill(bytes: &mut [u8]) {
    aws_lc_rs::rand::fill(bytes).expect("the system has randomness");
}

#[cfg(test)]
mod tests {
    use prometheus_client::metrics::counter::Counter;

    use super::*;

    #[test]
    fn a_header_is_read_only_if_it_is_well_formed() {
        let good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let read = Remote::parse(good).unwrap();
        assert_eq!(
            read.context.trace,
            0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736
        );
        assert_eq!(read.context.span, 0x00f0_67aa_0ba9_02b7);
        assert!(read.sampled);
        assert!(!Remote::parse(&good.replace("-01", "-00")).unwrap().sampled);
        assert!(Remote::parse(&good.replace("00-4", "01-4").replace("-01", "-01-x")).is_some());
        for bad in [
            "",
            &good[..54],
            &format!("{good}-x"),
            &format!("{good}x"),
            &good.replace("00-4", "ff-4"),
            &good.to_uppercase(),
            &good.replace('-', "_"),
            &good.replace("00f067aa0ba902b7", "0000000000000000"),
            &good.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32)),
            &good.replace("4bf", "\u{e4}f"),
            &good.replace("4bf", "+bf"),
        ] {
            assert_eq!(Remote::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_span_that_finds_the_queue_full_is_dropped_and_counted() {
        let (queue, mut waiting) = mpsc::channel(1);
        let lost = Counter::default();
        let tracer = Tracer::new(Sampler::default(), Clock::system(), queue, lost.clone());
        let root = tracer.enter("command", None);
        let child = tracer.child("run", Kind::Internal, root.context());
        drop(child);
        drop(root);
        let kept = waiting.try_recv().unwrap();
        assert_eq!((kept.name, lost.get()), ("run", 1));
        assert!(kept.parent.is_some() && kept.end_nanos >= kept.start_nanos);
    }

    #[test]
    fn without_a_tracer_there_are_no_spans() {
        let tracer = Tracer::default();
        let mut span = tracer.enter("command", None);
        span.set("size_bytes", 3_usize);
        assert_eq!(span.context(), None);
        let remote = Remote::parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
        assert_eq!(tracer.enter("command", remote).context(), None);
    }
}
