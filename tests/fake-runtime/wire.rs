//! Bytes in and out: frames, the pen that everybody on a connection writes with, and the log.

use std::fs::File;
use std::io::{self, BufRead, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::phrasebook::Lane;

/// What is longer than this is cut in the log.
const LOGGED_BYTES: usize = 4096;

/// A lock that a thread which panicked does not spoil for the others.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes to the operator's ear.
pub(crate) fn murmur(text: &str) {
    drop(writeln!(io::stderr(), "{text}"));
}

/// Everything that was heard (`< …`) and said (`> …`), for tests to read.
pub(crate) struct Log(Option<Mutex<File>>);

impl Log {
    /// Begins or goes on with it.
    pub(crate) fn open(path: Option<&Path>) -> io::Result<Self> {
        let open = |path| File::options().create(true).append(true).open(path);
        Ok(Self(path.map(open).transpose()?.map(Mutex::new)))
    }

    pub(crate) fn note(&self, direction: &str, bytes: &[u8]) {
        let Some(file) = &self.0 else { return };
        let shown = &bytes[..bytes.len().min(LOGGED_BYTES)];
        let entry = format!("{direction} {}\n", String::from_utf8_lossy(shown));
        drop(lock(file).write_all(entry.as_bytes()));
    }
}

/// Those who listen to the events of a protocol that has a way of its own for them.
#[derive(Default)]
pub(crate) struct Listeners {
    door: Mutex<Option<UnixListener>>,
    inside: Mutex<Vec<UnixStream>>,
}

impl Listeners {
    /// Where they come in. They are let in when there is something to tell, so that whoever has
    /// connected before a command hears everything that comes of it.
    pub(crate) fn open(&self, door: UnixListener) -> io::Result<()> {
        door.set_nonblocking(true)?;
        *lock(&self.door) = Some(door);
        Ok(())
    }

    pub(crate) fn add(&self, listener: UnixStream) {
        lock(&self.inside).push(listener);
    }

    fn let_in(&self) {
        if let Some(door) = &*lock(&self.door) {
            while let Ok((listener, _)) = door.accept() {
                if listener.set_nonblocking(false).is_ok() {
                    self.add(listener);
                }
            }
        }
    }

    /// Whoever cannot be reached is forgotten.
    fn tell(&self, bytes: &[u8]) {
        self.let_in();
        lock(&self.inside).retain_mut(|listener| listener.write_all(bytes).is_ok());
    }

    fn hang_up(&self) {
        self.let_in();
        for listener in lock(&self.inside).drain(..) {
            drop(listener.shutdown(Shutdown::Both));
        }
    }
}

/// What a connection is written to with.
pub(crate) struct Pen {
    main: Mutex<Box<dyn Write + Send>>,
    /// For hanging up; standard output cannot be hung up.
    stream: Option<UnixStream>,
    events: Option<Arc<Listeners>>,
    end: u8,
    log: Arc<Log>,
}

impl Pen {
    /// Over standard output.
    pub(crate) fn stdout(end: u8, log: Arc<Log>) -> Self {
        Self {
            main: Mutex::new(Box::new(io::stdout())),
            stream: None,
            events: None,
            end,
            log,
        }
    }

    /// Over a socket, or two.
    pub(crate) fn socket(
        stream: &UnixStream,
        events: Option<Arc<Listeners>>,
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

    /// Writes a line and what ends it.
    pub(crate) fn write(&self, lane: Lane, text: &[u8]) -> io::Result<()> {
        self.log.note(">", text);
        let mut bytes = Vec::with_capacity(text.len() + 1);
        bytes.extend_from_slice(text);
        bytes.push(self.end);
        if let (Lane::Events, Some(listeners)) = (lane, &self.events) {
            listeners.tell(&bytes);
            return Ok(());
        }
        let mut main = lock(&self.main);
        main.write_all(&bytes)?;
        main.flush()
    }

    /// Ends the connection (of those who listen, if there are any); false if it cannot be ended.
    pub(crate) fn hang_up(&self) -> bool {
        match (&self.events, &self.stream) {
            (Some(listeners), _) => listeners.hang_up(),
            (None, Some(stream)) => drop(stream.shutdown(Shutdown::Both)),
            (None, None) => return false,
        }
        true
    }
}

/// The next line, without its end; nothing at the end of the input.
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
