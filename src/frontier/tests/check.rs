//! What is checked after each step of a history.

use super::*;
use std::collections::BTreeSet;

impl Pair {
    /// Calls a server one time in four. That isn't drawn, so that the other draws stay the same.
    pub(super) fn call(&mut self, server: usize) {
        if self.fates.len().is_multiple_of(4) {
            self.frontier.call(self.ids[server], self.now);
            self.model.servers[server].is_called = !self.model.servers[server].retired;
        }
    }

    /// Laws: nothing is lost; states are what they say; and no wake-up comes too late.
    pub(super) fn check(&mut self) {
        self.look();
        assert_eq!(self.frontier.urls(), self.model.urls());
        let policy = self.model.policy();
        for (id, known) in self.ids.iter().zip(&self.model.servers) {
            let (server, waits) = (self.frontier.server(*id), !known.queue.is_empty());
            assert_eq!(self.frontier.queue_len(*id), known.queue.len());
            let is_due = waits && known.visit.is_none() && known.due <= self.now;
            let fits = match server.state() {
                ServerState::Idle => known.visit.is_none() && !waits,
                ServerState::Ready => is_due && !known.is_behind(policy),
                ServerState::Reading => is_due && known.is_behind(policy),
                ServerState::Snoozed => known.visit.is_none() && known.place == Place::Asleep,
                ServerState::Busy => known.visit.is_some(),
                ServerState::Retired(_) => known.retired,
            };
            assert!(fits, "{:?} {known:?}", server.state());
            assert!((server.due, server.visits) == (known.due, known.visits));
            let is_listed = self.frontier.given_up.contains(id);
            assert!(!known.retired || known.memory.is_empty() || is_listed, "{known:?}");
        }
        assert_eq!(self.frontier.audit(), Ok(()));
        self.check_queues();
        if let Some(at) = self.model.soonest()
            && self.frontier.ready() == 0
        {
            let deadline = self.frontier.deadline();
            assert!(deadline.is_some_and(|nearest| nearest <= at.max(self.now)), "{deadline:?}");
        }
    }

    /// Laws: bytes are counted right, in memory and on disk; whoever waits for a chunk is listed;
    /// what is in memory waits; as many URLs count as the next visit may take, or as memory has
    /// room for.
    fn check_queues(&self) {
        let queues = &self.frontier.queues;
        queues.check();
        let kept = queues.kept();
        for (server, known) in self.model.servers.iter().enumerate().take(self.ids.len()) {
            let waiting = known.queue.iter().map(|url| url.key.arrival);
            let waiting: BTreeSet<u64> = waiting.collect();
            assert!(known.memory.is_subset(&waiting), "{known:?}");
            if known.retired {
                continue;
            }
            let wanted = self.model.counted(server).max(1).min(u64::from(u32::MAX));
            assert!(known.counted <= wanted, "{known:?}");
            let is_right = kept.is_none_or(|kept| known.counted == wanted.min(kept as u64));
            assert!(is_right, "{kept:?} {wanted} {known:?}");
        }
    }
}
