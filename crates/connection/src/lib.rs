//! A connection to a PostgreSQL server: where it is, TLS, log-in, messages, queries, COPY, cancellation.
//!
//! ```text
//! connection -> copy_in -> exchange -> login -> authenticate -> talk -> cancel -> connect -> tls -> verifier -> certificate
//!                      all use server, stream, deadline, frame, wire, fault
//! ```
//!
//! [`Connection`] blocks, and is what loading uses. The load driver takes a [`Session`] from [`log_in`] and moves its
//! [`Stream`] and [`Inbox`] to an event loop of its own.

mod authenticate;
mod cancel;
mod certificate;
mod check;
mod connect;
mod connection;
mod copy_in;
mod deadline;
mod exchange;
mod fault;
mod frame;
mod keepalive;
mod login;
mod login_error;
mod server;
mod server_error;
mod stream;
mod talk;
mod tls;
mod verifier;
pub mod wire;

pub use cancel::CancelKey;
pub use check::{Attempt, check};
pub use connection::Connection;
pub use copy_in::CopyIn;
pub use exchange::QueryResult;
pub use fault::Fault;
pub use frame::{Frame, Inbox, values};
pub use login::{Session, log_in};
pub use login_error::LoginError;
pub use server::Server;
pub use server_error::ServerError;
pub use stream::Stream;
