//! What the user wrote: `TYPE[:key=value,...]`, read but not yet judged.

use std::fmt;

use pgdyno_volume::Order;

use crate::error::SpecError;
use crate::file::VolumeFile;
use crate::nearest::nearest;
use crate::remedy;
use crate::units::{SizeProblem, parse_count, parse_size, quoted, size_key};

/// A volume that was asked for; what is `None` was left to the default.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Request {
    pub file: &'static VolumeFile,
    pub size_bytes: Option<u64>,
    pub iops: Option<u64>,
    pub throughput_mib_per_s: Option<u64>,
    pub order: Option<Order>,
}

/// One `key=value` that makes sense.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Item {
    Size(u64),
    Iops(u64),
    Throughput(u64),
    Order(Order),
}

/// One `key=value` that does not, and what may have been meant.
struct BadItem {
    problem: String,
    /// What to put in its place; `None` leaves the key out.
    instead: Vec<Option<Item>>,
}

/// The orders by their names.
const ORDERS: [(&str, Order); 2] = [("fifo", Order::Fifo), ("gamma", Order::Gamma)];

/// What the user writes for an order.
pub(crate) fn order_name(order: Order) -> &'static str {
    ORDERS.iter().find(|(_, known)| *known == order).map_or("", |(name, _)| name)
}

impl Request {
    /// A type with nothing asked of it.
    pub fn new(file: &'static VolumeFile) -> Self {
        Request { file, size_bytes: None, iops: None, throughput_mib_per_s: None, order: None }
    }

    /// Reads a specification. The type and the keys may be in any case, and spaces around them do no harm.
    pub fn parse(text: &str, catalog: &'static [VolumeFile]) -> Result<Self, SpecError> {
        let (name, keys) = match text.split_once(':') {
            Some((name, keys)) => (name.trim(), Some(keys)),
            None => (text.trim(), None),
        };
        let found = find(name, catalog);
        // Of an unknown type, read the keys of the nearest known one, so that the remedy keeps them.
        let (request, bad) = found.or_else(|| guess(name, catalog)).map_or((None, None), |file| {
            let (request, bad) = Request::new(file).with_keys(keys);
            (Some(request), bad)
        });
        match (found, request, bad) {
            (Some(_), Some(request), None) => Ok(request),
            (Some(file), Some(request), Some(bad)) => {
                let instead = bad.instead.into_iter().map(|item| item.map_or(request, |item| request.with(item)));
                let message = format!("{}: {}", file.name, bad.problem);
                Err(SpecError { message, remedy: remedy::text(instead) })
            }
            (_, request, _) => Err(unknown_type(name, request, catalog)),
        }
    }

    /// Every key that makes sense, and the first that does not.
    fn with_keys(mut self, keys: Option<&str>) -> (Self, Option<BadItem>) {
        let mut first_bad = None;
        let mut given: Vec<&str> = Vec::new();
        for part in keys.into_iter().flat_map(|keys| keys.split(',')) {
            match read_item(part, self.file, &mut given) {
                Ok(item) => self = self.with(item),
                Err(bad) => first_bad = first_bad.or(Some(bad)),
            }
        }
        (self, first_bad)
    }

    fn with(self, item: Item) -> Self {
        match item {
            Item::Size(bytes) => Request { size_bytes: Some(bytes), ..self },
            Item::Iops(iops) => Request { iops: Some(iops), ..self },
            Item::Throughput(mib_per_s) => Request { throughput_mib_per_s: Some(mib_per_s), ..self },
            Item::Order(order) => Request { order: Some(order), ..self },
        }
    }
}

impl fmt::Display for Request {
    /// The specification of this request, with the keys that were given and no others.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = self.size_bytes.map(|bytes| format!("size={}", size_key(bytes)));
        let iops = self.iops.map(|iops| format!("iops={iops}"));
        let throughput = self.throughput_mib_per_s.map(|mib_per_s| format!("throughput={mib_per_s}"));
        let order = self.order.map(|order| format!("order={}", order_name(order)));
        let keys: Vec<String> = [size, iops, throughput, order].into_iter().flatten().collect();
        let separator = if keys.is_empty() { "" } else { ":" };
        write!(out, "{}{separator}{}", self.file.name, keys.join(","))
    }
}

/// The keys that a type understands.
pub(crate) fn keys(file: &VolumeFile) -> Vec<&'static str> {
    let iops = file.iops.is_some().then_some("iops");
    let throughput = file.throughput.as_ref().and_then(|t| t.provisioned.as_ref()).map(|_| "throughput");
    [Some("size"), iops, throughput, Some("order")].into_iter().flatten().collect()
}

fn find(name: &str, catalog: &'static [VolumeFile]) -> Option<&'static VolumeFile> {
    let is = |other: &str| other.eq_ignore_ascii_case(name);
    catalog.iter().find(|file| is(&file.name) || file.aliases.iter().any(|alias| is(&alias.name)))
}

fn guess(name: &str, catalog: &'static [VolumeFile]) -> Option<&'static VolumeFile> {
    let aliases = |file: &'static VolumeFile| file.aliases.iter().map(|alias| alias.name.as_str());
    let names = catalog.iter().flat_map(|file| aliases(file).chain([file.name.as_str()]));
    nearest(name, names).and_then(|name| find(name, catalog))
}

fn unknown_type(name: &str, nearest: Option<Request>, catalog: &'static [VolumeFile]) -> SpecError {
    let listed: Vec<String> = catalog.iter().map(with_aliases).collect();
    let what = if name.is_empty() {
        "a volume begins with its type, and none is given".to_owned()
    } else {
        format!("there is no volume type {}", quoted(name))
    };
    let remedy = match nearest {
        Some(request) => remedy::text([request]),
        None => remedy::text(catalog.iter().map(Request::new)),
    };
    SpecError { message: format!("{what}; there are {}", listed.join(", ")), remedy }
}

fn with_aliases(file: &VolumeFile) -> String {
    let also: Vec<&str> = file.aliases.iter().map(|alias| alias.name.as_str()).collect();
    if also.is_empty() { file.name.clone() } else { format!("{} (also {})", file.name, also.join(", ")) }
}

/// Reads one `key=value`; `given` has the keys that came before it.
fn read_item<'a>(part: &'a str, file: &VolumeFile, given: &mut Vec<&'a str>) -> Result<Item, BadItem> {
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
