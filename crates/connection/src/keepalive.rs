//! A peer can vanish without notice: its machine is switched off, or the network between is cut. So TCP is told to probe, and
//! when to give up.
//!
//! Two cases (tcp(7), Linux): with nothing under way, probes are sent and must be answered; with bytes under way, these must be
//! acknowledged, and a peer whose window is closed must open it again. The settings are libpq's ("Database Connection Control
//! Functions", version 18); those of the operating system would take two hours and a quarter of an hour.

use std::net::TcpStream;
use std::time::Duration;

use rustix::net::sockopt::{
    set_socket_keepalive, set_tcp_keepcnt, set_tcp_keepidle, set_tcp_keepintvl, set_tcp_user_timeout,
};

use serde::Deserialize;

use crate::fault::Fault;

/// When to give up on a peer. What is 0 is the operating system's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Keepalive {
    /// Whether probes are sent.
    pub enabled: bool,
    /// Silence before the first probe.
    pub idle_s: u64,
    /// Between two probes.
    pub interval_s: u64,
    /// Probes without an answer; it counts where `user_timeout_ms` is 0.
    pub count: u64,
    /// How long nothing is acknowledged, or a window stays closed.
    pub user_timeout_ms: u64,
}

impl Keepalive {
    /// Sets the options of a socket.
    pub(crate) fn apply(&self, socket: &TcpStream) -> Result<(), Fault> {
        let applied = || {
            if self.enabled {
                set_socket_keepalive(socket, true)?;
                if self.idle_s > 0 {
                    set_tcp_keepidle(socket, Duration::from_secs(self.idle_s))?;
                }
                if self.interval_s > 0 {
                    set_tcp_keepintvl(socket, Duration::from_secs(self.interval_s))?;
                }
                if self.count > 0 {
                    set_tcp_keepcnt(socket, number(self.count))?;
                }
            }
            set_tcp_user_timeout(socket, number(self.user_timeout_ms))
        };
        applied().map_err(|error| {
            Fault::new(
                format!("the kernel refused the connection's settings of TCP: {error}"),
                "look at keepalives_idle, keepalives_interval, keepalives_count (32767, 32767 and 127 at most)",
            )
        })
    }

    /// What the server is told, so that it notices a vanished client too, whose locks it would keep.
    pub(crate) fn sql(&self) -> String {
        let Self { enabled, idle_s, interval_s, count, .. } = self;
        if !enabled {
            return String::new();
        }
        format!(
            "SET tcp_keepalives_idle = {idle_s}; SET tcp_keepalives_interval = {interval_s}; \
             SET tcp_keepalives_count = {count}; "
        )
    }
}

fn number(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use rustix::net::sockopt::{socket_keepalive, tcp_keepidle, tcp_user_timeout};

    use super::*;

    fn connected() -> (TcpListener, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (listener, socket)
    }

    const ASKING: Keepalive =
        Keepalive { enabled: true, idle_s: 60, interval_s: 15, count: 8, user_timeout_ms: 300_000 };

    #[test]
    fn a_socket_asks_unless_it_is_told_not_to() {
        let (_listener, socket) = connected();
        ASKING.apply(&socket).unwrap();
        assert!(socket_keepalive(&socket).unwrap());
        assert_eq!(tcp_keepidle(&socket).unwrap(), Duration::from_secs(60));
        assert_eq!(tcp_user_timeout(&socket).unwrap(), 300_000);
        let (_listener, socket) = connected();
        let silent = Keepalive { enabled: false, user_timeout_ms: 0, ..ASKING };
        silent.apply(&socket).unwrap();
        assert!(!socket_keepalive(&socket).unwrap());
        assert_eq!(tcp_user_timeout(&socket).unwrap(), 0);
        assert_eq!(silent.sql(), "");
    }

    #[test]
    fn what_the_kernel_refuses_is_said() {
        let (_listener, socket) = connected();
        let error = Keepalive { idle_s: 1 << 20, ..ASKING }.apply(&socket).unwrap_err();
        assert!(error.message.contains("settings of TCP") && error.remedy.contains("32767"), "{error}");
    }
}
