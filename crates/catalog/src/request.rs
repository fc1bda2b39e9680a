//! What the user wrote: `TYPE[:key=value,...]`, read but not yet judged.

use std::fmt;

use pgdyno_volume::Order;

use crate::error::SpecError;
use crate::file::{CreditKind, VolumeFile};
use crate::item::{BadItem, Item, order_name, read_item};
use crate::nearest::nearest;
use crate::remedy;
use crate::store_facts::InstanceStore;
use crate::units::{quoted, size_key};

/// A volume that was asked for; what is `None` was left to the default.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Request {
    pub file: &'static VolumeFile,
    pub size_bytes: Option<u64>,
    pub iops: Option<u64>,
    pub throughput_mib_per_s: Option<u64>,
    pub order: Option<Order>,
    /// Depth of the buckets of both limits, in milliseconds of their rates.
    pub bucket_ms: Option<u64>,
    /// One service time for every request.
    pub service_us: Option<u64>,
    /// The first balance of credits: I/O units, or bytes.
    pub credits: Option<u64>,
    /// Whose own storage it is.
    pub store: Option<&'static InstanceStore>,
}

impl Request {
    /// A type with nothing asked of it.
    pub fn new(file: &'static VolumeFile) -> Self {
        Request {
            file,
            size_bytes: None,
            iops: None,
            throughput_mib_per_s: None,
            order: None,
            bucket_ms: None,
            service_us: None,
            credits: None,
            store: None,
        }
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
            Item::Bucket(ms) => Request { bucket_ms: Some(ms), ..self },
            Item::Service(us) => Request { service_us: Some(us), ..self },
            Item::Credits(credits) => Request { credits: Some(credits), ..self },
            Item::Store(store) => Request { store: Some(store), ..self },
        }
    }

    /// Whose own storage it is, of a type that is an instance's.
    pub fn instance_store(&self) -> Option<&'static InstanceStore> {
        let facts = self.file.instance_store.as_ref()?;
        self.store.or_else(|| facts.named(&facts.default.value))
    }

    /// `credits=` in the unit of the type's credits.
    pub fn credits_key(&self) -> Option<String> {
        let value = |credits| match self.file.credit_kind() {
            Some(CreditKind::Bytes) => size_key(credits),
            _ => credits.to_string(),
        };
        self.credits.map(|credits| format!("credits={}", value(credits)))
    }

    /// The order that is not the type's own.
    pub fn other_order(&self) -> Option<Order> {
        self.order.filter(|order| *order != self.file.queueing.order.value)
    }

    /// Whether nobody sells such a volume: its bucket or its service time is the laboratory's own.
    pub fn is_made_up(&self) -> bool {
        self.bucket_ms.is_some() || self.service_us.is_some()
    }

    /// The keys that say how the volume behaves, after those that say how much of it there is.
    pub fn behaviour_keys(&self, order: Option<Order>) -> impl Iterator<Item = String> + use<> {
        let order = order.map(|order| format!("order={}", order_name(order)));
        let bucket = self.bucket_ms.map(|ms| format!("bucket_ms={ms}"));
        let service = self.service_us.map(|us| format!("service_us={us}"));
        [order, bucket, service].into_iter().flatten()
    }
}

impl fmt::Display for Request {
    /// The specification of this request, with the keys that were given and no others.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = self.size_bytes.map(|bytes| format!("size={}", size_key(bytes)));
        let iops = self.iops.map(|iops| format!("iops={iops}"));
        let throughput = self.throughput_mib_per_s.map(|mib_per_s| format!("throughput={mib_per_s}"));
        let store = self.store.map(|store| format!("instance={}", store.name));
        let amounts = [store, size, iops, throughput, self.credits_key()].into_iter().flatten();
        let keys: Vec<String> = amounts.chain(self.behaviour_keys(self.order)).collect();
        let separator = if keys.is_empty() { "" } else { ":" };
        write!(out, "{}{separator}{}", self.file.name, keys.join(","))
    }
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

/// Types that are offered when nothing is near to what was asked for.
const COMMON: [&str; 3] = ["gp3", "io2bx", "gp2"];

fn unknown_type(name: &str, nearest: Option<Request>, catalog: &'static [VolumeFile]) -> SpecError {
    let what = if name.is_empty() {
        "a volume begins with its type, and none is given".to_owned()
    } else {
        format!("there is no volume type {}", quoted(name))
    };
    let remedy = match nearest {
        Some(request) => remedy::text([request]),
        None => remedy::text(COMMON.iter().filter_map(|name| find(name, catalog)).map(Request::new)),
    };
    SpecError { message: format!("{what}; `pgdyno volume types` lists the {} that there are", catalog.len()), remedy }
}
