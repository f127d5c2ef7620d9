//! Schema: applies migrations and refuses a schema from a newer version.

use sqlx::SqlSafeStr as _;
use sqlx::migrate::{Migrate, MigrateError, Migration, MigrationType, Migrator};

use super::error::OpenError;

// `SQLITE` and `POSTGRES`, listed by build.rs.
include!(concat!(env!("OUT_DIR"), "/migrations.rs"));

pub(super) fn migrator(migrations: &[(i64, &'static str, &'static str)]) -> Migrator {
    let migration = |(version, description, sql): &(i64, &'static str, &'static str)| {
        let (kind, sql) = (MigrationType::Simple, sql.into_sql_str());
        Migration::new(*version, (*description).into(), kind, sql, false)
    };
    Migrator::with_migrations(migrations.iter().map(migration).collect())
}

/// Applies missing migrations in order, each in its own transaction.
pub(super) async fn migrate<C>(
    migrator: &Migrator,
    connection: &mut C,
    location: &str,
) -> Result<(), OpenError>
where
    C: Migrate,
{
    // Locked before the first read: programs that start on an empty database take turns.
    connection
        .lock()
        .await
        .map_err(|source| failed(location, source))?;
    let known = latest_version(migrator);
    if let Some(found) = applied_version(connection, location, migrator).await?
        && found > known
    {
        return Err(OpenError::Newer {
            location: location.to_owned(),
            found,
            known,
        });
    }
    migrator
        .run_direct(None, connection, false)
        .await
        .map_err(|source| failed(location, source))?;
    connection
        .unlock()
        .await
        .map_err(|source| failed(location, source))
}

pub(super) fn latest_version(migrator: &Migrator) -> i64 {
    migrator
        .iter()
        .map(|migration| migration.version)
        .max()
        .unwrap_or(0)
}

async fn applied_version<C>(
    connection: &mut C,
    location: &str,
    migrator: &Migrator,
) -> Result<Option<i64>, OpenError>
where
    C: Migrate,
{
    connection
        .ensure_migrations_table(&migrator.table_name)
        .await
        .map_err(|source| failed(location, source))?;
    let versions = connection
        .list_applied_migrations(&migrator.table_name)
        .await
        .map_err(|source| failed(location, source))?;
    Ok(versions.iter().map(|migration| migration.version).max())
}

fn failed(location: &str, source: MigrateError) -> OpenError {
    OpenError::Migration {
        location: location.to_owned(),
        source,
    }
}
