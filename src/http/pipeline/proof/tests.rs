//! Tests the rules of probation by tables, and all with a model of servers that mix up replies.

use super::super::{Close, Leftover, Pipeline, Reply};
use super::*;
use crate::ground::random::Random;
use std::collections::VecDeque;
use std::iter;

const FINE: Reply =
    Reply { minor: 1, known_length: true, persists: true, keep_max: None, body_bytes: 1_000 };
const ALL: u32 = u32::MAX;

/// Returns a server that earned pipelining, and a connection to it.
fn fit() -> (Learnt, Pipeline) {
    let (mut learnt, mut pipeline) = (Learnt::default(), Pipeline::default());
    pipeline.sent(1);
    let filing = pipeline.replied(&mut learnt, &Settings::default(), &FINE);
    assert_eq!(filing, Filing::Now, "a request that went alone");
    (learnt, pipeline)
}

#[test]
fn a_batch_is_held_until_one_of_it_was_compared() {
    let settings = Settings::default();
    let (mut learnt, mut pipeline) = fit();
    for batch in 1..=3 {
        let room = pipeline.room(&learnt, &settings, ALL);
        assert!(room > 1, "batch {batch}");
        pipeline.sent(room);
        assert_eq!(pipeline.room(&learnt, &settings, ALL), 0, "it is sent at once");
        for _ in 1..room {
            assert_eq!(pipeline.replied(&mut learnt, &settings, &FINE), Filing::Hold);
            assert_eq!(pipeline.room(&learnt, &settings, ALL), 0, "and nothing is added");
        }
        assert_eq!(pipeline.replied(&mut learnt, &settings, &FINE), Filing::HoldAndCompare);
        assert!(pipeline.may_compare(&learnt, &settings, 1));
        assert!(!pipeline.may_compare(&learnt, &settings, 0), "the burst is spent");
        pipeline.begin_comparison();
        pipeline.sent(1);
        assert_eq!(pipeline.replied(&mut learnt, &settings, &FINE), Filing::Compare);
        assert!(learnt.is_on_probation(&settings));
        pipeline.compared(&mut learnt, true);
    }
    assert!(!learnt.is_on_probation(&settings));
    pipeline.sent(pipeline.room(&learnt, &settings, ALL));
    assert_eq!(pipeline.replied(&mut learnt, &settings, &FINE), Filing::Now, "as they come");
    assert!(pipeline.room(&learnt, &settings, ALL) > 0, "and the next goes behind them");
}

#[test]
fn a_difference_bars_pipelining() {
    let settings = Settings::default();
    let (mut learnt, mut pipeline) = fit();
    pipeline.sent(2);
    pipeline.replied(&mut learnt, &settings, &FINE);
    pipeline.replied(&mut learnt, &settings, &FINE);
    pipeline.begin_comparison();
    pipeline.sent(1);
    pipeline.replied(&mut learnt, &settings, &FINE);
    pipeline.compared(&mut learnt, false);
    let left = pipeline.closed(&mut learnt, &settings, Close::Ours, false);
    assert_eq!((left.unanswered, left.unproven), (0, 2));
    assert!(learnt.is_disabled());
    assert_eq!(Pipeline::default().room(&learnt, &settings, ALL), 1);
}

/// A server answers the first of two requests twice, and all replies are equal. The copy is taken
/// for the reply to the first repeated request, and so on. The reply to the second repeated request
/// would be taken for that to a third page, so no further page is requested on this connection.
#[test]
fn a_connection_is_not_used_after_equal_neighbours() {
    let settings = Settings::default();
    for comparisons in 1..=2 {
        let (mut learnt, mut pipeline) = fit();
        let allowance = learnt.allowance(&settings);
        pipeline.sent(2);
        pipeline.replied(&mut learnt, &settings, &FINE);
        pipeline.replied(&mut learnt, &settings, &FINE);
        for _ in 0..comparisons {
            pipeline.begin_comparison();
            pipeline.sent(1);
            assert_eq!(pipeline.replied(&mut learnt, &settings, &FINE), Filing::Compare);
        }
        pipeline.compared(&mut learnt, true);
        let room = pipeline.room(&learnt, &settings, ALL);
        assert_eq!(room > 0, comparisons == 1, "{room} after {comparisons}");
        pipeline.closed(&mut learnt, &settings, Close::Ours, false);
        assert!(Pipeline::default().room(&learnt, &settings, ALL) > 1, "the next pipelines again");
        assert!(learnt.allowance(&settings) >= allowance, "this is no limit of the server");
    }
}

/// Of the requests that burst and connection allow, two are reserved for comparisons, or one.
#[test]
fn a_batch_has_room_for_its_comparison() {
    let settings = Settings::default();
    let (mut learnt, _) = fit();
    learnt.depth = 8;
    for (allowance, left, room) in [
        (100, ALL, 8),
        (100, 10, 8),
        (100, 9, 7),
        (100, 4, 2),
        (100, 3, 2),
        (3, ALL, 2),
        (2, ALL, 1),
        (1, ALL, 1),
        (9, 2, 1),
    ] {
        learnt.allowance = allowance;
        let mut pipeline = Pipeline::default();
        let case = format!("{allowance} on a connection, {left} left of the burst");
        assert_eq!(pipeline.room(&learnt, &settings, left), room, "{case}");
        let mut sent = 0;
        while pipeline.room(&learnt, &settings, left - sent.min(left)) > 0 {
            pipeline.sent(1);
            sent += 1;
        }
        assert_eq!(sent, room, "{case}, one by one");
    }
    let trusting = Settings { probation: 0, ..settings };
    learnt.allowance = 9;
    assert_eq!(Pipeline::default().room(&learnt, &trusting, 2), 2, "not once it is trusted");
}

/// The result of a close for a batch of three requests, of which so many were answered.
#[test]
fn an_end_leaves_nothing_unproven_behind() {
    let settings = Settings::default();
    let cases = [
        (2, Close::Ended, false, "drops the last of them"),
        (2, Close::Ended, true, "cuts it"),
        (1, Close::Reset, false, "or resets"),
        (2, Close::Overdue, false, "stalls"),
        (2, Close::Broken, true, "sends what is no reply"),
        (0, Close::Reset, false, "before the first"),
        (0, Close::Overdue, true, "within the first"),
    ];
    for (replies, how, has_begun, why) in cases {
        let (mut learnt, mut pipeline) = fit();
        learnt.depth = 8;
        pipeline.sent(3);
        for _ in 0..replies {
            assert_eq!(pipeline.replied(&mut learnt, &settings, &FINE), Filing::Hold);
        }
        let left = pipeline.closed(&mut learnt, &settings, how, has_begun);
        let all = (left.unanswered, left.unproven, left.blames_head);
        assert_eq!(all, (3 - replies, replies, false), "{why}: nobody is to blame");
        let bars =
            matches!(how, Close::Overdue | Close::Broken) && (replies > 0 || how == Close::Overdue);
        assert_eq!(learnt.is_disabled(), bars, "{why}");
        let mut next = Pipeline::default();
        for _ in 0..3 {
            assert_eq!(next.room(&learnt, &settings, ALL), 1, "{why}: one by one");
            next.sent(1);
            assert_eq!(next.room(&learnt, &settings, ALL), 0, "{why}: one by one");
            next.replied(&mut learnt, &settings, &FINE);
        }
    }
}

/// An announced close after a whole batch proves nothing, because the batch was not compared.
#[test]
fn an_announced_close_proves_nothing() {
    let settings = Settings::default();
    let (mut learnt, mut pipeline) = fit();
    pipeline.sent(2);
    pipeline.replied(&mut learnt, &settings, &FINE);
    pipeline.replied(&mut learnt, &settings, &Reply { persists: false, ..FINE });
    assert!(!pipeline.may_compare(&learnt, &settings, ALL));
    let left = pipeline.closed(&mut learnt, &settings, Close::Ended, false);
    assert_eq!(left, Leftover { unproven: 2, ..Leftover::default() });
    assert!(!learnt.is_disabled(), "it is no trouble either");
    assert_eq!(Pipeline::default().room(&learnt, &settings, ALL), 1);
}

/// If a server asks for a pause in each batch, none of them is compared. After three in a row it
/// gets one request at a time; only an equal comparison resets the count.
#[test]
fn batches_given_up_bar_pipelining() {
    let settings = Settings::default();
    let alone = |learnt: &mut Learnt, pipeline: &mut Pipeline, most: u32| {
        for _ in 0..most {
            pipeline.sent(1);
            pipeline.replied(learnt, &settings, &FINE);
        }
    };
    for (equal_after, closes, given_up_max) in
        [(None, false, 3), (None, true, 3), (Some(1), false, 4), (Some(2), true, 5)]
    {
        let (mut learnt, mut pipeline) = fit();
        let mut given_up = 0;
        for batch in 0..50 {
            if learnt.is_disabled() {
                break;
            }
            while pipeline.room(&learnt, &settings, ALL) < 2 {
                alone(&mut learnt, &mut pipeline, 1);
                assert!(pipeline.replies() < 200, "a batch is tried again");
            }
            pipeline.sent(2);
            pipeline.replied(&mut learnt, &settings, &FINE);
            pipeline.replied(&mut learnt, &settings, &FINE);
            if equal_after == Some(batch) {
                pipeline.begin_comparison();
                alone(&mut learnt, &mut pipeline, 1);
                pipeline.compared(&mut learnt, true);
                continue;
            }
            pipeline.abandon_batch(&mut learnt, &settings);
            given_up += 1;
            alone(&mut learnt, &mut pipeline, 2);
            if closes {
                pipeline.closed(&mut learnt, &settings, Close::Ours, false);
                pipeline = Pipeline::default();
            }
        }
        let case = format!("equal after {equal_after:?}, closes: {closes}");
        assert!(learnt.is_disabled(), "{case}");
        assert_eq!(given_up, given_up_max, "{case}");
    }
}

/// The repeat has no URL of its own: if it isn't answered, only the held requests go back.
#[test]
fn an_unanswered_repeat_is_not_handed_back() {
    let settings = Settings::default();
    let (mut learnt, mut pipeline) = fit();
    pipeline.sent(2);
    pipeline.replied(&mut learnt, &settings, &FINE);
    pipeline.replied(&mut learnt, &settings, &FINE);
    pipeline.begin_comparison();
    pipeline.sent(1);
    let left = pipeline.closed(&mut learnt, &settings, Close::Reset, false);
    assert_eq!((left.unanswered, left.unproven, left.blames_head), (0, 2, false));
}

#[test]
fn bytes_left_over_mean_one_request_a_connection() {
    let settings = Settings::default();
    let (mut learnt, pipeline) = fit();
    pipeline.left_bytes(&mut learnt);
    pipeline.swapped(&mut learnt);
    assert!(!pipeline.may_reuse(&learnt, &settings));
    let mut next = Pipeline::default();
    assert_eq!(next.room(&learnt, &settings, ALL), 1);
    next.sent(1);
    next.replied(&mut learnt, &settings, &FINE);
    assert!(!next.may_reuse(&learnt, &settings), "and none behind it");
}

#[test]
fn what_is_compared() {
    type Case = (u8, &'static [bool], (usize, Option<usize>), &'static str);
    let cases: [Case; 11] = [
        (0, &[false, false], (1, None), "the last of two"),
        (0, &[false, true], (1, Some(0)), "both, if they are equal"),
        (0, &[false, true, false], (1, Some(0)), "the ends of a run"),
        (0, &[false, true, false, true], (3, Some(2)), "of the last run"),
        (0, &[false, false, true, true, false], (3, Some(1)), "its last and its first"),
        (1, &[false, false, false], (0, None), "the first"),
        (1, &[false, true, false, true], (1, Some(0)), "the first run"),
        (1, &[false, true, true], (2, Some(0)), "all are the same"),
        (2, &[false, false, false], (1, None), "the middle"),
        (2, &[false, false, true], (2, Some(1)), "a run again"),
        (2, &[false], (0, None), "one alone"),
    ];
    for (passed, repeats, expected, why) in cases {
        assert_eq!(choose(passed, repeats), expected, "{why}");
    }
}

/// How a server mixes up replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// Requests that arrived together are answered in pairs with swapped replies.
    Pairs,
    /// They are answered in reverse order.
    Reversed,
    /// The first of them is answered twice.
    Twice,
    /// The second gets the reply of the first.
    Stale,
    /// Each gets the reply of the last.
    LastForAll,
    /// The last of them gets no reply.
    Dropped,
    /// Bytes that are no reply follow each one.
    Padded,
}

const FAULTS: [Fault; 8] = [
    Fault::None,
    Fault::Pairs,
    Fault::Reversed,
    Fault::Twice,
    Fault::Stale,
    Fault::LastForAll,
    Fault::Dropped,
    Fault::Padded,
];

/// What arrives on the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Arrival {
    /// The reply to this request.
    Reply(u32),
    Junk,
}

impl Fault {
    /// Returns what the server sends for requests that arrived together.
    fn answer(self, requests: &[u32]) -> Vec<Arrival> {
        let mut replies: Vec<Arrival> = requests.iter().copied().map(Arrival::Reply).collect();
        let several = requests.len() > 1;
        match self {
            Self::Pairs => replies.chunks_exact_mut(2).for_each(<[Arrival]>::reverse),
            Self::Reversed => replies.reverse(),
            Self::Twice if several => replies.insert(0, replies[0]),
            Self::Stale if several => replies[1] = replies[0],
            Self::LastForAll if several => {
                replies.fill(Arrival::Reply(requests[requests.len() - 1]))
            }
            Self::Dropped if several => drop(replies.pop()),
            Self::Padded => {
                return replies.into_iter().flat_map(|reply| [reply, Arrival::Junk]).collect();
            }
            _ => {}
        }
        replies
    }
}

/// A crawl of 300 requests.
struct Crawl {
    fault: Fault,
    /// How many of each four requests have the same reply, that of a missing page.
    alike: u32,
    /// Connections break once in so many requests; 0 for never.
    breaks_one_in: usize,
    learnt: Learnt,
    queue: VecDeque<u32>,
    filed: Vec<(u32, u32)>,
    sent: u32,
}

impl Crawl {
    fn run(fault: Fault, alike: u32, breaks_one_in: usize, random: &mut Random) -> Self {
        let queue = (1..=300).collect();
        let (learnt, filed) = (Learnt::default(), Vec::new());
        let mut crawl = Self { fault, alike, breaks_one_in, learnt, queue, filed, sent: 0 };
        while !crawl.queue.is_empty() {
            crawl.connection(random);
            assert!(crawl.sent < 10_000, "{fault:?}: no progress");
        }
        crawl
    }

    /// Returns the server's reply to a request.
    fn content(&self, request: u32) -> u32 {
        if request % 4 < self.alike { 0 } else { request }
    }

    /// Sends requests, and returns what arrives for them.
    fn send(
        &mut self,
        requests: &[u32],
        pipeline: &mut Pipeline,
        flight: &mut VecDeque<u32>,
    ) -> Vec<Arrival> {
        pipeline.sent(requests.len() as u32);
        self.sent += requests.len() as u32;
        flight.extend(requests);
        self.fault.answer(requests)
    }

    /// Returns which of the held replies are compared.
    fn choice(&self, held: &[(u32, u32)]) -> (usize, Option<usize>) {
        let alike = held.windows(2).map(|two| two[0].1 == two[1].1);
        let repeats: Vec<bool> = iter::once(false).chain(alike).collect();
        Pipeline::choice(&self.learnt, &repeats)
    }

    /// Runs one connection, from its opening to its end.
    fn connection(&mut self, random: &mut Random) {
        let settings = Settings::default();
        let mut pipeline = Pipeline::default();
        let (mut flight, mut held) = (VecDeque::new(), Vec::<(u32, u32)>::new());
        let (mut stream, mut compared) = (VecDeque::<Arrival>::new(), VecDeque::new());
        let how = loop {
            let room = pipeline.room(&self.learnt, &settings, ALL) as usize;
            let batch: Vec<u32> = self.queue.drain(..room.min(self.queue.len())).collect();
            stream.extend(self.send(&batch, &mut pipeline, &mut flight));
            if self.breaks_one_in > 0 && random.below(self.breaks_one_in) == 0 {
                break Close::Reset;
            }
            let asked = match (flight.front(), stream.pop_front()) {
                (None, None) => break Close::Ours,
                (Some(_), None) => break Close::Overdue,
                (None, Some(_)) | (Some(_), Some(Arrival::Junk)) => {
                    pipeline.left_bytes(&mut self.learnt);
                    break Close::Ours;
                }
                (Some(asked), Some(Arrival::Reply(reply))) => (*asked, self.content(reply)),
            };
            if flight.len() == 1 && !stream.is_empty() && pipeline.is_deep() {
                pipeline.left_bytes(&mut self.learnt);
                break Close::Ours;
            }
            flight.pop_front();
            match pipeline.replied(&mut self.learnt, &settings, &FINE) {
                Filing::Now => {
                    self.filed.push(asked);
                    if flight.is_empty() && !stream.is_empty() {
                        pipeline.left_bytes(&mut self.learnt);
                        break Close::Ours;
                    }
                }
                Filing::Hold => held.push(asked),
                Filing::HoldAndCompare => {
                    held.push(asked);
                    let (place, next) = self.choice(&held);
                    compared.push_back(held[place]);
                    compared.extend(next.map(|next| held[next]));
                }
                Filing::Compare => {
                    let equal = compared.pop_front() == Some(asked);
                    if !equal {
                        pipeline.compared(&mut self.learnt, false);
                        break Close::Ours;
                    }
                    if compared.is_empty() {
                        pipeline.compared(&mut self.learnt, true);
                        self.filed.append(&mut held);
                    }
                }
            }
            if flight.is_empty()
                && let Some((request, _)) = compared.front()
            {
                pipeline.begin_comparison();
                stream.extend(self.send(&[*request], &mut pipeline, &mut flight));
            }
        };
        let left = pipeline.closed(&mut self.learnt, &settings, how, false);
        if !compared.is_empty() {
            flight.clear();
        }
        assert_eq!(left.unproven as usize, held.len(), "{:?}", self.fault);
        assert_eq!(left.unanswered as usize, flight.len(), "{:?}", self.fault);
        flight.into_iter().rev().for_each(|request| self.queue.push_front(request));
        held.into_iter().rev().for_each(|(request, _)| self.queue.push_front(request));
    }
}

/// Law: if a server mixes up replies from its first batch on, none is filed under another URL. Each
/// request is filed once, and sent at most twice unless a connection breaks.
#[test]
fn nothing_is_filed_under_another_request() {
    let mut random = Random(7);
    for round in 0..200 {
        for fault in FAULTS {
            let breaks = [0, 0, 40, 7][round % 4];
            let mut crawl = Crawl::run(fault, 0, breaks, &mut random);
            let wrong = crawl.filed.iter().find(|(asked, reply)| asked != reply);
            assert_eq!(wrong, None, "{fault:?}, breaks one in {breaks}");
            crawl.filed.sort_unstable();
            assert!(crawl.filed.iter().map(|(asked, _)| *asked).eq(1..=300), "{fault:?}");
            let repeats = crawl.sent - 300;
            assert!(breaks > 0 || repeats <= 6, "{fault:?}: {repeats} repeats");
            let barred = crawl.learnt.is_disabled();
            assert!(barred || fault == Fault::None, "{fault:?} is found out");
            assert!(!barred || fault != Fault::None || breaks > 0, "and nobody else is");
        }
    }
}

/// A server with many equal pages, such as a site of dead links, is not mistaken for one that mixes
/// up replies; it costs one more request for each of three batches.
#[test]
fn equal_pages_are_no_fault() {
    let mut random = Random(9);
    for (alike, repeats) in [(0, 3), (2, 6), (3, 6), (4, 6)] {
        let mut crawl = Crawl::run(Fault::None, alike, 0, &mut random);
        assert!(!crawl.learnt.is_disabled(), "{alike} of 4");
        assert!(crawl.sent <= 300 + repeats, "{alike} of 4: {} requests", crawl.sent);
        assert!(alike == 0 || crawl.sent > 303, "{alike} of 4: {} requests", crawl.sent);
        crawl.filed.sort_unstable();
        assert!(crawl.filed.iter().map(|(asked, _)| *asked).eq(1..=300), "{alike} of 4");
    }
    // If only some pages are equal, the swaps of the others are detected.
    let crawl = Crawl::run(Fault::LastForAll, 1, 0, &mut random);
    let wrong = crawl.filed.iter().find(|(asked, reply)| *reply != crawl.content(*asked));
    assert_eq!((wrong, crawl.learnt.is_disabled()), (None, true));
}
