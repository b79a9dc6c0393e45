//! Servers in snapshots: one record each, to bytes and back.
//!
//! ```text
//! record   origin | retired as u8 | arrival | visits | Crawl-delay, 0 or 1 + ms
//!          connect us | response us | allowance | wait of the server | wait of its host
//! wait     us left | unless none is left: end, us of Unix time
//! ```
//!
//! A wait is stored twice: as calendar time, and as what is left of it. So a crawl that is restored
//! later waits less, and never more than was left, however the calendar has jumped. After an
//! unclean stop no wait is shorter than the longest rest that a visit can owe (decision 31), since
//! the server may have been visited after the snapshot.
//!
//! A snapshot is of one moment, so its writer calls [`Scheduler::put_record`] before a record
//! changes. Verbs change the record of the server that they name, with two exceptions.
//! [`Scheduler::finish`] sets the host clock of all servers of that host: its writer remembers what
//! [`Scheduler::host_clock`] was. Verbs that wake servers change the arrival of those that slept;
//! that needs no record, since snoozed servers are restored in the order in which they are due.
//!
//! Law: bytes that make no sense are an error, never a panic, and ask for no more memory than they
//! take themselves. Cost: O(1) a record; a sort of all servers with URLs at the end.

use super::policy::Estimates;
use super::server::{Server, Standing};
use super::{GroupId, GroupKind, Retirement, Scheduler, ServerId, ServerState, Waiting};
use crate::ground::codec::{Put, Short, Take};
use crate::ground::time::{Instant, Now, UnixTime};
use crate::url::UrlRef;
use std::time::Duration;

impl Scheduler {
    /// The group of a server's host, if the host is a group, and the host's clock.
    pub fn host_clock(&self, id: ServerId) -> (Option<GroupId>, Instant) {
        (self.server(id).groups[GroupKind::Host as usize], self.host_next(id))
    }

    /// Appends the record of a server as of `now`. `host_next` is the clock of its host.
    pub fn put_record(&self, id: ServerId, host_next: Instant, now: Now, out: &mut Vec<u8>) {
        let server = self.server(id);
        out.put_str(self.origin(id).as_str());
        out.put_u8(match server.state() {
            ServerState::Retired(why) => why as u8 + 1,
            _ => 0,
        });
        out.put_varint(server.arrival);
        let Estimates { connect_us, response_us, allowance, .. } = server.estimates;
        for number in [server.visits, server.delay, connect_us, response_us, allowance.into()] {
            out.put_varint(number.into());
        }
        put_wait(server.due, now, out);
        put_wait(host_next, now, out);
    }

    /// Adds the next server from its record, in the order of their numbers.
    /// [`Scheduler::restored`] must follow when all are there; until then only
    /// [`Scheduler::server`] and [`Scheduler::origin`] may be called. `now` must be the same for
    /// all.
    ///
    /// # Errors
    /// The record makes no sense, or the origin is known already. The scheduler is of no use then.
    pub fn restore_record(&mut self, take: &mut Take<'_>, now: Now) -> Result<(), Short> {
        let origin = take.str()?;
        let text = format!("{origin}/");
        let url = UrlRef::from_canonical(text.as_bytes()).ok_or(Short)?;
        let sibling = self.origins.find(url).err().ok_or(Short)?;
        if url.origin() != origin {
            return Err(Short);
        }
        let id = self.add(url, sibling);
        let server = &mut self.servers[id.index()];
        if let Some(index) = take.u8()?.checked_sub(1) {
            let why = Retirement::ALL.get(usize::from(index)).ok_or(Short)?;
            server.standing = Standing::Retired(*why);
        }
        server.arrival = take.varint()?;
        (server.visits, server.delay) = (take.number()?, take.number()?);
        let (connect_us, response_us) = (take.number()?, take.number()?);
        let allowance = take.number()?;
        server.estimates = Estimates { connect_us, response_us, allowance, is_parked: false };
        let (due, host_next) = (take_wait(take, now)?, take_wait(take, now)?);
        self.wait_until(id, due, host_next);
        Ok(())
    }

    /// All records are there: `servers` of them. Those with URLs become ready in the order in which
    /// they were, or sleep on. If the crawl was not stopped cleanly, every server first waits its
    /// full rest, and so does every server that becomes known until then.
    ///
    /// # Errors
    /// A record is missing.
    pub fn restored(
        &mut self,
        servers: usize,
        was_clean: bool,
        now: Now,
        waiting: impl Fn(ServerId) -> Waiting,
    ) -> Result<(), Short> {
        if self.servers.len() != servers {
            return Err(Short);
        }
        let waits = |(index, server): (usize, &Server)| {
            let id = ServerId::from_index(index);
            let waits = server.standing == Standing::Idle && waiting(id).urls > 0;
            waits.then_some(((server.due, server.arrival), id))
        };
        let mut order: Vec<_> = self.servers.iter().enumerate().filter_map(waits).collect();
        order.sort_unstable();
        self.groups.restart(now.at);
        if !was_clean {
            self.quiet_until = now.at + self.settings.full_rest(None);
        }
        for id in (0..servers).map(ServerId::from_index) {
            let server = &mut self.servers[id.index()];
            // Arrivals are unique from here on, whatever the records said.
            server.arrival = 0;
            if !was_clean {
                let until = now.at + self.settings.full_rest(server.crawl_delay());
                self.wait_until(id, until, until);
            }
        }
        order.into_iter().for_each(|(_, id)| self.settle(id, waiting(id), now.at));
        Ok(())
    }

    /// A server and its host are not visited before.
    fn wait_until(&mut self, id: ServerId, due: Instant, host_next: Instant) {
        let server = &mut self.servers[id.index()];
        server.due = server.due.max(due);
        server.host_next = server.host_next.max(host_next);
        if let Some(host) = server.groups[GroupKind::Host as usize] {
            self.groups.rest_until(host, host_next);
        }
        self.keep_host_clock(id);
    }
}

fn put_wait(until: Instant, now: Now, out: &mut Vec<u8>) {
    let left_us = until.as_micros().saturating_sub(now.at.as_micros());
    out.put_varint(left_us);
    if left_us > 0 {
        out.put_varint(now.unix_of(until).as_micros());
    }
}

/// The end of a wait; [`Instant::ZERO`] if nothing of it was left.
fn take_wait(take: &mut Take<'_>, now: Now) -> Result<Instant, Short> {
    let left = Duration::from_micros(take.varint()?);
    if left.is_zero() {
        return Ok(Instant::ZERO);
    }
    Ok(now.instant_of(UnixTime::from_micros(take.varint()?), left))
}
