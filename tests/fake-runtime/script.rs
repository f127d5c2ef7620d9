//! What the words of a prompt make the agent do: the first word that begins with `/` and is one of
//! these, wherever it stands.

use std::path::PathBuf;
use std::time::Duration;

use crate::scene::{Played, Scene, Stop};
use crate::template::plain;
use crate::trouble;

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

/// Plays what the prompt asks for. It may be the answer to a question that the scene before has ended
/// with, the one for the prompt `asked`, and may then repeat that.
pub(crate) fn perform(scene: &mut Scene, asked: Option<&str>) -> Played {
    let text = scene.prompt.text.clone();
    let found = command(&text);
    if let Some(asked) = asked
        && asked != text
        && found.is_none_or(|(word, _)| Some(word) == command(asked).map(|(word, _)| word))
    {
        return scene.speak(&format!("answered: {text}"));
    }
    let Some((command, rest)) = found else {
        return chat(scene, &text);
    };
    match command {
        "/echo" => scene.speak(rest),
        "/stream" => stream(scene, rest),
        "/think" => think(scene),
        "/tool" => tool(scene),
        "/confirm" => confirm(scene, rest),
        "/prompt" | "/pick" => question(scene, &command[1..], rest),
        "/plan" | "/usage" | "/commands" | "/odd" => {
            scene.announce(&command[1..])?;
            scene.speak("That was it.")
        }
        "/title" => {
            scene.set("title", rest);
            scene.announce("title")?;
            scene.speak("That was it.")
        }
        "/fail" => {
            scene.speak("This will ")?;
            Err(Stop::Failed("it failed, as it was told to".into()))
        }
        "/show" => {
            let line = scene.prompt.line.to_string();
            scene.speak(&line)
        }
        "/env" => environment(scene),
        "/remember" => remember(scene, rest),
        "/recall" => recall(scene),
        "/ask-cancelled" => ask_cancelled(scene),
        _ => trouble::perform(scene, command, rest),
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

/// The numbers behind a command, and what stands for those that are not there.
pub(crate) fn number(rest: &str, place: usize, otherwise: u64) -> u64 {
    let word = rest.split_whitespace().nth(place);
    word.and_then(|word| word.parse().ok()).unwrap_or(otherwise)
}

fn chat(scene: &mut Scene, text: &str) -> Played {
    for piece in ["You ", "said: "] {
        scene.speak(piece)?;
    }
    let letters: Vec<char> = text.chars().collect();
    for piece in letters.chunks(letters.len().div_ceil(4).max(1)) {
        scene.speak(&piece.iter().collect::<String>())?;
    }
    Ok(())
}

fn stream(scene: &mut Scene, rest: &str) -> Played {
    let pause = Duration::from_millis(number(rest, 1, 0));
    for word in 1..=number(rest, 0, 10) {
        scene.speak(&format!("{word} "))?;
        scene.wait(pause)?;
    }
    Ok(())
}

fn think(scene: &mut Scene) -> Played {
    if scene.section("thought").is_none() {
        return scene.announce("thought");
    }
    for piece in ["Let me ", "think. "] {
        scene.think(piece)?;
    }
    scene.speak("I have thought.")
}

fn tool(scene: &mut Scene) -> Played {
    scene.make("tool");
    scene.announce("tool")?;
    let (ending, word) = match scene.ask("ask")? {
        None => ("tool_done", "ran"),
        Some(answer) if answer.granted => ("tool_done", "allowed"),
        Some(_) => ("tool_denied", "denied"),
    };
    scene.say(ending)?;
    scene.speak(word)
}

fn confirm(scene: &mut Scene, rest: &str) -> Played {
    let kind = variant(scene, "confirm", rest);
    let said = match scene.ask(&kind)? {
        None => return scene.announce("confirm"),
        Some(answer) if answer.granted => "yes",
        Some(_) => "no",
    };
    scene.speak(&format!("answered: {said}"))
}

fn question(scene: &mut Scene, kind: &str, rest: &str) -> Played {
    let variant = variant(scene, kind, rest);
    let Some(answer) = scene.ask(&variant)? else {
        return scene.announce(kind);
    };
    let said = answer.said.unwrap_or_else(|| "nothing".into());
    scene.speak(&format!("answered: {said}"))
}

/// `/pick multi` asks with the words for `pick_multi`, if there are any.
fn variant(scene: &Scene, kind: &str, rest: &str) -> String {
    let special = format!("{kind}_{rest}");
    if scene.section(&special).is_some() {
        special
    } else {
        kind.to_owned()
    }
}

/// Goes on asking after it was told to stop.
fn ask_cancelled(scene: &mut Scene) -> Played {
    let stopped = loop {
        match scene.ask("ask") {
            Ok(None) => return scene.announce("ask"),
            Ok(Some(_)) => {}
            Err(stop) => break stop,
        }
        if let Err(stop) = scene.wait(Duration::from_millis(50)) {
            break stop;
        }
    };
    if matches!(stopped, Stop::Cancelled) {
        for _ in 0..2 {
            scene.ask_in_spite("ask", Duration::from_secs(5))?;
        }
    }
    Err(stopped)
}

fn environment(scene: &mut Scene) -> Played {
    let mut names: Vec<String> = std::env::vars_os()
        .map(|(name, _)| name.to_string_lossy().into_owned())
        .collect();
    names.sort();
    let here = std::env::current_dir().unwrap_or_default();
    // The mask can only be seen by setting it.
    let mask = rustix::process::umask(rustix::fs::Mode::empty());
    rustix::process::umask(mask);
    scene.speak(&format!("env {}\n", names.join(" ")))?;
    scene.speak(&format!("cwd {}\n", here.display()))?;
    scene.speak(&format!("umask {:04o}", mask.bits()))
}

/// Where the word of this conversation is kept.
fn memory(scene: &Scene) -> PathBuf {
    let thread = scene.get("thread").map(plain).unwrap_or_default();
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

fn remember(scene: &mut Scene, word: &str) -> Played {
    match std::fs::write(memory(scene), word) {
        Ok(()) => scene.speak("remembered"),
        Err(error) => Err(Stop::Failed(format!("cannot remember: {error}"))),
    }
}

fn recall(scene: &mut Scene) -> Played {
    let word = std::fs::read_to_string(memory(scene));
    scene.speak(&word.unwrap_or_else(|_| "nothing".into()))
}
