//! Statements for the audit log.

use async_trait::async_trait;
use jiff::Timestamp;
use sqlx::Row as _;

use super::{Backend, Connection, Row, millis, now, time};
use crate::domain::audit::AuditEntry;
use crate::store::audit::{Audit, AuditFilter, AuditRow};
use crate::store::error::StoreError;

#[async_trait]
impl Audit for Backend {
    async fn record(&self, entry: &AuditEntry) -> Result<(), StoreError> {
        let mut tx = self.begin().await?;
        audit(&mut tx, entry).await?;
        Ok(tx.commit().await?)
    }

    async fn recent_audit_entries(&self, limit: u32) -> Result<Vec<AuditRow>, StoreError> {
        self.audit_entries(&AuditFilter::default(), limit).await
    }

    async fn audit_entries(
        &self,
        filter: &AuditFilter,
        limit: u32,
    ) -> Result<Vec<AuditRow>, StoreError> {
        let moment = |moment: Option<Timestamp>, open| moment.map_or(open, millis);
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        // A trailing dot makes it a prefix.
        let (whole, beginning) = match filter.action.as_deref() {
            Some(action) if action.ends_with('.') => (String::new(), action.to_owned()),
            action => (action.unwrap_or_default().to_owned(), String::new()),
        };
        let rows = sqlx::query(
            "select id, at, actor_name, address, action, target from audit_log
             where id < $1 and at >= $2 and at < $3
                 and ($4 = '' or actor_name = $4 or actor_id = $4)
                 and ($5 = '' or action = $5)
                 and ($6 = '' or substr(action, 1, length(cast($6 as text))) = $6)
                 and ($7 = '' or target = $7)
             order by id desc limit $8",
        )
        .bind(filter.before.unwrap_or(i64::MAX))
        .bind(moment(filter.since, i64::MIN))
        .bind(moment(filter.until, i64::MAX))
        .bind(text(&filter.actor))
        .bind(whole)
        .bind(beginning)
        .bind(text(&filter.target))
        .bind(i64::from(limit))
        .fetch_all(self.reader())
        .await?;
        Ok(rows.iter().map(audit_row).collect::<sqlx::Result<_>>()?)
    }

    async fn drop_audit_entries(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        let mut tx = self.begin().await?;
        let dropped = sqlx::query(
            "delete from audit_log where id in (
                 select id from audit_log where at < $1 order by at limit $2
             )",
        )
        .bind(millis(before))
        .bind(i64::from(limit))
        .execute(&mut *tx)
        .await?;
        tx.commit().await?;
        Ok(dropped.rows_affected())
    }
}

fn audit_row(row: &Row) -> sqlx::Result<AuditRow> {
    Ok(AuditRow {
        id: row.try_get("id")?,
        at: time(row, "at")?,
        actor: row.try_get("actor_name")?,
        address: row.try_get("address")?,
        action: row.try_get("action")?,
        target: row.try_get("target")?,
    })
}

pub(in super::super) async fn audit(
    connection: &mut Connection,
    entry: &AuditEntry,
) -> sqlx::Result<()> {
    sqlx::query(
        "insert into audit_log (at, actor_id, actor_name, address, action, target)
         values ($1, $2, $3, $4, $5, $6)",
    )
    .bind(now(entry))
    .bind(entry.context.actor.user().map(|id| id.to_string()))
    .bind(entry.context.actor.name())
    .bind(entry.context.address.map(|address| address.to_string()))
    .bind(entry.action.as_str())
    .bind(&entry.target)
    .execute(connection)
    .await?;
    Ok(())
}
