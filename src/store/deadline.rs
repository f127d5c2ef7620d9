//! Deadline: a timeout around every call to a remote store.
//!
//! A stopped server or a dropped network never answers, and callers were promised an answer in
//! time. A call that timed out may still take effect; callers that must know read again.

use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;

use super::{
    AccountRemoval, AddError, Append, AppendError, AttachmentRow, Attachments, Audit, AuditFilter,
    AuditRow, AuthChange, AuthChanges, BackupError, BranchError, Branches, ChangeUserError,
    ClaimError, CommandRecord, ContentHash, Counts, CreateUserError, Credentials, GrantRow, Grants,
    Invitation, JournalFacts, Journals, KeepLogin, Lease, LoginRow, Logins, Maintenance, NewBranch,
    NewLink, NewLogin, NewSession, NewUser, OldKeys, OneTimeLinks, Quotas, Redeemed, RefreshError,
    Refreshed, Retention, Rotation, ScrubOutcome, Search, SearchHit, SessionChange, SessionFacts,
    SessionFilter, SessionOverview, SessionRow, Sessions, SetUpError, ShareError, SigningKeys,
    Snapshot, StartLoginError, Store, StoreError, StoredEvent, StoredKey, SweepCutoffs, Usage,
    UserUsage, Users,
};
use crate::domain::account::{Role, User, Username};
use crate::domain::audit::{AuditContext, AuditEntry};
use crate::domain::grant::GrantRole;
use crate::domain::id::{LoginId, SessionId, StoreId, UserId};
use crate::domain::search_query::SearchQuery;

/// Below the three seconds within which callers are told that storage is unavailable.
const CALL_TIMEOUT: Duration = Duration::from_millis(2_300);
const TIMEOUT_PER_EVENT: Duration = Duration::from_micros(100);
/// No request waits for maintenance.
const MAINTENANCE_TIMEOUT: Duration = Duration::from_secs(20);
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// A store whose calls time out.
pub(super) struct Deadline<S>(pub(super) S);

impl<S: Store> Store for Deadline<S> {}

async fn with_timeout<T, E>(
    timeout: Duration,
    call: impl Future<Output = Result<T, E>> + Send,
) -> Result<T, E>
where
    E: From<StoreError>,
{
    match tokio::time::timeout(timeout, call).await {
        Ok(outcome) => outcome,
        Err(_) => Err(StoreError::no_answer().into()),
    }
}

/// Implements a trait by delegating each method with a timeout.
macro_rules! delegate {
    ($timeout:ident: $operations:ident { $(fn $method:ident($($name:ident: $kind:ty),*) -> $outcome:ty;)* }) => {
        #[async_trait]
        impl<S: Store> $operations for Deadline<S> {
            $(async fn $method(&self $(, $name: $kind)*) -> $outcome {
                with_timeout($timeout, self.0.$method($($name),*)).await
            })*
        }
    };
}

delegate!(CALL_TIMEOUT: Users {
    fn create_user(new: &NewUser, entry: &AuditEntry) -> Result<(), CreateUserError>;
    fn user(id: UserId) -> Result<Option<User>, StoreError>;
    fn credentials(username: &Username) -> Result<Option<Credentials>, StoreError>;
    fn users(after: Option<&str>, limit: u32) -> Result<Vec<User>, StoreError>;
    fn has_admin() -> Result<bool, StoreError>;
    fn has_users() -> Result<bool, StoreError>;
    fn set_password(id: UserId, password_hash: &str, keep: KeepLogin, entry: &AuditEntry) -> Result<(), ChangeUserError>;
    fn set_role(id: UserId, role: Role, entry: &AuditEntry) -> Result<(), ChangeUserError>;
    fn disable_user(id: UserId, entry: &AuditEntry) -> Result<(), ChangeUserError>;
    fn enable_user(id: UserId, entry: &AuditEntry) -> Result<(), ChangeUserError>;
    fn remove_user(id: UserId, entry: &AuditEntry) -> Result<(), ChangeUserError>;
});

delegate!(CALL_TIMEOUT: Logins {
    fn start_login(new: &NewLogin, entry: &AuditEntry) -> Result<(), StartLoginError>;
    fn refresh_login(rotation: &Rotation, context: &AuditContext) -> Result<Refreshed, RefreshError>;
    fn end_login(login: LoginId, user: UserId, entry: &AuditEntry) -> Result<bool, StoreError>;
    fn logins(user: UserId, now: Timestamp) -> Result<Vec<LoginRow>, StoreError>;
});

delegate!(CALL_TIMEOUT: OneTimeLinks {
    fn issue_link(link: &NewLink, entry: &AuditEntry) -> Result<(), StoreError>;
    fn issue_ticket(hash: [u8; 32], login: LoginId, now: Timestamp, expires_at: Timestamp) -> Result<bool, StoreError>;
    fn redeem_ticket(hash: [u8; 32], now: Timestamp) -> Result<Option<Redeemed>, StoreError>;
    fn setup_is_open(hash: [u8; 32], now: Timestamp) -> Result<bool, StoreError>;
    fn set_up(link: Option<[u8; 32]>, admin: &NewUser, entry: &AuditEntry) -> Result<(), SetUpError>;
    fn invited(hash: [u8; 32], now: Timestamp) -> Result<Option<User>, StoreError>;
    fn invitation(hash: [u8; 32], now: Timestamp) -> Result<Option<Invitation>, StoreError>;
    fn accept_invite(hash: [u8; 32], password_hash: &str, context: &AuditContext) -> Result<Option<User>, StoreError>;
});

delegate!(CALL_TIMEOUT: SigningKeys {
    fn keys(now: Timestamp) -> Result<Vec<StoredKey>, StoreError>;
    fn add_first_key(key: &StoredKey, entry: &AuditEntry) -> Result<(), StoreError>;
    fn rotate_key(key: &StoredKey, old: OldKeys, entry: &AuditEntry) -> Result<(), StoreError>;
});

delegate!(CALL_TIMEOUT: AuthChanges {
    fn changes_after(revision: i64) -> Result<Vec<AuthChange>, StoreError>;
});

delegate!(CALL_TIMEOUT: Sessions {
    fn create_session(new: &NewSession) -> Result<(), StoreError>;
    fn session(id: SessionId) -> Result<Option<SessionRow>, StoreError>;
    fn session_for(id: SessionId, user: UserId) -> Result<Option<SessionRow>, StoreError>;
    fn sessions(user: UserId, before: Option<(Timestamp, SessionId)>, limit: u32) -> Result<Vec<SessionRow>, StoreError>;
    fn unfinished_sessions(limit: u32) -> Result<Vec<SessionId>, StoreError>;
    fn thread(id: SessionId) -> Result<Option<String>, StoreError>;
    fn keep_thread(id: SessionId, term: i64, thread: &str) -> Result<(), StoreError>;
    fn change_session(id: SessionId, owner: UserId, change: &SessionChange, now: Timestamp) -> Result<bool, StoreError>;
    fn mark_read(id: SessionId, user: UserId, upto: u64) -> Result<bool, StoreError>;
    fn end_session(id: SessionId, owner: UserId, entry: &AuditEntry) -> Result<bool, StoreError>;
});

delegate!(CALL_TIMEOUT: SessionOverview {
    fn all_sessions(filter: &SessionFilter, limit: u32) -> Result<Vec<SessionFacts>, StoreError>;
    fn counts() -> Result<Counts, StoreError>;
});

delegate!(CALL_TIMEOUT: Usage {
    fn usage(user: UserId) -> Result<UserUsage, StoreError>;
    fn measure_journal(session: SessionId) -> Result<(), StoreError>;
});

delegate!(CALL_TIMEOUT: Audit {
    fn record(entry: &AuditEntry) -> Result<(), StoreError>;
    fn recent_audit_entries(limit: u32) -> Result<Vec<AuditRow>, StoreError>;
    fn audit_entries(filter: &AuditFilter, limit: u32) -> Result<Vec<AuditRow>, StoreError>;
    fn drop_audit_entries(before: Timestamp, limit: u32) -> Result<u64, StoreError>;
});

delegate!(CALL_TIMEOUT: Search {
    fn search(owner: UserId, words: &SearchQuery, before: Option<(Timestamp, SessionId)>, limit: u32) -> Result<Vec<SearchHit>, StoreError>;
});

// Copying a long journal is slow.
delegate!(MAINTENANCE_TIMEOUT: Branches {
    fn journal_bytes(session: SessionId, upto: u64) -> Result<u64, StoreError>;
    fn branch(new: &NewBranch) -> Result<(), BranchError>;
    fn copy_texts(branch: SessionId) -> Result<bool, StoreError>;
});

delegate!(CALL_TIMEOUT: Attachments {
    fn add_attachment(new: &AttachmentRow, quotas: Quotas) -> Result<(), AddError>;
    fn check_quotas(session: SessionId, owner: UserId, size_bytes: u64, quotas: Quotas) -> Result<(), AddError>;
    fn attachments(session: SessionId) -> Result<Vec<AttachmentRow>, StoreError>;
    fn referenced_hashes(first: u8) -> Result<Vec<ContentHash>, StoreError>;
    fn released_hashes(first: u8) -> Result<Vec<ContentHash>, StoreError>;
});

delegate!(CALL_TIMEOUT: Grants {
    fn grants(session: SessionId) -> Result<Vec<GrantRow>, StoreError>;
    fn share_session(session: SessionId, owner: UserId, with: &Username, role: GrantRole, entry: &AuditEntry) -> Result<GrantRow, ShareError>;
    fn unshare_session(session: SessionId, owner: UserId, with: &Username, entry: &AuditEntry) -> Result<bool, StoreError>;
});

delegate!(MAINTENANCE_TIMEOUT: AccountRemoval {
    fn is_large_account(user: UserId) -> Result<bool, StoreError>;
    fn disable_and_end_sessions(user: UserId, entry: &AuditEntry) -> Result<(), ChangeUserError>;
    fn remove_account_batch(user: UserId) -> Result<u64, StoreError>;
    fn remove_text_batch(session: SessionId) -> Result<u64, StoreError>;
    fn remove_event_batch(session: SessionId) -> Result<u64, StoreError>;
});

delegate!(MAINTENANCE_TIMEOUT: Retention {
    fn journals(after: Option<SessionId>, limit: u32) -> Result<Vec<JournalFacts>, StoreError>;
    fn compact_journal(session: SessionId, after: u64, upto: u64, events: Option<&[StoredEvent]>) -> Result<(), StoreError>;
    fn last_beyond(session: SessionId, keep_bytes: u64) -> Result<Option<u64>, StoreError>;
    fn last_before(session: SessionId, moment: Timestamp) -> Result<Option<u64>, StoreError>;
    fn drop_events(session: SessionId, upto: u64) -> Result<u64, StoreError>;
    fn expire_session(session: SessionId, untouched_since: Timestamp, now: Timestamp) -> Result<bool, StoreError>;
    fn remove_session(session: SessionId, untouched_since: Timestamp, entry: &AuditEntry) -> Result<bool, StoreError>;
});

#[async_trait]
impl<S: Store> Journals for Deadline<S> {
    async fn claim_journal(&self, session: SessionId, node: &str) -> Result<Lease, ClaimError> {
        with_timeout(CALL_TIMEOUT, self.0.claim_journal(session, node)).await
    }

    async fn append(
        &self,
        batch: &[Append],
        now: Timestamp,
    ) -> Result<Vec<Result<(), AppendError>>, StoreError> {
        let events: usize = batch.iter().map(|append| append.events.len()).sum();
        let more = TIMEOUT_PER_EVENT * u32::try_from(events).unwrap_or(u32::MAX);
        with_timeout(CALL_TIMEOUT + more, self.0.append(batch, now)).await
    }

    async fn events_after(
        &self,
        session: SessionId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<StoredEvent>, StoreError> {
        with_timeout(CALL_TIMEOUT, self.0.events_after(session, after, limit)).await
    }

    async fn offset_before(
        &self,
        session: SessionId,
        before: u64,
        count: u32,
    ) -> Result<u64, StoreError> {
        with_timeout(CALL_TIMEOUT, self.0.offset_before(session, before, count)).await
    }

    async fn snapshot(&self, session: SessionId) -> Result<Option<Snapshot>, StoreError> {
        with_timeout(CALL_TIMEOUT, self.0.snapshot(session)).await
    }

    async fn save_snapshot(
        &self,
        session: SessionId,
        snapshot: &Snapshot,
    ) -> Result<(), StoreError> {
        with_timeout(CALL_TIMEOUT, self.0.save_snapshot(session, snapshot)).await
    }

    async fn command(
        &self,
        session: SessionId,
        key: &str,
    ) -> Result<Option<CommandRecord>, StoreError> {
        with_timeout(CALL_TIMEOUT, self.0.command(session, key)).await
    }
}

/// Whole-database operations that an operator starts have no timeout.
#[async_trait]
impl<S: Store> Maintenance for Deadline<S> {
    fn location(&self) -> &str {
        self.0.location()
    }

    fn schema_version(&self) -> i64 {
        self.0.schema_version()
    }

    async fn ping(&self) -> Result<(), StoreError> {
        with_timeout(CALL_TIMEOUT, self.0.ping()).await
    }

    async fn integrity(&self) -> Result<Vec<String>, StoreError> {
        self.0.integrity().await
    }

    async fn sweep(&self, cutoffs: SweepCutoffs) -> Result<(), StoreError> {
        with_timeout(MAINTENANCE_TIMEOUT, self.0.sweep(cutoffs)).await
    }

    async fn backup(&self, target: &Path) -> Result<(), BackupError> {
        self.0.backup(target).await
    }

    async fn identity(&self) -> Result<Option<StoreId>, StoreError> {
        with_timeout(CALL_TIMEOUT, self.0.identity()).await
    }

    async fn displaced(&self) {
        self.0.displaced().await;
    }

    async fn renew_epochs(&self) -> Result<u64, StoreError> {
        self.0.renew_epochs().await
    }

    async fn scrub(&self) -> Result<ScrubOutcome, StoreError> {
        with_timeout(MAINTENANCE_TIMEOUT, self.0.scrub()).await
    }

    async fn close(&self) {
        if tokio::time::timeout(CLOSE_TIMEOUT, self.0.close())
            .await
            .is_err()
        {
            tracing::warn!("the database connections did not close in time");
        }
    }
}
