//! Servers with unanswered requests: no more of a group (the servers of one address, or of one
//! registrable domain) at the same time than the crawl has promised.
//!
//! A crawler matches replies to requests by their order, so each reply answers one request: its own
//! if that is unanswered, else the oldest. A server that mixes up replies may send one of them
//! twice and another never (`web::muddle`); once it has sent as many replies as it got requests,
//! nothing is unanswered.

use super::{Group, Judge, Traits};
use crate::engine::contract::ConnId;
use crate::ground::time::Instant;
use crate::study::web::Place;

impl Judge {
    /// Counts a server as visited from now on, because it has got its first unanswered request;
    /// checks that none of its groups has too many visited servers.
    pub(super) fn asks(&mut self, at: Instant, host: u32) {
        let Some(Traits { groups, .. }) = self.traits.get(host as usize) else { return };
        let mut full = Vec::new();
        for group in groups {
            let count = self.asking.entry(group.clone()).or_default();
            *count += 1;
            let most = match group {
                Group::Address(_) => self.laws.address_visits_max,
                Group::Domain(_) => self.laws.domain_visits_max,
            };
            if *count > most {
                full.push(format!("{count} servers of {group:?} are asked at once, not {most}"));
            }
        }
        full.into_iter().for_each(|how| self.report("groups", at, how));
    }

    /// Takes in a reply to a request for `place`. If that request has a reply already, this one
    /// stands for the reply to the oldest unanswered request, whose page is requested again; that
    /// is not a further try.
    pub(super) fn is_answered(&mut self, conn: ConnId, place: Option<Place>) {
        let Some(line) = self.conns.get_mut(&conn).filter(|line| !line.open.is_empty()) else {
            return;
        };
        let own = line.open.iter().position(|open| *open == place);
        let stands_for = line.open.remove(own.unwrap_or(0));
        let (host, is_last) = (line.host, line.open.is_empty());
        if let Some(other) = stands_for.filter(|_| own.is_none()) {
            self.is_no_try(other);
        }
        if is_last {
            self.is_quiet(host);
        }
    }

    /// Counts a server as no longer visited: all its requests are answered.
    pub(super) fn is_quiet(&mut self, host: u32) {
        for group in self.traits.get(host as usize).map_or(&[][..], |traits| &traits.groups) {
            *self.asking.get_mut(group).expect("it was asked") -= 1;
        }
    }

    /// Takes back a try of the page `place`: one of its requests doesn't count.
    pub(super) fn is_no_try(&mut self, place: Place) {
        if let Some(asked) = self.visits.asked.get_mut(&place) {
            *asked = asked.saturating_sub(1);
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::study::sim::Observation;
    use crate::study::sim::judge::{Complete, Laws};
    use crate::study::web::{Muddle, Ports, Resource, Settings, Web};
    use std::time::Duration;

    /// However a server mixes up replies, it counts as visited until it has sent as many replies as
    /// it got requests: then another server of its address may be visited.
    #[test]
    fn each_reply_answers_one_request() {
        let settings =
            Settings { hosts: 2, hosts_per_address: 2, pages: 40, ..Settings::default() };
        let web = Web::new(settings, Ports::default());
        for muddle in Muddle::ALL {
            for depth in 1..6 {
                let asked: Vec<Place> = (0..depth).map(|page| page_of(0, page)).collect();
                let mut replies = asked.clone();
                muddle.mix(&mut replies);
                for come in 0..=replies.len() {
                    let mut judge = Judge::new(&web, laws());
                    show(&mut judge, 1, &asked, &replies[..come]);
                    assert_eq!(judge.broken, [], "{muddle:?}, {come} of {depth} replies");
                    show(&mut judge, 2, &[page_of(1, 0)], &[]);
                    let breaks = judge.broken.iter().any(|broken| broken.law == "groups");
                    assert_eq!(breaks, come < asked.len(), "{muddle:?}, {come} of {depth} replies");
                }
            }
        }
    }

    /// A server answers a batch with its last reply only. Of these equal neighbours a crawl
    /// compares the first as well, finds that it differs, and requests all of them again.
    #[test]
    fn a_batch_is_compared_by_what_it_asked_for() {
        let (first, last) = (page_of(0, 0), page_of(0, 1));
        let mut judge = Judge::new(&muddled(), laws());
        show(&mut judge, 1, &[first, last], &[last, last]);
        more(&mut judge, 1, &[last], &[last]);
        more(&mut judge, 1, &[first], &[first]);
        let conn = ConnId { slot: 1, generation: 0 };
        judge.observe(Instant::ZERO, &Observation::Closed { conn, host: 0, by_crawler: true });
        show(&mut judge, 2, &[first], &[first]);
        more(&mut judge, 2, &[last], &[last]);
        assert_eq!(judge.broken, []);
        more(&mut judge, 2, &[first], &[]);
        let broken = judge.broken.iter().map(|broken| broken.law);
        assert_eq!(broken.collect::<Vec<_>>(), ["once", "tries"]);
    }

    /// A crawl whose visit is over gives the batch up before a comparison, or after the first of
    /// two, and asks for all again. That looks like a comparison, but what comes is kept.
    #[test]
    fn a_reply_that_may_be_a_comparison_may_be_kept() {
        let (first, last) = (page_of(0, 0), page_of(0, 1));
        for (sent, other) in [(last, first), (first, last)] {
            for compares in [true, false] {
                let mut judge = Judge::new(&muddled(), laws());
                show(&mut judge, 1, &[first, last], &[sent, sent]);
                if compares {
                    more(&mut judge, 1, &[sent], &[sent]);
                }
                for page in [other, sent] {
                    more(&mut judge, 1, &[page], &[page]);
                    let has = judge.answered.contains(&page) || judge.doubtful.contains(&page);
                    assert!(has, "{page:?} after two of {sent:?}, compared: {compares}");
                }
                assert_eq!(judge.broken, []);
            }
        }
    }

    /// A server that mixes its replies up.
    fn muddled() -> Web {
        let settings = Settings { hosts: 1, pages: 40, muddled: 1.0, ..Settings::default() };
        Web::new(settings, Ports::default())
    }

    fn page_of(host: u32, page: u32) -> Place {
        Place { host, resource: Resource::Page(page) }
    }

    /// Observes requests on a new connection, and the replies to them.
    fn show(judge: &mut Judge, slot: u32, asked: &[Place], replies: &[Place]) {
        let (conn, host) = (ConnId { slot, generation: 0 }, asked[0].host);
        judge.observe(Instant::ZERO, &Observation::Connecting { conn, host });
        more(judge, slot, asked, replies);
    }

    /// Observes more requests on an established connection, and the replies to them.
    fn more(judge: &mut Judge, slot: u32, asked: &[Place], replies: &[Place]) {
        let (conn, host, at) = (ConnId { slot, generation: 0 }, asked[0].host, Instant::ZERO);
        judge.observe(at, &Observation::Sent { conn });
        for (unanswered, place) in (0..).zip(asked) {
            let (place, path) = (Some(*place), "/".into());
            judge.observe(
                at,
                &Observation::Request {
                    conn,
                    host,
                    place,
                    path,
                    unanswered,
                    authorization: "".into(),
                    proof: None,
                },
            );
        }
        for place in replies {
            let (place, status, whole) = (Some(*place), 200, true);
            let content = format!("{place:?}").bytes().map(u64::from).sum();
            judge.observe(at, &Observation::Reply { conn, host, place, status, content, whole });
        }
    }

    /// One server of an address at a time.
    pub(in crate::study::sim::judge) fn laws() -> Laws {
        Laws {
            connections_max: 8,
            depth_max: 8,
            burst: Some(8),
            delay: Duration::ZERO,
            delay_factor_milli: 0,
            delay_max: Duration::ZERO,
            robots: false,
            tries_max: 1,
            probation: 3,
            held_bytes_max: 0,
            archive: false,
            complete: Complete::Never,
            address_visits_max: 1,
            domain_visits_max: 8,
            address_delay: Duration::ZERO,
            domain_delay: Duration::ZERO,
            random_share_milli: 0,
            turn_units_max: 0,
            turn_intake_max: 0,
            signs: super::super::Signs::Never,
            obeys: None,
            again: None,
            server_pages_max: None,
            domain_pages_max: None,
            sites: Vec::new(),
        }
    }
}
