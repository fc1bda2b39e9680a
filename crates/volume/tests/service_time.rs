//! Service times: the table's own quantiles come out, and sizes interpolate.

use crate::common::*;
use pgdyno_volume::stage::service_time::ServiceTime;
use pgdyno_volume::*;

fn table() -> ServiceTimeParams {
    let row = |size_bytes, service_ns: [u64; 4]| QuantileRow { size_bytes, service_ns: service_ns.to_vec() };
    let read = QuantileTable {
        probability_ppm: vec![0, 500_000, 990_000, 1_000_000],
        rows: vec![row(4096, [100, 200, 400, 1_000]), row(16384, [200, 400, 800, 2_000])],
    };
    ServiceTimeParams { write: QuantileTable::constant(7), read }
}

#[test]
fn quantiles_of_many_draws_are_those_of_the_table() {
    let mut instance = Instance::new(3);
    let volume = instance.add_volume(VolumeParams { service_time: table(), ..VolumeParams::unlimited(1 << 30) });
    let n = 100_000u64;
    let mut times = Vec::new();
    let mut events = Vec::new();
    for i in 0..n {
        instance.submit(i * 10_000, volume, io(i, Op::Read, (i % 1000) * 8192, 4096));
        instance.advance(i * 10_000, &mut events);
        times.extend(events.drain(..).filter_map(|event| match event {
            Event::Granted { done_at, .. } => Some(done_at - i * 10_000),
            Event::Failing { .. } | Event::Done { .. } => None,
        }));
    }
    times.sort_unstable();
    let quantile = |q: f64| times[(q * (n - 1) as f64) as usize];
    assert!((149..=151).contains(&quantile(0.25)), "{}", quantile(0.25));
    assert!((199..=202).contains(&quantile(0.50)), "{}", quantile(0.50));
    assert!((390..=410).contains(&quantile(0.99)), "{}", quantile(0.99));
    assert!(times[0] >= 100 && times[times.len() - 1] <= 1_000);
}

#[test]
fn sizes_interpolate_and_stop_at_the_ends() {
    let stage = ServiceTime::new(table());
    let at = |len| stage.service_ns(&io(0, Op::Read, 0, len), 1 << 63);
    assert_eq!((at(512), at(4096), at(10240), at(16384), at(1 << 20)), (200, 200, 300, 400, 400));
    assert_eq!(stage.service_ns(&io(0, Op::Write, 0, 4096), 5), 7);
    assert_eq!(stage.service_ns(&io(0, Op::Read, 0, 4096), 0), 100);
    assert!(stage.service_ns(&io(0, Op::Read, 0, 4096), u64::MAX) <= 1_000);
}

#[test]
#[should_panic(expected = "quantiles never descend")]
fn a_malformed_table_is_refused() {
    let mut broken = table();
    broken.read.rows[0].service_ns[1] = 50;
    ServiceTime::new(broken);
}
