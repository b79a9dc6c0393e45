//! The records of servers in a snapshot: they are written and restored here.
//!
//! ```text
//! record   origin | retired u8: 0, or 1 + reason | arrival | visits | 0, or 1 + Crawl-delay in ms
//!          connect us | response us | allowance | wait of the server | wait of its host
//! wait     us left | unless none is left: end, us of Unix time
//! ```
//!
//! A wait is stored twice: as the calendar time at which it ends, and as what is left of it. So a
//! crawl that is restored later waits for less, and never for more than was left, even if the
//! calendar was changed in between. After an unclean stop no wait is shorter than the longest rest
//! that a visit can owe (decision 31), since the server may have been visited after the snapshot.
//!
//! The *clock* of a host is the instant before which none of its servers is visited. The *arrival*
//! of a server is its number in the order in which servers became ready or went to sleep.
//!
//! A snapshot has the state of one moment, so its writer must call [`Scheduler::put_record`] before
//! a record changes. Methods change the record of the server that they get as an argument, with two
//! exceptions. [`Scheduler::finish`] sets the clock of the host, which all servers of that host
//! share, so the writer must keep what [`Scheduler::host_clock`] returned before. Methods that wake
//! servers change the arrival of those that slept. This needs no record, since snoozed servers are
//! restored in the order in which they are due.
//!
//! Law: invalid bytes are an error and never a panic, and never allocate more memory than they take
//! themselves.
//! Cost: O(1) for each record; one sort of all servers with URLs at the end.

use super::policy::Estimates;
use super::server::{Server, Standing};
use super::{GroupId, GroupKind, Retirement, Scheduler, ServerId, ServerState, Waiting};
use crate::ground::codec::{Put, Short, Take};
use crate::ground::time::{Instant, Now, UnixTime};
use crate::url::UrlRef;
use std::time::Duration;

impl Scheduler {
    /// Returns the group of a server's host, `None` if the host is not a group, and the clock of
    /// the host.
    pub fn host_clock(&self, id: ServerId) -> (Option<GroupId>, Instant) {
        (self.server(id).groups[GroupKind::Host as usize], self.host_next(id))
    }

    /// Appends the record of a server as of `now` to `out`. `host_next` is the clock of its host.
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

    /// Restores the server with the next number from its record. Records must come in the order of
    /// the servers' numbers, and `now` must be the same for all. [`Scheduler::restored`] must
    /// follow after the last one; until then only [`Scheduler::server`] and [`Scheduler::origin`]
    /// may be called.
    ///
    /// # Errors
    /// The record is not valid, or a server of this origin is known already. In both cases the
    /// scheduler must not be used any more.
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

    /// Completes a restore after the last record; `servers` is the number of records that were
    /// expected. Servers with URLs become ready in their former order, or sleep until they are due.
    /// If the crawl was not stopped cleanly (`was_clean` is false), every server first waits for
    /// the longest rest that a visit can cause. Servers that become known during that time wait for
    /// its end, too.
    ///
    /// # Errors
    /// A record is missing, or there are too many.
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
            let pace = self.pace(id);
            let server = &mut self.servers[id.index()];
            // From here on arrivals are unique, even if those in the records were not.
            server.arrival = 0;
            if !was_clean {
                let until = now.at + pace.full_rest(server.crawl_delay());
                self.wait_until(id, until, until);
            }
        }
        order.into_iter().for_each(|(_, id)| self.settle(id, waiting(id), now.at));
        Ok(())
    }

    /// Delays the next visit to a server until `due` at least, and to all servers of its host until
    /// `host_next`.
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

/// Decodes a wait and returns the instant at which it ends; [`Instant::ZERO`] if nothing of it was
/// left.
fn take_wait(take: &mut Take<'_>, now: Now) -> Result<Instant, Short> {
    let left = Duration::from_micros(take.varint()?);
    if left.is_zero() {
        return Ok(Instant::ZERO);
    }
    Ok(now.instant_of(UnixTime::from_micros(take.varint()?), left))
}
