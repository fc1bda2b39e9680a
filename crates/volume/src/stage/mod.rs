//! The stages that a request passes: one idea, one file, one test, one page of `docs/concept/volume/`.

pub mod burst_credit;
pub mod degradation;
pub mod fault;
pub mod first_touch;
pub mod instance_limit;
pub mod iops_limit;
pub mod queueing;
pub mod service_time;
pub mod split_merge;
pub mod throughput_limit;
