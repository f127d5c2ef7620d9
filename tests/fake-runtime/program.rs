//! `fake-runtime`: plays the agent's side of any protocol, as a phrasebook words it.
//!
//! `fake-runtime PHRASEBOOK [--socket PATH | --connect PATH] [--log FILE] [--framing NAME]`. What it
//! can be told to do and what a phrasebook looks like is described in `docs/agents/testing.md`. It needs no model, no
//! network and no runtime: a thread for each connection and one for each scene that plays.

mod conversation;
mod moment;
mod phrasebook;
mod scene;
mod script;
mod stage;
mod template;
mod trouble;
mod wire;

use std::io::{self, BufReader};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use conversation::{Connection, Conversation};
use phrasebook::{Framing, Phrasebook, Transport};
use stage::Stage;
use wire::{Log, Pen, murmur};

const USAGE: &str =
    "fake-runtime PHRASEBOOK [--socket PATH | --connect PATH] [--log FILE] [--framing NAME]";

/// What stands on the command line.
#[derive(Default)]
struct Orders {
    phrasebook: PathBuf,
    socket: Option<PathBuf>,
    connect: Option<PathBuf>,
    log: Option<PathBuf>,
    framing: Option<Framing>,
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [trouble::APART, seconds] = words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        trouble::sleep_apart(seconds);
        return ExitCode::SUCCESS;
    }
    if std::env::var_os("FAKE_CRASH_AT_START").is_some() {
        murmur("fake-runtime: crashed at the start, as it was told to");
        return ExitCode::from(3);
    }
    match orders(words).and_then(|orders| run(&orders)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            murmur(&format!("fake-runtime: {error}"));
            ExitCode::from(2)
        }
    }
}

fn orders(words: Vec<String>) -> Result<Orders, String> {
    let mut orders = Orders::default();
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        let mut path = || words.next().map(PathBuf::from).ok_or(USAGE);
        match word.as_str() {
            "--socket" => orders.socket = Some(path()?),
            "--connect" => orders.connect = Some(path()?),
            "--log" => orders.log = Some(path()?),
            "--framing" => orders.framing = Some(Framing::named(&path()?.to_string_lossy())?),
            name if orders.phrasebook.as_os_str().is_empty() && !name.starts_with('-') => {
                orders.phrasebook = name.into();
            }
            _ => return Err(USAGE.into()),
        }
    }
    if orders.phrasebook.as_os_str().is_empty() {
        return Err(USAGE.into());
    }
    Ok(orders)
}

fn run(orders: &Orders) -> Result<(), String> {
    let about = |path: &Path, error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let text = std::fs::read_to_string(&orders.phrasebook)
        .map_err(|error| about(&orders.phrasebook, &error))?;
    let mut book = Phrasebook::read(&text).map_err(|error| about(&orders.phrasebook, &error))?;
    book.framing = orders.framing.unwrap_or(book.framing);
    let log = Log::open(orders.log.as_deref()).map_err(|error| format!("the log: {error}"))?;
    let stage = Arc::new(Stage::new(book, log));
    match (&orders.socket, &orders.connect, stage.book.transport) {
        (None, None, Transport::Stdio) => {
            over_stdio(&stage);
            Ok(())
        }
        (Some(path), None, _) => over_socket(&stage, path).map_err(|error| about(path, &error)),
        (None, Some(path), _) => connect(&stage, path).map_err(|error| about(path, &error)),
        _ => Err(format!("this protocol needs a socket: {USAGE}")),
    }
}

fn over_stdio(stage: &Arc<Stage>) {
    let pen = Pen::stdout(stage.book.framing.end(), Arc::clone(&stage.log));
    let connection = Connection::new(Arc::clone(stage), pen, Arc::default());
    connection.listen(io::stdin().lock());
    while stage.deaf.load(Ordering::Relaxed) {
        thread::sleep(Duration::from_secs(1));
    }
}

/// Listens for as long as the program runs. Over a pair of sockets everybody has the same
/// conversation, and everybody who listens hears all events.
fn over_socket(stage: &Arc<Stage>, path: &Path) -> io::Result<()> {
    // Events first: whoever sees the other socket may look for both.
    let shared: Option<Arc<Conversation>> = match stage.book.transport {
        Transport::UnixPair => {
            stage.listeners.open(bind(&events_of(path))?)?;
            Some(Arc::default())
        }
        Transport::Stdio | Transport::Unix => None,
    };
    for stream in bind(path)?.incoming() {
        let (stream, stage) = (stream?, Arc::clone(stage));
        let base = shared.clone().unwrap_or_default();
        thread::spawn(move || talk(&stage, &stream, base));
    }
    Ok(())
}

/// Connects to a gateway that listens, and ends with the connection.
fn connect(stage: &Arc<Stage>, path: &Path) -> io::Result<()> {
    let stream = UnixStream::connect(path)?;
    if stage.book.transport == Transport::UnixPair {
        stage.listeners.add(UnixStream::connect(events_of(path))?);
    }
    talk(stage, &stream, Arc::default());
    Ok(())
}

fn talk(stage: &Arc<Stage>, stream: &UnixStream, base: Arc<Conversation>) {
    let pair = stage.book.transport == Transport::UnixPair;
    let listeners = pair.then(|| Arc::clone(&stage.listeners));
    let log = Arc::clone(&stage.log);
    let pen = Pen::socket(stream, listeners, stage.book.framing.end(), log);
    match (pen, stream.try_clone()) {
        (Ok(pen), Ok(input)) => {
            let connection = Connection::new(Arc::clone(stage), pen, base);
            connection.listen(BufReader::new(input));
        }
        (Err(error), _) | (_, Err(error)) => murmur(&format!("fake-runtime: {error}")),
    }
}

/// A socket that was left behind is replaced.
fn bind(path: &Path) -> io::Result<UnixListener> {
    drop(std::fs::remove_file(path));
    UnixListener::bind(path)
}

fn events_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".events");
    name.into()
}
