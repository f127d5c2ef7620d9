//! Prompts: the events of each command, in order.

use std::time::Duration;

use tokio::time::Instant;

use super::super::super::{FromAgent, ToAgent};
use super::{Session, deltas};
use crate::domain::error_code::ErrorCode;
use crate::domain::event::Channel;
use crate::domain::question::{Answer, AnswerValue, Resolution};
use crate::domain::run::{RunOutcome, Usage};

/// Prompts, and returns the events and the usage. The run must complete, with its last events in order.
async fn answer(text: &str) -> (Vec<FromAgent>, Option<Usage>) {
    let mut session = Session::start(8);
    let run = session.prompts(text).await;
    let mut events = session.receives_run(run).await;
    let Some(FromAgent::RunEnded { outcome, usage, .. }) = events.pop() else {
        panic!("no end: {events:?}");
    };
    assert_eq!(outcome, RunOutcome::Completed);
    assert_eq!(
        events.pop(),
        Some(FromAgent::MessageFinal { run, text: None })
    );
    session.receives_nothing_more().await;
    (events, usage)
}

async fn text_of(prompt: &str) -> String {
    let (events, _) = answer(prompt).await;
    deltas(&events, Channel::Text).concat()
}

#[tokio::test(start_paused = true)]
async fn echo_gives_the_text_back_in_one_piece() {
    let (events, usage) = answer("/echo two  words\n ").await;
    assert_eq!(deltas(&events, Channel::Text), ["two  words\n "]);
    assert_eq!((events.len(), usage), (1, None));
}

#[tokio::test(start_paused = true)]
async fn stream_gives_numbered_words_without_a_pause() {
    let begin = Instant::now();
    let mut session = Session::start(8);
    let run = session.prompts("/stream 3").await;
    let events = session.receives_run(run).await;
    assert_eq!(deltas(&events, Channel::Text), ["1 ", "2 ", "3 "]);
    assert_eq!(begin.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn stream_waits_between_words_if_asked_to() {
    let begin = Instant::now();
    let mut session = Session::start(8);
    let run = session.prompts("/stream 4 1000").await;
    session.receives_run(run).await;
    let took = begin.elapsed();
    assert!((3000..3010).contains(&took.as_millis()), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn chunks_have_their_size_and_differ() {
    let (events, _) = answer("/chunks 300 9").await;
    let chunks = deltas(&events, Channel::Text);
    assert_eq!(chunks.len(), 300);
    assert!(
        chunks
            .iter()
            .all(|chunk| chunk.len() == 9 && chunk.is_ascii())
    );
    assert!(chunks.is_sorted_by(|one, two| one < two));
    assert_eq!(text_of("/chunks 3 2").await, "010203");
    assert_eq!(text_of("/chunks 1 100000").await.len(), 100_000);
}

#[tokio::test(start_paused = true)]
async fn a_wrong_number_is_answered_with_the_usage() {
    for prompt in [
        "/echo",
        "/stream",
        "/stream 0",
        "/stream many",
        "/stream -1",
        "/stream 1000001",
        "/stream 1 60001",
        "/stream 1 2 3",
        "/chunks 1",
        "/chunks 1 0",
        "/chunks 1 100001",
        "/chunks 99999999999999999999 1",
    ] {
        let text = text_of(prompt).await;
        assert!(text.starts_with("Usage: /"), "{prompt}: {text}");
    }
}

#[tokio::test(start_paused = true)]
async fn think_sends_thoughts_before_the_answer() {
    let (events, _) = answer("/think").await;
    assert!(deltas(&events, Channel::Thought).len() > 1);
    let texts = deltas(&events, Channel::Text);
    assert_eq!(texts.len(), 1);
    let last = events.last().unwrap();
    assert!(matches!(
        last,
        FromAgent::MessageDelta {
            channel: Channel::Text,
            ..
        }
    ));
}

#[tokio::test(start_paused = true)]
async fn plan_goes_through_its_three_steps() {
    let (events, _) = answer("/plan").await;
    let plans: Vec<String> = events
        .iter()
        .filter_map(|event| match event {
            FromAgent::PlanUpdated(steps) => Some(steps),
            _ => None,
        })
        .map(|steps| steps.iter().map(|step| &step.status[..1]).collect())
        .collect();
    assert_eq!(plans, ["rpp", "crp", "ccr", "ccc"]);
    let steps_begun = events.iter().filter_map(|event| match event {
        FromAgent::RunProgress { progress, .. } => Some((progress.current, progress.total)),
        _ => None,
    });
    assert!(steps_begun.eq([(0, 3), (1, 3), (2, 3)]));
}

#[tokio::test(start_paused = true)]
async fn usage_reports_tokens_and_cost_with_the_end() {
    let (events, usage) = answer("/usage").await;
    assert!(usage.unwrap().cost.unwrap() > 0.0);
    assert!(
        !events
            .iter()
            .any(|event| matches!(event, FromAgent::Usage(_)))
    );
}

#[tokio::test(start_paused = true)]
async fn image_shows_a_png_in_markdown() {
    let text = text_of("/image").await;
    let (_, image) = text
        .split_once("](data:image/png;base64,iVBORw0KGgo")
        .unwrap();
    assert!(image.ends_with(')'));
}

#[tokio::test(start_paused = true)]
async fn a_question_waits_for_its_answer_and_continues_with_it() {
    for (prompt, said, text) in [
        (
            "/tool",
            AnswerValue::Option("allow".into()),
            "I ran `date`. It said:",
        ),
        ("/tool", AnswerValue::Ok(false), "I did not run `date`."),
        ("/confirm", AnswerValue::Ok(true), "You said yes."),
        (
            "/prompt",
            AnswerValue::Text(Some("Ada".into())),
            "You said: Ada",
        ),
        (
            "/pick",
            AnswerValue::Ids(vec!["red".into()]),
            "You picked: red",
        ),
    ] {
        let mut session = Session::start(8);
        let run = session.prompts(prompt).await;
        let question = loop {
            if let FromAgent::QuestionAsked { question, .. } = session.receives().await {
                break question;
            }
        };
        session.receives_nothing_more().await;
        let resolution = Resolution::Answered(Answer::new(said));
        let answer = ToAgent::Answer {
            question,
            resolution,
        };
        session.link.send(answer).await.unwrap();
        let events = session.receives_rest(run).await;
        let deltas = deltas(&events, Channel::Text).concat();
        assert!(deltas.starts_with(text), "{prompt}: {deltas}");
    }
}

#[tokio::test(start_paused = true)]
async fn any_other_prompt_gets_an_introduction_word_by_word() {
    let begin = Instant::now();
    let mut session = Session::start(8);
    let run = session.prompts("Good morning!").await;
    let events = session.receives_rest(run).await;
    let words = deltas(&events, Channel::Text);
    assert!((35..=55).contains(&words.len()), "{}", words.len());
    let took = begin.elapsed().as_millis();
    assert!(took >= 15 * (words.len() as u128 - 1), "{took}");
    assert!(words.concat().contains("/chunks N BYTES"));
    let Some(FromAgent::RunEnded { usage, .. }) = events.last() else {
        panic!("no end");
    };
    let usage = usage.unwrap();
    assert_eq!((usage.input, usage.output), (2, words.len() as u64));
}

#[tokio::test(start_paused = true)]
async fn fail_ends_the_run_as_failed_and_the_next_one_works() {
    let mut session = Session::start(8);
    let run = session.prompts("/fail").await;
    let events = session.receives_run(run).await;
    let code = |event: &FromAgent| match event {
        FromAgent::RunEnded {
            outcome: RunOutcome::Failed { code, .. },
            ..
        } => Some(*code),
        _ => None,
    };
    assert_eq!(
        events.iter().map(code).collect::<Vec<_>>(),
        [Some(ErrorCode::TaskFailed)]
    );
    let run = session.prompts("/echo still here").await;
    assert_eq!(session.receives_run(run).await.len(), 3);
}
