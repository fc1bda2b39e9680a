//! What a test sends, in which order: the same in each transaction.

use super::settings::{Sysbench, SysbenchTest};
use crate::client::StatementId;
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
    /// Which of a table's statements it is.
    place: u32,
}

/// A test's statements.
pub(crate) struct Plan {
    pub settings: Sysbench,
    pub items: Vec<Item>,
    /// How many statements a table has.
    kinds: u32,
    statements: Vec<Template>,
}

impl Plan {
    pub fn new(settings: Sysbench) -> Self {
        assert!(settings.tables > 0 && settings.table_size > 0 && settings.clients > 0, "{settings:?}");
        let mut items = items(&settings);
        assert!(!items.is_empty(), "a transaction has a statement");
        let mut kinds: Vec<Kind> = Vec::new();
        for item in &mut items {
            let place = kinds.iter().position(|known| *known == item.kind).unwrap_or(kinds.len());
            if place == kinds.len() {
                kinds.push(item.kind);
            }
            item.place = place as u32;
        }
        let tables = 1..=settings.tables;
        let statements = tables.flat_map(|table| kinds.iter().map(move |kind| template(*kind, table, &settings)));
        let statements = statements.collect();
        Self { settings, items, statements, kinds: kinds.len() as u32 }
    }

    /// Those of the first table, of the second, and so on.
    pub fn statements(&self) -> &[Template] {
        &self.statements
    }

    /// How many statements of the same kinds each table has.
    pub fn statements_of_table(&self) -> usize {
        self.kinds as usize
    }

    /// The number of a statement; BEGIN and COMMIT are those of the first table.
    pub fn statement(&self, item: Item, table: u32) -> StatementId {
        let table = if matches!(item.kind, Kind::Begin | Kind::Commit) { 1 } else { table };
        StatementId((table - 1) * self.kinds + item.place)
    }
}

impl Sysbench {
    /// Whether a transaction has no statement, so that no client could ever finish one.
    pub fn is_empty(&self) -> bool {
        items(self).is_empty()
    }
}

fn items(settings: &Sysbench) -> Vec<Item> {
    use SysbenchTest as T;
    let test = settings.test;
    match test {
        T::Legacy | T::ReadWrite | T::ReadOnly | T::WriteOnly => {}
        // The script asks once, whatever `--point-selects` is.
        T::PointSelect => return group(&[Kind::Point], 1),
        T::Insert => return group(&[Kind::InsertNew], 1),
        T::Delete => return group(&[Kind::Delete], 1),
        T::UpdateIndex => return group(&[Kind::UpdateIndex], settings.index_updates),
        T::UpdateNonIndex => return group(&[Kind::UpdateNonIndex], settings.non_index_updates),
        T::RandomPoints => return group(&[Kind::RandomPoints], settings.random_points.min(1)),
        T::RandomRanges => return group(&[Kind::RandomRanges], settings.number_of_ranges.min(1)),
    }
    let mut items = Vec::new();
    if test != T::WriteOnly {
        items.extend(group(&[Kind::Point], settings.point_selects));
        items.extend(group(&[Kind::Range], settings.simple_ranges));
        items.extend(group(&[Kind::SumRange], settings.sum_ranges));
        items.extend(group(&[Kind::OrderRange], settings.order_ranges));
        items.extend(group(&[Kind::DistinctRange], settings.distinct_ranges));
    }
    if test != T::ReadOnly {
        items.extend(group(&[Kind::UpdateIndex], settings.index_updates));
        items.extend(group(&[Kind::UpdateNonIndex], settings.non_index_updates));
        items.extend(group(&[Kind::Delete, Kind::InsertAgain], settings.delete_inserts));
    }
    if !settings.skip_trx {
        items.insert(0, Item { kind: Kind::Begin, draw_table: false, place: 0 });
        items.push(Item { kind: Kind::Commit, draw_table: false, place: 0 });
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
    all.map(|(index, kind)| Item { kind: *kind, draw_table: index == 0, place: 0 }).collect()
}

fn template(kind: Kind, table: u32, settings: &Sysbench) -> Template {
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
            for _ in 1..settings.random_points {
                query = query.text(", ").parameter("k");
            }
            access(query.text(")"), AccessKind::Read, None, settings.random_points)
        }
        Kind::RandomRanges => {
            let mut query =
                text("SELECT count(k) FROM ", " WHERE k BETWEEN ").parameter("k").text(" AND ").parameter("last");
            for _ in 1..settings.number_of_ranges {
                query = query.text(" OR k BETWEEN ").parameter("k").text(" AND ").parameter("last");
            }
            let rows = settings.number_of_ranges.saturating_mul((settings.delta as u32).saturating_add(1));
            access(query, AccessKind::Read, None, rows)
        }
    }
}

fn values(head: Template) -> Template {
    head.parameter("k").text(", ").quoted("c").text(", ").quoted("pad").text(")")
}
