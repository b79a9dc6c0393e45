//! Takes the lines of a log, in the order in which they were written.

use super::order::{Clock, Event, What};
use super::robots::Verdict;
use super::rows::Kind;
use super::{Audit, Finding, SERVER_BYTES, host_of, node_of};
use crate::commands::crawl_log::{Line, Place};
use crate::frontier::Rule;
use crate::url::domain::registrable;
use std::io;

impl Audit {
    /// Reads lines of a job until an event is ready, or the log ends.
    ///
    /// # Errors
    /// A file can't be read.
    pub(super) fn read(&mut self, job: usize) -> io::Result<()> {
        let mut line = std::mem::take(&mut self.line);
        while self.jobs[job].order.first().is_none() {
            if !self.jobs[job].source.read_line(&mut line)? {
                self.jobs[job].order.flush();
                break;
            }
            self.take(job, &line);
        }
        self.line = line;
        Ok(())
    }

    /// Takes the next line of a log.
    fn take(&mut self, job: usize, bytes: &[u8]) {
        self.counts.lines += 1;
        let Some(line) = Line::parse(bytes) else {
            self.counts.illegible += 1;
            return;
        };
        let (Some(run), Some(number)) = (line.more.run, line.more.line) else {
            self.counts.old += 1;
            return;
        };
        match self.jobs[job].sequence.take(run, number) {
            Place::Repeated => return,
            Place::NewRun => self.begin_run(job, run),
            Place::Next => {}
        }
        if let Some(settings) = &line.more.settings {
            self.promise(job, settings);
        } else if !self.books.has_promises(node_of(job)) {
            self.promise_from_conf(job);
        }
        let drift = &mut self.jobs[job].drift;
        *drift = line.drift().unwrap_or(*drift);
        match self.server(&line.more.server) {
            Some(server) => self.take_of(job, server, &line),
            None => self.counts.left_out += 1,
        }
    }

    fn begin_run(&mut self, job: usize, run: u64) {
        let own = &mut self.jobs[job];
        own.order.flush();
        own.run = self.books.clocks.begin_run(node_of(job), run, own.drift);
        own.drift = 0;
    }

    /// Takes a line that is about a server.
    fn take_of(&mut self, job: usize, server: u32, line: &Line<'_>) {
        let more = &line.more;
        let address = more.address.map(|ip| self.number(Kind::Address, &ip.to_string()));
        let Some(at) = more.sent.or(more.ended) else { return };
        let ended = more.ended.unwrap_or(at).max(at);
        let own = &mut self.jobs[job];
        let drift_ms = i32::try_from(own.drift / 1_000).unwrap_or_default();
        let number = more.request.unwrap_or(1).max(1);
        let event = Event {
            what: if more.sent.is_some() { What::Request(number) } else { What::NoConnection },
            at,
            ended,
            began: more.began.unwrap_or(0),
            owed: more.owed.unwrap_or(0),
            wait: more.retry_after.unwrap_or(0),
            server,
            address: address.unwrap_or(u32::MAX),
            visit: u32::try_from(more.visit).unwrap_or(u32::MAX),
            clock: Clock { run: own.run, drift_ms },
            place: own.source.place(),
            rule: rule_of(more.rule.as_deref()),
        };
        own.note_first(line);
        if more.sent.is_some() {
            self.counts.requests += 1;
            self.check_path(job, server, line, at);
        } else if address.is_some() {
            self.counts.failed_connects += 1;
        }
        let is_shared = self.jobs.len() > 1;
        let own = &mut self.jobs[job];
        if more.sent.is_some() || address.is_some() {
            self.counts.first = Some(self.counts.first.map_or(at, |first| first.min(at)));
            self.counts.last = self.counts.last.max(ended);
            if is_shared && event.began > 0 && address.is_some() {
                own.order.push(Event { what: What::Visit, at: event.began, ..event });
            }
            own.order.push(event);
        }
        if own.robots.obeys
            && let Some(wait) = own.robots.take(server, line)
        {
            own.order.push(Event { what: What::Rules, at: ended, owed: 0, wait, ..event });
        }
    }

    /// Checks the URL of a request against the robots.txt that was known when it was sent.
    fn check_path(&mut self, job: usize, server: u32, line: &Line<'_>, sent: u64) {
        let robots = &self.jobs[job].robots;
        if !robots.obeys || line.is_for_robots() {
            return;
        }
        let why = match robots.check(server, line.target(), sent) {
            Verdict::Unknown => {
                self.counts.unchecked += 1;
                self.counts.first_unchecked.get_or_insert_with(|| line.url.to_owned());
                return;
            }
            Verdict::Allowed => return self.counts.checked += 1,
            Verdict::Forbidden(rule) => format!("line {rule} of its robots.txt forbids it"),
            Verdict::Unread => "its robots.txt was not known to allow it".to_owned(),
        };
        self.counts.checked += 1;
        self.counts.disallowed += 1;
        self.books.rows[Kind::Server as usize][server as usize].broken += 1;
        let text = format!("{} was requested, but {why}", line.url);
        self.find(Finding { text, job, place: self.jobs[job].source.place() });
    }

    /// Returns the number of a server; `None` if there is no memory for another one.
    fn server(&mut self, origin: &str) -> Option<u32> {
        if let Some(number) = self.names[Kind::Server as usize].numbers.get(origin) {
            return Some(*number);
        }
        let bytes = SERVER_BYTES + 6 * origin.len();
        self.memory_left = self.memory_left.checked_sub(bytes)?;
        let (number, _) = self.names[Kind::Server as usize].number(origin);
        let host = host_of(origin);
        let host_number = self.number(Kind::Host, host);
        let domain = self.number(Kind::Domain, registrable(host));
        self.books.add_server(host_number, domain);
        self.books.promise_server(host);
        Some(number)
    }

    fn number(&mut self, kind: Kind, name: &str) -> u32 {
        let (number, is_new) = self.names[kind as usize].number(name);
        if is_new {
            self.books.reach(kind, number);
        }
        number
    }
}

fn rule_of(name: Option<&str>) -> u8 {
    let place = Rule::ALL.iter().position(|rule| Some(rule.name()) == name);
    place.and_then(|place| u8::try_from(place).ok()).unwrap_or(0)
}
