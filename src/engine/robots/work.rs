//! Work on robots.txt files that waits for the budget of a later turn, first come, first served.
//!
//! Replies are read as they come, as far as the budget admits. One that waits is recorded already;
//! its line in the crawl log is written when it is read. Any number of servers may redirect to
//! one file: its rules are copied to a few of them in each turn.
//!
//! Law: while a reply waits, the servers that it is for are not asked for pages.

use super::COPY_BYTES;
use super::reading::Answer;
use super::state::{ELSEWHERE_MAX, Robots};
use crate::engine::Engine;
use crate::engine::ledger::Work;
use crate::frontier::ServerId;
use crate::ground::time::Instant;
use crate::robots::Rules;

/// Work that waits.
#[derive(Debug)]
pub(super) enum Task {
    /// A reply is to be read.
    Read(Box<Answer>),
    /// These rules are those of other servers, too, which wait for them.
    Share { rules: Rules, until: Instant, servers: Vec<ServerId> },
    /// The file that these servers wait for can't be had.
    GiveUp(Vec<ServerId>),
}

/// Units that a server costs whose file is known, or can't be had.
const SERVER_UNITS: usize = 500;

impl Engine {
    /// A reply to the request for robots.txt is recorded: it is read at once if it can be.
    pub(super) fn take_answer(&mut self, mut answer: Box<Answer>) {
        if self.robots.tasks.is_empty()
            && let Some(reading) = self.read_answer(&mut answer)
        {
            return self.robots_answered(*answer, reading);
        }
        let until = self.turn.at() + ELSEWHERE_MAX;
        for id in [Some(answer.of), answer.other].into_iter().flatten() {
            self.set_robots(id, Robots::Elsewhere(until));
        }
        self.robots.tasks.push_back(Task::Read(answer));
    }

    /// The rules of a file are known, for which these servers wait.
    pub(super) fn share_rules(&mut self, rules: Rules, until: Instant, servers: Vec<ServerId>) {
        self.robots.tasks.push_back(Task::Share { rules, until, servers });
    }

    /// The file that followers wait for can't be had now: each of them asks again by itself.
    pub(in crate::engine) fn followers_wait_no_more(&mut self, of: ServerId) {
        if let Some(servers) = self.robots.followers.remove(&of).filter(|all| !all.is_empty()) {
            self.robots.tasks.push_back(Task::GiveUp(servers));
        }
    }

    /// Does what waits, as far as this turn's budget goes.
    pub(in crate::engine) fn work_robots(&mut self) {
        while !self.turn.is_spent(Work::Rules)
            && let Some(task) = self.robots.tasks.pop_front()
        {
            match task {
                Task::Read(mut answer) => match self.read_answer(&mut answer) {
                    Some(reading) => self.robots_answered(*answer, reading),
                    None => return self.robots.tasks.push_front(Task::Read(answer)),
                },
                Task::Share { rules, until, mut servers } => {
                    let Some(server) = servers.pop() else { continue };
                    if self.still_waits(server) {
                        self.turn.charge(Work::Rules, rules.size_bytes() / COPY_BYTES);
                        self.robots_known(server, rules.clone(), until);
                    }
                    self.robots.tasks.push_front(Task::Share { rules, until, servers });
                }
                Task::GiveUp(mut servers) => {
                    let Some(server) = servers.pop() else { continue };
                    if self.still_waits(server) {
                        self.robots_unreachable(server);
                    }
                    self.robots.tasks.push_front(Task::GiveUp(servers));
                }
            }
        }
    }

    /// Whether a server still waits for the robots.txt of another.
    fn still_waits(&mut self, server: ServerId) -> bool {
        self.turn.charge(Work::Rules, SERVER_UNITS);
        self.sites.look(server).robots_elsewhere().is_some()
    }
}
