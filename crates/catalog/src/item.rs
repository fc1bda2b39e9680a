//! One `key=value` of a specification: which keys there are, how their values are read, and what may have been meant.

use pgdyno_volume::Order;

use crate::file::VolumeFile;
use crate::nearest::nearest;
use crate::units::{SizeProblem, parse_count, parse_size, quoted};

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
    let iops = file.iops.is_some().then_some("iops");
    let throughput = file.throughput.as_ref().and_then(|t| t.provisioned.as_ref()).map(|_| "throughput");
    let bucket = iops.and(Some("bucket_ms"));
    [Some("size"), iops, throughput, Some("order"), bucket, Some("service_us")].into_iter().flatten().collect()
}

/// Reads one `key=value`; `given` has the keys that came before it.
pub(crate) fn read_item<'a>(part: &'a str, file: &VolumeFile, given: &mut Vec<&'a str>) -> Result<Item, BadItem> {
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
    let (item, misspelt) = match read_value(key, value) {
        Some(item) => (item, false),
        None => match nearest(key, keys(file)).and_then(|known| read_value(known, value)) {
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
        problem: format!("there is no key {}; there are {}", quoted(key), keys(file).join(", ")),
        instead: vec![meant],
    }
}

/// `None` if there is no such key. Whether the type has the key, and whether it may have the value, is for the rules.
fn read_value(key: &str, value: &str) -> Option<Result<Item, BadItem>> {
    let is = |name: &str| name.eq_ignore_ascii_case(key);
    if is("size") {
        let refused = |SizeProblem { problem, meant_bytes }| BadItem {
            problem: format!("size={}: {problem}", shown(value)),
            instead: vec![meant_bytes.map(Item::Size)],
        };
        return Some(parse_size(value).map(Item::Size).map_err(refused));
    }
    if is("iops") {
        return Some(whole(value, "iops", "").map(Item::Iops));
    }
    if is("throughput") {
        let number = strip_unit(value, "MiB/s").or_else(|| strip_unit(value, "MiB")).unwrap_or(value);
        return Some(whole(number, "throughput", " of MiB/s").map(Item::Throughput));
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
    if key == "iops" { "16000" } else { "250" }
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
