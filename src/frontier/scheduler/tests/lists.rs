//! The lists against naive ones, and the bound on waiting that follows from them.

use super::*;

/// The slots of a round: the lists in the order of their turns.
const ROUND: [usize; 15] = [3, 2, 3, 1, 3, 2, 3, 0, 3, 2, 3, 1, 3, 2, 3];

/// What is checked of the lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Checks {
    Naive,
    Audit,
    Both,
}

/// The naive lists: nothing but a note of each server in the ready queue.
pub(super) struct Waits {
    pub(super) share_milli: u64,
    checks: Checks,
    /// How many visits there were, without those of called servers.
    visits: u64,
    /// The place in the round of the next turn.
    next: usize,
    /// Of each server, what is known of its wait; `None` if it isn't in the ready queue.
    notes: Vec<Option<Note>>,
    /// Gain and cost of a typical server.
    typical: (u128, u128),
}

#[derive(Clone, Copy, Debug)]
struct Note {
    arrival: u64,
    list: usize,
    since: u64,
    /// How many turns it may wait for.
    turns: u64,
}

impl Waits {
    pub(super) fn new(settings: &Settings, checks: Checks) -> Self {
        Self {
            share_milli: settings.schedule.random_share_milli.into(),
            checks,
            visits: 0,
            next: 0,
            notes: vec![None; SERVERS],
            typical: Model::typical(settings),
        }
    }

    fn is_naive(&self) -> bool {
        self.share_milli > 0 && self.checks != Checks::Audit
    }

    /// Counts a visit, and returns whether it is a turn.
    fn visit(&mut self) -> bool {
        let turns = |visits| visits * self.share_milli / 1_000;
        self.visits += 1;
        turns(self.visits) > turns(self.visits - 1)
    }
}

impl Pair {
    fn is_in_line(&self, server: usize) -> bool {
        self.scheduler.server(self.ids[server]).standing == Standing::InLine
    }

    /// The servers of the ready queue.
    pub(super) fn line(&self) -> Vec<usize> {
        (0..self.ids.len()).filter(|server| self.is_in_line(*server)).collect()
    }

    fn arrival(&self, server: usize) -> u64 {
        self.scheduler.server(self.ids[server]).arrival
    }

    /// The list of a server: that of the best worth that it has had since it entered the queue.
    fn list_of(&self, server: usize) -> usize {
        let policy = self.model.settings.schedule.policy;
        if matches!(policy, Policy::Bfs | Policy::Random) {
            return 0;
        }
        let ((gain, cost), (usual, usual_cost)) = (self.model.worth(server), self.waits.typical);
        let reaches =
            |(times, part): &(u128, u128)| gain * usual_cost * part >= usual * times * cost;
        let now = [(1, 4), (1, 1), (4, 1)].iter().filter(|least| reaches(least)).count();
        self.waits.notes[server].map_or(now, |note| note.list.max(now))
    }

    /// Laws: the best goes first, except in turns. A turn takes the oldest server of the list whose
    /// turn it is, and only empty lists are skipped. `line` are the servers that were in the queue
    /// before, and `best` is the best of all that may be visited.
    pub(super) fn check_taken(&mut self, line: &[usize], best: Option<usize>, taken: usize) {
        let is_called = best.is_some_and(|best| self.model.servers[best].is_called);
        if self.waits.share_milli == 0 || is_called || !self.waits.visit() {
            return assert_eq!(Some(taken), best, "the best goes first");
        }
        assert!(self.model.may(taken, self.now), "it may be visited");
        if !self.waits.is_naive() {
            return;
        }
        let own = self.list_of(taken);
        let others = line.iter().filter(|other| self.model.may(**other, self.now));
        let others: Vec<_> =
            others.map(|other| (self.list_of(*other), self.arrival(*other))).collect();
        let mut next = self.waits.next;
        while ROUND[next] != own {
            let is_empty = others.iter().all(|(list, _)| *list != ROUND[next]);
            assert!(is_empty, "list {} has its turn, not {own}", ROUND[next]);
            next = (next + 1) % ROUND.len();
        }
        let mut same = others.iter().filter(|(list, _)| *list == own);
        assert!(same.all(|(_, arrival)| self.arrival(taken) <= *arrival), "the oldest goes first");
        self.waits.next = (next + 1) % ROUND.len();
    }

    /// Notes which servers are in the queue. Law: none waits for longer than the bound.
    pub(super) fn follow_waits(&mut self) {
        if !self.waits.is_naive() {
            return;
        }
        for server in 0..self.ids.len() {
            let (arrival, is_in_line) = (self.arrival(server), self.is_in_line(server));
            let old = self.waits.notes[server];
            let old = old.filter(|note| is_in_line && note.arrival == arrival);
            self.waits.notes[server] = old;
            let (list, since) = (self.list_of(server), self.waits.visits);
            self.waits.notes[server] = is_in_line.then(|| {
                let entered =
                    || Note { arrival, list, since, turns: (self.older(arrival) + 4) * 15 };
                old.map_or_else(entered, |note| Note { list, ..note })
            });
            if let Some(note) = self.waits.notes[server] {
                let most = (note.turns * 1_000).div_ceil(self.waits.share_milli);
                assert!(self.waits.visits - note.since < most, "{server} waits too long: {note:?}");
            }
        }
    }

    /// How many older servers are ready, held back, reading or busy.
    fn older(&self, than: u64) -> u64 {
        let is_older = |server: &usize| {
            let known = &self.model.servers[*server];
            let waits = known.place == Place::Ready || known.visit.is_some();
            waits && self.arrival(*server) < than
        };
        (0..self.ids.len()).filter(is_older).count() as u64
    }

    /// A server was handed back: it goes before younger ones again.
    pub(super) fn note_handed_back(&mut self, server: usize) {
        let arrival = self.arrival(server);
        let younger = self.waits.notes.iter_mut().flatten().filter(|note| note.arrival > arrival);
        younger.for_each(|note| note.turns += 15);
    }

    pub(super) fn audit_waits(&self) {
        if self.waits.checks != Checks::Naive {
            let share = u32::try_from(self.waits.share_milli).expect("thousandths");
            assert_eq!(self.scheduler.audit_waits(share), Ok(()));
        }
    }
}

fn shared_history(seed: u64, policy: Policy, checks: Checks) {
    let share_milli = [50, 300, 500][seed as usize % 3];
    println!("the history of seed {seed}, {policy:?}, a share of {share_milli}");
    let mut pair = Pair::with_share(seed, policy, share_milli, checks);
    for _ in 0..900 {
        pair.step();
        pair.check();
    }
    pair.drain();
}

#[test]
fn lists_agree_with_naive_ones_under_each_policy() {
    for policy in Policy::ALL {
        (1..=24).for_each(|seed| shared_history(seed, policy, Checks::Both));
    }
}

/// Both the naive lists and the audit notice each fault.
#[test]
fn faults_of_lists_are_noticed() {
    let all = [
        (Sabotage::ListsIncomplete, Policy::Bfs),
        (Sabotage::ListsIncomplete, Policy::Quality),
        (Sabotage::YoungestFirst, Policy::Bfs),
        (Sabotage::YoungestFirst, Policy::Capability),
        (Sabotage::ListSkipped, Policy::Performance),
    ];
    for (sabotage, policy) in all {
        for checks in [Checks::Naive, Checks::Audit] {
            commit(Some(sabotage));
            let fails = |seed| {
                let run = || {
                    shared_history(seed, policy, checks);
                    if checks == Checks::Audit {
                        wait_of_a_poor_server(policy, 500, 900);
                    }
                };
                catch_unwind(AssertUnwindSafe(run)).is_err()
            };
            let noticed = (1..=20).any(fails);
            commit(None);
            assert!(noticed, "{sabotage:?} by {policy:?}, {checks:?}");
        }
    }
}

/// Law: a poor server among rich ones, which are ready again at once, is visited within the bound.
/// Without a share, policies that rank by worth never visit it.
#[test]
fn a_poor_server_waits_no_longer_than_the_bound() {
    for policy in Policy::ALL {
        for share_milli in [0, 1, 50, 500] {
            let most = 15 * 30 * 1_000 / u64::from(if share_milli > 0 { share_milli } else { 10 });
            let waited = wait_of_a_poor_server(policy, share_milli, most);
            let is_fair = matches!(policy, Policy::Bfs | Policy::Random);
            let is_taken = share_milli > 0 || is_fair;
            assert_eq!(waited.is_some(), is_taken, "{policy:?} with a share of {share_milli}");
        }
    }
}

/// Returns how many visits there are until a server with one poor URL has had three, among 29 rich
/// servers; `None` if one of them takes more than `most`.
fn wait_of_a_poor_server(policy: Policy, share_milli: u32, most: u64) -> Option<u64> {
    let default = policy::Settings::default();
    let schedule = policy::Settings { policy, random_share_milli: share_milli, ..default };
    let none = Duration::ZERO;
    let settings = Settings {
        schedule,
        burst: Burst::Requests(10),
        delay: none,
        delay_factor_milli: 0,
        domain_delay: none,
        ..Settings::default()
    };
    let mut scheduler = Scheduler::new(settings);
    let poor = ServerId(15);
    let waiting = |id: ServerId| match id == poor {
        true => Waiting { urls: 1, at_hand: true, best_sum: 1 },
        false => Waiting { urls: 9_000 + id.0, at_hand: true, best_sum: 40_000_000 },
    };
    for number in 0..30 {
        let text = format!("http://site{number}.com/");
        let url = UrlRef::from_canonical(text.as_bytes()).expect("canonical");
        let id = scheduler.server_of(url);
        scheduler.set_waiting(id, waiting(id), Instant::ZERO);
    }
    let (mut all, mut waited, mut visits) = (0, 0, 0);
    while visits < 3 {
        let now = Instant::from_micros(all);
        let id = scheduler.next(now).expect("all are ready");
        (all, waited) = (all + 1, waited + 1);
        if id == poor {
            (visits, waited) = (visits + 1, 0);
        } else if waited == most {
            return None;
        }
        scheduler.finish(id, &Visit::new(1, now, now), now, |_| waiting(id));
        if share_milli >= 50 {
            assert_eq!(scheduler.audit_waits(share_milli), Ok(()));
        }
    }
    Some(all)
}
