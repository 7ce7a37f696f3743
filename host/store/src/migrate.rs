//! The schema and how an older one becomes the present one.

use crate::convert::at;
use crate::error::StoreError;
use rusqlite::Connection;
use std::path::Path;

/// SQL that leads from each schema to the next; the first from nothing. A step
/// that was released never changes. `tests/fixtures` has a store of each.
const STEPS: &[&str] = &[include_str!("schema/1.sql"), include_str!("schema/2.sql")];

/// `CRTR`, so that tools can tell whose file it is.
pub const APPLICATION: i64 = 0x4352_5452;

/// The schema that this version writes.
pub const fn known() -> i64 {
    STEPS.len() as i64
}

/// Refuses a file of another program or a newer version; gives its schema, 0
/// for an empty file.
pub fn version(conn: &Connection, path: &Path) -> Result<i64, StoreError> {
    let pragma = |name| {
        conn.pragma_query_value(None, name, |row| row.get::<_, i64>(0)).map_err(|source| {
            if source.sqlite_error_code() == Some(rusqlite::ErrorCode::NotADatabase) {
                let why = "it is no SQLite database".to_owned();
                return StoreError::Foreign { path: path.to_owned(), why };
            }
            at(path, "read the schema's version")(source)
        })
    };
    let (found, application) = (pragma("user_version")?, pragma("application_id")?);
    let tables: i64 = conn
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
        .map_err(at(path, "read the schema"))?;
    if application != APPLICATION && (application, found, tables) != (0, 0, 0) {
        let why = format!("its application id is {application:#x}");
        return Err(StoreError::Foreign { path: path.to_owned(), why });
    }
    if found > known() {
        return Err(StoreError::Newer { path: path.to_owned(), found, known: known() });
    }
    Ok(found)
}

/// Brings the schema up to `target`, each step whole or not at all.
fn migrate_to(conn: &mut Connection, path: &Path, target: i64) -> Result<(), StoreError> {
    let err = at(path, "bring the schema up to date");
    for version in version(conn, path)?..target {
        let step = conn.transaction().map_err(&err)?;
        step.execute_batch(STEPS[version as usize]).map_err(&err)?;
        step.pragma_update(None, "application_id", APPLICATION).map_err(&err)?;
        step.pragma_update(None, "user_version", version + 1).map_err(&err)?;
        step.commit().map_err(&err)?;
    }
    Ok(())
}

/// Brings the schema up to date.
pub fn migrate(conn: &mut Connection, path: &Path) -> Result<(), StoreError> {
    migrate_to(conn, path, known())
}

/// Refuses a file whose tables are not those of its schema: somebody else wrote
/// it, or added triggers that would act when the store writes.
pub fn check_tables(conn: &Connection, path: &Path) -> Result<(), StoreError> {
    let version = version(conn, path)?;
    let mut plain = Connection::open_in_memory().map_err(at(path, "compare the schema"))?;
    migrate_to(&mut plain, path, version)?;
    if version == 0 || tables(conn, path)? != tables(&plain, path)? {
        let why = format!("its tables are not those of schema {version}");
        return Err(StoreError::Foreign { path: path.to_owned(), why });
    }
    Ok(())
}

fn tables(conn: &Connection, path: &Path) -> Result<Vec<(String, Option<String>)>, StoreError> {
    let sql = "SELECT type || ' ' || name, sql FROM sqlite_schema ORDER BY 1";
    let mut statement = conn.prepare(sql).map_err(at(path, "read the schema"))?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
    rows.and_then(Iterator::collect).map_err(at(path, "read the schema"))
}
