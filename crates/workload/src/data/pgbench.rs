//! The tables of `pgbench -i`: definitions and rows are those of pgbench 18 (steps `d`, `t`, `g`, `p`, `f`).

use super::{Source, Table, quoted, write_count};
use crate::pgbench::{ACCOUNTS_PER_SCALE, TELLERS_PER_SCALE};

/// From this scale on `aid` is a bigint, as in pgbench: 100,000 times it nears what an integer holds.
const SCALE_BIGINT: u32 = 20_000;
const TABLES: [&str; 4] = ["pgbench_accounts", "pgbench_branches", "pgbench_history", "pgbench_tellers"];

/// What `pgbench -i` is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PgbenchTables {
    /// 100,000 accounts, ten tellers and a branch each.
    pub scale: u32,
    /// Of accounts, tellers and branches, in per cent.
    pub fillfactor: u32,
    /// Whether to add foreign keys (`--foreign-keys`).
    pub foreign_keys: bool,
    /// Where the tables lie, unless it is the database's own place.
    pub tablespace: Option<String>,
    /// Where the primary keys lie.
    pub index_tablespace: Option<String>,
}

/// Which table a row is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Branches,
    Tellers,
    Accounts,
}

impl Kind {
    /// Rows begin with balance 0. `filler` is NULL in the small tables, and in accounts an empty text that its type
    /// pads with blanks.
    pub(super) fn write_row(self, row: u64, out: &mut Vec<u8>) {
        let group = |size: i64, out: &mut Vec<u8>| {
            write_count(row + 1, out);
            out.push(b'\t');
            write_count(row / size.unsigned_abs() + 1, out);
        };
        match self {
            Self::Branches => {
                write_count(row + 1, out);
                out.extend_from_slice(b"\t0\t\\N\n");
            }
            Self::Tellers => {
                group(TELLERS_PER_SCALE, out);
                out.extend_from_slice(b"\t0\t\\N\n");
            }
            Self::Accounts => {
                group(ACCOUNTS_PER_SCALE, out);
                out.extend_from_slice(b"\t0\t\n");
            }
        }
    }
}

pub(super) fn drop_all() -> String {
    format!("DROP TABLE IF EXISTS {}", TABLES.join(", "))
}

pub(super) fn tables(asked: &PgbenchTables) -> Vec<Table> {
    let aid = if asked.scale >= SCALE_BIGINT { "bigint" } else { "int" };
    let scale = u64::from(asked.scale);
    let (accounts, tellers) = (ACCOUNTS_PER_SCALE.unsigned_abs(), TELLERS_PER_SCALE.unsigned_abs());
    let keyed = |name: &str, columns: &str, key: &str, rows, kind| Table {
        name: name.to_owned(),
        create: create(asked, name, columns, true),
        rows,
        after_rows: Vec::new(),
        primary_key: Some(primary_key(asked, name, key)),
        indexes: Vec::new(),
        foreign_keys: Vec::new(),
        source: Source::Pgbench(kind),
    };
    let mut all = vec![
        keyed(
            "pgbench_accounts",
            &format!("aid {aid} not null, bid int, abalance int, filler char(84)"),
            "aid",
            accounts * scale,
            Kind::Accounts,
        ),
        keyed(
            "pgbench_tellers",
            "tid int not null, bid int, tbalance int, filler char(84)",
            "tid",
            tellers * scale,
            Kind::Tellers,
        ),
        keyed("pgbench_branches", "bid int not null, bbalance int, filler char(88)", "bid", scale, Kind::Branches),
        history(asked, aid),
    ];
    if asked.foreign_keys {
        for table in &mut all {
            table.foreign_keys = foreign_keys(&table.name);
        }
    }
    all
}

/// It has no fill factor, since its rows are never changed, and no key.
fn history(asked: &PgbenchTables, aid: &str) -> Table {
    let name = "pgbench_history";
    let columns = format!("tid int, bid int, aid {aid}, delta int, mtime timestamp, filler char(22)");
    Table {
        name: name.to_owned(),
        create: create(asked, name, &columns, false),
        rows: 0,
        after_rows: Vec::new(),
        primary_key: None,
        indexes: Vec::new(),
        foreign_keys: Vec::new(),
        source: Source::Nothing,
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
