//! From settled figures to the integers that the volume model runs on.

use pgdyno_volume::{Accounting, BucketParams, Cost, CreditParams, QuantileTable, ServiceTimeParams, VolumeParams};
use serde::Serialize;

use crate::restore::Init;
use crate::units::KIB;
use crate::volume::facts::file::{VolumeFile, catalog};
use crate::volume::request::Request;
use crate::volume::request::rules::{BurstFigures, Figures};

const NS_PER_US: u64 = 1_000;
const NS_PER_MS: u64 = 1_000_000;

/// How a volume counts, and how fast it is: what the model runs on, without how long its requests take.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Rates {
    pub(crate) iops_limit: Option<BucketParams>,
    pub(crate) throughput_limit: Option<BucketParams>,
    pub(crate) iops_credit: Option<CreditParams>,
    pub(crate) throughput_credit: Option<CreditParams>,
    pub(crate) accounting: Accounting,
    pub(crate) cost: Cost,
}

impl Rates {
    /// A limit with a burst paces the burst; the baseline is what credits are earned at.
    pub(crate) fn of(request: &Request, figures: &Figures) -> Self {
        let file = request.file;
        let (iops_depth_ms, throughput_depth_ms) = depths_ms(request);
        let bucket = |rate_per_s, depth_ms| BucketParams { rate_per_s, depth_ns: depth_ms * NS_PER_MS };
        let paced = |baseline: u64, burst: Option<BurstFigures>| burst.map_or(baseline, |burst| burst.rate_per_s);
        let (rate_per_s, mut cost) = shared(figures);
        cost.whole_units = file.accounting.whole_units.as_ref().is_some_and(|fact| fact.value);
        let iops_rate = rate_per_s.map(|rate| paced(rate, figures.iops_burst));
        let throughput_rate = figures.throughput_bytes_per_s.map(|rate| paced(rate, figures.throughput_burst));
        Self {
            iops_limit: iops_rate.map(|rate| bucket(rate, iops_depth_ms)),
            throughput_limit: throughput_rate.map(|rate| bucket(rate, throughput_depth_ms)),
            iops_credit: credit(figures.iops, figures.iops_burst),
            throughput_credit: credit(figures.throughput_bytes_per_s, figures.throughput_burst),
            accounting: Accounting {
                unit_bytes: file.unit_kib(figures.iops) * KIB,
                merge_sequential: file.accounting.merge_sequential.value,
            },
            cost,
        }
    }

    /// Tokens and bytes each second that are left without credits; `None` is unlimited.
    pub fn sustained(&self) -> (Option<u64>, Option<u64>) {
        let left = |limit: &Option<BucketParams>, credit: &Option<CreditParams>| {
            credit.as_ref().map(|credit| credit.rate_per_s).or(limit.as_ref().map(|limit| limit.rate_per_s))
        };
        (left(&self.iops_limit, &self.iops_credit), left(&self.throughput_limit, &self.throughput_credit))
    }
}

/// What the volume model runs on.
pub(crate) fn params(request: &Request, figures: &Figures) -> VolumeParams {
    let file = request.file;
    let Rates { iops_limit, throughput_limit, iops_credit, throughput_credit, accounting, cost } =
        Rates::of(request, figures);
    VolumeParams {
        size_bytes: figures.size_bytes,
        iops_limit,
        throughput_limit,
        iops_credit,
        throughput_credit,
        accounting,
        cost,
        service_time: service_time(request),
        order: request.order.unwrap_or(file.queueing.order.value),
        first_touch: request.init.and_then(Init::params),
        degradation: request.degraded.and_then(|degraded| degraded.params(&file.name)),
    }
}

fn credit(baseline: Option<u64>, burst: Option<BurstFigures>) -> Option<CreditParams> {
    let (rate_per_s, BurstFigures { capacity, initial, .. }) = baseline.zip(burst)?;
    Some(CreditParams { rate_per_s, capacity, initial })
}

/// Depth of the buckets of IOPS and of throughput.
fn depths_ms(request: &Request) -> (u64, u64) {
    let VolumeFile { iops, throughput, instance_store, .. } = request.file;
    let store = instance_store.as_ref().map(|facts| &facts.bucket_depth_ms);
    let iops = iops.as_ref().map(|facts| &facts.bucket_depth_ms).or(store);
    let throughput = throughput.as_ref().map(|facts| &facts.bucket_depth_ms);
    let depth_ms = |own: Option<&crate::fact::Fact<u64>>| request.bucket_ms.or(own.map(|fact| fact.value)).unwrap_or(0);
    (depth_ms(iops), depth_ms(throughput))
}

/// Tokens and bytes per second that are left without credits; `None` is unlimited.
pub(crate) fn sustained(figures: &Figures) -> (Option<u64>, Option<u64>) {
    (shared(figures).0, figures.throughput_bytes_per_s)
}

/// Tokens per second and what reads and writes take of them. Where these have limits of their own, R and W, a read takes
/// W tokens and a write R of the R x W that arrive, all without what the two figures have in common.
fn shared(figures: &Figures) -> (Option<u64>, Cost) {
    let Some((reads, writes)) = figures.iops.zip(figures.write_iops) else {
        return (figures.iops, Cost::default());
    };
    let common = greatest_common_divisor(reads, writes);
    let tokens = |iops: u64| u32::try_from(iops / common).expect("a limit is below 2^32 per second");
    let cost = Cost { read_tokens: tokens(writes), write_tokens: tokens(reads), ..Cost::default() };
    (Some(reads / common * writes), cost)
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

fn service_time(request: &Request) -> ServiceTimeParams {
    match request.service_us {
        Some(us) => {
            let constant = QuantileTable::constant(us * NS_PER_US);
            ServiceTimeParams { read: constant.clone(), write: constant }
        }
        None => {
            let tables = catalog().map_err(|error| error.to_string()).and_then(|all| request.file.service_time_in(all));
            tables.expect("the tables were checked when the files were read")
        }
    }
}
