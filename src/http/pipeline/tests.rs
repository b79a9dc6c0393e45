//! Tests each rule of pipelining but the ninth by a table, and all with a model of faulty servers.

use super::*;
use crate::ground::random::Random;
use std::collections::VecDeque;

const FINE: Reply =
    Reply { minor: 1, known_length: true, persists: true, keep_max: None, body_bytes: 1_000 };
const CLOSING: Reply = Reply { persists: false, ..FINE };

/// Returns settings without probation, so that every server is trusted from the start.
fn trusting() -> Settings {
    Settings { probation: 0, ..Settings::default() }
}

/// Returns a server that earned pipelining by one connection of one reply.
fn fit() -> Learnt {
    let (mut learnt, settings) = (Learnt::default(), trusting());
    let mut pipeline = Pipeline::default();
    pipeline.sent(1);
    pipeline.replied(&mut learnt, &settings, &FINE);
    learnt
}

/// Returns a connection of which `replied` requests were answered and `open` are in flight.
fn connection(learnt: &mut Learnt, replied: u32, open: u32) -> Pipeline {
    let mut pipeline = Pipeline::default();
    for _ in 0..replied {
        pipeline.sent(1);
        pipeline.replied(learnt, &trusting(), &FINE);
    }
    pipeline.sent(open);
    pipeline
}

#[test]
fn the_record_of_a_server_is_small() {
    assert!(size_of::<Learnt>() <= 20, "{}", size_of::<Learnt>());
}

#[test]
fn a_restored_record_keeps_its_word() {
    let settings = trusting();
    let learnt = Learnt::restored(100, 1);
    assert!(learnt.knows_allowance() && learnt.is_disabled());
    assert_eq!((learnt.allowance(&settings), learnt.depth(&settings)), (100, 1));
    assert_eq!(Learnt::restored(0, 0), Learnt::default());
    let all = [Trust::OneByOne, Trust::OnePerConnection];
    let all = all.into_iter().chain((0..250).map(Trust::Passed));
    let mut codes: Vec<u8> = all.clone().map(Trust::code).collect();
    for trust in all {
        assert_eq!(Trust::of_code(trust.code()), trust);
    }
    codes.sort_unstable();
    codes.dedup();
    assert_eq!(codes.len(), 252, "one code for each");
}

#[test]
fn rule_1_pipelining_is_earned() {
    let settings = trusting();
    let off = Settings { enabled: false, ..trusting() };
    let old = Reply { minor: 0, ..FINE };
    let until_close = Reply { known_length: false, persists: false, ..FINE };
    let cases = [
        (&settings, FINE, 2, "HTTP/1.1, known length, kept open"),
        (&settings, old, 1, "HTTP/1.0 kept open: one by one"),
        (&settings, CLOSING, 0, "RFC 9112 9.6: nothing more behind a close"),
        (&settings, until_close, 0, "no length: it ends with the connection"),
        (&off, FINE, 1, "switched off: one by one"),
    ];
    for (settings, reply, room, why) in cases {
        let mut learnt = Learnt::default();
        let mut pipeline = Pipeline::default();
        assert_eq!(pipeline.room(&learnt, settings, u32::MAX), 1, "the first goes alone");
        pipeline.sent(1);
        assert_eq!(pipeline.room(&learnt, settings, u32::MAX), 0, "nothing behind the first");
        pipeline.replied(&mut learnt, settings, &reply);
        assert_eq!(pipeline.room(&learnt, settings, u32::MAX), room, "{why}");
        assert_eq!(pipeline.may_reuse(&learnt, settings), room > 0, "{why}");
    }
    let later = Pipeline::default();
    assert_eq!(
        later.room(&fit(), &settings, u32::MAX),
        2,
        "a server once fit is pipelined from the start"
    );
}

/// A reply whose beginning is kept counts as answered: its request is not blamed, and the requests
/// after it go back. The failure counts against pipelining, which may have caused it.
#[test]
fn a_cut_reply_blames_nobody() {
    let settings = Settings { head_faults_max: 1, ..trusting() };
    for (open, how, barred) in [
        (1, Close::Ended, false),
        (1, Close::Overdue, false),
        (3, Close::Reset, false),
        (3, Close::Overdue, true),
    ] {
        let mut learnt = fit();
        let mut pipeline = connection(&mut learnt, 8, open);
        let depth = learnt.depth(&settings);
        pipeline.cut(&mut learnt, &settings, how);
        assert_eq!((pipeline.replies(), pipeline.room(&learnt, &settings, u32::MAX)), (9, 0));
        assert_eq!((learnt.is_disabled(), learnt.depth(&settings) < depth), (barred, open > 1));
        let left = pipeline.closed(&mut learnt, &settings, how, false);
        let expected = Leftover { unanswered: open - 1, ..Leftover::default() };
        assert_eq!(left, expected, "{open} {how:?}");
        let next = Pipeline::default();
        assert_eq!(
            next.room(&learnt, &settings, u32::MAX),
            1,
            "the next connection starts with one"
        );
    }
}

#[test]
fn rule_2_depth_grows_by_one_and_halves() {
    let settings = trusting();
    let mut learnt = fit();
    let mut pipeline = Pipeline::default();
    let (mut replies, mut reached) = (0, vec![0; 9]);
    while learnt.depth(&settings) < 8 {
        pipeline.sent(pipeline.room(&learnt, &settings, u32::MAX));
        pipeline.replied(&mut learnt, &settings, &FINE);
        replies += 1;
        let depth = learnt.depth(&settings) as usize;
        if reached[depth] == 0 {
            reached[depth] = replies;
        }
    }
    assert_eq!(reached[2..], [1, 2, 5, 9, 14, 20, 27], "a depth's worth of replies for each step");

    pipeline.closed(&mut learnt, &settings, Close::Reset, true);
    assert_eq!(learnt.depth(&settings), 4, "halved by a reset");
}

#[test]
fn rule_2_large_replies_do_not_pile_up() {
    let settings = trusting();
    for (body_bytes, room) in [(100_000, 2), (600_000, 1), (u64::MAX, 1)] {
        let mut learnt = Learnt::default();
        let mut pipeline = connection(&mut learnt, 0, 1);
        pipeline.replied(&mut learnt, &settings, &Reply { body_bytes, ..FINE });
        assert_eq!(
            pipeline.room(&learnt, &settings, u32::MAX),
            room,
            "replies of {body_bytes} bytes"
        );
    }
}

#[test]
fn rule_3_what_a_close_leaves() {
    let settings = trusting();
    let nothing = Leftover::default();
    let back = |unanswered| Leftover { unanswered, is_trouble: true, ..nothing };
    let blamed = |unanswered| Leftover { blames_head: true, ..back(unanswered) };
    let ours = |unanswered| Leftover { unanswered, ..nothing };
    let cases = [
        (0, 0, Close::Ended, false, nothing, "never used"),
        (3, 0, Close::Ended, false, nothing, "idle"),
        (3, 0, Close::Reset, false, nothing, "idle, and rudely"),
        (0, 1, Close::Ended, false, blamed(1), "a fresh connection died on this request"),
        (0, 1, Close::Reset, false, blamed(1), "likewise"),
        (3, 1, Close::Ended, false, back(1), "the idle time-out crossed the request"),
        (3, 2, Close::Reset, false, back(2), "or its reset did"),
        (3, 2, Close::Ended, true, blamed(2), "in mid reply"),
        (3, 2, Close::Broken, false, blamed(2), "a reply that is none"),
        (3, 2, Close::Overdue, false, blamed(2), "no reply in time"),
        (3, 2, Close::Ours, true, ours(2), "our own doing"),
    ];
    for (replied, open, how, has_begun, expected, why) in cases {
        let mut learnt = fit();
        let mut pipeline = connection(&mut learnt, replied, open);
        let left = pipeline.closed(&mut learnt, &settings, how, has_begun);
        assert_eq!(left, expected, "{why}");
        assert_eq!(pipeline.room(&learnt, &settings, u32::MAX), 0, "nothing more is sent");
        let next = Pipeline::default().room(&learnt, &settings, u32::MAX);
        let is_solo = expected.is_trouble;
        assert_eq!(next == 1, is_solo, "{why}: RFC 9112 9.3.2, the next connection starts alone");
    }
}

#[test]
fn a_reply_cut_by_us_is_no_fault_of_the_server() {
    let settings = trusting();
    let mut learnt = fit();
    let mut pipeline = connection(&mut learnt, 2, 3);
    let before = learnt;
    pipeline.kept_partial();
    assert_eq!(pipeline.room(&learnt, &settings, u32::MAX), 0);
    let left = pipeline.closed(&mut learnt, &settings, Close::Ours, true);
    assert_eq!(left, Leftover { unanswered: 2, ..Leftover::default() });
    assert_eq!(learnt, before);
}

#[test]
fn rule_3_a_request_that_kills_connections_is_dropped() {
    let settings = trusting();
    let mut learnt = fit();
    let mut first = connection(&mut learnt, 1, 1);
    let left = first.closed(&mut learnt, &settings, Close::Reset, true);
    assert!(left.blames_head && !left.drops_head);
    let mut second = connection(&mut learnt, 0, 1);
    let left = second.closed(&mut learnt, &settings, Close::Reset, false);
    assert!(left.blames_head && left.drops_head, "the second in a row");
    let mut third = connection(&mut learnt, 0, 1);
    let left = third.closed(&mut learnt, &settings, Close::Reset, false);
    assert!(left.blames_head && !left.drops_head, "another request starts afresh");
    let mut fourth = connection(&mut learnt, 1, 1);
    let left = fourth.closed(&mut learnt, &settings, Close::Reset, true);
    assert!(!left.drops_head, "a reply in between: not in a row");
}

#[test]
fn rule_4_the_allowance_is_learnt() {
    let settings = trusting();
    let mut learnt = Learnt::default();
    assert_eq!((learnt.allowance(&settings), learnt.knows_allowance()), (50, false));

    let mut pipeline = connection(&mut learnt, 49, 0);
    assert_eq!(learnt.allowance(&settings), 50);
    pipeline.sent(1);
    pipeline.replied(&mut learnt, &settings, &FINE);
    assert_eq!(learnt.allowance(&settings), 100, "outlived: doubled");
    pipeline.sent(3);
    pipeline.replied(&mut learnt, &settings, &CLOSING);
    assert_eq!(learnt.allowance(&settings), 51, "announced");
    let left = pipeline.closed(&mut learnt, &settings, Close::Ended, false);
    let expected = Leftover { unanswered: 2, ..Leftover::default() };
    assert_eq!(left, expected, "RFC 9112 9.6: what stood behind was not processed");
    assert!(Pipeline::default().room(&learnt, &settings, u32::MAX) > 1, "no penalty");

    let counting_down = [99, 98, 97];
    let constant = [100, 100, 100];
    for (said, allowance, left) in [(counting_down, 100, 97), (constant, 101, 98)] {
        let mut learnt = fit();
        let mut pipeline = Pipeline::default();
        for more in said {
            pipeline.sent(1);
            pipeline.replied(&mut learnt, &settings, &Reply { keep_max: Some(more), ..FINE });
        }
        assert_eq!(learnt.allowance(&settings), allowance, "Keep-Alive: max {said:?}");
        assert_eq!(pipeline.limit - pipeline.sent, left);
    }
    let mut last = connection(&mut fit(), 0, 1);
    last.replied(&mut learnt, &settings, &Reply { keep_max: Some(0), ..FINE });
    assert!(!last.may_reuse(&learnt, &settings), "Keep-Alive: max=0 says it was the last");
}

/// A server that closes after 16 replies without notice is not punished, and its limit is probed.
#[test]
fn rule_4_a_silent_limit_is_no_trouble() {
    let settings = trusting();
    let mut learnt = fit();
    let mut handed_back = 0;
    for _ in 0..10 {
        let mut pipeline = Pipeline::default();
        while pipeline.replies() < 16 {
            let room = pipeline.room(&learnt, &settings, u32::MAX);
            assert!(room > 0 || pipeline.in_flight() > 0, "stuck at {}", pipeline.replies());
            pipeline.sent(room);
            pipeline.replied(&mut learnt, &settings, &FINE);
        }
        pipeline.sent(pipeline.room(&learnt, &settings, u32::MAX));
        handed_back += pipeline.closed(&mut learnt, &settings, Close::Ended, false).unanswered;
        assert_eq!(learnt.allowance(&settings), 16);
    }
    assert!(!learnt.is_disabled());
    assert!(learnt.depth(&settings) > 1 && handed_back <= 25, "{learnt:?}: {handed_back}");
}

#[test]
fn rules_5_and_6_what_bars_pipelining() {
    let settings = trusting();
    let mut learnt = fit();
    let mut pipeline = connection(&mut learnt, 1, 2);
    pipeline.swapped(&mut learnt);
    assert_eq!(pipeline.closed(&mut learnt, &settings, Close::Ours, true).unanswered, 2);
    assert!(learnt.is_disabled());
    let mut next = connection(&mut learnt, 3, 0);
    assert_eq!(next.room(&learnt, &settings, u32::MAX), 1, "the connection stays open, one by one");
    next.sent(1);
    assert_eq!(next.room(&learnt, &settings, u32::MAX), 0);

    for (open, barred) in [(1, false), (2, true)] {
        let mut learnt = fit();
        let mut pipeline = connection(&mut learnt, 1, open);
        pipeline.closed(&mut learnt, &settings, Close::Overdue, false);
        assert_eq!(learnt.is_disabled(), barred, "{open} under way as time ran out");
    }

    let mut learnt = fit();
    for breaks in 1..=3 {
        let mut pipeline = connection(&mut learnt, breaks, 2);
        pipeline.closed(&mut learnt, &settings, Close::Reset, false);
        assert_eq!(
            learnt.is_disabled(),
            breaks == 3,
            "{breaks} pipelined connections broke in a row"
        );
    }

    let mut learnt = fit();
    for _ in 0..3 {
        for _ in 0..2 {
            let mut pipeline = connection(&mut learnt, 9, 2);
            pipeline.closed(&mut learnt, &settings, Close::Reset, false);
        }
        let mut fine = connection(&mut learnt, 9, 2);
        fine.replied(&mut learnt, &settings, &CLOSING);
        fine.closed(&mut learnt, &settings, Close::Ended, false);
        assert!(!learnt.is_disabled(), "not in a row");
    }
}

/// A server with randomly drawn faults.
#[derive(Clone, Copy, Debug)]
struct Server {
    minor: u8,
    /// The number of requests that a connection accepts.
    limit: u32,
    /// Whether the last reply announces the close.
    announces: bool,
    /// Whether Keep-Alive: max counts down, stays the same, or is missing.
    keep: usize,
    /// One in so many replies is cut off by a reset; 0 for none.
    cut_one_in: usize,
    /// Whether it closes when it receives a second request before it has replied to the first.
    hates_pipelines: bool,
    /// One in so many requests breaks its connection whenever it is sent.
    killer_one_in: u32,
}

impl Server {
    fn drawn(random: &mut Random) -> Self {
        Self {
            minor: u8::from(random.below(4) > 0),
            limit: [1, 2, 7, 100, 1_000][random.below(5)],
            announces: random.below(3) > 0,
            keep: random.below(3),
            cut_one_in: [0, 0, 5, 50][random.below(4)],
            hates_pipelines: random.below(5) == 0,
            killer_one_in: [0, 0, 40][random.below(3)] as u32,
        }
    }

    /// Returns what it does with the oldest request, the `nth` of the connection.
    fn answer(&self, request: u32, nth: u32, open: u32, random: &mut Random) -> Answer {
        let kills = self.killer_one_in > 0 && request.is_multiple_of(self.killer_one_in);
        if kills || (self.cut_one_in > 0 && random.below(self.cut_one_in) == 0) {
            return Answer::Closes(Close::Reset, random.below(2) == 0);
        }
        if nth > self.limit || (self.hates_pipelines && open > 1) {
            return Answer::Closes(Close::Ended, false);
        }
        let left = self.limit - nth;
        Answer::Replies(Reply {
            minor: self.minor,
            known_length: true,
            persists: left > 0 || !self.announces,
            keep_max: [None, Some(left), Some(self.limit)][self.keep],
            body_bytes: random.below(200_000) as u64,
        })
    }
}

enum Answer {
    Replies(Reply),
    Closes(Close, bool),
}

/// Sends 500 requests to a server. Returns how many were answered, dropped, and sent in vain.
fn crawl(server: &Server, random: &mut Random) -> (u32, u32, u32) {
    let settings = trusting();
    let mut learnt = Learnt::default();
    let mut queue: VecDeque<u32> = (1..=500).collect();
    let mut ends = vec![0; 501];
    let (mut answered, mut dropped, mut in_vain, mut alone) = (0, 0, 0, true);
    while !queue.is_empty() {
        let mut pipeline = Pipeline::default();
        let mut open = VecDeque::new();
        let (how, has_begun) = loop {
            let room = pipeline.room(&learnt, &settings, u32::MAX) as usize;
            open.extend(queue.drain(..room.min(queue.len())));
            pipeline.sent(open.len() as u32 - pipeline.in_flight());
            let depth_max = if alone { 1 } else { u32::from(settings.depth_max) };
            assert!(pipeline.in_flight() <= depth_max, "{server:?}: {} deep", open.len());
            let Some(&request) = open.front() else { break (Close::Ended, false) };
            let nth = pipeline.replies() + 1;
            match server.answer(request, nth, pipeline.in_flight(), random) {
                Answer::Closes(how, has_begun) => break (how, has_begun),
                Answer::Replies(reply) => {
                    let before = learnt.depth;
                    pipeline.replied(&mut learnt, &settings, &reply);
                    let grown = learnt.depth - before;
                    assert!(grown <= 1 || (before, learnt.depth) == (0, 2), "{server:?}");
                    ends[open.pop_front().expect("asked") as usize] += 1;
                    answered += 1;
                    alone = reply.minor == 0;
                }
            }
        };
        let before = learnt.depth;
        let left = pipeline.closed(&mut learnt, &settings, how, has_begun);
        assert!([before, (before / 2).max(1)].contains(&learnt.depth), "{server:?}: halves");
        assert_eq!(left.unanswered as usize, open.len(), "{server:?}: all are handed back");
        in_vain += left.unanswered;
        alone |= left.is_trouble;
        if left.drops_head {
            ends[open.pop_front().expect("a head to drop") as usize] += 1;
            dropped += 1;
        }
        open.drain(..).rev().for_each(|request| queue.push_front(request));
        assert!(in_vain < 100_000, "{server:?}: no progress");
    }
    assert!(ends[1..].iter().all(|&count| count == 1), "{server:?}: each request ends once");
    (answered, dropped, in_vain)
}

/// Simulates a server with this round trip that handles requests one after the other, each in
/// `work_us`. Returns the time that 400 requests take in all, and the number of writes. `waits`
/// enables rule 8.
fn fetched_from_afar(round_trip_us: u64, work_us: u64, waits: bool) -> (u64, u32) {
    let settings = Settings { requests_new: 1_000, ..trusting() };
    let (mut learnt, mut replies) = (Learnt::default(), VecDeque::new());
    let mut pipeline = Pipeline::default();
    let (mut now, mut idle_from, mut since, mut sum) = (round_trip_us, 0, round_trip_us, 0);
    let (mut left, mut writes) = (400, 0);
    loop {
        let pace = Duration::from_micros(sum / u64::from(pipeline.replies().max(1)));
        let round_trip = Duration::from_micros(round_trip_us);
        let later = waits && pipeline.is_ahead(&learnt, &settings, pace, round_trip);
        let sent = pipeline.room(&learnt, &settings, u32::MAX).min(left);
        if sent > 0 && !later {
            writes += 1;
            left -= sent;
            pipeline.sent(sent);
            for _ in 0..sent {
                idle_from = idle_from.max(now + round_trip_us / 2) + work_us;
                replies.push_back(idle_from + round_trip_us / 2);
            }
        }
        let Some(at) = replies.pop_front() else { return (now, writes) };
        now = at;
        sum += now - since;
        since = now;
        pipeline.replied(&mut learnt, &settings, &FINE);
    }
}

/// Law: waiting to send several requests at once doesn't delay them, near or far, fast or slow.
#[test]
fn rule_8_a_write_for_some_keeps_the_server_at_work() {
    let mut saved = 0;
    for round_trip_us in [20, 200, 1_000, 20_000, 100_000, 300_000] {
        for work_us in [10, 100, 1_000, 5_000, 20_000, 50_000, 100_000, 1_000_000] {
            let (at_once, writes) = fetched_from_afar(round_trip_us, work_us, false);
            let (later, fewer) = fetched_from_afar(round_trip_us, work_us, true);
            let case = format!("{round_trip_us} us away, {work_us} us each");
            assert!(later <= at_once + at_once / 100, "{case}: {later} us instead of {at_once}");
            assert!(fewer <= writes, "{case}: {fewer} writes instead of {writes}");
            saved += u32::from(fewer * 3 < writes);
        }
    }
    assert!(saved > 20, "where the work is what takes time: {saved}");
}

#[test]
fn rule_8_has_something_to_wait_for() {
    let (settings, far) = (trusting(), Duration::from_millis(10));
    let mut learnt = fit();
    learnt.depth = 8;
    let cases = [
        (5, Duration::from_millis(5), far, true, "four more take two round trips"),
        (5, Duration::from_millis(4), far, false, "they don't"),
        (4, Duration::from_secs(1), far, false, "half of the depth is free"),
        (8, Duration::ZERO, far, false, "nothing is known of its pace"),
        (8, Duration::from_secs(1), Duration::MAX, false, "nor of how far it is"),
        (0, Duration::from_secs(1), Duration::ZERO, false, "nothing is under way"),
    ];
    for (open, pace, round_trip, is_ahead, why) in cases {
        let pipeline = connection(&mut learnt.clone(), 0, open);
        assert_eq!(pipeline.is_ahead(&learnt, &settings, pace, round_trip), is_ahead, "{why}");
    }
}

#[test]
fn each_request_is_answered_or_dropped_once() {
    let mut random = Random(1);
    let (mut kinds, mut sums) = ([0; 3], (0, 0, 0));
    for _ in 0..600 {
        let server = Server::drawn(&mut random);
        let (answered, dropped, in_vain) = crawl(&server, &mut random);
        assert_eq!(answered + dropped, 500);
        let is_calm = server.cut_one_in == 0 && server.killer_one_in == 0;
        assert!(!is_calm || dropped == 0, "{server:?}: {dropped} dropped without a fault");
        kinds[0] += u32::from(is_calm);
        kinds[1] += u32::from(dropped > 0);
        kinds[2] += u32::from(in_vain > 0);
        sums = (sums.0 + answered, sums.1 + dropped, sums.2 + in_vain);
    }
    assert!(kinds.iter().all(|&count| count > 50), "{kinds:?}");
    assert!(sums.1 * 20 < sums.0, "few are dropped: {sums:?}");
}

/// Pipelining pays off with well-behaved servers: at most one batch a connection is sent in vain.
#[test]
fn well_known_servers_waste_little() {
    let calm = Server {
        minor: 1,
        limit: 100,
        announces: true,
        keep: 0,
        cut_one_in: 0,
        hates_pipelines: false,
        killer_one_in: 0,
    };
    let cases = [
        (calm, 0, 8, "announced after 100"),
        (Server { limit: 1_000, ..calm }, 0, 0, "announced after 1,000"),
        (Server { keep: 1, ..calm }, 0, 0, "announced, and counted down"),
        (Server { limit: 1, ..calm }, 0, 0, "one at a time"),
        (Server { announces: false, limit: 16, ..calm }, 0, 80, "silent limit"),
        (Server { hates_pipelines: true, ..calm }, 0, 30, "closes on sight of a pipeline"),
    ];
    for (server, dropped, in_vain_max, why) in cases {
        let found = crawl(&server, &mut Random(1));
        assert_eq!((found.0, found.1), (500, dropped), "{why}");
        assert!(found.2 <= in_vain_max, "{why}: {} in vain", found.2);
    }
}
