//! Work on robots.txt files that waits for the budget of a later turn, in order of arrival.
//!
//! A reply is read when it arrives, if the budget allows. One that must wait is archived already;
//! its line in the crawl log is written when it is read. Any number of servers may redirect to one
//! file, so its rules are copied to some of them in each turn.
//!
//! Law: while a reply waits, no page is requested from the servers that it is for.

use super::reading::RobotsReply;
use super::state::{REDIRECTED_MAX, Robots};
use super::{COPY_BYTES, Shown};
use crate::engine::Engine;
use crate::engine::ledger::Work;
use crate::frontier::ServerId;
use crate::ground::time::Instant;
use crate::robots::Rules;

/// Work on robots.txt files that waits for budget.
#[derive(Debug)]
pub(super) enum Task {
    /// Read this archived reply to a request for robots.txt.
    Read(Box<RobotsReply>),
    /// End the wait of these servers for the file of another server. If that file was `found`, copy
    /// its rules and the end of their validity to them. If it can't be fetched (`None`), make the
    /// servers request their own files again.
    Release { found: Option<(Rules, Instant)>, servers: Vec<ServerId> },
}

/// The cost of ending the wait of one server, in units of work (see `ledger`).
const SERVER_UNITS: usize = 500;

impl Engine {
    /// Takes a reply that is archived, and reads it at once if the budget allows.
    pub(in crate::engine) fn take_robots_reply(&mut self, mut answer: Box<RobotsReply>) {
        if self.robots.tasks.is_empty()
            && let Some(reading) = self.read_robots_reply(&mut answer)
        {
            return self.apply_robots(*answer, reading);
        }
        self.make_wait(&answer);
        self.robots.tasks.push_back(Task::Read(answer));
    }

    /// Makes the servers that a reply is for wait until it is read.
    pub(super) fn make_wait(&mut self, answer: &RobotsReply) {
        let until = self.turn.at() + REDIRECTED_MAX;
        for id in [Some(answer.of), answer.other].into_iter().flatten() {
            self.set_robots(id, Robots::Redirected(until));
        }
    }

    /// Ends the waits of the followers of a server (those whose robots.txt redirects to its own),
    /// in later turns. They get what was `found`, the rules of its file and the end of their
    /// validity; if that is `None`, they request their own files.
    pub(in crate::engine) fn end_waits(&mut self, of: ServerId, found: Option<(&Rules, Instant)>) {
        if let Some(servers) = self.robots.followers.remove(&of).filter(|all| !all.is_empty()) {
            let found = found.map(|(rules, until)| (rules.clone(), until));
            self.robots.tasks.push_back(Task::Release { found, servers });
        }
    }

    /// Does work that waits, within the budget of this turn.
    pub(in crate::engine) fn work_robots(&mut self) {
        while !self.turn.is_spent(Work::Rules)
            && let Some(task) = self.robots.tasks.pop_front()
        {
            match task {
                Task::Read(mut answer) => match self.read_robots_reply(&mut answer) {
                    Some(reading) => self.apply_robots(*answer, reading),
                    None => return self.robots.tasks.push_front(Task::Read(answer)),
                },
                Task::Release { found, mut servers } => {
                    let Some(server) = servers.pop() else { continue };
                    self.turn.charge(Work::Rules, SERVER_UNITS);
                    let waits = self.sites.get(server).robots_redirected().is_some();
                    match &found {
                        _ if !waits => {}
                        Some((rules, until)) => {
                            self.turn.charge(Work::Rules, rules.size_bytes() / COPY_BYTES);
                            self.robots_known(server, rules.clone(), *until, Shown::No);
                        }
                        None => _ = self.robots_unreachable(server),
                    }
                    self.robots.tasks.push_front(Task::Release { found, servers });
                }
            }
        }
    }
}
