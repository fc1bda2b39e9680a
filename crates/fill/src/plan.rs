//! What is to be done, in which order, and what may be done at the same time.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use pgdyno_dataset::{Batch, Batches, PartBatches, Table};

use crate::spec::{Action, FillSpec, Manner};

/// A table of fewer rows is written by one session: it takes less than a second.
const SPLIT_ROWS_MIN: u64 = 100_000;
/// More parts than sessions, so that those that are done first have something left to do.
const PARTS_PER_SESSION: u64 = 4;

/// A kind of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum What {
    Drop,
    Create,
    Copy,
    Vacuum,
    PrimaryKey,
    Index,
    ForeignKey,
    Analyze,
}

impl What {
    /// All of them, in the order in which a table goes through them.
    pub(crate) const ALL: [Self; 8] = [
        Self::Drop,
        Self::Create,
        Self::Copy,
        Self::Vacuum,
        Self::PrimaryKey,
        Self::Index,
        Self::ForeignKey,
        Self::Analyze,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Drop => "drop",
            Self::Create => "create",
            Self::Copy => "copy",
            Self::Vacuum => "vacuum",
            Self::PrimaryKey => "primary key",
            Self::Index => "index",
            Self::ForeignKey => "foreign key",
            Self::Analyze => "analyze",
        }
    }

    /// What a row costs, in thousandths of writing it; it only places a progress bar. Measured on two busy cores with
    /// pgbench at scale 20 and sysbench's tables of 100,000 rows, but for foreign keys, which are taken to be like indexes.
    pub(crate) fn weight(self, frozen: bool) -> u64 {
        match self {
            Self::Drop | Self::Create => 0,
            Self::Copy => 1000,
            Self::Vacuum if frozen => 200,
            Self::Vacuum => 800,
            Self::PrimaryKey => 450,
            Self::Index | Self::ForeignKey => 250,
            Self::Analyze => 20,
        }
    }
}

/// One thing that a session does without a pause.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    pub what: What,
    /// Of which table, by its number in the plan; `None` where it is of all.
    pub table: Option<usize>,
    pub work: Work,
    /// Whether the table is there for good when the step is done.
    pub creates: bool,
    /// What it counts in the progress when it is done, beside the units that it copies.
    pub weight: u64,
}

/// How a step is done.
#[derive(Debug, Clone)]
pub(crate) enum Work {
    /// By statements.
    Statements(Vec<String>),
    /// By COPY of the rows of some units, between other statements.
    Copy { before: Vec<String>, units: Range<u64>, freeze: bool, after: Vec<String> },
    /// By batches of several tables, each with a commit of its own: those of a phase of a part.
    Batches { of: Arc<dyn PartBatches>, phase: u32, part: u64 },
    /// The same, of batches that are of no part.
    First(Vec<Batch>),
}

/// Steps that one session does one after another.
pub(crate) type Job = Vec<Step>;
/// Jobs that may be done at the same time. A stage begins when the one before is done.
pub(crate) type Stage = Vec<Job>;

/// Everything.
#[derive(Debug)]
pub(crate) struct Plan {
    pub tables: Vec<Table>,
    pub stages: Vec<Stage>,
    /// Whether each batch is an INSERT, and not a COPY.
    pub inserts: bool,
}

impl Plan {
    /// The plan of an order.
    pub(crate) fn new(spec: &FillSpec) -> Self {
        let set = spec.tables.set();
        let mut plan = Self { tables: set.tables(spec.seed), stages: Vec::new(), inserts: false };
        let drop = |sql| vec![step(What::Drop, None, 0, true, vec![sql])];
        if spec.replace || spec.action == Action::Drop {
            plan.stages.push(set.drops().into_iter().map(drop).collect());
        }
        if spec.action == Action::Drop {
            return plan;
        }
        plan.stages.push(statements_of_all(set.before()));
        if let (Manner::Hammerdb, Some(batches)) = (spec.manner, set.batches()) {
            plan.inserts = batches.inserts;
            let stages = in_batches(&plan.tables, &batches, u64::from(spec.connections));
            plan.stages.extend(stages);
            plan.stages.push(statements_of_all(set.after()));
            plan.stages.retain(|stage| !stage.is_empty());
            return plan;
        }
        let sessions = u64::from(spec.connections);
        let large = plan.tables.iter().filter(|table| table.rows.rows_expected() >= SPLIT_ROWS_MIN).count() as u64;
        let is_split = |table: &Table| spec.split && large < sessions && table.rows.rows_expected() >= SPLIT_ROWS_MIN;
        let (split, whole): (Vec<usize>, Vec<usize>) =
            (0..plan.tables.len()).partition(|&number| is_split(&plan.tables[number]));
        for &number in &split {
            let stages = split_table(number, &plan.tables[number], sessions * PARTS_PER_SESSION);
            plan.stages.extend(stages);
        }
        plan.stages.push(whole.iter().map(|&number| whole_table(number, &plan.tables[number])).collect());
        // They lock both of their tables, so there is nothing to be gained by several sessions.
        let references: Job =
            plan.tables.iter().enumerate().flat_map(|(number, table)| foreign_keys(number, table)).collect();
        plan.stages.push(if references.is_empty() { Vec::new() } else { vec![references] });
        plan.stages.push(statements_of_all(set.after()));
        plan.stages.retain(|stage| !stage.is_empty());
        plan
    }

    /// How many sessions have something to do at the same time, at most.
    pub(crate) fn sessions_max(&self) -> usize {
        self.stages.iter().map(Vec::len).max().unwrap_or_default()
    }

    /// All rows that are to be written; an estimate where units have any number of them.
    pub(crate) fn rows_expected(&self) -> u64 {
        let copied: BTreeSet<usize> = self.steps().flat_map(Step::tables_copied).collect();
        copied.into_iter().map(|number| self.tables[number].rows.rows_expected()).sum()
    }

    /// What all of it counts.
    pub(crate) fn weight(&self) -> u64 {
        self.steps().map(|step| step.weight + self.copy_weight(step)).sum()
    }

    /// What the units of a step count.
    fn copy_weight(&self, step: &Step) -> u64 {
        let of = |batch: Batch| (batch.units.end - batch.units.start) * unit_weight(&self.tables[batch.table]);
        step.batches().into_iter().map(of).sum()
    }

    fn steps(&self) -> impl Iterator<Item = &Step> {
        self.stages.iter().flatten().flatten()
    }
}

impl Step {
    /// The rows that it copies.
    pub(crate) fn batches(&self) -> Vec<Batch> {
        match (&self.work, self.table) {
            (Work::Copy { units, .. }, Some(table)) => vec![Batch { table, units: units.clone() }],
            (Work::Batches { of, phase, part }, _) => of.of(*phase, *part),
            (Work::First(batches), _) => batches.clone(),
            (Work::Statements(_), _) | (Work::Copy { .. }, None) => Vec::new(),
        }
    }

    /// The tables of which it copies rows.
    fn tables_copied(&self) -> BTreeSet<usize> {
        self.batches().into_iter().filter(|batch| !batch.units.is_empty()).map(|batch| batch.table).collect()
    }
}

/// What a unit of a table counts when its rows are written.
pub(crate) fn unit_weight(table: &Table) -> u64 {
    let (rows, units) = (table.rows.rows_expected(), table.rows.units().max(1));
    What::Copy.weight(true) * rows / units
}

fn step(what: What, table: Option<usize>, rows: u64, frozen: bool, statements: Vec<String>) -> Step {
    let work = Work::Statements(statements);
    Step { what, table, work, creates: what == What::Create, weight: rows * what.weight(frozen) }
}

/// Statements that are of all tables, in one job.
fn statements_of_all(statements: Vec<String>) -> Stage {
    if statements.is_empty() {
        return Vec::new();
    }
    vec![vec![step(What::Create, None, 0, true, statements)]]
}

/// A table that one session makes: created and written in one transaction, so that its rows may be frozen.
fn whole_table(number: usize, table: &Table) -> Job {
    let units = 0..table.rows.units();
    let first = if units.is_empty() {
        step(What::Create, Some(number), 0, true, vec![table.create.clone()])
    } else {
        let before = vec!["BEGIN".to_owned(), table.create.clone()];
        let after = table.after_rows.iter().cloned().chain(["COMMIT".to_owned()]).collect();
        let work = Work::Copy { before, units, freeze: true, after };
        Step { what: What::Copy, table: Some(number), work, creates: true, weight: 0 }
    };
    let vacuum = vec![format!("VACUUM ANALYZE {}", table.name)];
    let vacuum = step(What::Vacuum, Some(number), table.rows.rows_expected(), true, vacuum);
    [first, vacuum].into_iter().chain(keys(number, table)).collect()
}

/// A table that several sessions write, each a part of it in a transaction of its own.
fn split_table(number: usize, table: &Table, parts: u64) -> Vec<Stage> {
    let part = |index: u64| {
        let at = |index: u64| (u128::from(table.rows.units()) * u128::from(index) / u128::from(parts)) as u64;
        let units = at(index)..at(index + 1);
        let work = Work::Copy { before: Vec::new(), units, freeze: false, after: Vec::new() };
        vec![Step { what: What::Copy, table: Some(number), work, creates: false, weight: 0 }]
    };
    let mut finish = table.after_rows.clone();
    finish.push(format!("VACUUM (FREEZE, ANALYZE) {}", table.name));
    let vacuum = step(What::Vacuum, Some(number), table.rows.rows_expected(), false, finish);
    vec![
        vec![vec![step(What::Create, Some(number), 0, false, vec![table.create.clone()])]],
        (0..parts).map(part).collect(),
        vec![[vacuum].into_iter().chain(keys(number, table)).collect()],
    ]
}

/// As HammerDB loads: tables, with their primary keys or without, rows in batches by sessions that share the parts, then the rest.
fn in_batches(tables: &[Table], batches: &Batches, sessions: u64) -> Vec<Stage> {
    let create = |(number, table): (usize, &Table)| {
        let key = table.primary_key.clone().filter(|_| batches.keys_first);
        step(What::Create, Some(number), 0, false, [table.create.clone()].into_iter().chain(key).collect())
    };
    let copy = |work| Step { what: What::Copy, table: None, work, creates: false, weight: 0 };
    let sessions = sessions.clamp(1, batches.parts.max(1));
    // The last one takes what is left over.
    let of_session = |number: u64| {
        let each = batches.parts / sessions;
        let end = if number + 1 == sessions { batches.parts } else { (number + 1) * each };
        let parts = (0..batches.phases).flat_map(move |phase| (number * each..end).map(move |part| (phase, part)));
        parts.map(|(phase, part)| copy(Work::Batches { of: Arc::clone(&batches.of), phase, part })).collect::<Job>()
    };
    let keys = tables.iter().enumerate().filter(|_| !batches.keys_first).flat_map(|(number, table)| {
        let rows = table.rows.rows_expected();
        table.primary_key.iter().map(move |sql| step(What::PrimaryKey, Some(number), rows, true, vec![sql.clone()]))
    });
    let indexes = tables.iter().enumerate().flat_map(|(number, table)| {
        let rows = table.rows.rows_expected();
        table.indexes.iter().map(move |sql| step(What::Index, Some(number), rows, true, vec![sql.clone()]))
    });
    let references = tables.iter().enumerate().flat_map(|(number, table)| foreign_keys(number, table));
    let analyze = tables.iter().enumerate().map(|(number, table)| {
        let rows = table.rows.rows_expected();
        step(What::Analyze, Some(number), rows, true, vec![format!("ANALYZE {}", table.name)])
    });
    vec![
        vec![tables.iter().enumerate().map(create).collect()],
        vec![vec![copy(Work::First(batches.first.clone()))]],
        (0..sessions).map(of_session).collect(),
        vec![keys.chain(references).chain(indexes).chain(analyze).collect()],
    ]
}

fn keys(number: usize, table: &Table) -> impl Iterator<Item = Step> {
    let rows = table.rows.rows_expected();
    let of = move |what, sql| step(what, Some(number), rows, true, vec![sql]);
    let primary = table.primary_key.clone().into_iter().map(move |sql| of(What::PrimaryKey, sql));
    primary.chain(table.indexes.clone().into_iter().map(move |sql| of(What::Index, sql)))
}

fn foreign_keys(number: usize, table: &Table) -> impl Iterator<Item = Step> {
    let rows = table.rows.rows_expected();
    let add = move |sql| step(What::ForeignKey, Some(number), rows, true, vec![sql]);
    table.foreign_keys.clone().into_iter().map(add)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::order;

    fn plan(keys: &str) -> Plan {
        Plan::new(&order(keys).expect("it can be read"))
    }

    fn written(plan: &Plan, table: usize) -> Vec<Range<u64>> {
        let of = |step: &Step| match &step.work {
            Work::Copy { units, .. } if step.table == Some(table) => Some(units.clone()),
            _ => None,
        };
        plan.steps().filter_map(of).collect()
    }

    #[test]
    fn every_table_is_made_by_one_session_and_frozen() {
        let plan = plan(r#""tables": {"sysbench": {"tables": 3, "rows": 10}}, "connections": 8"#);
        assert_eq!((plan.stages.len(), plan.sessions_max(), plan.rows_expected()), (2, 3, 30));
        for job in &plan.stages[1] {
            let order: Vec<What> = job.iter().map(|step| step.what).collect();
            assert_eq!(order, [What::Copy, What::Vacuum, What::PrimaryKey, What::Index]);
            assert!(matches!(&job[0].work, Work::Copy { freeze: true, before, .. } if before[0] == "BEGIN"));
        }
    }

    #[test]
    fn a_split_table_is_written_whole_and_once() {
        let plan = plan(r#""tables": {"pgbench": {"scale": 7}}, "connections": 3, "split": true"#);
        let parts = written(&plan, 0);
        assert_eq!(parts.len(), 12);
        assert_eq!((parts[0].start, parts[11].end), (0, 700_000));
        assert!(parts.windows(2).all(|two| two[0].end == two[1].start));
        assert_eq!((written(&plan, 1).len(), written(&plan, 1)[0].clone()), (1, 0..70), "tellers are too few");
        let creates = plan.steps().filter(|step| step.creates).count();
        assert_eq!(creates, 4);
    }

    #[test]
    fn hammerdbs_manner_has_keys_first_and_commits_batches_of_contiguous_warehouses() {
        let keys = r#""tables": {"tpcc": {"warehouses": 5}}, "manner": "hammerdb", "connections": 2, "replace": false"#;
        let plan = plan(keys);
        let whats: Vec<Vec<What>> =
            plan.stages.iter().map(|stage| stage.iter().flatten().map(|step| step.what).collect()).collect();
        assert_eq!((whats[1].len(), whats[2].len(), whats[3].len()), (9, 1, 15), "three phases of five warehouses");
        assert!(whats[1].iter().all(|what| *what == What::Create));
        let keyed = plan.stages[1][0].iter().filter(
            |step| matches!(&step.work, Work::Statements(sql) if sql.iter().any(|text| text.contains("PRIMARY KEY"))),
        );
        assert_eq!(keyed.count(), 8, "history has none");
        let of = |job: &Job| {
            let part = |step: &Step| if let Work::Batches { part, .. } = step.work { part } else { 99 };
            job.iter().map(part).collect::<Vec<_>>()
        };
        assert_eq!(of(&plan.stages[3][0]), [0, 1, 0, 1, 0, 1]);
        assert_eq!(of(&plan.stages[3][1]), [2, 3, 4, 2, 3, 4, 2, 3, 4]);
        let commits: usize = plan.stages[3].iter().flatten().map(|step| step.batches().len()).sum();
        assert_eq!(commits, 5 * 762);
        let last: Vec<What> = whats[4].clone();
        assert_eq!(last.iter().filter(|what| **what == What::Index).count(), 2);
        assert_eq!(last.iter().filter(|what| **what == What::Analyze).count(), 9);
        assert!(plan.steps().all(|step| step.what != What::Vacuum), "HammerDB does not vacuum");
        assert_eq!(plan.rows_expected(), 5 * 499_011 + 100_000);
    }

    #[test]
    fn hammerdbs_tables_of_queries_get_keys_references_and_indexes_when_the_rows_are_there() {
        let keys = r#""tables": {"tpch": {"scale_factor": 0.01}}, "manner": "hammerdb", "connections": 4"#;
        let plan = plan(keys);
        assert!(plan.inserts);
        let last: Vec<What> = plan.stages[plan.stages.len() - 2].iter().flatten().map(|step| step.what).collect();
        let mut order = last.clone();
        order.dedup();
        assert_eq!(order, [What::PrimaryKey, What::ForeignKey, What::Index, What::Analyze]);
        assert_eq!(last.iter().filter(|what| **what == What::PrimaryKey).count(), 8);
        let commits: usize = plan.steps().map(|step| step.batches().len()).sum();
        assert_eq!(commits, 38);
    }

    #[test]
    fn as_many_tables_as_sessions_are_not_split() {
        let plan = plan(r#""tables": {"sysbench": {"tables": 4, "rows": 200000}}, "connections": 4, "split": true"#);
        assert!((0..4).all(|table| written(&plan, table).first() == Some(&(0..200_000))));
    }

    #[test]
    fn foreign_keys_come_last_and_nothing_is_dropped_where_nothing_may_be_replaced() {
        let keys = r#""tables": {"pgbench": {"scale": 1, "foreign_keys": true}}, "replace": false"#;
        let plan = plan(keys);
        assert!(plan.steps().all(|step| step.what != What::Drop));
        let last: Vec<What> = plan.stages.last().unwrap().iter().flatten().map(|step| step.what).collect();
        assert_eq!(last, [What::ForeignKey; 5]);
    }

    #[test]
    fn what_is_only_to_be_dropped_is_dropped() {
        let plan = plan(r#""tables": {"sysbench": {"tables": 5, "rows": 1}}, "action": "drop", "connections": 64"#);
        assert_eq!((plan.stages.len(), plan.sessions_max(), plan.rows_expected()), (1, 5, 0));
        assert!(plan.steps().all(|step| step.what == What::Drop));
    }
}
