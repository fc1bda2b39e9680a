//! One `key=value` of a specification: which keys there are, how their values are read, and what may have been meant.

use pgdyno_volume::Order;

use crate::degradation::Degraded;
use crate::nearest::nearest;
use crate::restore::{Init, PROVIDER};
use crate::units::{SizeProblem, parse_count, parse_size, quoted};
use crate::volume::facts::file::{CreditKind, VolumeFile};
use crate::volume::facts::store::{InstanceStore, StoreFacts};

/// One `key=value` that makes sense.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Item {
    Size(u64),
    Iops(u64),
    Throughput(u64),
    Order(Order),
    /// Milliseconds of the rate.
    Bucket(u64),
    /// Microseconds.
    Service(u64),
    /// The first balance: I/O units, or bytes.
    Credits(u64),
    /// How it gets the blocks of its snapshot.
    Init(Init),
    /// How much of the time it is degraded.
    Degraded(Degraded),
    /// Whose own storage it is.
    Store(&'static InstanceStore),
}

/// One `key=value` that does not, and what may have been meant.
pub(crate) struct BadItem {
    pub problem: String,
    /// What to put in its place; `None` leaves the key out.
    pub instead: Vec<Option<Item>>,
}

/// The orders by their names.
const ORDERS: [(&str, Order); 2] = [("fifo", Order::Fifo), ("gamma", Order::Gamma)];

/// What the user writes for an order.
pub(crate) fn order_name(order: Order) -> &'static str {
    ORDERS.iter().find(|(_, known)| *known == order).map_or("", |(name, _)| name)
}

/// The keys that a type understands.
pub(crate) fn keys(file: &VolumeFile) -> Vec<&'static str> {
    let has = |yes: bool, key: &'static str| yes.then_some(key);
    let limited = file.iops.is_some() || file.throughput.is_some() || file.instance_store.is_some();
    let keys = [
        has(file.instance_store.is_some(), "instance"),
        Some("size"),
        has(file.iops.as_ref().is_some_and(|iops| !iops.provisioned.is_empty()), "iops"),
        has(file.throughput.as_ref().is_some_and(|facts| !facts.provisioned.is_empty()), "throughput"),
        has(file.credit_kind().is_some(), "credits"),
        has(file.provider == PROVIDER, "init"),
        has(limited, "degraded"),
        Some("order"),
        has(limited, "bucket_ms"),
        Some("service_us"),
    ];
    keys.into_iter().flatten().collect()
}

/// Reads one `key=value`; `given` has the keys that came before it.
pub(crate) fn read_item<'a>(
    part: &'a str,
    file: &'static VolumeFile,
    given: &mut Vec<&'a str>,
) -> Result<Item, BadItem> {
    let bad = |problem: String| BadItem { problem, instead: vec![None] };
    let Some((key, value)) = part.split_once('=') else {
        let what = if part.trim().is_empty() {
            "a key is missing".to_owned()
        } else {
            format!("{} has no value", quoted(part))
        };
        return Err(bad(format!("{what}; keys are written key=value and separated by commas")));
    };
    let (key, value) = (key.trim(), value.trim());
    let (item, misspelt) = match read_value(key, value, file) {
        Some(item) => (item, false),
        None => match nearest(key, keys(file)).and_then(|known| read_value(known, value, file)) {
            Some(item) => (item, true),
            None => return Err(unknown_key(key, file, None)),
        },
    };
    if misspelt {
        return Err(unknown_key(key, file, item.ok()));
    }
    if given.iter().any(|earlier| earlier.eq_ignore_ascii_case(key)) {
        return Err(BadItem {
            problem: format!("{} is given twice", key.to_ascii_lowercase()),
            instead: vec![item.ok(), None],
        });
    }
    given.push(key);
    item
}

fn unknown_key(key: &str, file: &VolumeFile, meant: Option<Item>) -> BadItem {
    BadItem {
        problem: format!("there is no key {}; the keys are {}", quoted(key), keys(file).join(", ")),
        instead: vec![meant],
    }
}

/// `None` if there is no such key. Whether the type has the key, and whether it may have the value, is for the rules.
fn read_value(key: &str, value: &str, file: &'static VolumeFile) -> Option<Result<Item, BadItem>> {
    let is = |name: &str| name.eq_ignore_ascii_case(key);
    if is("size") {
        return Some(read_size(value, "size", Item::Size));
    }
    if is("credits") {
        return Some(match file.credit_kind() {
            Some(CreditKind::Bytes) => read_size(value, "credits", Item::Credits),
            _ => whole(value, "credits", "").map(Item::Credits),
        });
    }
    if is("instance") {
        return file.instance_store.as_ref().map(|facts| read_store(value, facts));
    }
    if is("iops") {
        return Some(whole(value, "iops", "").map(Item::Iops));
    }
    if is("throughput") {
        let number = strip_unit(value, "MiB/s").or_else(|| strip_unit(value, "MiB")).unwrap_or(value);
        return Some(whole(number, "throughput", " of MiB/s").map(Item::Throughput));
    }
    if is("init") {
        return Some(read_init(value));
    }
    if is("degraded") {
        return Some(read_degraded(value));
    }
    if is("order") {
        return Some(read_order(value));
    }
    if is("bucket_ms") {
        return Some(whole(value, "bucket_ms", " of milliseconds").map(Item::Bucket));
    }
    if is("service_us") {
        return Some(whole(value, "service_us", " of microseconds").map(Item::Service));
    }
    None
}

fn read_size(value: &str, key: &str, item: fn(u64) -> Item) -> Result<Item, BadItem> {
    parse_size(value).map(item).map_err(|SizeProblem { problem, meant_bytes }| BadItem {
        problem: format!("{key}={}: {problem}", shown(value)),
        instead: vec![meant_bytes.map(item)],
    })
}

fn read_store(value: &str, facts: &'static StoreFacts) -> Result<Item, BadItem> {
    facts.named(value).map(Item::Store).ok_or_else(|| {
        let names = facts.types.iter().map(|store| store.name.as_str());
        let meant = nearest(value, names).and_then(|name| facts.named(name)).map(Item::Store);
        let (known, example) = (facts.types.len(), &facts.default.value);
        let problem =
            format!("instance={}: the storage of {known} instance types is known, such as {example}", shown(value));
        BadItem { problem, instead: vec![meant] }
    })
}

/// A name, or a rate of MiB/s.
fn read_init(value: &str) -> Result<Item, BadItem> {
    let number = strip_unit(value, "MiB/s").or_else(|| strip_unit(value, "MiB")).unwrap_or(value);
    let rate = || parse_count(number).map(Init::Rate);
    Init::named(value).or_else(rate).map(Item::Init).ok_or_else(|| {
        let meant = nearest(value, Init::names()).and_then(Init::named).map(Item::Init);
        let names = Init::names().collect::<Vec<_>>().join(", ");
        let problem = format!("init={}: write {names}, or a rate such as init=200MiB/s", shown(value));
        BadItem { problem, instead: vec![meant] }
    })
}

fn read_degraded(value: &str) -> Result<Item, BadItem> {
    Degraded::read(value).map(Item::Degraded).ok_or_else(|| {
        let problem = format!("degraded={}: write promise, or a share of the time such as degraded=5%", shown(value));
        let meant = Degraded::read(&format!("{value}%")).or(Some(Degraded::Promise));
        BadItem { problem, instead: vec![meant.map(Item::Degraded)] }
    })
}

fn read_order(value: &str) -> Result<Item, BadItem> {
    let named = |wanted: &str| ORDERS.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted));
    named(value).map(|(_, order)| Item::Order(*order)).ok_or_else(|| {
        let names = ORDERS.map(|(name, _)| name);
        let meant = nearest(value, names).and_then(named).map(|(_, order)| Item::Order(*order));
        BadItem {
            problem: format!("order={}: the orders are {}", shown(value), names.join(" and ")),
            instead: vec![meant],
        }
    })
}

fn whole(value: &str, key: &str, unit: &str) -> Result<u64, BadItem> {
    parse_count(value).ok_or_else(|| BadItem {
        problem: format!("{key}={}: write a whole number{unit}, such as {key}={}", shown(value), example(key)),
        instead: vec![None],
    })
}

fn example(key: &str) -> &'static str {
    match key {
        "iops" => "16000",
        "credits" => "40000",
        _ => "250",
    }
}

fn strip_unit<'a>(value: &'a str, unit: &str) -> Option<&'a str> {
    let at = value.len().checked_sub(unit.len())?;
    let tail = value.get(at..)?;
    tail.eq_ignore_ascii_case(unit).then(|| value[..at].trim_end())
}

/// A value inside a sentence: bare when it is harmless, quoted and escaped otherwise.
fn shown(value: &str) -> String {
    let harmless = !value.is_empty() && value.len() <= 24 && value.bytes().all(|byte| byte.is_ascii_graphic());
    if harmless { value.to_owned() } else { quoted(value) }
}
