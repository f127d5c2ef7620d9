//! Link loop: carries bytes, commands and events while the agent is connected.
//!
//! Nothing is read from the agent while the session does not keep up, and no command is taken while
//! the agent does not: the pressure reaches the pipe.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::drain::{DRAIN_TIMEOUT, READ_BUFFER_BYTES, read_rest, take_lines};
use super::events_out::{Commands, EventsOut, send_next};
use super::task::{LinkEnd, LinkTask};
use crate::runtime::dialect::StreamKind;
use crate::runtime::dialect_driver::{DialectDriver, DialectEnd, DroppedLines};
use crate::runtime::error::AgentError;
use crate::runtime::launch::LaunchedAgent;
use crate::runtime::lines::Lines;
use crate::runtime::messages::{FromAgent, ToAgent};
use crate::runtime::process::Process;
use crate::runtime::throttle::{PROCESS_BURST_BYTES, Throttle};
use crate::runtime::transport::ByteStream;

const HANDSHAKE_TIMEOUT: Duration = Duration::from_mins(3);
/// How long lost sockets may take to open again.
const RECONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// An agent that drops its sockets more often than this within a minute is given up.
const MAX_RECONNECTS: u32 = 5;
const RECONNECTS_WITHIN: Duration = Duration::from_mins(1);

pub(super) struct LinkLoop<'a> {
    task: &'a LinkTask,
    agent: &'a mut LaunchedAgent,
    commands: &'a mut Commands,
    events_out: &'a EventsOut,
    driver: &'a mut DialectDriver,
    /// Of the main stream and of the event stream, as are the buffers.
    lines: [Lines; 2],
    buffers: [Vec<u8>; 2],
    throttle: Throttle,
    started: Instant,
    /// When the agent last wrote, or the run last began to wait for it.
    last_activity: Instant,
    /// Read since the run started, or since it ended.
    run_bytes: u64,
    was_ready: bool,
    was_awaited: bool,
    was_running: bool,
    /// Since when lost sockets are counted, and how many there were.
    reconnects: (Instant, u32),
}

enum Input<'a> {
    Stop,
    Command(Option<ToAgent>),
    /// Room for the next event; none if the session is gone.
    Permit(Option<mpsc::Permit<'a, FromAgent>>),
    Wrote(usize),
    Read(StreamKind, usize),
    /// A stream closed, or the process exited.
    Closed,
    Timer,
    Unthrottled,
    Timeout,
}

impl<'a> LinkLoop<'a> {
    pub(super) fn new(
        task: &'a LinkTask,
        agent: &'a mut LaunchedAgent,
        commands: &'a mut Commands,
        events_out: &'a EventsOut,
        driver: &'a mut DialectDriver,
    ) -> Self {
        let events_buffer = agent.events.as_ref().map_or(0, |_| READ_BUFFER_BYTES);
        let now = Instant::now();
        Self {
            lines: empty_lines(task),
            buffers: [vec![0; READ_BUFFER_BYTES], vec![0; events_buffer]],
            throttle: Throttle::new(PROCESS_BURST_BYTES, now),
            started: now,
            last_activity: now,
            run_bytes: 0,
            was_ready: false,
            was_awaited: false,
            was_running: false,
            reconnects: (now, 0),
            task,
            agent,
            commands,
            events_out,
            driver,
        }
    }

    /// Starts the handshake and runs until the link ends.
    pub(super) async fn run(mut self, stop: &CancellationToken) -> LinkEnd {
        self.driver.open(self.started);
        loop {
            if let Some(end) = self.observe() {
                return end;
            }
            let input = self.next_input(stop).await;
            if matches!(input, Input::Closed) && self.reconnect(stop).await {
                continue;
            }
            if let Some(end) = self.handle(input).await {
                return end;
            }
        }
    }

    /// Notes what the last input changed. Returns an end that the dialect or a limit demands.
    fn observe(&mut self) -> Option<LinkEnd> {
        let now = Instant::now();
        if let Some(end) = self.dialect_end() {
            return Some(end);
        }
        if self.driver.is_ready() != self.was_ready {
            self.was_ready = true;
            self.task.entry.status.record_ready(self.driver.lacks());
        }
        if self.driver.awaits_agent() != self.was_awaited {
            self.was_awaited = !self.was_awaited;
            self.last_activity = now;
        }
        if self.driver.is_running() != self.was_running {
            self.was_running = !self.was_running;
            self.run_bytes = 0;
        }
        let bytes = self.task.entry.config.max_run_bytes;
        (self.run_bytes > bytes).then_some(LinkEnd::Failed(AgentError::TooMuch { bytes }))
    }

    /// Counts what the driver dropped or completed, and asks it for its end.
    fn dialect_end(&mut self) -> Option<LinkEnd> {
        let (task, dropped) = (self.task, self.driver.take_dropped());
        if dropped != DroppedLines::default() {
            task.entry.status.update(|report| {
                report.misrouted += dropped.misrouted;
                report.unexpected += dropped.unexpected;
            });
        }
        if self.driver.take_completed_run() {
            task.entry.status.record_completed_run(task.owner.session);
        }
        Some(match self.driver.take_end()? {
            DialectEnd::Failed(declined) => LinkEnd::Failed(AgentError::Refused(declined)),
            DialectEnd::Finished => LinkEnd::Finished,
        })
    }

    /// The handshake's deadline, then the deadline of the agent's silence.
    fn deadline(&self) -> Instant {
        if self.was_ready {
            self.last_activity + self.task.silence_timeout()
        } else {
            self.started + HANDSHAKE_TIMEOUT
        }
    }

    async fn next_input(&mut self, stop: &CancellationToken) -> Input<'a> {
        let deadline = self.deadline();
        let throttled = self.throttle.waits_until(Instant::now());
        let can_read = self.driver.can_read() && throttled.is_none();
        let can_time_out = !self.was_ready || (self.driver.awaits_agent() && can_read);
        let events_out = self.events_out;
        let [main_buffer, events_buffer] = &mut self.buffers;
        let LaunchedAgent {
            main,
            events,
            process,
            ..
        } = &mut *self.agent;
        let unwritten = self.driver.unwritten(StreamKind::Main);
        // Every branch is cancel-safe: commands and permits stay in their channels, and a dropped
        // `read` or `write` has done nothing.
        tokio::select! {
            biased;
            () = stop.cancelled() => Input::Stop,
            // A cancel must not wait behind a stream of text.
            command = self.commands.recv(), if self.driver.can_take_command() => {
                Input::Command(command)
            }
            permit = events_out.reserve(self.driver.next_event_bytes()) => Input::Permit(permit),
            written = main.writer.write(unwritten), if !unwritten.is_empty() => match written {
                Ok(written @ 1..) => Input::Wrote(written),
                _ => Input::Closed,
            },
            read = main.reader.read(main_buffer), if can_read => match read {
                Ok(read @ 1..) => Input::Read(StreamKind::Main, read),
                _ => Input::Closed,
            },
            read = read_events(events, events_buffer), if can_read => match read {
                Some(read) => Input::Read(StreamKind::Events, read),
                None => Input::Closed,
            },
            () = exited(process) => Input::Closed,
            () = until(self.driver.next_timer()) => Input::Timer,
            () = until(throttled) => Input::Unthrottled,
            () = sleep_until(deadline), if can_time_out => Input::Timeout,
        }
    }

    /// Returns the end of the link, if this is it.
    async fn handle(&mut self, input: Input<'a>) -> Option<LinkEnd> {
        match input {
            Input::Stop | Input::Command(None) | Input::Permit(None) => {
                return Some(LinkEnd::Stopped);
            }
            Input::Command(Some(command)) => self.task.handle(command, self.driver).await,
            Input::Permit(Some(permit)) => {
                send_next(permit, self.driver);
                self.events_out.send_ready(self.driver);
            }
            Input::Wrote(count) => self.driver.wrote(StreamKind::Main, count),
            Input::Read(stream, count) => self.take_bytes(stream, count),
            Input::Closed => return Some(self.drain().await),
            Input::Timer => self.driver.run_timers(Instant::now()),
            Input::Unthrottled => {}
            Input::Timeout => {
                return Some(LinkEnd::Failed(if self.was_ready {
                    let after = self.task.silence_timeout();
                    AgentError::Silent { after }
                } else {
                    let after = HANDSHAKE_TIMEOUT;
                    AgentError::NotReady { after }
                }));
            }
        }
        None
    }

    fn take_bytes(&mut self, stream: StreamKind, count: usize) {
        let now = Instant::now();
        // With a stream for events, the other one has only answers to what the gateway asks by itself.
        if stream == StreamKind::Events || self.agent.events.is_none() {
            self.last_activity = now;
        }
        self.run_bytes += count as u64;
        self.throttle.spend(count, now);
        let index = usize::from(stream == StreamKind::Events);
        let lines = &mut self.lines[index];
        lines.push(&self.buffers[index][..count]);
        take_lines(lines, stream, self.driver, now);
    }

    /// Opens the sockets of an agent that lives on again. Returns whether the link goes on.
    async fn reconnect(&mut self, stop: &CancellationToken) -> bool {
        if !self.agent.can_reconnect() || !self.driver.can_reconnect() || !self.count_reconnect() {
            return false;
        }
        self.read_rest().await;
        if !self.driver.can_reconnect() {
            return false;
        }
        if let Some(process) = &mut self.agent.process
            && timeout(DRAIN_TIMEOUT, process.wait()).await.is_ok()
        {
            return false;
        }
        let connecting = timeout(RECONNECT_TIMEOUT, self.agent.reconnect());
        let connected = stop.run_until_cancelled(connecting).await;
        match connected {
            Some(Ok(Ok(()))) => {}
            Some(_) => return false,
            // The loop sees it next.
            None => return true,
        }
        tracing::info!(
            agent = self.task.entry.name,
            session.id = %self.task.owner.session,
            "lost the sockets of an agent and opened them again"
        );
        self.lines = empty_lines(self.task);
        let now = Instant::now();
        self.last_activity = now;
        self.driver.reconnected(now);
        true
    }

    /// False if the sockets were lost too often.
    fn count_reconnect(&mut self) -> bool {
        let now = Instant::now();
        let (since, count) = &mut self.reconnects;
        if now - *since > RECONNECTS_WITHIN {
            (*since, *count) = (now, 0);
        }
        *count += 1;
        *count <= MAX_RECONNECTS
    }

    /// The agent is gone: reads its last lines and finds out why.
    async fn drain(&mut self) -> LinkEnd {
        self.read_rest().await;
        if let Some(end) = self.dialect_end() {
            return end;
        }
        let Some(process) = &mut self.agent.process else {
            return LinkEnd::Failed(AgentError::Closed);
        };
        let status = timeout(DRAIN_TIMEOUT, process.wait()).await;
        process.drain_stderr().await;
        LinkEnd::Failed(match status {
            Ok(Ok(status)) => AgentError::Ended { status },
            _ => AgentError::Closed,
        })
    }

    /// Reads what a closing agent has left in its streams.
    async fn read_rest(&mut self) {
        let [main_lines, events_lines] = &mut self.lines;
        let main = &mut self.agent.main;
        let main_kind = StreamKind::Main;
        read_rest(main, main_kind, main_lines, self.events_out, self.driver).await;
        if let Some(events) = &mut self.agent.events {
            let kind = StreamKind::Events;
            read_rest(events, kind, events_lines, self.events_out, self.driver).await;
        }
    }
}

fn empty_lines(task: &LinkTask) -> [Lines; 2] {
    let config = &task.entry.config;
    let lines = || {
        let max_line = config.max_line_bytes.get() as usize;
        Lines::new(config.framing(task.protocol), max_line)
    };
    [lines(), lines()]
}

async fn read_events(events: &mut Option<ByteStream>, buffer: &mut [u8]) -> Option<usize> {
    match events {
        None => std::future::pending().await,
        Some(stream) => stream
            .reader
            .read(buffer)
            .await
            .ok()
            .filter(|read| *read > 0),
    }
}

async fn exited(process: &mut Option<Process>) {
    match process {
        None => std::future::pending().await,
        Some(process) => drop(process.wait().await),
    }
}

async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => std::future::pending().await,
    }
}
