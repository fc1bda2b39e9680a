//! What a test sends, in which order: the same in each transaction.

use super::{Sysbench, SysbenchTest};
use crate::template::{Access, AccessKind, Template};

/// A kind of statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Begin,
    Commit,
    Point,
    Range,
    SumRange,
    OrderRange,
    DistinctRange,
    UpdateIndex,
    UpdateNonIndex,
    Delete,
    /// The row that was deleted just before, by its id.
    InsertAgain,
    /// A row with an id from the sequence.
    InsertNew,
    RandomPoints,
    RandomRanges,
}

/// One statement of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    pub kind: Kind,
    /// Whether the table is drawn anew before it.
    pub draw_table: bool,
}

/// How many values or ranges the two tests on `k` ask for (`--random-points`, `--number-of-ranges`).
pub(crate) const RANDOM_COUNT: usize = 10;
/// How far such a range goes beyond its first value (`--delta`).
pub(crate) const RANDOM_DELTA: i64 = 5;

/// A test's statements.
pub(crate) struct Plan {
    pub settings: Sysbench,
    pub items: Vec<Item>,
    kinds: Vec<Kind>,
    statements: Vec<Template>,
}

impl Plan {
    pub fn new(settings: Sysbench) -> Self {
        assert!(settings.tables > 0 && settings.table_size > 0 && settings.clients > 0, "{settings:?}");
        let items = items(&settings);
        assert!(!items.is_empty(), "a transaction has a statement");
        let mut kinds: Vec<Kind> = Vec::new();
        for item in &items {
            if !kinds.contains(&item.kind) {
                kinds.push(item.kind);
            }
        }
        let tables = 1..=settings.tables;
        let statements = tables.flat_map(|table| kinds.iter().map(move |kind| template(*kind, table, settings)));
        Self { settings, items, statements: statements.collect(), kinds }
    }

    pub fn statements(&self) -> &[Template] {
        &self.statements
    }

    /// The number of a statement; BEGIN and COMMIT are those of the first table.
    pub fn statement(&self, kind: Kind, table: u32) -> u32 {
        let place = self.kinds.iter().position(|known| *known == kind).expect("the plan has this kind");
        let table = if matches!(kind, Kind::Begin | Kind::Commit) { 1 } else { table };
        (table - 1) * self.kinds.len() as u32 + place as u32
    }
}

fn items(settings: &Sysbench) -> Vec<Item> {
    use SysbenchTest as T;
    let test = settings.test;
    let one = |kind| vec![Item { kind, draw_table: true }];
    match test {
        T::Legacy | T::ReadWrite | T::ReadOnly | T::WriteOnly => {}
        T::PointSelect => return group(&[Kind::Point], settings.point_selects),
        T::Insert => return one(Kind::InsertNew),
        T::Delete => return one(Kind::Delete),
        T::UpdateIndex => return group(&[Kind::UpdateIndex], settings.changes),
        T::UpdateNonIndex => return group(&[Kind::UpdateNonIndex], settings.changes),
        T::RandomPoints => return one(Kind::RandomPoints),
        T::RandomRanges => return one(Kind::RandomRanges),
    }
    let mut items = Vec::new();
    if test != T::WriteOnly {
        items.extend(group(&[Kind::Point], settings.point_selects));
        for kind in [Kind::Range, Kind::SumRange, Kind::OrderRange, Kind::DistinctRange] {
            items.extend(group(&[kind], settings.ranges));
        }
    }
    if test != T::ReadOnly {
        for kinds in [&[Kind::UpdateIndex][..], &[Kind::UpdateNonIndex], &[Kind::Delete, Kind::InsertAgain]] {
            items.extend(group(kinds, settings.changes));
        }
    }
    if !settings.skip_transaction {
        items.insert(0, Item { kind: Kind::Begin, draw_table: false });
        items.push(Item { kind: Kind::Commit, draw_table: false });
    }
    if test == T::Legacy {
        // One table for the whole transaction.
        for (index, item) in items.iter_mut().enumerate() {
            item.draw_table = index == 0;
        }
    }
    items
}

/// Statements of one table, drawn with the first of them.
fn group(kinds: &[Kind], times: u32) -> Vec<Item> {
    let count = kinds.len() * times as usize;
    let all = kinds.iter().cycle().take(count).enumerate();
    all.map(|(index, kind)| Item { kind: *kind, draw_table: index == 0 }).collect()
}

fn template(kind: Kind, table: u32, settings: Sysbench) -> Template {
    let text = |before: &str, after: &str| Template::new(&format!("{before}sbtest{table}{after}"));
    let rows = settings.range_size.max(0) as u32;
    let access = |template: Template, kind, parameter, rows| {
        template.access(Access { relation: "sbtest", number: table, parameter, rows, kind })
    };
    let range = |before: &str, after: &str| {
        let between = text(before, " WHERE id BETWEEN ").parameter("id").text(" AND ").parameter("last").text(after);
        access(between, AccessKind::Read, Some(0), rows)
    };
    match kind {
        Kind::Begin => Template::new("BEGIN"),
        Kind::Commit => Template::new("COMMIT"),
        Kind::Point => access(text("SELECT c FROM ", " WHERE id=").parameter("id"), AccessKind::Read, Some(0), 1),
        Kind::Range => range("SELECT c FROM ", ""),
        Kind::SumRange if settings.test == SysbenchTest::Legacy => range("SELECT SUM(K) FROM ", ""),
        Kind::SumRange => range("SELECT SUM(k) FROM ", ""),
        Kind::OrderRange => range("SELECT c FROM ", " ORDER BY c"),
        Kind::DistinctRange => range("SELECT DISTINCT c FROM ", " ORDER BY c"),
        Kind::UpdateIndex => {
            access(text("UPDATE ", " SET k=k+1 WHERE id=").parameter("id"), AccessKind::Update, Some(0), 1)
        }
        Kind::UpdateNonIndex => {
            let update = text("UPDATE ", " SET c=").quoted("c").text(" WHERE id=").parameter("id");
            access(update, AccessKind::Update, Some(1), 1)
        }
        Kind::Delete => access(text("DELETE FROM ", " WHERE id=").parameter("id"), AccessKind::Delete, Some(0), 1),
        Kind::InsertAgain => {
            let head = text("INSERT INTO ", " (id, k, c, pad) VALUES (").parameter("id").text(", ");
            access(values(head), AccessKind::Insert, Some(0), 1)
        }
        Kind::InsertNew => access(values(text("INSERT INTO ", " (k, c, pad) VALUES (")), AccessKind::Insert, None, 1),
        Kind::RandomPoints => {
            let mut query = text("SELECT id, k, c, pad FROM ", " WHERE k IN (").parameter("k");
            for _ in 1..RANDOM_COUNT {
                query = query.text(", ").parameter("k");
            }
            access(query.text(")"), AccessKind::Read, None, RANDOM_COUNT as u32)
        }
        Kind::RandomRanges => {
            let mut query =
                text("SELECT count(k) FROM ", " WHERE k BETWEEN ").parameter("k").text(" AND ").parameter("last");
            for _ in 1..RANDOM_COUNT {
                query = query.text(" OR k BETWEEN ").parameter("k").text(" AND ").parameter("last");
            }
            access(query, AccessKind::Read, None, RANDOM_COUNT as u32 * (RANDOM_DELTA as u32 + 1))
        }
    }
}

fn values(head: Template) -> Template {
    head.parameter("k").text(", ").quoted("c").text(", ").quoted("pad").text(")")
}
