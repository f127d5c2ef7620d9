//! A deadline around every act of a store that lives elsewhere.
//!
//! A server that has stopped, or a network that swallows everything, gives no answer at all: nobody
//! who is here may wait for it for longer than they were promised. An act that was given up may
//! still take effect; whoever must know looks again.

use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;

use super::{
    ActFilter, AddError, Append, AppendError, AttachmentRow, Attachments, Audit, AuditRow,
    BackupError, BranchError, Branches, Change, ChangeUserError, Changes, ClaimError,
    CommandRecord, ContentHash, Counts, CreateUserError, Credentials, GrantRow, Grants, Hit,
    JournalFacts, Journals, KeepLogin, Keys, Lease, Links, LoginRow, Logins, NewBranch, NewLink,
    NewLogin, NewSession, NewUser, OldKeys, Outlived, Overview, Quotas, Redeemed, RefreshError,
    Refreshed, Removal, Retention, Rotation, Scrubbed, Search, SessionChange, SessionFacts,
    SessionFilter, SessionRow, Sessions, SetUpError, ShareError, Snapshot, StartLoginError, Store,
    StoreError, StoredEvent, StoredKey, Upkeep, Users,
};
use crate::domain::account::{Role, User, Username};
use crate::domain::act::{Act, By};
use crate::domain::grant::GrantRole;
use crate::domain::id::{LoginId, SessionId, StoreId, UserId};
use crate::domain::search::Words;

/// Less than the three seconds after which a caller must have heard that storage is unavailable.
const PATIENCE: Duration = Duration::from_millis(2_300);
/// More of it for each event of a large commit.
const PER_EVENT: Duration = Duration::from_micros(100);
/// Nobody waits for old things to go.
const UPKEEP: Duration = Duration::from_secs(20);
const CLOSE: Duration = Duration::from_secs(2);

/// A store that answers in time, if only with an error.
pub(super) struct Deadline<S>(pub(super) S);

impl<S: Store> Store for Deadline<S> {}

async fn within<T, E>(
    patience: Duration,
    act: impl Future<Output = Result<T, E>> + Send,
) -> Result<T, E>
where
    E: From<StoreError>,
{
    match tokio::time::timeout(patience, act).await {
        Ok(outcome) => outcome,
        Err(_) => Err(StoreError::no_answer().into()),
    }
}

/// Hands each act of a trait on.
macro_rules! hand_on {
    ($patience:ident: $acts:ident { $(fn $act:ident($($name:ident: $kind:ty),*) -> $outcome:ty;)* }) => {
        #[async_trait]
        impl<S: Store> $acts for Deadline<S> {
            $(async fn $act(&self $(, $name: $kind)*) -> $outcome {
                within($patience, self.0.$act($($name),*)).await
            })*
        }
    };
}

hand_on!(PATIENCE: Users {
    fn create_user(new: &NewUser, act: &Act) -> Result<(), CreateUserError>;
    fn user(id: UserId) -> Result<Option<User>, StoreError>;
    fn credentials(username: &Username) -> Result<Option<Credentials>, StoreError>;
    fn users(after: Option<&str>, limit: u32) -> Result<Vec<User>, StoreError>;
    fn has_admin() -> Result<bool, StoreError>;
    fn has_users() -> Result<bool, StoreError>;
    fn set_password(id: UserId, password_hash: &str, keep: KeepLogin, act: &Act) -> Result<(), ChangeUserError>;
    fn set_role(id: UserId, role: Role, act: &Act) -> Result<(), ChangeUserError>;
    fn disable_user(id: UserId, act: &Act) -> Result<(), ChangeUserError>;
    fn enable_user(id: UserId, act: &Act) -> Result<(), ChangeUserError>;
    fn remove_user(id: UserId, act: &Act) -> Result<(), ChangeUserError>;
});

hand_on!(PATIENCE: Logins {
    fn start_login(new: &NewLogin, act: &Act) -> Result<(), StartLoginError>;
    fn refresh_login(rotation: &Rotation, by: &By) -> Result<Refreshed, RefreshError>;
    fn end_login(login: LoginId, user: UserId, act: &Act) -> Result<bool, StoreError>;
    fn logins(user: UserId, now: Timestamp) -> Result<Vec<LoginRow>, StoreError>;
});

hand_on!(PATIENCE: Links {
    fn issue_link(link: &NewLink, act: &Act) -> Result<(), StoreError>;
    fn issue_ticket(hash: [u8; 32], login: LoginId, now: Timestamp, expires_at: Timestamp) -> Result<bool, StoreError>;
    fn redeem_ticket(hash: [u8; 32], now: Timestamp) -> Result<Option<Redeemed>, StoreError>;
    fn setup_is_open(hash: [u8; 32], now: Timestamp) -> Result<bool, StoreError>;
    fn set_up(link: Option<[u8; 32]>, admin: &NewUser, act: &Act) -> Result<(), SetUpError>;
    fn invited(hash: [u8; 32], now: Timestamp) -> Result<Option<User>, StoreError>;
    fn accept_invite(hash: [u8; 32], password_hash: &str, by: &By) -> Result<Option<User>, StoreError>;
});

hand_on!(PATIENCE: Keys {
    fn keys(now: Timestamp) -> Result<Vec<StoredKey>, StoreError>;
    fn add_first_key(key: &StoredKey, act: &Act) -> Result<(), StoreError>;
    fn rotate_key(key: &StoredKey, old: OldKeys, act: &Act) -> Result<(), StoreError>;
});

hand_on!(PATIENCE: Changes {
    fn changes_after(revision: i64) -> Result<Vec<Change>, StoreError>;
});

hand_on!(PATIENCE: Sessions {
    fn create_session(new: &NewSession) -> Result<(), StoreError>;
    fn session(id: SessionId) -> Result<Option<SessionRow>, StoreError>;
    fn session_for(id: SessionId, user: UserId) -> Result<Option<SessionRow>, StoreError>;
    fn sessions(user: UserId, before: Option<(Timestamp, SessionId)>, limit: u32) -> Result<Vec<SessionRow>, StoreError>;
    fn unfinished_sessions(limit: u32) -> Result<Vec<SessionId>, StoreError>;
    fn thread(id: SessionId) -> Result<Option<String>, StoreError>;
    fn keep_thread(id: SessionId, term: i64, thread: &str) -> Result<(), StoreError>;
    fn change_session(id: SessionId, owner: UserId, change: &SessionChange, now: Timestamp) -> Result<bool, StoreError>;
    fn end_session(id: SessionId, owner: UserId, act: &Act) -> Result<bool, StoreError>;
});

hand_on!(PATIENCE: Overview {
    fn all_sessions(filter: &SessionFilter, limit: u32) -> Result<Vec<SessionFacts>, StoreError>;
    fn counts() -> Result<Counts, StoreError>;
});

hand_on!(PATIENCE: Audit {
    fn acts(filter: &ActFilter, limit: u32) -> Result<Vec<AuditRow>, StoreError>;
    fn drop_acts(before: Timestamp, limit: u32) -> Result<u64, StoreError>;
});

hand_on!(PATIENCE: Search {
    fn search(owner: UserId, words: &Words, before: Option<(Timestamp, SessionId)>, limit: u32) -> Result<Vec<Hit>, StoreError>;
});

// A long journal takes its time to be copied.
hand_on!(UPKEEP: Branches {
    fn journal_bytes(session: SessionId, upto: u64) -> Result<u64, StoreError>;
    fn branch(new: &NewBranch) -> Result<(), BranchError>;
    fn copy_texts(branch: SessionId) -> Result<bool, StoreError>;
});

hand_on!(PATIENCE: Attachments {
    fn add_attachment(new: &AttachmentRow, quotas: Quotas) -> Result<(), AddError>;
    fn check_quotas(session: SessionId, owner: UserId, size_bytes: u64, quotas: Quotas) -> Result<(), AddError>;
    fn attachments(session: SessionId) -> Result<Vec<AttachmentRow>, StoreError>;
    fn contents_with(first: u8) -> Result<Vec<ContentHash>, StoreError>;
    fn released_with(first: u8) -> Result<Vec<ContentHash>, StoreError>;
});

hand_on!(PATIENCE: Grants {
    fn grants(session: SessionId) -> Result<Vec<GrantRow>, StoreError>;
    fn share_session(session: SessionId, owner: UserId, with: &Username, role: GrantRole, act: &Act) -> Result<GrantRow, ShareError>;
    fn unshare_session(session: SessionId, owner: UserId, with: &Username, act: &Act) -> Result<bool, StoreError>;
});

hand_on!(UPKEEP: Removal {
    fn owns_much(user: UserId) -> Result<bool, StoreError>;
    fn close_account(user: UserId, act: &Act) -> Result<(), ChangeUserError>;
    fn empty_account(user: UserId) -> Result<u64, StoreError>;
    fn forget_texts(session: SessionId) -> Result<u64, StoreError>;
    fn clear_journal(session: SessionId) -> Result<u64, StoreError>;
});

hand_on!(UPKEEP: Retention {
    fn journals(after: Option<SessionId>, limit: u32) -> Result<Vec<JournalFacts>, StoreError>;
    fn compact_journal(session: SessionId, after: u64, upto: u64, events: Option<&[StoredEvent]>) -> Result<(), StoreError>;
    fn last_beyond(session: SessionId, keep_bytes: u64) -> Result<Option<u64>, StoreError>;
    fn last_before(session: SessionId, moment: Timestamp) -> Result<Option<u64>, StoreError>;
    fn drop_events(session: SessionId, upto: u64) -> Result<u64, StoreError>;
    fn expire_session(session: SessionId, untouched_since: Timestamp, now: Timestamp) -> Result<bool, StoreError>;
    fn remove_session(session: SessionId, untouched_since: Timestamp, act: &Act) -> Result<bool, StoreError>;
});

#[async_trait]
impl<S: Store> Journals for Deadline<S> {
    async fn claim_journal(&self, session: SessionId, node: &str) -> Result<Lease, ClaimError> {
        within(PATIENCE, self.0.claim_journal(session, node)).await
    }

    async fn append(
        &self,
        batch: &[Append],
        now: Timestamp,
    ) -> Result<Vec<Result<(), AppendError>>, StoreError> {
        let events: usize = batch.iter().map(|append| append.events.len()).sum();
        let more = PER_EVENT * u32::try_from(events).unwrap_or(u32::MAX);
        within(PATIENCE + more, self.0.append(batch, now)).await
    }

    async fn events_after(
        &self,
        session: SessionId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<StoredEvent>, StoreError> {
        within(PATIENCE, self.0.events_after(session, after, limit)).await
    }

    async fn events_before(
        &self,
        session: SessionId,
        before: u64,
        limit: u32,
    ) -> Result<Vec<StoredEvent>, StoreError> {
        within(PATIENCE, self.0.events_before(session, before, limit)).await
    }

    async fn snapshot(&self, session: SessionId) -> Result<Option<Snapshot>, StoreError> {
        within(PATIENCE, self.0.snapshot(session)).await
    }

    async fn save_snapshot(
        &self,
        session: SessionId,
        snapshot: &Snapshot,
    ) -> Result<(), StoreError> {
        within(PATIENCE, self.0.save_snapshot(session, snapshot)).await
    }

    async fn command(
        &self,
        session: SessionId,
        key: &str,
    ) -> Result<Option<CommandRecord>, StoreError> {
        within(PATIENCE, self.0.command(session, key)).await
    }
}

/// What an operator asks for about the whole database takes the time it needs.
#[async_trait]
impl<S: Store> Upkeep for Deadline<S> {
    fn place(&self) -> &str {
        self.0.place()
    }

    fn schema_version(&self) -> i64 {
        self.0.schema_version()
    }

    async fn ping(&self) -> Result<(), StoreError> {
        within(PATIENCE, self.0.ping()).await
    }

    async fn integrity(&self) -> Result<Vec<String>, StoreError> {
        self.0.integrity().await
    }

    async fn sweep(&self, outlived: Outlived) -> Result<(), StoreError> {
        within(UPKEEP, self.0.sweep(outlived)).await
    }

    async fn backup(&self, target: &Path) -> Result<(), BackupError> {
        self.0.backup(target).await
    }

    async fn identity(&self) -> Result<Option<StoreId>, StoreError> {
        within(PATIENCE, self.0.identity()).await
    }

    async fn displaced(&self) {
        self.0.displaced().await;
    }

    async fn renew_epochs(&self) -> Result<u64, StoreError> {
        self.0.renew_epochs().await
    }

    async fn scrub(&self) -> Result<Scrubbed, StoreError> {
        within(UPKEEP, self.0.scrub()).await
    }

    async fn record(&self, act: &Act) -> Result<(), StoreError> {
        within(PATIENCE, self.0.record(act)).await
    }

    async fn recent_acts(&self, limit: u32) -> Result<Vec<AuditRow>, StoreError> {
        within(PATIENCE, self.0.recent_acts(limit)).await
    }

    async fn close(&self) {
        if tokio::time::timeout(CLOSE, self.0.close()).await.is_err() {
            tracing::warn!("the database did not answer the farewell");
        }
    }
}
