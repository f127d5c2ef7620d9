//! The interpreter with a dialect that repeats what it hears.

use serde_json::json;

use super::*;
use crate::domain::command::{Inquiry, Mode, Topic};
use crate::domain::event::Channel;
use crate::runtime::dialect::Brief;

/// Is ready when it hears anything, and says what it hears.
struct Parrot;

impl Dialect for Parrot {
    fn open(&mut self, out: &mut Out) {
        out.timer(1, Duration::from_secs(10));
    }

    fn hear(&mut self, order: Order, out: &mut Out) {
        if let Order::Prompt { run, brief } = order {
            out.write(json!(brief.text));
            out.say(run, Channel::Text, brief.text);
        }
    }

    fn read(&mut self, _: Lane, _: Value, out: &mut Out) {
        out.ready(vec!["images"]);
    }

    fn late(&mut self, _: u64, out: &mut Out) {
        out.fail(Code::ConnectionLost, "too late");
    }
}

fn parrot(now: Instant) -> Interpreter {
    let mut interpreter = Interpreter::new(Box::new(Parrot), b'\n', None);
    interpreter.open(now);
    interpreter
}

fn prompt(run: RunId, text: &str) -> Order {
    let brief = Brief::new(text, Mode::Act);
    Order::Prompt { run, brief }
}

fn told(interpreter: &mut Interpreter) -> Vec<FromAgent> {
    std::iter::from_fn(|| interpreter.take_told()).collect()
}

#[test]
fn orders_wait_until_the_agent_is_ready() {
    let (now, run) = (Instant::now(), RunId::new());
    let mut interpreter = parrot(now);
    interpreter.hear(prompt(run, "hello"), now);
    assert!(told(&mut interpreter).is_empty() && !interpreter.is_ready());
    interpreter.read(Lane::Main, Line::Message(json!(1)), now);
    assert_eq!(interpreter.lacks(), ["images"]);
    assert_eq!(interpreter.unwritten(Lane::Main), b"\"hello\"\n");
    assert_eq!(told(&mut interpreter).len(), 1);
    assert!(interpreter.is_awaited());
}

#[test]
fn a_prompt_that_waits_is_cancelled_without_the_agent() {
    let (now, run) = (Instant::now(), RunId::new());
    let mut interpreter = parrot(now);
    interpreter.hear(prompt(run, "hello"), now);
    interpreter.hear(Order::Cancel { run }, now);
    let outcome = RunOutcome::Cancelled;
    let usage = None;
    let ended = FromAgent::Ended {
        run,
        outcome,
        usage,
    };
    assert_eq!(told(&mut interpreter), [ended]);
    interpreter.read(Lane::Main, Line::Message(json!(1)), now);
    assert!(interpreter.unwritten(Lane::Main).is_empty());
}

#[test]
fn whoever_waits_for_an_agent_that_is_lost_hears_of_it() {
    let (now, run) = (Instant::now(), RunId::new());
    let mut interpreter = parrot(now);
    interpreter.hear(prompt(run, "hello"), now);
    let (topic, params) = (Topic::Models, json!({}));
    let inquiry = Inquiry::Query { topic, params };
    interpreter.hear(Order::Inquire { id: 7, inquiry }, now);
    let lost = lost("parrot", Code::ConnectionLost, "it flew away");
    assert!(interpreter.lose(&lost));
    let told = told(&mut interpreter);
    assert!(matches!(told[0], FromAgent::Ended { run: of, .. } if of == run));
    assert!(matches!(
        told[1],
        FromAgent::Told {
            id: 7,
            answer: Err(_)
        }
    ));
    assert!(!interpreter.lose(&lost), "once");
}

#[test]
fn a_timer_that_runs_out_wakes_the_dialect() {
    let now = Instant::now();
    let mut interpreter = parrot(now);
    interpreter.wake(now + Duration::from_secs(9));
    assert_eq!(interpreter.verdict(), None);
    assert_eq!(
        interpreter.next_timer(),
        Some(now + Duration::from_secs(10))
    );
    interpreter.wake(now + Duration::from_secs(10));
    assert!(matches!(interpreter.verdict(), Some(Verdict::Failed(_))));
}

#[test]
fn pieces_that_nobody_has_taken_are_joined_and_counted_once() {
    let (now, run) = (Instant::now(), RunId::new());
    let mut interpreter = parrot(now);
    interpreter.read(Lane::Main, Line::Message(json!(1)), now);
    for _ in 0..100_000 {
        interpreter.hear(prompt(run, "piece "), now);
    }
    assert!(!interpreter.is_heard());
    let told = told(&mut interpreter);
    assert!(told.len() < 50, "{}", told.len());
    assert!(interpreter.is_heard());
}
