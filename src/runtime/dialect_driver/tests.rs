//! The driver with a dialect that echoes every prompt.

use std::time::Duration;

use serde_json::json;

use super::*;
use crate::domain::command::{AgentRequest, Mode, Topic};
use crate::domain::event::Channel;
use crate::domain::run::FailureCause;
use crate::runtime::dialect::PromptContent;

/// Ready after the first line; echoes every prompt.
struct Echo;

impl Dialect for Echo {
    fn open(&mut self, out: &mut Actions) {
        out.set_timer(1, Duration::from_secs(10));
    }

    fn handle(&mut self, command: ToAgent, out: &mut Actions) {
        if let ToAgent::Cancel { .. } = command {
            out.set_timer(2, Duration::ZERO);
        }
        if let ToAgent::Prompt { run, prompt } = command {
            out.write(json!(prompt.text));
            out.emit_delta(run, Channel::Text, prompt.text);
        }
    }

    fn read(&mut self, _: StreamKind, _: Value, out: &mut Actions) {
        out.ready(vec!["images"]);
    }

    fn on_timer(&mut self, timer: u64, out: &mut Actions) {
        if timer == 2 {
            return out.push(Action::DropUnwritten);
        }
        out.fail(ErrorCode::ConnectionLost, "too late");
    }
}

fn echo(now: Instant) -> DialectDriver {
    let mut driver = DialectDriver::new(Box::new(Echo), b'\n');
    driver.open(now);
    driver
}

fn prompt(run: RunId, text: &str) -> ToAgent {
    let prompt = PromptContent::new(text, Mode::Act);
    ToAgent::Prompt { run, prompt }
}

fn events(driver: &mut DialectDriver) -> Vec<FromAgent> {
    std::iter::from_fn(|| driver.take_event()).collect()
}

#[test]
fn commands_wait_until_the_agent_is_ready() {
    let (now, run) = (Instant::now(), RunId::new());
    let mut driver = echo(now);
    driver.handle(prompt(run, "hello"), now);
    assert!(events(&mut driver).is_empty() && !driver.is_ready());
    driver.read(StreamKind::Main, Line::Message(json!(1)), now);
    assert_eq!(driver.lacks(), ["images"]);
    assert_eq!(driver.unwritten(StreamKind::Main), b"\"hello\"\n");
    assert_eq!(events(&mut driver).len(), 1);
    assert!(driver.awaits_agent());
}

#[test]
fn a_held_prompt_is_cancelled_without_the_agent() {
    let (now, run) = (Instant::now(), RunId::new());
    let mut driver = echo(now);
    driver.handle(prompt(run, "hello"), now);
    driver.handle(ToAgent::Cancel { run }, now);
    let outcome = RunOutcome::Cancelled;
    let usage = None;
    let ended = FromAgent::RunEnded {
        run,
        outcome,
        usage,
    };
    assert_eq!(events(&mut driver), [ended]);
    driver.read(StreamKind::Main, Line::Message(json!(1)), now);
    assert!(driver.unwritten(StreamKind::Main).is_empty());
}

#[test]
fn a_lost_agent_fails_the_current_run_and_the_held_requests() {
    let (now, run) = (Instant::now(), RunId::new());
    let mut driver = echo(now);
    driver.handle(prompt(run, "hello"), now);
    let (topic, params) = (Topic::Models, json!({}));
    let request = AgentRequest::Query { topic, params };
    driver.handle(ToAgent::Request { id: 7, request }, now);
    let lost = LinkFailure {
        cause: Some(FailureCause::Crashed),
        declined: unusable("echo", ErrorCode::ConnectionLost, "it flew away"),
    };
    assert!(driver.fail_pending(&lost));
    let events = events(&mut driver);
    assert_eq!(events[0], FromAgent::LinkFailed(FailureCause::Crashed));
    assert!(matches!(events[1], FromAgent::RunEnded { run: of, .. } if of == run));
    assert!(matches!(
        events[2],
        FromAgent::Response {
            id: 7,
            result: Err(_)
        }
    ));
    assert!(!driver.fail_pending(&lost), "once");
}

#[test]
fn a_timer_that_runs_out_calls_the_dialect() {
    let now = Instant::now();
    let mut driver = echo(now);
    driver.run_timers(now + Duration::from_secs(9));
    assert_eq!(driver.take_end(), None);
    assert_eq!(driver.next_timer(), Some(now + Duration::from_secs(10)));
    driver.run_timers(now + Duration::from_secs(10));
    assert!(matches!(driver.take_end(), Some(DialectEnd::Failed(_))));
}

#[test]
fn unsent_deltas_are_joined_and_counted_once() {
    let (now, run) = (Instant::now(), RunId::new());
    let mut driver = echo(now);
    driver.read(StreamKind::Main, Line::Message(json!(1)), now);
    for _ in 0..100_000 {
        driver.handle(prompt(run, "piece "), now);
    }
    assert!(!driver.can_read());
    let events = events(&mut driver);
    assert!(events.len() < 50, "{}", events.len());
    assert!(driver.can_read());
}

#[test]
fn an_attempt_that_is_given_up_is_not_written_unless_it_was_begun() {
    let (now, run) = (Instant::now(), RunId::new());
    let mut driver = echo(now);
    driver.read(StreamKind::Main, Line::Message(json!(1)), now);
    let give_up = |driver: &mut DialectDriver| {
        driver.handle(ToAgent::Cancel { run }, now);
        driver.run_timers(now);
    };
    driver.handle(prompt(run, "first"), now);
    driver.handle(prompt(run, "second"), now);
    driver.wrote(StreamKind::Main, 3);
    give_up(&mut driver);
    assert_eq!(driver.unwritten(StreamKind::Main), b"rst\"\n");
    driver.wrote(StreamKind::Main, 5);
    driver.handle(prompt(run, "third"), now);
    give_up(&mut driver);
    assert!(driver.unwritten(StreamKind::Main).is_empty());
}

#[test]
fn commands_are_taken_while_one_long_line_waits_for_the_agent() {
    let (now, run) = (Instant::now(), RunId::new());
    let mut driver = echo(now);
    driver.read(StreamKind::Main, Line::Message(json!(1)), now);
    let long = "x".repeat(MAX_UNWRITTEN_FOR_COMMANDS);
    driver.handle(prompt(run, &long), now);
    assert!(driver.can_take_command(), "a cancel must reach the dialect");
    driver.handle(prompt(run, &long), now);
    assert!(!driver.can_take_command());
}
