//! SQL on a small database in memory: reading only, and never for long.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row};
use serde_json::{Map, Value, json};

/// Rows of an answer, at the most.
pub(crate) const ROWS: usize = 50;
/// Longest answer, bytes of JSON of its rows.
const ANSWER: usize = 32 << 10;
/// Longest time that a query may run.
const LASTS: Duration = Duration::from_millis(250);
/// Longest string, blob or statement, bytes.
const LENGTH: i32 = 256 << 10;
/// Steps of SQLite's machine between two looks at the time.
const STEPS: i32 = 2_000;
/// Connections that are kept for later calls.
const IDLE: usize = 16;

/// What is in it, as the tool's description tells a model.
pub(crate) const SCHEMA: &str = "chains(name, kind, cost_per_hour) and calls(id, chain, prompt_tokens, completion_tokens, ttft_ms, e2e_ms)";

const CONTENT: &str = "
CREATE TABLE chains (name TEXT PRIMARY KEY, kind TEXT NOT NULL, cost_per_hour REAL NOT NULL);
INSERT INTO chains VALUES ('alpha', 'gateway', 0.42), ('beta', 'gateway', 0.18), ('gamma', 'direct', 0.0), ('delta', 'relay', 0.02);
CREATE TABLE calls (id INTEGER PRIMARY KEY, chain TEXT NOT NULL REFERENCES chains(name),
  prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL, ttft_ms REAL NOT NULL, e2e_ms REAL NOT NULL);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
INSERT INTO calls SELECT i,
  CASE i % 4 WHEN 0 THEN 'alpha' WHEN 1 THEN 'beta' WHEN 2 THEN 'gamma' ELSE 'delta' END,
  100 + i * 37 % 900, 16 + i * 53 % 240, 40.0 + i * 29 % 60, 400.0 + i * 71 % 1600 FROM n;
PRAGMA query_only = ON;
";

/// Connections to copies of the same content: calls do not wait for each other.
#[derive(Default)]
pub(crate) struct Database {
    idle: Mutex<Vec<Connection>>,
}

impl Database {
    /// The answer to a `SELECT`, as JSON. Blocks for at most the time that a query may run.
    pub(crate) fn query(&self, sql: &str) -> Result<Value, String> {
        let kept = self.lock().pop();
        let connection = match kept {
            Some(connection) => connection,
            None => open().map_err(|error| format!("no database: {error}"))?,
        };
        let answer = ask(&connection, sql);
        let mut idle = self.lock();
        if idle.len() < IDLE {
            idle.push(connection);
        }
        answer
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn open() -> rusqlite::Result<Connection> {
    let connection = Connection::open_in_memory()?;
    connection.execute_batch(CONTENT)?;
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, LENGTH)?;
    connection.set_limit(Limit::SQLITE_LIMIT_SQL_LENGTH, LENGTH)?;
    connection.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0)?;
    connection.authorizer(Some(only_reads))?;
    Ok(connection)
}

/// Asked while a statement is compiled: whatever is not reading does not compile.
fn only_reads(context: AuthContext<'_>) -> Authorization {
    match context.action {
        AuthAction::Select | AuthAction::Read { .. } | AuthAction::Recursive => {
            Authorization::Allow
        }
        AuthAction::Function { function_name } if function_name != "load_extension" => {
            Authorization::Allow
        }
        _ => Authorization::Deny,
    }
}

fn ask(connection: &Connection, sql: &str) -> Result<Value, String> {
    let until = Instant::now() + LASTS;
    let late = move || Instant::now() >= until;
    connection
        .progress_handler(STEPS, Some(late))
        .map_err(|error| error.to_string())?;
    rows(connection, sql).map_err(|error| match error {
        rusqlite::Error::MultipleStatement => "more than one statement; ask one SELECT".to_owned(),
        rusqlite::Error::SqliteFailure(code, _)
            if code.code == rusqlite::ErrorCode::OperationInterrupted =>
        {
            format!(
                "the query took longer than {} ms; ask for less",
                LASTS.as_millis()
            )
        }
        rusqlite::Error::SqliteFailure(code, _)
            if code.code == rusqlite::ErrorCode::AuthorizationForStatementDenied =>
        {
            "only SELECT is allowed here".to_owned()
        }
        error => error.to_string(),
    })
}

fn rows(connection: &Connection, sql: &str) -> rusqlite::Result<Value> {
    let mut statement = connection.prepare(sql)?;
    let names: Vec<String> = statement
        .column_names()
        .into_iter()
        .map(str::to_owned)
        .collect();
    let mut found = statement.query([])?;
    let (mut rows, mut bytes, mut more) = (Vec::new(), 0, false);
    while let Some(row) = found.next()? {
        let object = object(&names, row)?;
        bytes += object.to_string().len();
        if rows.len() == ROWS || bytes > ANSWER {
            more = true;
            break;
        }
        rows.push(object);
    }
    Ok(json!({"rows": rows, "more": more}))
}

fn object(names: &[String], row: &Row<'_>) -> rusqlite::Result<Value> {
    let mut object = Map::new();
    for (at, name) in names.iter().enumerate() {
        let value = match row.get_ref(at)? {
            ValueRef::Null => Value::Null,
            ValueRef::Integer(number) => number.into(),
            ValueRef::Real(number) => number.into(),
            ValueRef::Text(text) => String::from_utf8_lossy(text).into(),
            ValueRef::Blob(blob) => format!("{} bytes", blob.len()).into(),
        };
        object.insert(name.clone(), value);
    }
    Ok(object.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_select_is_answered() {
        let database = Database::default();
        let answer = database
            .query("SELECT chain, count(*) AS n, avg(ttft_ms) AS mean, NULL AS none FROM calls WHERE chain = 'alpha' GROUP BY chain")
            .unwrap();
        assert_eq!(answer["more"], false);
        let row = &answer["rows"][0];
        assert_eq!((&row["chain"], &row["n"]), (&"alpha".into(), &250.into()));
        assert!(row["mean"].as_f64().is_some() && row["none"].is_null());
        let recursive = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5) SELECT sum(i) AS s FROM n";
        assert_eq!(database.query(recursive).unwrap()["rows"][0]["s"], 15);
    }

    #[test]
    fn nothing_is_written_and_nothing_else_is_opened() {
        let database = Database::default();
        for sql in [
            "INSERT INTO chains VALUES ('x', 'y', 1)",
            "UPDATE calls SET chain = 'x'",
            "DELETE FROM calls",
            "DROP TABLE calls",
            "CREATE TABLE t (a)",
            "CREATE TEMP TABLE t AS SELECT 1",
            "ATTACH DATABASE '/tmp/hopscope-never.db' AS other",
            "VACUUM INTO '/tmp/hopscope-never.db'",
            "PRAGMA query_only = OFF",
            "PRAGMA table_info(calls)",
            "BEGIN",
            "SELECT load_extension('x')",
            "SELECT 1; DROP TABLE calls",
            "EXPLAIN DELETE FROM calls",
        ] {
            assert!(database.query(sql).is_err(), "{sql}");
        }
        assert!(database.query("").is_err() || database.query("").unwrap()["rows"] == json!([]));
        let count = database.query("SELECT count(*) AS n FROM calls").unwrap();
        assert_eq!(count["rows"][0]["n"], 1000);
        assert!(!std::path::Path::new("/tmp/hopscope-never.db").exists());
    }

    #[test]
    fn rows_bytes_and_time_are_bounded() {
        let database = Database::default();
        let all = database.query("SELECT * FROM calls").unwrap();
        assert_eq!(all["rows"].as_array().unwrap().len(), ROWS);
        assert_eq!(all["more"], true);
        let wide = database
            .query("SELECT hex(zeroblob(10000)) AS wide FROM calls")
            .unwrap();
        assert!(wide.to_string().len() < ANSWER + 1024 && wide["more"] == true);
        assert!(database.query("SELECT zeroblob(1000000000)").is_err());
        let begin = Instant::now();
        let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";
        let error = database.query(endless).unwrap_err();
        assert!(error.contains("longer than 250 ms"), "{error}");
        assert!(begin.elapsed() < Duration::from_secs(10));
        // The connection is as good as before.
        assert!(database.query("SELECT 1").is_ok());
    }
}
