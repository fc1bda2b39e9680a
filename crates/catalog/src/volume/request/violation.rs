//! A request that breaks a published rule.

use crate::volume::request::Request;

/// The rule, and requests that keep it, the nearest to the refused one first.
///
/// A fix may break another rule; [`crate::volume::request::remedy`] follows the chain to its end.
#[derive(Debug)]
pub(crate) struct Violation {
    pub message: String,
    pub fixes: Vec<Request>,
}
