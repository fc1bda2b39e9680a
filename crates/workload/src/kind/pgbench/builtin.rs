//! pgbench's three built-in scripts, on the schema of `pgbench -i`.

use crate::template::{Access, AccessKind};

/// Rows of accounts, tellers and branches for each unit of the scale factor.
pub const ACCOUNTS_PER_SCALE: i64 = 100_000;
/// See [`ACCOUNTS_PER_SCALE`].
pub const TELLERS_PER_SCALE: i64 = 10;

/// A built-in script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Builtin {
    /// Five statements in a transaction, after TPC-B; clients above the scale factor wait for one another's branch.
    TpcbLike,
    /// The same without tellers and branches, so that clients do not meet.
    SimpleUpdate,
    /// One account's balance.
    SelectOnly,
}

const KEYS: &str = "\\set aid random(1, 100000 * :scale)\n";
const TELLER_KEYS: &str = "\\set bid random(1, 1 * :scale)\n\\set tid random(1, 10 * :scale)\n\
                           \\set delta random(-5000, 5000)\n";
const ACCOUNT: &str = "UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;\n";
const BALANCE: &str = "SELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n";
const TELLER: &str = "UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = :tid;\n";
const BRANCH: &str = "UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = :bid;\n";
const HISTORY: &str = "INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) \
                       VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);\n";

impl Builtin {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::TpcbLike, Self::SimpleUpdate, Self::SelectOnly];

    /// Its name, as after pgbench's `--builtin`.
    pub fn name(self) -> &'static str {
        match self {
            Self::TpcbLike => "tpcb-like",
            Self::SimpleUpdate => "simple-update",
            Self::SelectOnly => "select-only",
        }
    }

    /// The built-in script of a name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|script| script.name() == name)
    }

    /// Its text in the script language. It reads the variable `scale`.
    pub fn text(self) -> String {
        let parts: &[&str] = match self {
            Self::TpcbLike => &[KEYS, TELLER_KEYS, "BEGIN;\n", ACCOUNT, BALANCE, TELLER, BRANCH, HISTORY, "END;\n"],
            Self::SimpleUpdate => &[KEYS, TELLER_KEYS, "BEGIN;\n", ACCOUNT, BALANCE, HISTORY, "END;\n"],
            Self::SelectOnly => &[KEYS, BALANCE],
        };
        parts.concat()
    }

    /// What its statements do to rows, in their order.
    pub(crate) fn accesses(self) -> &'static [Option<Access>] {
        match self {
            Self::TpcbLike => {
                const { &[None, UPDATE_ACCOUNT, READ_ACCOUNT, UPDATE_TELLER, UPDATE_BRANCH, ADD_HISTORY, None] }
            }
            Self::SimpleUpdate => const { &[None, UPDATE_ACCOUNT, READ_ACCOUNT, ADD_HISTORY, None] },
            Self::SelectOnly => const { &[READ_ACCOUNT] },
        }
    }
}

const fn access(relation: &'static str, kind: AccessKind, parameter: Option<usize>) -> Option<Access> {
    Some(Access { relation, number: 0, parameter, rows: 1, kind })
}

// In the updates the difference is the first parameter and the key the second.
const UPDATE_ACCOUNT: Option<Access> = access("pgbench_accounts", AccessKind::Update, Some(1));
const READ_ACCOUNT: Option<Access> = access("pgbench_accounts", AccessKind::Read, Some(0));
const UPDATE_TELLER: Option<Access> = access("pgbench_tellers", AccessKind::Update, Some(1));
const UPDATE_BRANCH: Option<Access> = access("pgbench_branches", AccessKind::Update, Some(1));
const ADD_HISTORY: Option<Access> = access("pgbench_history", AccessKind::Insert, None);
