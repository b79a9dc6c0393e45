//! The law `addresses`: what the nodes of a cluster do to one address together.
//!
//! Each of n nodes visits an address at most once in n delays, without a word from the others. So
//! over any time the visits that begin are at most one for each delay in it, and one more for each
//! node.

use super::{Instant, Laws, Line};
use crate::engine::contract::ConnId;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::time::Duration;

/// All visits to addresses.
#[derive(Debug, Default)]
pub(super) struct Addresses(BTreeMap<Ipv4Addr, Address>);

#[derive(Debug, Default)]
struct Address {
    /// The connections with unanswered requests.
    asking: BTreeSet<(usize, (u32, u32))>,
    /// When visits began, in no order.
    begun: Vec<Instant>,
}

/// How long a server takes to answer, whether or not the crawler is there to hear it.
const ANSWER_MAX: Duration = Duration::from_secs(3);

/// Whether what a stopped node had asked for is answered at `at`, though the node doesn't know it.
pub(super) fn is_over((from, until): (Instant, Instant), at: Instant) -> bool {
    from + ANSWER_MAX <= at && at < until
}

/// Returns when visits began that a request on this connection shows, which was sent at `sent`. A
/// connection was opened for a visit, even if it stood idle and serves a later one.
pub(super) fn begun(
    line: &Line,
    sent: Instant,
    rest: Duration,
) -> impl Iterator<Item = Instant> + use<> {
    let opened = Some(line.asked).filter(|_| !line.has_served);
    let idle = line.stood.map_or(Duration::ZERO, |stood| sent.since(stood));
    let again = Some(sent).filter(|_| line.has_served || idle >= rest);
    opened.into_iter().chain(again)
}

impl Addresses {
    /// Notes that a visit began.
    pub(super) fn begins(&mut self, address: Ipv4Addr, at: Instant) {
        self.0.entry(address).or_default().begun.push(at);
    }

    /// Notes that a connection of a node has got its first unanswered request. Returns how many
    /// there are, of the nodes that count.
    pub(super) fn asks(
        &mut self,
        address: Ipv4Addr,
        (node, conn): (usize, ConnId),
        counts: impl Fn(usize) -> bool,
    ) -> usize {
        let asking = &mut self.0.entry(address).or_default().asking;
        asking.insert((node, (conn.slot, conn.generation)));
        asking.iter().filter(|(node, _)| counts(*node)).count()
    }

    /// Notes that nothing is unanswered on a connection.
    pub(super) fn quiet(&mut self, address: Ipv4Addr, (node, conn): (usize, ConnId)) {
        if let Some(address) = self.0.get_mut(&address) {
            address.asking.remove(&(node, (conn.slot, conn.generation)));
        }
    }

    /// Checks all times between two visits to an address; returns what is wrong, and when.
    pub(super) fn judge(&mut self, laws: &Laws, nodes: usize) -> Vec<(Instant, String)> {
        let delay = laws.address_delay - laws.address_delay * laws.drift_ppm / 1_000_000;
        let delay_us = i128::try_from(delay.as_micros()).expect("a short time");
        let mut wrong = Vec::new();
        for (address, Address { begun, .. }) in &mut self.0 {
            begun.sort_unstable();
            // Visits from i to j are too many if j - i + 1 > (at j - at i) / delay + nodes.
            let mut first = (i128::MIN, 0);
            for (number, at) in begun.iter().enumerate() {
                let place = i128::from(at.as_micros()) - number as i128 * delay_us;
                first = first.max((place, number));
                if first.0 - place > (nodes as i128 - 1) * delay_us {
                    let (visits, time) = (number - first.1 + 1, at.since(begun[first.1]));
                    let most = format!("one in {delay:?} and {nodes} more");
                    wrong.push((
                        *at,
                        format!("{visits} visits to {address} in {time:?}, not {most}"),
                    ));
                    first = (place, number);
                }
            }
        }
        wrong
    }
}
