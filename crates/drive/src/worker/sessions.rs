//! Sessions that are lost, and those that take their places.

use pgdyno_connection::Fault;
use pgdyno_workload::Status;
use rustix::event::epoll;
use rustix::fd::AsFd;

use super::slot::Waits;
use super::{Worker, data, kernel};
use crate::ending::Ending;
use crate::link::Link;

impl Worker<'_> {
    /// The session is gone. The client learns of it when it has a new one, or when none would be of use.
    pub(super) fn lose(&mut self, client: usize) -> Result<(), Fault> {
        let now = self.shared.clock.now();
        self.roll(now);
        let slot = &mut self.slots[client];
        if let Some(link) = slot.link.take() {
            let _ = epoll::delete(&self.waiter, link.stream.as_fd());
            slot.interrupted = link.status != Status::Idle || link.has_unsent();
        }
        slot.watched_for_writing = false;
        self.record.lost += 1;
        let asked = matches!(slot.waits, Waits::Answer(..));
        if asked {
            slot.interrupted = true;
            slot.waits = Waits::Connection(now);
        }
        match &self.reconnect {
            Some(reconnect) if now < self.end_ns => reconnect.ask(client),
            _ if asked => return self.resume(client),
            _ => (),
        }
        Ok(())
    }

    pub(super) fn take_connections(&mut self) -> Result<(), Fault> {
        let Some(reconnect) = &self.reconnect else { return Ok(()) };
        reconnect.silence();
        let made: Vec<_> = std::iter::from_fn(|| reconnect.take()).collect();
        for made in made {
            let (client, session) = match made {
                Ok(made) => made,
                Err(fault) if fault.server_error.is_none() => return Err(fault),
                Err(fault) => {
                    self.end_run(Ending::Session(fault));
                    return Ok(());
                }
            };
            let now = self.shared.clock.now();
            self.roll(now);
            let slot = &mut self.slots[client];
            if slot.waits == Waits::Nothing {
                continue;
            }
            epoll::add(&self.waiter, session.stream.as_fd(), data(client), epoll::EventFlags::IN).map_err(kernel)?;
            slot.link = Some(Link::new(session, self.shared.protocol, self.shared.names.len()));
            if let Waits::Connection(since) = slot.waits {
                self.record.down_ns += now - since;
                slot.waits = Waits::Time;
                self.resume(client)?;
            }
        }
        Ok(())
    }
}
