//! A volume that the user asked for, before any rule has judged it.

pub(crate) mod item;
pub(crate) mod keys;
pub(crate) mod parse;
pub(crate) mod remedy;
pub(crate) mod rules;
pub(crate) mod violation;

use std::fmt;

use pgdyno_volume::Order;

use crate::degradation::Degraded;
use crate::restore::Init;
use crate::units::size_key;
use crate::volume::facts::file::{CreditKind, VolumeFile};
use crate::volume::facts::store::InstanceStore;
use crate::volume::request::item::{Item, order_name};

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
    /// How it gets the blocks of its snapshot; `None`: it is not a new one of a snapshot.
    pub init: Option<Init>,
    /// How much of the time it is degraded; `None`: never.
    pub degraded: Option<Degraded>,
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
            init: None,
            degraded: None,
            store: None,
        }
    }

    /// The request with one more key set.
    pub fn with(self, item: Item) -> Self {
        match item {
            Item::Size(bytes) => Request { size_bytes: Some(bytes), ..self },
            Item::Iops(iops) => Request { iops: Some(iops), ..self },
            Item::Throughput(mib_per_s) => Request { throughput_mib_per_s: Some(mib_per_s), ..self },
            Item::Order(order) => Request { order: Some(order), ..self },
            Item::Bucket(ms) => Request { bucket_ms: Some(ms), ..self },
            Item::Service(us) => Request { service_us: Some(us), ..self },
            Item::Credits(credits) => Request { credits: Some(credits), ..self },
            Item::Init(init) => Request { init: Some(init), ..self },
            Item::Degraded(degraded) => Request { degraded: Some(degraded), ..self },
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

    /// Whether such a volume is not sold: its bucket or its service time is pgdyno's own.
    pub fn is_made_up(&self) -> bool {
        self.bucket_ms.is_some() || self.service_us.is_some()
    }

    /// The keys that say how the volume behaves, after those that say how much of it there is.
    pub fn behaviour_keys(&self, order: Option<Order>) -> impl Iterator<Item = String> + use<> {
        let init = self.init.map(|init| format!("init={}", init.key()));
        let degraded = self.degraded.map(|degraded| format!("degraded={}", degraded.key()));
        let order = order.map(|order| format!("order={}", order_name(order)));
        let bucket = self.bucket_ms.map(|ms| format!("bucket_ms={ms}"));
        let service = self.service_us.map(|us| format!("service_us={us}"));
        [init, degraded, order, bucket, service].into_iter().flatten()
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
