//! Bringing a database's schema up to date, and refusing one from the future.

use sqlx::migrate::{Migrate, MigrateError, Migrator};

use super::error::OpenError;

/// Runs what is missing, in order, each step in its own transaction.
pub(super) async fn bring_up_to_date<C>(
    migrator: &Migrator,
    connection: &mut C,
    place: &str,
) -> Result<(), OpenError>
where
    C: Migrate,
{
    // Before the first look: two programs that start on an empty database take turns.
    connection
        .lock()
        .await
        .map_err(|source| failed(place, source))?;
    let known = newest(migrator);
    if let Some(found) = applied(connection, place, migrator).await?
        && found > known
    {
        return Err(OpenError::Newer {
            place: place.to_owned(),
            found,
            known,
        });
    }
    migrator
        .run_direct(None, connection, false)
        .await
        .map_err(|source| failed(place, source))?;
    connection
        .unlock()
        .await
        .map_err(|source| failed(place, source))
}

/// The newest version this program knows.
pub(super) fn newest(migrator: &Migrator) -> i64 {
    migrator
        .iter()
        .map(|migration| migration.version)
        .max()
        .unwrap_or(0)
}

async fn applied<C>(
    connection: &mut C,
    place: &str,
    migrator: &Migrator,
) -> Result<Option<i64>, OpenError>
where
    C: Migrate,
{
    connection
        .ensure_migrations_table(&migrator.table_name)
        .await
        .map_err(|source| failed(place, source))?;
    let versions = connection
        .list_applied_migrations(&migrator.table_name)
        .await
        .map_err(|source| failed(place, source))?;
    Ok(versions.iter().map(|migration| migration.version).max())
}

fn failed(place: &str, source: MigrateError) -> OpenError {
    OpenError::Migration {
        place: place.to_owned(),
        source,
    }
}
