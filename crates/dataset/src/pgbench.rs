//! The tables of `pgbench -i`: definitions and rows are those of pgbench 18 (steps `d`, `t`, `g`, `p`, `f`).

use std::sync::Arc;

use pgdyno_workload::{ACCOUNTS_PER_SCALE, Refusal, TELLERS_PER_SCALE};
use serde::Deserialize;

use crate::rows::{NoRows, Rows};
use crate::table::{DataSet, Table, quoted, write_count};

/// From this scale on `aid` is a bigint, as in pgbench: 100,000 times it nears what an integer holds.
const SCALE_BIGINT: u32 = 20_000;
/// pgbench's own limits of the fill factor, which are PostgreSQL's.
const FILLFACTORS: std::ops::RangeInclusive<u32> = 10..=100;
const TABLES: [&str; 4] = ["pgbench_accounts", "pgbench_branches", "pgbench_history", "pgbench_tellers"];

/// What `pgbench -i` is told.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PgbenchTables {
    /// 100,000 accounts, ten tellers and a branch each.
    pub scale: u32,
    /// Of accounts, tellers and branches, in per cent.
    #[serde(default = "hundred")]
    pub fillfactor: u32,
    /// Whether to add foreign keys (`--foreign-keys`).
    #[serde(default)]
    pub foreign_keys: bool,
    /// The tablespace of the tables, unless it is the database's own.
    #[serde(default)]
    pub tablespace: Option<String>,
    /// The tablespace of the primary keys.
    #[serde(default)]
    pub index_tablespace: Option<String>,
}

fn hundred() -> u32 {
    100
}

/// The rows of one table: those of each branch, one branch after another.
#[derive(Debug)]
struct Balances {
    rows: u64,
    /// How many rows a branch has; none where the row is the branch.
    per_branch: Option<u64>,
    /// The balance and the filler.
    rest: &'static [u8],
}

impl Rows for Balances {
    fn units(&self) -> u64 {
        self.rows
    }

    fn write(&self, row: u64, out: &mut Vec<u8>) -> u64 {
        write_count(row + 1, out);
        if let Some(size) = self.per_branch {
            out.push(b'\t');
            write_count(row / size + 1, out);
        }
        out.extend_from_slice(self.rest);
        1
    }
}

impl DataSet for PgbenchTables {
    fn check(&self) -> Result<(), Refusal> {
        if self.scale == 0 {
            return Err(Refusal::new("the scale factor is zero", "give a scale factor of at least 1"));
        }
        if !FILLFACTORS.contains(&self.fillfactor) {
            return Err(Refusal::new(format!("the fill factor is {}", self.fillfactor), "give one from 10 to 100"));
        }
        Ok(())
    }

    fn tables(&self, _seed: u64) -> Vec<Table> {
        let aid = if self.scale >= SCALE_BIGINT { "bigint" } else { "int" };
        let mut all = vec![
            accounts(self, aid),
            tellers(self),
            keyed(
                self,
                "pgbench_branches",
                "bid int not null, bbalance int, filler char(88)",
                "bid",
                None,
                FILLER_NULL,
            ),
            history(self, aid),
        ];
        if self.foreign_keys {
            for table in &mut all {
                table.foreign_keys = foreign_keys(&table.name);
            }
        }
        all
    }

    fn drops(&self) -> Vec<String> {
        vec![format!("DROP TABLE IF EXISTS {}", TABLES.join(", "))]
    }
}

/// Balance 0; `filler` is NULL in the small tables, and in accounts an empty text that its type pads with blanks.
const FILLER_NULL: &[u8] = b"\t0\t\\N\n";
const FILLER_EMPTY: &[u8] = b"\t0\t\n";

fn accounts(asked: &PgbenchTables, aid: &str) -> Table {
    let columns = format!("aid {aid} not null, bid int, abalance int, filler char(84)");
    keyed(asked, "pgbench_accounts", &columns, "aid", Some(ACCOUNTS_PER_SCALE), FILLER_EMPTY)
}

fn tellers(asked: &PgbenchTables) -> Table {
    let columns = "tid int not null, bid int, tbalance int, filler char(84)";
    keyed(asked, "pgbench_tellers", columns, "tid", Some(TELLERS_PER_SCALE), FILLER_NULL)
}

fn keyed(
    asked: &PgbenchTables,
    name: &str,
    columns: &str,
    key: &str,
    per_branch: Option<i64>,
    rest: &'static [u8],
) -> Table {
    let per_branch = per_branch.map(i64::unsigned_abs);
    let rows = u64::from(asked.scale) * per_branch.unwrap_or(1);
    Table {
        name: name.to_owned(),
        create: create(asked, name, columns, true),
        rows: Arc::new(Balances { rows, per_branch, rest }),
        after_rows: Vec::new(),
        primary_key: Some(primary_key(asked, name, key)),
        indexes: Vec::new(),
        foreign_keys: Vec::new(),
    }
}

/// It has no fill factor, since its rows are never changed, and no key.
fn history(asked: &PgbenchTables, aid: &str) -> Table {
    let name = "pgbench_history";
    let columns = format!("tid int, bid int, aid {aid}, delta int, mtime timestamp, filler char(22)");
    Table {
        name: name.to_owned(),
        create: create(asked, name, &columns, false),
        rows: Arc::new(NoRows),
        after_rows: Vec::new(),
        primary_key: None,
        indexes: Vec::new(),
        foreign_keys: Vec::new(),
    }
}

fn create(asked: &PgbenchTables, name: &str, columns: &str, filled: bool) -> String {
    let fillfactor = if filled { format!(" WITH (fillfactor = {})", asked.fillfactor) } else { String::new() };
    let place = asked.tablespace.as_deref().map(|place| format!(" TABLESPACE {}", quoted(place)));
    format!("CREATE TABLE {name} ({columns}){fillfactor}{}", place.unwrap_or_default())
}

fn primary_key(asked: &PgbenchTables, name: &str, key: &str) -> String {
    let place = asked.index_tablespace.as_deref().map(|place| format!(" USING INDEX TABLESPACE {}", quoted(place)));
    format!("ALTER TABLE {name} ADD PRIMARY KEY ({key}){}", place.unwrap_or_default())
}

/// Each reference by its column; the constraints have the names that pgbench gives them.
fn foreign_keys(name: &str) -> Vec<String> {
    let references: &[(&str, &str)] = match name {
        "pgbench_tellers" | "pgbench_accounts" => &[("bid", "pgbench_branches")],
        "pgbench_history" => &[("bid", "pgbench_branches"), ("tid", "pgbench_tellers"), ("aid", "pgbench_accounts")],
        _ => &[],
    };
    let add = |(column, to): &(&str, &str)| {
        format!("ALTER TABLE {name} ADD CONSTRAINT {name}_{column}_fkey FOREIGN KEY ({column}) REFERENCES {to}")
    };
    references.iter().map(add).collect()
}
