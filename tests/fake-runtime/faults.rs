//! Faults: crash, hang, lies, floods and child processes left behind.

use std::io::{self, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use crate::run::{Run, RunResult};
use crate::script::number;
use crate::wire::log_stderr;

pub(crate) const CRASH: i32 = 3;
/// The argument that turns this program into a child outside our process group.
pub(crate) const DETACHED: &str = "--sleep-apart";

const MEBIBYTE: u64 = 1024 * 1024;
const PIECE: usize = 4096;
/// Limits messages whose pieces each repeat the whole text.
const PIECES_PER_MESSAGE: u64 = 8;
const SLOW_DELAY: Duration = Duration::from_secs(3);
const FOREVER: Duration = Duration::from_hours(24);

pub(crate) fn execute(run: &mut Run, command: &str, rest: &str) -> RunResult {
    match command {
        "/crash" => {
            run.send_text("Before the ")?;
            crash("crashed in the middle of an answer, as it was told to")
        }
        "/hang" => hang(run, rest),
        "/hangup" => close_connection(run),
        "/garbage" => garbage(run, rest),
        "/flood" => flood(run, rest),
        "/lie" => lie(run),
        "/fork" => fork(run),
        "/fork-crash" => {
            fork(run)?;
            crash("crashed and left children behind, as it was told to")
        }
        "/slow" => {
            run.connection.read_pause.pause(SLOW_DELAY);
            run.send_text("slow ")?;
            run.wait(SLOW_DELAY)?;
            run.send_text("done")
        }
        "/stop-reading" => {
            run.connection.read_pause.pause(FOREVER);
            run.send_text("reads nothing any more")
        }
        "/stderr" => {
            for line in 1..=number(rest, 0, 1) {
                log_stderr(&format!("complaint {line}"));
            }
            run.send_text("complained")
        }
        _ => Ok(()),
    }
}

fn crash(last_words: &str) -> ! {
    log_stderr(&format!("fake-runtime: {last_words}"));
    std::process::exit(CRASH);
}

fn hang(run: &mut Run, rest: &str) -> RunResult {
    if rest == "deaf" {
        run.ignores_input = true;
        run.connection
            .runtime
            .ignores_input
            .store(true, Ordering::Relaxed);
    }
    run.wait_forever()
}

fn close_connection(run: &mut Run) -> RunResult {
    run.send_text("Before the ")?;
    if !run.connection.writer.close() {
        return run.send_text("end of the line, which cannot be hung up here.");
    }
    for word in 1..=10 {
        run.wait(Duration::from_millis(100))?;
        run.send_text(&format!("{word} "))?;
    }
    Ok(())
}

fn garbage(run: &mut Run, rest: &str) -> RunResult {
    let mebibytes = number(rest, 0, 20);
    run.send_text("Before, ")?;
    run.write_raw(b"this is not JSON")?;
    run.write_raw(b"{\"half\": ")?;
    run.write_raw(b"\xff\xfe{\"text\":\"\xc3\x28\"}")?;
    run.write_raw(b"")?;
    run.write_raw(b"[]")?;
    run.write_raw(b"[{\"jsonrpc\":\"2.0\",\"method\":\"batch\"}]")?;
    run.write_raw(b"null")?;
    run.write_raw(b"42")?;
    run.write_raw(b"{}")?;
    if mebibytes > 0 {
        let length = usize::try_from(mebibytes * MEBIBYTE).unwrap_or(usize::MAX);
        let mut line = vec![b'x'; length];
        line[..9].copy_from_slice(b"{\"long\":\"");
        line[length - 2..].copy_from_slice(b"\"}");
        run.write_raw(&line)?;
    }
    run.send_text("after.")
}

/// Pieces of 4 KiB that start with their number, as fast as they are read.
fn flood(run: &mut Run, rest: &str) -> RunResult {
    let mebibytes = number(rest, 0, 1);
    let repeats = run.sends_cumulative_text("text");
    run.skips_total = mebibytes == 0 && !repeats;
    let pieces = if mebibytes == 0 {
        u64::MAX
    } else {
        mebibytes.saturating_mul(MEBIBYTE) / PIECE as u64
    };
    let filling = "x".repeat(PIECE);
    for place in 0..pieces {
        let number = format!("{place} ");
        run.send_text(&format!("{number}{}", &filling[number.len()..]))?;
        if repeats && place % PIECES_PER_MESSAGE == PIECES_PER_MESSAGE - 1 {
            run.finish_message()?;
        }
    }
    Ok(())
}

fn lie(run: &mut Run) -> RunResult {
    for word in ["true ", "words ", "only"] {
        run.send_text(word)?;
        run.set("text", "a lie");
        run.send_section("lie")?;
    }
    Ok(())
}

/// One child in our process group that holds our output open, and one outside of it.
fn fork(run: &mut Run) -> RunResult {
    let attached = Command::new("sleep")
        .arg("600")
        .stdin(Stdio::null())
        .spawn();
    let own = std::env::current_exe().unwrap_or_default();
    let detached = Command::new(own)
        .args([DETACHED, "600"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map(wait_until_detached);
    match (attached, detached) {
        (Ok(attached), Ok(detached)) => {
            let said = format!("children {} {}", attached.id(), detached.id());
            reap(attached);
            reap(detached);
            run.send_text(&said)
        }
        (attached, detached) => {
            let failed = [attached.err(), detached.err()].into_iter().flatten();
            let why: Vec<String> = failed.map(|error| error.to_string()).collect();
            run.send_text(&format!("no children: {}", why.join(", ")))
        }
    }
}

/// Waits until the child reports that it is detached.
fn wait_until_detached(mut child: Child) -> Child {
    if let Some(mut said) = child.stdout.take() {
        drop(said.read(&mut [0]));
    }
    child
}

/// An ended child must not remain as a zombie.
fn reap(mut child: Child) {
    thread::spawn(move || child.wait());
}

pub(crate) fn sleep_detached(seconds: &str) {
    if let Err(error) = rustix::process::setsid() {
        log_stderr(&format!("fake-runtime: cannot be apart: {error}"));
    }
    drop(writeln!(io::stdout(), "apart"));
    thread::sleep(Duration::from_secs(number(seconds, 0, 1)));
}
