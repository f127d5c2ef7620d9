//! `fake-runtime`: the agent's side of any protocol, as a protocol file defines it.
//!
//! `fake-runtime PROTOCOL [--socket PATH | --connect PATH] [--log FILE] [--framing NAME]`.
//! `docs/agents/testing.md` describes its commands and the format of a protocol file. It needs no
//! model, no network and no async runtime: one thread per connection and one per run.

mod clock;
mod conversation;
mod faults;
mod protocol;
mod run;
mod runtime;
mod script;
mod template;
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
use protocol::{Framing, Protocol, Transport};
use runtime::Runtime;
use wire::{Log, Writer, log_stderr};

const USAGE: &str =
    "fake-runtime PROTOCOL [--socket PATH | --connect PATH] [--log FILE] [--framing NAME]";

#[derive(Default)]
struct Arguments {
    protocol: PathBuf,
    socket: Option<PathBuf>,
    connect: Option<PathBuf>,
    log: Option<PathBuf>,
    framing: Option<Framing>,
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [faults::DETACHED, seconds] = words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        faults::sleep_detached(seconds);
        return ExitCode::SUCCESS;
    }
    if std::env::var_os("FAKE_CRASH_AT_START").is_some() {
        log_stderr("fake-runtime: crashed at the start, as it was told to");
        return ExitCode::from(3);
    }
    match arguments(words).and_then(|arguments| run(&arguments)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            log_stderr(&format!("fake-runtime: {error}"));
            ExitCode::from(2)
        }
    }
}

fn arguments(words: Vec<String>) -> Result<Arguments, String> {
    let mut arguments = Arguments::default();
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        let mut path = || words.next().map(PathBuf::from).ok_or(USAGE);
        match word.as_str() {
            "--socket" => arguments.socket = Some(path()?),
            "--connect" => arguments.connect = Some(path()?),
            "--log" => arguments.log = Some(path()?),
            "--framing" => {
                arguments.framing = Some(Framing::from_name(&path()?.to_string_lossy())?);
            }
            name if arguments.protocol.as_os_str().is_empty() && !name.starts_with('-') => {
                arguments.protocol = name.into();
            }
            _ => return Err(USAGE.into()),
        }
    }
    if arguments.protocol.as_os_str().is_empty() {
        return Err(USAGE.into());
    }
    Ok(arguments)
}

fn run(arguments: &Arguments) -> Result<(), String> {
    let about = |path: &Path, error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let text = std::fs::read_to_string(&arguments.protocol)
        .map_err(|error| about(&arguments.protocol, &error))?;
    let mut protocol = Protocol::read(&text).map_err(|error| about(&arguments.protocol, &error))?;
    protocol.framing = arguments.framing.unwrap_or(protocol.framing);
    let log = Log::open(arguments.log.as_deref()).map_err(|error| format!("the log: {error}"))?;
    let runtime = Arc::new(Runtime::new(protocol, log));
    match (
        &arguments.socket,
        &arguments.connect,
        runtime.protocol.transport,
    ) {
        (None, None, Transport::Stdio) => {
            serve_stdio(&runtime);
            Ok(())
        }
        (Some(path), None, _) => serve_socket(&runtime, path).map_err(|error| about(path, &error)),
        (None, Some(path), _) => connect(&runtime, path).map_err(|error| about(path, &error)),
        _ => Err(format!("this protocol needs a socket: {USAGE}")),
    }
}

fn serve_stdio(runtime: &Arc<Runtime>) {
    let writer = Writer::stdout(runtime.protocol.framing.end(), Arc::clone(&runtime.log));
    let connection = Connection::new(Arc::clone(runtime), writer, Arc::default());
    connection.serve(io::stdin().lock());
    while runtime.ignores_input.load(Ordering::Relaxed) {
        thread::sleep(Duration::from_secs(1));
    }
}

/// Accepts connections until the program ends. Over a pair of sockets all connections share one
/// conversation, and every event client receives all events.
fn serve_socket(runtime: &Arc<Runtime>, path: &Path) -> io::Result<()> {
    // The event socket first: a client that sees the other one may look for both.
    let shared: Option<Arc<Conversation>> = match runtime.protocol.transport {
        Transport::UnixPair => {
            runtime.event_clients.open(bind(&events_of(path))?)?;
            Some(Arc::default())
        }
        Transport::Stdio | Transport::Unix => None,
    };
    for stream in bind(path)?.incoming() {
        let (stream, runtime) = (stream?, Arc::clone(runtime));
        let base = shared.clone().unwrap_or_default();
        thread::spawn(move || serve_connection(&runtime, &stream, base));
    }
    Ok(())
}

/// Connects to a listening gateway, and ends with the connection.
fn connect(runtime: &Arc<Runtime>, path: &Path) -> io::Result<()> {
    let stream = UnixStream::connect(path)?;
    if runtime.protocol.transport == Transport::UnixPair {
        runtime
            .event_clients
            .add(UnixStream::connect(events_of(path))?);
    }
    serve_connection(runtime, &stream, Arc::default());
    Ok(())
}

fn serve_connection(runtime: &Arc<Runtime>, stream: &UnixStream, base: Arc<Conversation>) {
    let pair = runtime.protocol.transport == Transport::UnixPair;
    let event_clients = pair.then(|| Arc::clone(&runtime.event_clients));
    let log = Arc::clone(&runtime.log);
    let writer = Writer::socket(stream, event_clients, runtime.protocol.framing.end(), log);
    match (writer, stream.try_clone()) {
        (Ok(writer), Ok(input)) => {
            let connection = Connection::new(Arc::clone(runtime), writer, base);
            connection.serve(BufReader::new(input));
        }
        (Err(error), _) | (_, Err(error)) => log_stderr(&format!("fake-runtime: {error}")),
    }
}

/// Replaces a socket that was left behind.
fn bind(path: &Path) -> io::Result<UnixListener> {
    drop(std::fs::remove_file(path));
    UnixListener::bind(path)
}

fn events_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".events");
    name.into()
}
