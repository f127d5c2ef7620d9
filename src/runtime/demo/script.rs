//! Script: turns a prompt into steps. Pure.
//!
//! Steps are made on demand: a million words take no memory.

use std::time::Duration;

use super::super::FromAgent;
use super::super::prompt_content::PromptContent;
use super::dialogs::{Dialog, PendingQuestion, Preferences};
use super::query_answers;
use super::sample_content;
use crate::domain::error_code::ErrorCode;
use crate::domain::event::{Activity, Channel, PlanStep};
use crate::domain::id::RunId;
use crate::domain::question::OpenQuestion;
use crate::domain::run::{Progress, RunOutcome, Usage};

const MAX_COUNT: u64 = 1_000_000;
const MAX_BYTES: u64 = 100_000;
const MAX_PAUSE_MS: u64 = 60_000;

/// Pause between two words, at reading speed.
pub(super) const WORD_PAUSE: Duration = Duration::from_millis(15);
const PLAN_PAUSE: Duration = Duration::from_millis(100);

const INTRODUCTION: &str = "I am the demo agent: built in, with no model behind me. A prompt that \
    starts with a slash tells me what to do: /echo TEXT, /stream N [MS], /chunks N BYTES, /tool, /confirm, \
    /prompt, /pick, /think, /plan, /edit, /markdown, /usage, /fail, /crash, /hang or /image. Anything else gets this \
    answer.";
const PLAN: [&str; 3] = ["Read the prompt", "Do what it says", "Tell how it went"];
/// One pixel of translucent green.
const IMAGE: &str = "![One pixel](data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==)";

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    Emit(FromAgent),
    Wait(Duration),
    /// End the agent without another event.
    Crash,
    /// Do nothing until a cancel.
    Hang,
    /// Do nothing until the answer.
    Await(PendingQuestion),
}

pub(super) struct Script(Box<dyn Iterator<Item = Step> + Send>);

impl Script {
    pub(super) fn new(run: RunId, prompt: &PromptContent, preferences: &Preferences) -> Self {
        let opening = [
            Step::Emit(FromAgent::RunAccepted { run }),
            Step::Emit(FromAgent::Activity(Activity::Thinking)),
        ];
        Self(Box::new(opening.into_iter().chain(steps_for(
            run,
            &prompt.text,
            preferences,
        ))))
    }

    /// The rest of a run that began before a restart.
    pub(super) fn resumed(run: RunId, prompt: &PromptContent, questions: &[OpenQuestion]) -> Self {
        let waiting = questions
            .iter()
            .find_map(|open| PendingQuestion::resumed(&prompt.text, &open.native_id));
        Self::from_steps(match waiting {
            Some(asked) => Box::new(std::iter::once(Step::Await(asked))),
            None => fail(run),
        })
    }

    pub(super) fn from_steps(steps: Steps) -> Self {
        Self(steps)
    }

    pub(super) fn cancelled(run: RunId) -> Self {
        Self(Box::new(ended(run, RunOutcome::Cancelled, None)))
    }
}

impl Iterator for Script {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        self.0.next()
    }
}

pub(super) type Steps = Box<dyn Iterator<Item = Step> + Send>;

fn steps_for(run: RunId, text: &str, preferences: &Preferences) -> Steps {
    let (word, rest) = text
        .trim_start()
        .split_once(char::is_whitespace)
        .unwrap_or((text.trim_start(), ""));
    let numbers = numbers(rest);
    match (word, numbers.as_deref()) {
        ("/echo", _) if rest.is_empty() => answer(run, "Usage: /echo TEXT".into()),
        ("/echo", _) => answer(run, rest.into()),
        ("/stream", Some(&[count @ 1..=MAX_COUNT])) => stream(run, count, 0),
        ("/stream", Some(&[count @ 1..=MAX_COUNT, pause_ms @ 0..=MAX_PAUSE_MS])) => {
            stream(run, count, pause_ms)
        }
        ("/stream", _) => answer(
            run,
            format!("Usage: /stream N [MS], N from 1 to {MAX_COUNT}, MS from 0 to {MAX_PAUSE_MS}"),
        ),
        ("/chunks", Some(&[count @ 1..=MAX_COUNT, bytes @ 1..=MAX_BYTES])) => {
            chunks(run, count, bytes)
        }
        ("/chunks", _) => answer(
            run,
            format!("Usage: /chunks N BYTES, N from 1 to {MAX_COUNT}, BYTES from 1 to {MAX_BYTES}"),
        ),
        ("/title", _) if rest.trim().is_empty() => answer(run, "Usage: /title TEXT".into()),
        ("/title", _) => emit_and_answer(
            run,
            FromAgent::TitleChanged(rest.trim().into()),
            "The title is set.",
        ),
        ("/commands", _) => {
            let event = FromAgent::CommandsAvailable(query_answers::commands());
            emit_and_answer(run, event, "These are the commands that I understand.")
        }
        ("/markdown", _) => sample_content::markdown(run),
        ("/edit", _) => sample_content::edit(run),
        ("/think", _) => think(run),
        ("/plan", _) => plan(run),
        ("/usage", _) => usage(run),
        ("/fail", _) => fail(run),
        ("/crash", _) => crash(run),
        ("/hang", _) => Box::new(std::iter::once(Step::Hang)),
        ("/image", _) => answer(run, format!("I made an image: {IMAGE}")),
        _ => match Dialog::from_command(word) {
            Some(dialog) => dialog.steps(run, rest, preferences),
            None => introduction(run, text),
        },
    }
}

fn numbers(text: &str) -> Option<Vec<u64>> {
    text.split_whitespace()
        .map(|word| word.parse().ok())
        .collect()
}

pub(super) fn answer(run: RunId, text: String) -> Steps {
    Box::new(std::iter::once(delta(run, Channel::Text, text)).chain(completed(run, None)))
}

fn emit_and_answer(run: RunId, event: FromAgent, text: &str) -> Steps {
    Box::new(std::iter::once(Step::Emit(event)).chain(answer(run, text.into())))
}

fn stream(run: RunId, count: u64, pause_ms: u64) -> Steps {
    let words = (1..=count).map(|number| format!("{number} "));
    let pause = Duration::from_millis(pause_ms);
    Box::new(stream_pieces(run, Channel::Text, words, pause).chain(completed(run, None)))
}

fn chunks(run: RunId, count: u64, bytes: u64) -> Steps {
    let chunks = (1..=count).map(move |number| chunk(number, bytes));
    Box::new(stream_pieces(run, Channel::Text, chunks, Duration::ZERO).chain(completed(run, None)))
}

/// Its number, then one letter repeated. A chunk shorter than its number holds the end of it.
fn chunk(number: u64, bytes: u64) -> String {
    let bytes = usize::try_from(bytes).expect("at most MAX_BYTES");
    let mut text = format!("{number:07}");
    text.drain(..text.len().saturating_sub(bytes));
    let letter = char::from(b'a' + u8::try_from(number % 26).expect("less than 26"));
    text.extend(std::iter::repeat_n(letter, bytes - text.len()));
    text
}

fn think(run: RunId) -> Steps {
    let thoughts = words("The user wants to see how I think. I think in pieces, like this.");
    let steps = stream_pieces(run, Channel::Thought, thoughts, WORD_PAUSE)
        .chain([delta(run, Channel::Text, "I thought about it.".into())])
        .chain(completed(run, None));
    Box::new(steps)
}

fn plan(run: RunId) -> Steps {
    let states = (0..=PLAN.len()).flat_map(move |done| {
        let pause = (done > 0).then_some(Step::Wait(PLAN_PAUSE));
        let event = Step::Emit(FromAgent::PlanUpdated(plan_steps(done)));
        let progress = PLAN.get(done).map(|title| {
            Step::Emit(FromAgent::RunProgress {
                run,
                progress: Progress {
                    current: done as u64,
                    total: PLAN.len() as u64,
                    description: (*title).into(),
                },
            })
        });
        pause.into_iter().chain([event]).chain(progress)
    });
    let text = "The plan is carried out.".into();
    Box::new(states.chain(answer(run, text)))
}

fn plan_steps(done: usize) -> Vec<PlanStep> {
    let step = |(index, title): (usize, &&str)| PlanStep {
        title: (*title).into(),
        status: match index.cmp(&done) {
            std::cmp::Ordering::Less => "completed",
            std::cmp::Ordering::Equal => "running",
            std::cmp::Ordering::Greater => "pending",
        }
        .into(),
    };
    PLAN.iter().enumerate().map(step).collect()
}

fn usage(run: RunId) -> Steps {
    let left = Step::Emit(FromAgent::ContextLeft(93));
    let usage = Usage {
        input: 1200,
        output: 345,
        cost: Some(0.0125),
    };
    let text = "This took 1200 tokens to read, 345 to write, and cost 0.0125.".into();
    let steps = [delta(run, Channel::Text, text), left].into_iter();
    Box::new(steps.chain(completed(run, Some(usage))))
}

fn fail(run: RunId) -> Steps {
    let outcome = RunOutcome::Failed {
        code: ErrorCode::TaskFailed,
        message: "The demo agent failed because it was asked to.".into(),
    };
    Box::new(ended(run, outcome, None))
}

fn crash(run: RunId) -> Steps {
    let last_words = delta(run, Channel::Text, "I am about to crash.".into());
    Box::new([last_words, Step::Crash].into_iter())
}

/// One token per word, as if there were a model.
fn introduction(run: RunId, prompt: &str) -> Steps {
    let usage = Usage {
        input: prompt.split_whitespace().count() as u64,
        output: words(INTRODUCTION).count() as u64,
        cost: None,
    };
    let steps = stream_pieces(run, Channel::Text, words(INTRODUCTION), WORD_PAUSE)
        .chain(completed(run, Some(usage)));
    Box::new(steps)
}

/// Each word with the space behind it.
pub(super) fn words(text: &'static str) -> impl Iterator<Item = String> {
    text.split_inclusive(' ').map(str::to_owned)
}

pub(super) fn stream_pieces(
    run: RunId,
    channel: Channel,
    pieces: impl Iterator<Item = String>,
    pause: Duration,
) -> impl Iterator<Item = Step> {
    pieces.enumerate().flat_map(move |(index, text)| {
        let pause = (index > 0 && !pause.is_zero()).then_some(Step::Wait(pause));
        pause.into_iter().chain([delta(run, channel, text)])
    })
}

/// What a steered run says in between.
pub(super) fn steered(run: RunId, text: &str) -> FromAgent {
    let text = format!("\n\nYou steered me: {text}\n\n");
    let channel = Channel::Text;
    FromAgent::MessageDelta { run, channel, text }
}

fn delta(run: RunId, channel: Channel, text: String) -> Step {
    Step::Emit(FromAgent::MessageDelta { run, channel, text })
}

pub(super) fn completed(run: RunId, usage: Option<Usage>) -> impl Iterator<Item = Step> {
    let answered = Step::Emit(FromAgent::MessageFinal { run, text: None });
    std::iter::once(answered).chain(ended(run, RunOutcome::Completed, usage))
}

fn ended(run: RunId, outcome: RunOutcome, usage: Option<Usage>) -> impl Iterator<Item = Step> {
    std::iter::once(Step::Emit(FromAgent::RunEnded {
        run,
        outcome,
        usage,
    }))
}
