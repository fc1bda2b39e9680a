//! How a volume's requests arrive and its answers leave: by calls on /dev/fuse, or over io_uring (docs/decision/0020).
//!
//! *Classic*: event loops read one request with each call, and whoever answers writes one answer with each call. *Uring*: one
//! thread of the volume takes in what has arrived, and tells the kernel of all answers with the call by which it waits for
//! more. What is above is the same: a request is a [`Payload`](crate::pipeline::Payload), its answer a
//! [`Reply`](crate::slots::Reply). What the ring does not carry arrives by /dev/fuse on either.

mod abi;
mod answers;
mod entries;
mod ring;

use serde::{Deserialize, Serialize};

pub(crate) use entries::{HandedOver, RingReply};
pub(crate) use ring::prepare;

/// How requests are to arrive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// By calls on /dev/fuse.
    #[default]
    Classic,
    /// Over io_uring, where the kernel lets it.
    Uring,
    /// As measured best on this machine.
    Auto,
}

/// What `auto` comes to on a machine, as [`measure_transports`](crate::measure_transports()) found it, and why.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Decided {
    /// The one to use.
    pub transport: Transport,
    /// Why it is that one.
    pub reason: String,
}

/// How they do, and why.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Chosen {
    pub(crate) asked: Transport,
    pub(crate) used: Transport,
    /// Why it is that one; `None` where it is what was asked for.
    pub(crate) reason: Option<String>,
}
