//! What a prompt makes the demo agent do, step by step. Pure.
//!
//! Steps are made when they are wanted: a million words take no room.

use std::time::Duration;

use super::super::FromAgent;
use super::facts;
use super::scene::{Asked, Habits, Scene};
use super::showcase;
use crate::domain::code::Code;
use crate::domain::command::Prompt;
use crate::domain::event::{Activity, Channel, PlanStep};
use crate::domain::id::RunId;
use crate::domain::question::OpenQuestion;
use crate::domain::run::{Progress, RunOutcome, Usage};

const MAX_COUNT: u64 = 1_000_000;
const MAX_BYTES: u64 = 100_000;
const MAX_PAUSE_MS: u64 = 60_000;

/// Between two words that a person reads along.
pub(super) const WORD_PAUSE: Duration = Duration::from_millis(15);
/// Between two steps of a plan.
const PLAN_PAUSE: Duration = Duration::from_millis(100);

const INTRODUCTION: &str = "I am the demo agent: built in, with no model behind me. A prompt that \
    starts with a slash tells me what to do: /echo TEXT, /stream N [MS], /chunks N BYTES, /tool, /confirm, \
    /prompt, /pick, /think, /plan, /edit, /markdown, /usage, /fail, /crash, /hang or /image. Anything else gets this \
    answer.";
const PLAN: [&str; 3] = ["Read the prompt", "Do what it says", "Tell how it went"];
/// One pixel of translucent green.
const IMAGE: &str = "![One pixel](data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==)";

/// One thing to do.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    /// Say it.
    Tell(FromAgent),
    /// Wait so long.
    Wait(Duration),
    /// End the agent without another word.
    Crash,
    /// Do nothing until cancelled.
    Hang,
    /// Do nothing until this is answered.
    Await(Asked),
}

/// The steps of one run, the end of the run included.
pub(super) struct Script(Box<dyn Iterator<Item = Step> + Send>);

impl Script {
    /// What a prompt asks for.
    pub(super) fn new(run: RunId, prompt: &Prompt, habits: &Habits) -> Self {
        let opening = [
            Step::Tell(FromAgent::Accepted { run }),
            Step::Tell(FromAgent::Activity(Activity::Thinking)),
        ];
        Self(Box::new(opening.into_iter().chain(body(
            run,
            &prompt.text,
            habits,
        ))))
    }

    /// What is left of a run that another life of this agent had begun.
    pub(super) fn resumed(run: RunId, prompt: &Prompt, questions: &[OpenQuestion]) -> Self {
        let waiting = questions
            .iter()
            .find_map(|open| Asked::resumed(&prompt.text, &open.asked_as));
        Self::going_on(match waiting {
            Some(asked) => Box::new(std::iter::once(Step::Await(asked))),
            None => fail(run),
        })
    }

    /// These steps.
    pub(super) fn going_on(steps: Steps) -> Self {
        Self(steps)
    }

    /// The end of a run that somebody cancelled.
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

/// All that follows the opening.
fn body(run: RunId, text: &str, habits: &Habits) -> Steps {
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
        ("/title", _) => telling(
            run,
            FromAgent::Title(rest.trim().into()),
            "So it is called.",
        ),
        ("/commands", _) => {
            let told = FromAgent::Commands(facts::commands());
            telling(run, told, "These are the commands that I understand.")
        }
        ("/markdown", _) => showcase::markdown(run),
        ("/edit", _) => showcase::edit(run),
        ("/think", _) => think(run),
        ("/plan", _) => plan(run),
        ("/usage", _) => usage(run),
        ("/fail", _) => fail(run),
        ("/crash", _) => crash(run),
        ("/hang", _) => Box::new(std::iter::once(Step::Hang)),
        ("/image", _) => answer(run, format!("I made an image: {IMAGE}")),
        _ => match Scene::of(word) {
            Some(scene) => scene.play(run, rest, habits),
            None => introduction(run, text),
        },
    }
}

/// The words of a text as numbers, if they all are.
fn numbers(text: &str) -> Option<Vec<u64>> {
    text.split_whitespace()
        .map(|word| word.parse().ok())
        .collect()
}

pub(super) fn answer(run: RunId, text: String) -> Steps {
    Box::new(std::iter::once(said(run, Channel::Text, text)).chain(completed(run, None)))
}

/// Tells something, and says so.
fn telling(run: RunId, told: FromAgent, text: &str) -> Steps {
    Box::new(std::iter::once(Step::Tell(told)).chain(answer(run, text.into())))
}

fn stream(run: RunId, count: u64, pause_ms: u64) -> Steps {
    let words = (1..=count).map(|number| format!("{number} "));
    let pause = Duration::from_millis(pause_ms);
    Box::new(spoken(run, Channel::Text, words, pause).chain(completed(run, None)))
}

fn chunks(run: RunId, count: u64, bytes: u64) -> Steps {
    let chunks = (1..=count).map(move |number| chunk(number, bytes));
    Box::new(spoken(run, Channel::Text, chunks, Duration::ZERO).chain(completed(run, None)))
}

/// Its number, then one letter again and again. A chunk too short for its number has the end of it.
fn chunk(number: u64, bytes: u64) -> String {
    let bytes = usize::try_from(bytes).expect("at most MAX_BYTES");
    let mut text = format!("{number:07}");
    text.drain(..text.len().saturating_sub(bytes));
    let letter = char::from(b'a' + u8::try_from(number % 26).expect("less than 26"));
    text.extend(std::iter::repeat_n(letter, bytes - text.len()));
    text
}

fn think(run: RunId) -> Steps {
    let thoughts = words("Somebody wants to see how I think. I think in pieces, like this.");
    let steps = spoken(run, Channel::Thought, thoughts, WORD_PAUSE)
        .chain([said(run, Channel::Text, "I thought about it.".into())])
        .chain(completed(run, None));
    Box::new(steps)
}

fn plan(run: RunId) -> Steps {
    let states = (0..=PLAN.len()).flat_map(move |done| {
        let pause = (done > 0).then_some(Step::Wait(PLAN_PAUSE));
        let told = Step::Tell(FromAgent::Plan(plan_steps(done)));
        let progress = PLAN.get(done).map(|title| {
            Step::Tell(FromAgent::Progress {
                run,
                progress: Progress {
                    current: done as u64,
                    total: PLAN.len() as u64,
                    description: (*title).into(),
                },
            })
        });
        pause.into_iter().chain([told]).chain(progress)
    });
    let text = "The plan is carried out.".into();
    Box::new(states.chain(answer(run, text)))
}

/// The plan when so many steps of it are done.
fn plan_steps(done: usize) -> Vec<PlanStep> {
    let step = |(place, title): (usize, &&str)| PlanStep {
        title: (*title).into(),
        status: match place.cmp(&done) {
            std::cmp::Ordering::Less => "completed",
            std::cmp::Ordering::Equal => "running",
            std::cmp::Ordering::Greater => "pending",
        }
        .into(),
    };
    PLAN.iter().enumerate().map(step).collect()
}

fn usage(run: RunId) -> Steps {
    let left = Step::Tell(FromAgent::ContextLeft(93));
    let usage = Usage {
        input: 1200,
        output: 345,
        cost: Some(0.0125),
    };
    let text = "This took 1200 tokens to read, 345 to write, and cost 0.0125.".into();
    let steps = [said(run, Channel::Text, text), left].into_iter();
    Box::new(steps.chain(completed(run, Some(usage))))
}

fn fail(run: RunId) -> Steps {
    let outcome = RunOutcome::Failed {
        code: Code::TaskFailed,
        message: "The demo agent failed because it was asked to.".into(),
    };
    Box::new(ended(run, outcome, None))
}

fn crash(run: RunId) -> Steps {
    let last_words = said(run, Channel::Text, "I am about to crash.".into());
    Box::new([last_words, Step::Crash].into_iter())
}

/// One token per word, as if there were a model.
fn introduction(run: RunId, prompt: &str) -> Steps {
    let usage = Usage {
        input: prompt.split_whitespace().count() as u64,
        output: words(INTRODUCTION).count() as u64,
        cost: None,
    };
    let steps = spoken(run, Channel::Text, words(INTRODUCTION), WORD_PAUSE)
        .chain(completed(run, Some(usage)));
    Box::new(steps)
}

/// The words of a text, each with the space behind it.
pub(super) fn words(text: &'static str) -> impl Iterator<Item = String> {
    text.split_inclusive(' ').map(str::to_owned)
}

/// Says pieces, so long apart; without any wait in between if that is zero.
pub(super) fn spoken(
    run: RunId,
    channel: Channel,
    pieces: impl Iterator<Item = String>,
    pause: Duration,
) -> impl Iterator<Item = Step> {
    pieces.enumerate().flat_map(move |(place, text)| {
        let pause = (place > 0 && !pause.is_zero()).then_some(Step::Wait(pause));
        pause.into_iter().chain([said(run, channel, text)])
    })
}

fn said(run: RunId, channel: Channel, text: String) -> Step {
    Step::Tell(FromAgent::Delta { run, channel, text })
}

pub(super) fn completed(run: RunId, usage: Option<Usage>) -> impl Iterator<Item = Step> {
    let answered = Step::Tell(FromAgent::Final { run, text: None });
    std::iter::once(answered).chain(ended(run, RunOutcome::Completed, usage))
}

fn ended(run: RunId, outcome: RunOutcome, usage: Option<Usage>) -> impl Iterator<Item = Step> {
    std::iter::once(Step::Tell(FromAgent::Ended {
        run,
        outcome,
        usage,
    }))
}
