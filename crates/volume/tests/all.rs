//! The model, stage by stage and as a whole.

mod array;
mod array_layout;
mod burst_credit;
mod catch_up;
mod closed_loop;
mod common;
mod degradation;
mod determinism;
mod fault;
mod first_touch;
mod instance_limit;
mod iops_limit;
mod modification;
mod order;
mod queueing;
mod service_time;
mod split_merge;
mod throughput_limit;
