//! Sessions on a real database, in process, with a manual clock.

use std::num::{NonZeroU32, NonZeroU64};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

mod agent_exit;
mod branches;
mod commits;
mod idle;
mod questions;
mod retention;

use super::state::SessionState;
use super::*;
use crate::domain::account::{Principal, Role};
use crate::domain::audit::{Action, AuditContext};
use crate::domain::command::{Command, IfBusy, Mode, Prompt};
use crate::domain::error_code::ErrorCode;
use crate::domain::event::{Event, Recorded};
use crate::domain::id::{LoginId, SessionId, UserId};
use crate::store::{self, AuditConfig, NewUser};

/// A node with one user, mia.
struct Node {
    sessions: Sessions,
    store: Arc<dyn Store>,
    clock: Clock,
    mia: Principal,
    shutdown: ShutdownTokens,
    tracker: TaskTracker,
    dir: tempfile::TempDir,
}

fn sessions_config() -> Config {
    Config {
        default_agent: "demo".into(),
        idle_minutes: NonZeroU32::MIN,
        retention_days: 0,
        ended_days: 0,
        question_timeout_minutes: 0,
        control_lease_secs: NonZeroU32::MIN,
        queue_max: NonZeroU32::MAX,
    }
}

fn journal_config() -> JournalConfig {
    JournalConfig {
        // No tail: reads come from the database.
        tail_bytes: 0,
        compact_after_minutes: 60,
        keep_days: 0,
        keep_bytes: 0,
        branch_bytes: NonZeroU64::MAX,
    }
}

impl Node {
    async fn new() -> Self {
        Self::with(&journal_config()).await
    }

    async fn with(journal: &JournalConfig) -> Self {
        Self::configured(&sessions_config(), journal).await
    }

    async fn configured(sessions: &Config, journal: &JournalConfig) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let config = store::Config {
            dir: dir.path().to_owned(),
            database_url: None,
        };
        let store = store::open(&config).await.unwrap();
        let clock = Clock::manual(Timestamp::from_second(1_800_000_000).unwrap());
        let user = NewUser {
            id: UserId::new(),
            username: "mia".parse().unwrap(),
            role: Role::Member,
            password_hash: None,
        };
        let act = AuditContext::gateway(clock.wall()).did(Action::UserCreated, "mia");
        store.create_user(&user, &act).await.unwrap();
        let mia = Principal {
            user: user.id,
            username: user.username,
            role: Role::Member,
            login: LoginId::new(),
            generation: 1,
            session: None,
            expires_at: Timestamp::MAX,
        };
        Self::start(store, clock, mia, dir, sessions, journal)
    }

    fn start(
        store: Arc<dyn Store>,
        clock: Clock,
        mia: Principal,
        dir: tempfile::TempDir,
        sessions: &Config,
        journal: &JournalConfig,
    ) -> Self {
        let shutdown = ShutdownTokens {
            drain: CancellationToken::new(),
            stop: CancellationToken::new(),
        };
        let quotas = QuotaConfig {
            user_sessions: 1_000,
            user_journal_bytes: 1 << 30,
            min_free_bytes: 0,
            dir: dir.path().to_owned(),
        };
        let (sessions, commits) = Sessions::new(
            Arc::clone(&store),
            clock.clone(),
            Catalog::for_tests(&crate::runtime::Config::default()),
            (sessions, journal, quotas),
            shutdown.clone(),
            Instruments::default(),
        );
        let tracker = TaskTracker::new();
        tracker.spawn(commits.run());
        Self {
            sessions,
            store,
            clock,
            mia,
            shutdown,
            tracker,
            dir,
        }
    }

    /// Shuts the node down and starts another one on the same database.
    async fn restart(self) -> Self {
        self.shut_down().await;
        let Self {
            store,
            clock,
            mia,
            dir,
            ..
        } = self;
        Self::start(
            store,
            clock,
            mia,
            dir,
            &sessions_config(),
            &journal_config(),
        )
    }

    fn draft(&self) -> Session {
        self.sessions.draft(&self.mia, None, None).unwrap()
    }

    fn retention_task(
        &self,
        change: impl FnOnce(&mut Config, &mut JournalConfig),
    ) -> RetentionTask {
        let (mut sessions, mut journal) = (sessions_config(), journal_config());
        change(&mut sessions, &mut journal);
        let audit = AuditConfig { keep_days: 365 };
        self.sessions.retention_task(&sessions, &journal, &audit)
    }

    fn days_pass(&self, days: i64) {
        let hours = u64::try_from(24 * days).unwrap();
        self.clock.advance(Duration::from_hours(hours));
    }

    async fn stored(&self, session: &Session) -> Vec<Recorded> {
        let mut all: Vec<Recorded> = Vec::new();
        loop {
            let after = all.last().map_or(0, |last| last.offset);
            let page = self
                .sessions
                .events(&self.mia, session.id(), after, 100_000)
                .await;
            let page = page.unwrap();
            if page.is_empty() {
                return all;
            }
            all.extend(page.into_iter().map(|entry| entry.recorded));
        }
    }

    async fn shut_down(&self) {
        self.shutdown.drain.cancel();
        self.shutdown.stop.cancel();
        self.sessions.finish().await;
        self.tracker.close();
        self.tracker.wait().await;
    }

    async fn close(self) {
        self.shut_down().await;
    }
}

/// A request in the gateway's own name.
fn request(command: Command) -> Request {
    let meta = CommandMeta {
        by: AuditContext::gateway(Timestamp::UNIX_EPOCH),
        recheck: Arc::new(|| Ok(())),
        message_id: None,
        idempotency_key: None,
        trace: None,
    };
    Request { command, meta }
}

async fn submits(session: &Session, text: &str) {
    let command = Command::SubmitPrompt {
        prompt: Prompt::new(text, Mode::Act),
        if_busy: IfBusy::Refuse,
    };
    session.submit(request(command)).await.unwrap();
}

async fn prompts(session: &Session, text: &str) {
    submits(session, text).await;
    until(session, |state| state.live_run().is_none()).await;
}

async fn until(session: &Session, is_wanted: impl Fn(&SessionState) -> bool) -> SessionState {
    loop {
        let state = session.state().await.unwrap();
        if is_wanted(&state) {
            return state;
        }
        session.journal().wait_beyond(state.offset).await;
    }
}
