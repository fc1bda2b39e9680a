//! The transactions of a capture in memory, each with its statements, the keys that it needs, and those that it makes.

use std::collections::hash_map::{DefaultHasher, Entry};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write;
use std::hash::{Hash, Hasher};

use pgdyno_capture::{Call, CaptureError, CaptureFile, Protocol};
use pgdyno_workload::{Class, Groups, Purpose, Random};

use crate::keys::{Key, Links, Occurrence, Place, Wanted};
use crate::left_out;
use crate::shared::Shared;

/// Statements that are kept: of a larger capture a share of the transactions, which the seed draws. Two million have about a gigabyte.
const CALLS_MAX: u64 = 2_000_000;
/// Statements that are told apart in figures, the most frequent of them; the others are one.
const GROUPS_MAX: usize = 200;
const OTHERS: &str = "(other statements)";

/// Where the value of a key comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// From an earlier statement of the same transaction.
    Own(Key),
    /// From another transaction: of so many-th of the makers that the transaction needs, and in its entry there.
    Given { maker: usize, position: usize },
}

/// A statement of a transaction.
pub(crate) struct Step {
    pub call: Call,
    /// What it is counted as.
    pub group: u32,
    /// Places of keys that this run's are sent in, in their order.
    pub keys: Vec<(Place, Source)>,
    /// Keys in its answer, with their places in the entry of the transaction.
    pub makes: Vec<(usize, Key, Wanted)>,
}

/// Transactions whose keys another one needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Maker {
    /// What they are alike in: the statements that make keys.
    pub kind: u32,
    /// How often transactions of one shape used the keys of one of them.
    pub uses: u64,
}

/// How a transaction ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ends {
    /// By COMMIT, or by itself.
    Committed,
    /// By ROLLBACK.
    RolledBack,
    /// With its session: the server rolled it back.
    Open,
}

/// A transaction that can be drawn.
pub(crate) struct Drawn {
    /// The number of its endpoint.
    pub place: usize,
    /// What its session had set.
    pub settings: u32,
    pub steps: Vec<Step>,
    pub shape: u32,
    /// None in the place of one of which nothing is known: its keys are sent as captured.
    pub makers: Vec<Option<Maker>>,
    /// Its kind of maker, and how many keys it makes; none if it makes none.
    pub makes: Option<(u32, usize)>,
    pub ends: Ends,
}

/// See the module.
pub(crate) struct Pool {
    pub transactions: Vec<Drawn>,
    /// Texts of SET for each number of settings.
    pub settings: Vec<Vec<String>>,
    pub groups: Groups,
    /// Kinds of makers.
    pub kinds: usize,
    /// Transactions of the part that is asked for.
    pub read: u64,
    /// Of these, those that cannot be sent, by reason.
    pub left_out: BTreeMap<&'static str, u64>,
}

/// Reads the transactions of the `chosen` sessions that are in the part that is asked for.
pub(crate) fn load(
    file: &mut CaptureFile,
    shared: &Shared,
    chosen: &[usize],
    links: Option<&Links>,
    seed: u64,
) -> Result<Pool, CaptureError> {
    let calls = chosen.iter().fold(0, |sum: u64, session| sum.saturating_add(shared.sessions[*session].calls));
    let share = CALLS_MAX as f64 / calls.max(1) as f64;
    let mut loading = Loading { links, share, seed, ..Loading::default() };
    for &session in chosen {
        let Some(place) = shared.place_of(&shared.sessions[session]) else { continue };
        let mut one = InSession { session, place, settings: Vec::new(), calls: Vec::new() };
        let mut number = 0;
        file.calls(session, |call| {
            if one.calls.last().is_some_and(|(_, last)| last.transaction != call.transaction) {
                one.end(&mut loading, shared);
            }
            one.calls.push((number, std::mem::take(call)));
            number += 1;
        })?;
        one.end(&mut loading, shared);
    }
    Ok(loading.settle())
}

/// A transaction: its session and its number there.
type Which = (usize, u32);

#[derive(Default)]
struct Loading<'a> {
    links: Option<&'a Links>,
    share: f64,
    seed: u64,
    transactions: Vec<Drawn>,
    /// Of each of them the makers that it needs.
    needs: Vec<Vec<(Which, Vec<Key>)>>,
    /// Of each maker its kind and its keys.
    made: HashMap<Which, (u32, Vec<Key>)>,
    kinds: HashMap<String, u32>,
    shapes: HashMap<u64, u32>,
    settings: HashMap<Vec<String>, u32>,
    texts: HashMap<String, u32>,
    /// Shape of a statement -> its number, and how often it is there.
    groups: HashMap<String, (u32, u64)>,
    read: u64,
    left_out: BTreeMap<&'static str, u64>,
}

struct InSession {
    session: usize,
    place: usize,
    settings: Vec<String>,
    calls: Vec<(u32, Call)>,
}

impl InSession {
    /// A transaction has ended.
    fn end(&mut self, loading: &mut Loading, shared: &Shared) {
        let calls = std::mem::take(&mut self.calls);
        let Some((_, first)) = calls.first() else { return };
        if calls.len() == 1 && self.is_of_session(first) {
            return;
        }
        if !shared.part.has(first.due_us) {
            return;
        }
        loading.read += 1;
        let why = |call: &Call| {
            left_out::why(call).or_else(|| call.rows.is_some().then_some("rows of COPY would be the same each time"))
        };
        if let Some(why) = calls.iter().find_map(|(_, call)| why(call)) {
            *loading.left_out.entry(why).or_default() += 1;
            return;
        }
        let which = (self.session, first.transaction);
        let settings = number_of(&mut loading.settings, self.settings.clone());
        loading.transaction(which, self.place, settings, calls);
    }

    /// Whether a statement is about its session and not a transaction: it is done where a session needs it.
    fn is_of_session(&mut self, call: &Call) -> bool {
        let text = call.text.trim_end_matches([';', ' ', '\n']);
        if left_out::is_setting(call) {
            self.settings.push(text.to_owned());
            return true;
        }
        let words = text.to_ascii_uppercase();
        if words == "DISCARD ALL" || words == "RESET ALL" {
            self.settings.clear();
            return true;
        }
        words.starts_with("DEALLOCATE ")
    }
}

impl Loading<'_> {
    fn transaction(&mut self, which: Which, place: usize, settings: u32, calls: Vec<(u32, Call)>) {
        let (mut hasher, mut kind) = (DefaultHasher::new(), String::new());
        let (mut made, mut needs): (Vec<Key>, Vec<(Which, Vec<Key>)>) = (Vec::new(), Vec::new());
        let ends = ends_of(&calls);
        let mut steps = Vec::with_capacity(calls.len());
        for (number, mut call) in calls {
            let shape = call.shape();
            shape.hash(&mut hasher);
            let mut step = (Vec::new(), Vec::new());
            if let Some(links) = self.links {
                links.needed(&call, which.0, |occurrence| {
                    let Occurrence::Key(at, key, maker) = occurrence else { return };
                    let source = if (maker.session, maker.transaction) == which {
                        Source::Own(key)
                    } else {
                        needed(&mut needs, (maker.session, maker.transaction), key)
                    };
                    step.0.push((at, source));
                });
                for learned in links.learned((which.0, number)) {
                    let _ = writeln!(kind, "{shape}|{}|{:?}", learned.wanted.source, learned.wanted.kind);
                    step.1.push((made.len(), learned.key, learned.wanted.clone()));
                    made.push(learned.key);
                }
            }
            if call.protocol == Protocol::Named {
                // In one session the same name may stand for several texts that were prepared in several of production's.
                call.name = format!("s{}", number_of(&mut self.texts, call.text.clone()));
            }
            let next = self.groups.len() as u32;
            let group = self.groups.entry(shape).or_insert((next, 0));
            group.1 += 1;
            steps.push(Step { group: group.0, call, keys: step.0, makes: step.1 });
        }
        let makes = (!made.is_empty()).then(|| (number_of(&mut self.kinds, kind), made.len()));
        if let Some((kind, _)) = makes {
            self.made.insert(which, (kind, made));
        }
        let is_kept = Random::derived(self.seed, Purpose::Terminal, which.0 as u32, u64::from(which.1)).unit();
        if is_kept < self.share {
            let shape = number_of(&mut self.shapes, hasher.finish());
            self.transactions.push(Drawn { place, settings, steps, shape, makers: Vec::new(), makes, ends });
            self.needs.push(needs);
        }
    }

    /// All is read: which kinds of makers are needed, and how often.
    fn settle(mut self) -> Pool {
        let mut uses: HashMap<(u32, u32), (u64, HashSet<Which>)> = HashMap::new();
        for (one, needs) in self.transactions.iter().zip(&self.needs) {
            for (which, _) in needs {
                if let Some((kind, _)) = self.made.get(which) {
                    let used = uses.entry((one.shape, *kind)).or_default();
                    used.0 += 1;
                    used.1.insert(*which);
                }
            }
        }
        for (one, needs) in self.transactions.iter_mut().zip(&self.needs) {
            let mut positions = Vec::with_capacity(needs.len());
            for (which, keys) in needs {
                let maker = self.made.get(which).map(|(kind, made)| (*kind, made));
                one.makers.push(maker.map(|(kind, _)| {
                    let (count, makers) = &uses[&(one.shape, kind)];
                    Maker { kind, uses: count.div_ceil(makers.len() as u64) }
                }));
                let place_of = |key: &Key| maker.and_then(|(_, made)| made.iter().position(|known| known == key));
                positions.push(keys.iter().map(place_of).collect::<Vec<_>>());
            }
            for step in &mut one.steps {
                step.keys.retain_mut(|(_, source)| match source {
                    Source::Own(_) => true,
                    Source::Given { maker, position } => match positions[*maker][*position] {
                        Some(place) => {
                            *position = place;
                            true
                        }
                        None => false,
                    },
                });
            }
        }
        let groups = self.grouped();
        let mut settings = vec![Vec::new(); self.settings.len()];
        for (texts, number) in self.settings {
            settings[number as usize] = texts;
        }
        let (kinds, read) = (self.kinds.len(), self.read);
        Pool { transactions: self.transactions, settings, groups, kinds, read, left_out: self.left_out }
    }

    /// The most frequent statements by name; the others are one, the last.
    fn grouped(&mut self) -> Groups {
        let mut order: Vec<(&String, &(u32, u64))> = self.groups.iter().collect();
        order.sort_by(|(text, (_, count)), (other, (_, fewer))| fewer.cmp(count).then_with(|| text.cmp(other)));
        let mut of = vec![GROUPS_MAX as u32; order.len()];
        let mut groups = Groups::default();
        for (place, (text, (number, _))) in order.into_iter().take(GROUPS_MAX).enumerate() {
            of[*number as usize] = place as u32;
            groups.texts.push(text.clone());
            groups.classes.push(class_of(text));
        }
        if of.len() > GROUPS_MAX {
            groups.texts.push(OTHERS.to_owned());
            groups.classes.push(Class::Other);
        }
        for step in self.transactions.iter_mut().flat_map(|one| &mut one.steps) {
            step.group = of[step.group as usize];
        }
        groups
    }
}

/// Where the key of another transaction stands among those that are needed.
fn needed(needs: &mut Vec<(Which, Vec<Key>)>, which: Which, key: Key) -> Source {
    let maker = needs.iter().position(|(known, _)| *known == which).unwrap_or_else(|| {
        needs.push((which, Vec::new()));
        needs.len() - 1
    });
    let keys = &mut needs[maker].1;
    let position = keys.iter().position(|known| *known == key).unwrap_or_else(|| {
        keys.push(key);
        keys.len() - 1
    });
    Source::Given { maker, position }
}

/// The number of a value, a new one of a new value.
fn number_of<T: Hash + Eq>(known: &mut HashMap<T, u32>, value: T) -> u32 {
    let next = known.len() as u32;
    match known.entry(value) {
        Entry::Occupied(place) => *place.get(),
        Entry::Vacant(place) => *place.insert(next),
    }
}

fn ends_of(calls: &[(u32, Call)]) -> Ends {
    let words = |call: &Call| -> Vec<String> {
        let bare = |word: &str| word.trim_end_matches(';').to_ascii_uppercase();
        call.text.split_ascii_whitespace().take(4).map(bare).collect()
    };
    let (Some((_, first)), Some((_, last))) = (calls.first(), calls.last()) else { return Ends::Committed };
    let (first, last) = (words(first), words(last));
    let first_of = |words: &[String]| words.first().cloned().unwrap_or_default();
    match first_of(&last).as_str() {
        "ROLLBACK" | "ABORT" if !last.iter().any(|word| word == "TO") => Ends::RolledBack,
        "COMMIT" | "END" => Ends::Committed,
        _ if matches!(first_of(&first).as_str(), "BEGIN" | "START") => Ends::Open,
        _ => Ends::Committed,
    }
}

fn class_of(text: &str) -> Class {
    let first = text.split_ascii_whitespace().next().unwrap_or_default().to_ascii_uppercase();
    match first.as_str() {
        "SELECT" | "VALUES" | "FETCH" | "SHOW" => Class::Read,
        "INSERT" | "UPDATE" | "DELETE" | "MERGE" => Class::Write,
        _ => Class::Other,
    }
}
