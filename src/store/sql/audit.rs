//! Statements about the audit log.

use async_trait::async_trait;
use jiff::Timestamp;
use sqlx::Row as _;

use super::{Backend, Row, millis, time};
use crate::store::audit::{ActFilter, Audit};
use crate::store::error::StoreError;
use crate::store::upkeep::AuditRow;

#[async_trait]
impl Audit for Backend {
    async fn acts(&self, filter: &ActFilter, limit: u32) -> Result<Vec<AuditRow>, StoreError> {
        let moment = |moment: Option<Timestamp>, open| moment.map_or(open, millis);
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        // A name that ends with a dot is the beginning of many.
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

    async fn drop_acts(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
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

pub(super) fn audit_row(row: &Row) -> sqlx::Result<AuditRow> {
    Ok(AuditRow {
        id: row.try_get("id")?,
        at: time(row, "at")?,
        actor: row.try_get("actor_name")?,
        address: row.try_get("address")?,
        action: row.try_get("action")?,
        target: row.try_get("target")?,
    })
}
