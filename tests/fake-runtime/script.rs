//! Script: the commands in a prompt. The first word that is one of these counts, wherever it
//! stands.

use std::path::PathBuf;
use std::time::Duration;

use crate::faults;
use crate::run::{Run, RunResult, Stop};
use crate::template::plain;

const COMMANDS: &[&str] = &[
    "/ask-cancelled",
    "/commands",
    "/confirm",
    "/crash",
    "/echo",
    "/env",
    "/fail",
    "/flood",
    "/fork",
    "/fork-crash",
    "/garbage",
    "/hang",
    "/hangup",
    "/lie",
    "/odd",
    "/pick",
    "/plan",
    "/prompt",
    "/recall",
    "/remember",
    "/show",
    "/slow",
    "/stderr",
    "/stop-reading",
    "/stream",
    "/think",
    "/title",
    "/tool",
    "/usage",
];

/// Executes the prompt. If the run before ended with a question (to the prompt `asked`), this may
/// be its answer, and may then repeat that prompt.
pub(crate) fn execute(run: &mut Run, asked: Option<&str>) -> RunResult {
    let text = run.prompt.text.clone();
    let first_value = command(&text);
    if let Some(asked) = asked
        && asked != text
        && first_value.is_none_or(|(word, _)| Some(word) == command(asked).map(|(word, _)| word))
    {
        return run.send_text(&format!("answered: {text}"));
    }
    let Some((command, rest)) = first_value else {
        // As a model does: what asks for a command is done with the tool for it.
        return if text.contains("shell command") {
            tool(run)
        } else {
            chat(run, &text)
        };
    };
    match command {
        "/echo" => run.send_text(rest),
        "/stream" => stream(run, rest),
        "/think" => send_thought(run),
        "/tool" => tool(run),
        "/confirm" => confirm(run, rest),
        "/prompt" | "/pick" => question(run, &command[1..], rest),
        "/plan" | "/usage" | "/commands" | "/odd" => {
            run.announce(&command[1..])?;
            run.send_text("That was it.")
        }
        "/title" => {
            run.set("title", rest);
            run.announce("title")?;
            run.send_text("That was it.")
        }
        "/fail" => {
            run.send_text("This will ")?;
            Err(Stop::Failed("it failed, as it was told to".into()))
        }
        "/show" => {
            let line = run.prompt.line.to_string();
            run.send_text(&line)
        }
        "/env" => environment(run),
        "/remember" => remember(run, rest),
        "/recall" => recall(run),
        "/ask-cancelled" => ask_cancelled(run),
        _ => faults::execute(run, command, rest),
    }
}

/// The command in a text, and the rest of its line.
fn command(text: &str) -> Option<(&'static str, &str)> {
    text.lines().find_map(|line| {
        let mut rest = line;
        loop {
            rest = rest.trim_start();
            let length = rest.find(char::is_whitespace).unwrap_or(rest.len());
            let (word, behind) = rest.split_at(length);
            if word.is_empty() {
                return None;
            }
            if let Some(command) = COMMANDS.iter().find(|command| **command == word) {
                return Some((*command, behind.trim()));
            }
            rest = behind;
        }
    })
}

/// The number at this position behind a command, or the default.
pub(crate) fn number(rest: &str, place: usize, otherwise: u64) -> u64 {
    let word = rest.split_whitespace().nth(place);
    word.and_then(|word| word.parse().ok()).unwrap_or(otherwise)
}

fn chat(run: &mut Run, text: &str) -> RunResult {
    for piece in ["You ", "said: "] {
        run.send_text(piece)?;
    }
    let letters: Vec<char> = text.chars().collect();
    for piece in letters.chunks(letters.len().div_ceil(4).max(1)) {
        run.send_text(&piece.iter().collect::<String>())?;
    }
    Ok(())
}

fn stream(run: &mut Run, rest: &str) -> RunResult {
    let pause = Duration::from_millis(number(rest, 1, 0));
    for word in 1..=number(rest, 0, 10) {
        run.send_text(&format!("{word} "))?;
        run.wait(pause)?;
    }
    Ok(())
}

fn send_thought(run: &mut Run) -> RunResult {
    if run.section("thought").is_none() {
        return run.announce("thought");
    }
    for piece in ["Let me ", "think. "] {
        run.send_thought(piece)?;
    }
    run.send_text("I have thought.")
}

fn tool(run: &mut Run) -> RunResult {
    run.make("tool");
    run.announce("tool")?;
    let answer = if asks() { run.ask("ask")? } else { None };
    let (ending, word) = match answer {
        None => ("tool_done", "ran"),
        Some(answer) if answer.granted => {
            if answer.lasts {
                drop(std::fs::write(rules(), "allow"));
            }
            ("tool_done", "allowed")
        }
        Some(_) => ("tool_denied", "denied"),
    };
    run.send_section(ending)?;
    if ending == "tool_denied" && run.section("denied_end").is_some() {
        run.send_section("denied_end")?;
        return Err(Stop::Ended);
    }
    run.send_text(word)
}

/// Where an answer for good is stored: in the home, as real agents do.
fn rules() -> PathBuf {
    PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".fake-rules")
}

/// `FAKE_ASK=never`, or an earlier answer for good: it does not ask.
fn asks() -> bool {
    std::env::var("FAKE_ASK").as_deref() != Ok("never") && !rules().exists()
}

fn confirm(run: &mut Run, rest: &str) -> RunResult {
    let kind = variant(run, "confirm", rest);
    let said = match run.ask(&kind)? {
        None => return run.announce("confirm"),
        Some(answer) if answer.granted => "yes",
        Some(_) => "no",
    };
    run.send_text(&format!("answered: {said}"))
}

fn question(run: &mut Run, kind: &str, rest: &str) -> RunResult {
    let variant = variant(run, kind, rest);
    let Some(answer) = run.ask(&variant)? else {
        return run.announce(kind);
    };
    let said = answer.said.unwrap_or_else(|| "nothing".into());
    run.send_text(&format!("answered: {said}"))
}

/// `/pick multi` uses the section `pick_multi`, if there is one.
fn variant(run: &Run, kind: &str, rest: &str) -> String {
    let special = format!("{kind}_{rest}");
    if run.section(&special).is_some() {
        special
    } else {
        kind.to_owned()
    }
}

/// Keeps asking after a cancel.
fn ask_cancelled(run: &mut Run) -> RunResult {
    let stopped = loop {
        match run.ask("ask") {
            Ok(None) => return run.announce("ask"),
            Ok(Some(_)) => {}
            Err(stop) => break stop,
        }
        if let Err(stop) = run.wait(Duration::from_millis(50)) {
            break stop;
        }
    };
    if matches!(stopped, Stop::Cancelled) {
        for _ in 0..2 {
            run.ask_after_cancel("ask", Duration::from_secs(5))?;
        }
    }
    Err(stopped)
}

fn environment(run: &mut Run) -> RunResult {
    let mut names: Vec<String> = std::env::vars_os()
        .map(|(name, _)| name.to_string_lossy().into_owned())
        .collect();
    names.sort();
    let here = std::env::current_dir().unwrap_or_default();
    // The umask can only be read by setting it.
    let mask = rustix::process::umask(rustix::fs::Mode::empty());
    rustix::process::umask(mask);
    run.send_text(&format!("env {}\n", names.join(" ")))?;
    run.send_text(&format!("cwd {}\n", here.display()))?;
    run.send_text(&format!("umask {:04o}", mask.bits()))
}

/// The file that stores the word of this conversation.
fn memory(run: &Run) -> PathBuf {
    let thread = run.get("thread").map(plain).unwrap_or_default();
    let safe = |letter: char| {
        if letter.is_alphanumeric() || "-_".contains(letter) {
            letter
        } else {
            '_'
        }
    };
    let name: String = thread.chars().take(100).map(safe).collect();
    PathBuf::from(format!(".fake-memory-{name}"))
}

fn remember(run: &mut Run, word: &str) -> RunResult {
    match std::fs::write(memory(run), word) {
        Ok(()) => run.send_text("remembered"),
        Err(error) => Err(Stop::Failed(format!("cannot remember: {error}"))),
    }
}

fn recall(run: &mut Run) -> RunResult {
    let word = std::fs::read_to_string(memory(run));
    run.send_text(&word.unwrap_or_else(|_| "nothing".into()))
}
