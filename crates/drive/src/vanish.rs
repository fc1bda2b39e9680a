//! A peer that vanishes: its machine is switched off, or the network between is cut. Nobody says so, and who waits for an answer
//! would wait for ever. So TCP is told to ask, and to give up.
//!
//! Two cases (tcp(7), Linux): with nothing under way, probes are sent and must be answered; with bytes under way, these must be
//! acknowledged, and a peer whose window is closed must open it again. The settings are libpq's ("Database Connection Control
//! Functions", version 18); those of the operating system would take two hours and a quarter of an hour.

use std::net::TcpStream;
use std::time::Duration;

use rustix::net::sockopt::{
    set_socket_keepalive, set_tcp_keepcnt, set_tcp_keepidle, set_tcp_keepintvl, set_tcp_user_timeout,
};

use crate::error::DriveError;

/// libpq's words.
pub(crate) const KEYWORDS: [&str; 5] =
    ["keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count", "tcp_user_timeout"];
/// Silence before the first probe: short beside what anybody waits for, long beside what a router forgets a session after.
const IDLE_S: u64 = 60;
/// Between two probes.
const INTERVAL_S: u64 = 15;
/// Probes without an answer; it counts where `tcp_user_timeout` is 0.
const COUNT: u64 = 8;
/// How long nothing is acknowledged, or a window stays closed. A server that takes nothing in for so long, since it waits for
/// a lock, loses the session too: what was under way may be tried again.
const USER_TIMEOUT_MS: u64 = 300_000;

/// When to give up on a peer. What is 0 is the operating system's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Patience {
    probes: bool,
    idle_s: u64,
    interval_s: u64,
    count: u64,
    user_timeout_ms: u64,
}

impl Patience {
    /// As given, in libpq's words; what is left open is ours. `number` says what a setting is given as, else the second.
    pub(crate) fn of(number: impl Fn(&str, u64) -> Result<u64, DriveError>) -> Result<Self, DriveError> {
        Ok(Self {
            probes: number("keepalives", 1)? > 0,
            idle_s: number("keepalives_idle", IDLE_S)?,
            interval_s: number("keepalives_interval", INTERVAL_S)?,
            count: number("keepalives_count", COUNT)?,
            user_timeout_ms: number("tcp_user_timeout", USER_TIMEOUT_MS)?,
        })
    }

    /// Tells a socket.
    pub(crate) fn tell(&self, socket: &TcpStream) -> Result<(), DriveError> {
        let told = || {
            if self.probes {
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
        told().map_err(|error| {
            DriveError::new(
                format!("the kernel refused the connection's settings of TCP: {error}"),
                "look at keepalives_idle, keepalives_interval, keepalives_count (32767, 32767 and 127 at most)",
            )
        })
    }

    /// What the server is told, so that it notices a vanished client too, whose locks it would keep.
    pub(crate) fn sql(&self) -> String {
        let Self { probes, idle_s, interval_s, count, .. } = self;
        if !probes {
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

    #[test]
    fn a_socket_asks_unless_it_is_told_not_to() {
        let (_listener, socket) = connected();
        Patience::of(|_, otherwise| Ok(otherwise)).unwrap().tell(&socket).unwrap();
        assert!(socket_keepalive(&socket).unwrap());
        assert_eq!(tcp_keepidle(&socket).unwrap(), Duration::from_secs(IDLE_S));
        assert_eq!(u64::from(tcp_user_timeout(&socket).unwrap()), USER_TIMEOUT_MS);
        let (_listener, socket) = connected();
        let silent = Patience::of(|_, _| Ok(0)).unwrap();
        silent.tell(&socket).unwrap();
        assert!(!socket_keepalive(&socket).unwrap());
        assert_eq!(tcp_user_timeout(&socket).unwrap(), 0);
        assert_eq!(silent.sql(), "");
    }

    #[test]
    fn what_the_kernel_refuses_is_said() {
        let (_listener, socket) = connected();
        let error = Patience::of(|_, _| Ok(1 << 20)).unwrap().tell(&socket).unwrap_err();
        assert!(error.message.contains("settings of TCP") && error.remedy.contains("32767"), "{error}");
    }
}
