//! Wire: line framing, writers and the log.

use std::fs::File;
use std::io::{self, BufRead, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::protocol::Lane;

const MAX_LOGGED_BYTES: usize = 4096;

/// Ignores poisoning: a thread that panicked must not block the others.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn log_stderr(text: &str) {
    drop(writeln!(io::stderr(), "{text}"));
}

/// Log of all lines received (`< …`) and sent (`> …`), for tests.
pub(crate) struct Log(Option<Mutex<File>>);

impl Log {
    pub(crate) fn open(path: Option<&Path>) -> io::Result<Self> {
        let open = |path| File::options().create(true).append(true).open(path);
        Ok(Self(path.map(open).transpose()?.map(Mutex::new)))
    }

    pub(crate) fn record(&self, direction: &str, bytes: &[u8]) {
        let Some(file) = &self.0 else { return };
        let shown = &bytes[..bytes.len().min(MAX_LOGGED_BYTES)];
        let entry = format!("{direction} {}\n", String::from_utf8_lossy(shown));
        drop(lock(file).write_all(entry.as_bytes()));
    }
}

/// Clients of the event socket, for protocols that have one.
#[derive(Default)]
pub(crate) struct EventClients {
    listener: Mutex<Option<UnixListener>>,
    clients: Mutex<Vec<UnixStream>>,
}

impl EventClients {
    /// Clients are accepted when there is an event to send, so that one that connected before a
    /// command receives all its events.
    pub(crate) fn open(&self, listener: UnixListener) -> io::Result<()> {
        listener.set_nonblocking(true)?;
        *lock(&self.listener) = Some(listener);
        Ok(())
    }

    pub(crate) fn add(&self, listener: UnixStream) {
        lock(&self.clients).push(listener);
    }

    fn accept_waiting(&self) {
        if let Some(listener) = &*lock(&self.listener) {
            while let Ok((listener, _)) = listener.accept() {
                if listener.set_nonblocking(false).is_ok() {
                    self.add(listener);
                }
            }
        }
    }

    /// Drops clients that cannot be reached.
    fn send(&self, bytes: &[u8]) {
        self.accept_waiting();
        lock(&self.clients).retain_mut(|listener| listener.write_all(bytes).is_ok());
    }

    fn close(&self) {
        self.accept_waiting();
        for listener in lock(&self.clients).drain(..) {
            drop(listener.shutdown(Shutdown::Both));
        }
    }
}

pub(crate) struct Writer {
    main: Mutex<Box<dyn Write + Send>>,
    /// For closing; standard output cannot be closed.
    stream: Option<UnixStream>,
    events: Option<Arc<EventClients>>,
    end: u8,
    log: Arc<Log>,
}

impl Writer {
    pub(crate) fn stdout(end: u8, log: Arc<Log>) -> Self {
        Self {
            main: Mutex::new(Box::new(io::stdout())),
            stream: None,
            events: None,
            end,
            log,
        }
    }

    pub(crate) fn socket(
        stream: &UnixStream,
        events: Option<Arc<EventClients>>,
        end: u8,
        log: Arc<Log>,
    ) -> io::Result<Self> {
        Ok(Self {
            main: Mutex::new(Box::new(stream.try_clone()?)),
            stream: Some(stream.try_clone()?),
            events,
            end,
            log,
        })
    }

    pub(crate) fn write(&self, lane: Lane, text: &[u8]) -> io::Result<()> {
        self.log.record(">", text);
        let mut bytes = Vec::with_capacity(text.len() + 1);
        bytes.extend_from_slice(text);
        bytes.push(self.end);
        if let (Lane::Events, Some(event_clients)) = (lane, &self.events) {
            event_clients.send(&bytes);
            return Ok(());
        }
        let mut main = lock(&self.main);
        main.write_all(&bytes)?;
        main.flush()
    }

    /// Closes the connection (of the event clients, if any); `false` if it cannot be closed.
    pub(crate) fn close(&self) -> bool {
        match (&self.events, &self.stream) {
            (Some(event_clients), _) => event_clients.close(),
            (None, Some(stream)) => drop(stream.shutdown(Shutdown::Both)),
            (None, None) => return false,
        }
        true
    }
}

/// The next line without its delimiter; `None` at the end of the input.
pub(crate) fn next_line(input: &mut impl BufRead, end: u8) -> Option<Vec<u8>> {
    let mut line = Vec::new();
    match input.read_until(end, &mut line) {
        Ok(0) | Err(_) => None,
        Ok(_) => {
            if line.last() == Some(&end) {
                line.pop();
            }
            Some(line)
        }
    }
}
