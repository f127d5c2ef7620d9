//! Everything an agent can do wrong: crash, hang, lie, flood, leave children behind.

use std::io::{self, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use crate::scene::{Played, Scene};
use crate::script::number;
use crate::wire::murmur;

/// The exit code of a crash.
pub(crate) const CRASH: i32 = 3;
/// The argument that makes this program a child that nobody's group reaches.
pub(crate) const APART: &str = "--sleep-apart";

const MEBIBYTE: u64 = 1024 * 1024;
const PIECE: usize = 4096;
/// How many pieces are said in one go where each holds all before it.
const REPEATED: u64 = 8;
const SLOWNESS: Duration = Duration::from_secs(3);
const NEVER: Duration = Duration::from_hours(24);

/// Plays a scene that goes wrong.
pub(crate) fn perform(scene: &mut Scene, command: &str, rest: &str) -> Played {
    match command {
        "/crash" => {
            scene.speak("Before the ")?;
            crash("crashed in the middle of an answer, as it was told to")
        }
        "/hang" => hang(scene, rest),
        "/hangup" => hang_up(scene),
        "/garbage" => garbage(scene, rest),
        "/flood" => flood(scene, rest),
        "/lie" => lie(scene),
        "/fork" => fork(scene),
        "/fork-crash" => {
            fork(scene)?;
            crash("crashed and left children behind, as it was told to")
        }
        "/slow" => {
            scene.connection.gate.close(SLOWNESS);
            scene.speak("slow ")?;
            scene.wait(SLOWNESS)?;
            scene.speak("done")
        }
        "/stop-reading" => {
            scene.connection.gate.close(NEVER);
            scene.speak("reads nothing any more")
        }
        "/stderr" => {
            for line in 1..=number(rest, 0, 1) {
                murmur(&format!("complaint {line}"));
            }
            scene.speak("complained")
        }
        _ => Ok(()),
    }
}

fn crash(last_words: &str) -> ! {
    murmur(&format!("fake-runtime: {last_words}"));
    std::process::exit(CRASH);
}

fn hang(scene: &mut Scene, rest: &str) -> Played {
    if rest == "deaf" {
        scene.deaf = true;
        scene.connection.stage.deaf.store(true, Ordering::Relaxed);
    }
    scene.wait_forever()
}

fn hang_up(scene: &mut Scene) -> Played {
    scene.speak("Before the ")?;
    if !scene.connection.pen.hang_up() {
        return scene.speak("end of the line, which cannot be hung up here.");
    }
    for word in 1..=10 {
        scene.wait(Duration::from_millis(100))?;
        scene.speak(&format!("{word} "))?;
    }
    Ok(())
}

fn garbage(scene: &mut Scene, rest: &str) -> Played {
    let mebibytes = number(rest, 0, 20);
    scene.speak("Before, ")?;
    scene.write_raw(b"this is not JSON")?;
    scene.write_raw(b"{\"half\": ")?;
    scene.write_raw(b"\xff\xfe{\"text\":\"\xc3\x28\"}")?;
    scene.write_raw(b"")?;
    scene.write_raw(b"[]")?;
    scene.write_raw(b"[{\"jsonrpc\":\"2.0\",\"method\":\"batch\"}]")?;
    scene.write_raw(b"null")?;
    scene.write_raw(b"42")?;
    scene.write_raw(b"{}")?;
    if mebibytes > 0 {
        let length = usize::try_from(mebibytes * MEBIBYTE).unwrap_or(usize::MAX);
        let mut line = vec![b'x'; length];
        line[..9].copy_from_slice(b"{\"long\":\"");
        line[length - 2..].copy_from_slice(b"\"}");
        scene.write_raw(&line)?;
    }
    scene.speak("after.")
}

/// Pieces of 4 KiB, each beginning with its number, as fast as they are taken.
fn flood(scene: &mut Scene, rest: &str) -> Played {
    let mebibytes = number(rest, 0, 1);
    let repeats = scene.repeats_itself("text");
    scene.careless = mebibytes == 0 && !repeats;
    let pieces = if mebibytes == 0 {
        u64::MAX
    } else {
        mebibytes.saturating_mul(MEBIBYTE) / PIECE as u64
    };
    let filling = "x".repeat(PIECE);
    for place in 0..pieces {
        let number = format!("{place} ");
        scene.speak(&format!("{number}{}", &filling[number.len()..]))?;
        if repeats && place % REPEATED == REPEATED - 1 {
            scene.pause_speech()?;
        }
    }
    Ok(())
}

fn lie(scene: &mut Scene) -> Played {
    for word in ["true ", "words ", "only"] {
        scene.speak(word)?;
        scene.set("text", "a lie");
        scene.say("lie")?;
    }
    Ok(())
}

/// One child in our group, which holds our output open, and one apart from it.
fn fork(scene: &mut Scene) -> Played {
    let near = Command::new("sleep")
        .arg("600")
        .stdin(Stdio::null())
        .spawn();
    let own = std::env::current_exe().unwrap_or_default();
    let far = Command::new(own)
        .args([APART, "600"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map(moved_away);
    match (near, far) {
        (Ok(near), Ok(far)) => {
            let said = format!("children {} {}", near.id(), far.id());
            reap(near);
            reap(far);
            scene.speak(&said)
        }
        (near, far) => {
            let failed = [near.err(), far.err()].into_iter().flatten();
            let why: Vec<String> = failed.map(|error| error.to_string()).collect();
            scene.speak(&format!("no children: {}", why.join(", ")))
        }
    }
}

/// Waits until the child says that it is apart.
fn moved_away(mut child: Child) -> Child {
    if let Some(mut said) = child.stdout.take() {
        drop(said.read(&mut [0]));
    }
    child
}

/// A child that has ended must not look as if it were still there.
fn reap(mut child: Child) {
    thread::spawn(move || child.wait());
}

/// What the child does that is apart.
pub(crate) fn sleep_apart(seconds: &str) {
    if let Err(error) = rustix::process::setsid() {
        murmur(&format!("fake-runtime: cannot be apart: {error}"));
    }
    drop(writeln!(io::stdout(), "apart"));
    thread::sleep(Duration::from_secs(number(seconds, 0, 1)));
}
