//! What happens when memory is short: who is packed, who is cut, how many URLs a head keeps.
//!
//! Laws: the rank of a server counts as many of its best URLs as were kept when it was last asked
//! (at the end of a visit, or when the hand came by), and so many are in memory if there are; what
//! is at hand of a server that is being visited stays so.
//! Cost: some queues for a URL that comes; of servers that needn't change, a few a URL.

use super::super::items::Written;
use super::super::queue::{Item, UrlQueue, Weight};
use super::super::server::{Server, ServerId, ServerState};
use super::super::{Frontier, Settings};
use super::{CHUNK_BYTES, KEPT_MAX, Spill, Victims};
use crate::table::Table;
use crate::time::Instant;

/// One part in so many of memory is for URLs at hand.
const HOT_SHARE: usize = if cfg!(test) { 4 } else { 32 };
/// Queues packed or cut for one URL that comes.
const CUTS_MAX: u32 = 4;
/// For less no queue is cut before heads keep the least.
const CUT_MIN: usize = if cfg!(test) { 64 } else { 256 };
/// A tail beyond this goes to the disk whatever room there is.
const TAIL_BYTES_MAX: usize = 64 << 20;
/// A queue by quality has no more than this at hand, or to pack it would stall the turn.
const RANKED_BYTES_MAX: usize = 4 << 20;
/// A longer queue isn't packed when its visit ends.
const COOL_URLS: usize = 128;
/// Heads that are cut down at all keep no more URLs than this.
const KEPT_FEW: usize = 32;
/// Servers that the hand comes by for one URL.
const HAND_STEPS: usize = if cfg!(test) { 2 } else { 8 };

impl Spill {
    fn hot_max(&self) -> usize {
        self.bytes_max / HOT_SHARE
    }

    /// Whether there is little room for more URLs at hand.
    pub(in super::super) fn is_tight(&self) -> bool {
        self.weight.hot >= self.hot_max() - self.hot_max() / 4
    }

    /// Whether there is little room for more URLs in all.
    pub(super) fn is_nearly_full(&self) -> bool {
        self.bytes() >= self.bytes_max - self.bytes_max / 8
    }

    /// How many URLs the head of a server keeps: as many as a visit takes, but for a want of
    /// memory; not fewer than its rank counts.
    pub(in super::super) fn kept(&self, server: &Server, settings: &Settings) -> usize {
        let kept = server.visit_max(settings).min(self.kept_max);
        if server.queue.is_by_arrival() { kept } else { kept.max(server.queue.counted()) }
    }

    /// How many URLs a head may hold: twice as many, and as many as are worth a read, while there
    /// is memory for that.
    pub(super) fn room(&self, kept: usize) -> usize {
        kept.saturating_mul(2).max(self.read_urls)
    }

    /// How many URLs a head may hold before it is cut. By arrival that is more than what is read at
    /// once, or what came whole with a short chunk would have to go again.
    pub(super) fn head_max(&self, queue: &UrlQueue, kept: usize) -> usize {
        let room = self.room(kept);
        if queue.is_by_arrival() { room.max(2 * self.read_urls) } else { room }
    }

    /// Files a queue under what it has now.
    pub(super) fn note(&mut self, server: &mut Server, id: ServerId, settings: &Settings) {
        let kept = self.kept(server, settings);
        let head_max = self.head_max(&server.queue, kept);
        let (hot, spillable) = (server.queue.weight().hot, server.queue.spillable(kept, head_max));
        if hot > 0 {
            self.hot.note(&mut server.queue.filed_hot, id, hot, 0);
        }
        // What is little counts when there is nothing else.
        let least = usize::from(self.kept_max > 1);
        if spillable > 0 {
            self.cold.note(&mut server.queue.filed_cold, id, spillable, least);
        }
    }

    /// One of those who have most at hand, if it may be packed.
    fn hot_victim(&mut self, servers: &mut Table<Server>) -> Option<ServerId> {
        while let Some((id, class)) = self.hot.last(0) {
            let server = &mut servers[id.index()];
            let bytes = server.queue.weight().hot;
            let may = !matches!(server.state, ServerState::Busy | ServerState::Retired(_));
            server.queue.filed_hot &= !(1 << class);
            if may && bytes > 0 && Victims::class_of(bytes) >= class {
                return Some(id);
            }
        }
        None
    }

    /// One of those who have most beyond their heads.
    fn cold_victim(
        &mut self,
        servers: &mut Table<Server>,
        settings: &Settings,
        least: usize,
    ) -> Option<ServerId> {
        while let Some((id, class)) = self.cold.last(least) {
            let server = &mut servers[id.index()];
            let kept = self.kept(server, settings);
            let bytes = server.queue.spillable(kept, self.head_max(&server.queue, kept));
            server.queue.filed_cold &= !(1 << class);
            if bytes > 0 && Victims::class_of(bytes) >= class {
                return Some(id);
            }
        }
        None
    }

    /// Heads hold half as many URLs that were read, or keep half as many. `false`: that can't be
    /// now.
    fn halve(&mut self, servers: usize) -> bool {
        if self.kept_max == 1 || self.hand < servers {
            return false;
        }
        self.hand = 0;
        if self.read_urls > 1 {
            self.read_urls /= 2;
            return true;
        }
        self.kept_max = (self.kept_max / 2).min(KEPT_FEW);
        #[cfg(test)]
        {
            self.seen.halvings += 1;
        }
        true
    }

    /// Heads may hold or keep twice as many, if there is room. Of those that are read with others
    /// the fewer there are the less twice as many take (DECISIONS.md 69).
    fn double(&mut self) {
        if self.kept_max == KEPT_MAX {
            let wanted = self.bytes_max / self.read_urls_max * self.read_urls;
            if self.read_urls < self.read_urls_max && self.bytes() < self.bytes_max - wanted {
                (self.read_urls, self.hand) = (self.read_urls_max.min(2 * self.read_urls), 0);
            }
        } else if self.bytes() < self.bytes_max / 2 {
            let twice = if self.kept_max < KEPT_FEW { 2 * self.kept_max } else { KEPT_MAX };
            (self.kept_max, self.hand) = (twice, 0);
            #[cfg(test)]
            {
                self.seen.doublings += 1;
            }
        }
    }

    /// The end of a queue goes to the disk.
    fn cut(&mut self, id: ServerId, queue: &mut UrlQueue, kept: usize) {
        let (may_cut_head, head_max) = (!queue.is_worked_at(), self.head_max(queue, kept));
        if !queue.is_by_arrival() {
            self.trim(id, queue, kept, self.room(kept));
        } else if let Some(cold) = queue.cold_mut()
            && cold.head.urls() > head_max
            && may_cut_head
        {
            if cold.places().is_empty() {
                cold.split_head(kept, &mut self.blocks);
            } else {
                let rest = cold.cut_head(kept, &mut self.blocks);
                let urls: Vec<Written<'_>> = rest.iter().map(Item::written).collect();
                for (place, urls) in self.write_chunks(id, false, &urls).into_iter().rev() {
                    cold.add(place, urls, true, &mut self.blocks);
                }
            }
        }
        self.write_tail(id, queue);
    }
}

/// Whether the tail of a queue is long enough to go to the disk whatever room there is.
fn is_overlong(queue: &UrlQueue) -> bool {
    queue.cold().is_some_and(|cold| {
        let chunks = cold.places().len();
        let most = match queue.is_by_arrival() {
            true if chunks == 0 => TAIL_BYTES_MAX,
            true => CHUNK_BYTES,
            // The more chunks there are, the longer the rows of each band should be.
            false => CHUNK_BYTES * (chunks / 16).clamp(1, 16),
        };
        cold.tail.bytes() > most
    })
}

impl Frontier {
    /// A server is being visited: if the turn of its tail has come, that comes next.
    pub(in super::super) fn turn_over(&mut self, id: ServerId) {
        let cold = self.servers[id.index()].queue.cold();
        if cold.is_none_or(|cold| cold.tail.is_empty()) {
            return;
        }
        self.write_ahead(id);
        let Some(spill) = &mut self.spill else { return };
        let queue = &mut self.servers[id.index()].queue;
        let before = queue.weight();
        queue.take_turn(&mut spill.blocks);
        spill.weigh(before, queue.weight());
    }

    /// A server that is being visited is looked at: its next URLs are at hand from now on.
    pub(in super::super) fn warm(&mut self, id: ServerId) {
        let server = &self.servers[id.index()];
        let is_bare = server.queue.cold().is_some() && server.queue.hot_len() == 0;
        if !is_bare || server.state != ServerState::Busy {
            return;
        }
        self.write_ahead(id);
        let Some(spill) = &mut self.spill else { return };
        let server = &mut self.servers[id.index()];
        let kept = spill.kept(server, &self.settings);
        let before = server.queue.weight();
        server.queue.warm_if_bare(kept, &mut spill.blocks);
        spill.weigh(before, server.queue.weight());
    }

    /// The visit to a server is over: what is left at hand is packed if there is little room, and
    /// an empty queue gives its memory back.
    pub(in super::super) fn cool(&mut self, id: ServerId) {
        let server = &mut self.servers[id.index()];
        let Some(spill) = &mut self.spill else { return server.queue.tidy() };
        let before = server.queue.weight();
        server.queue.tidy();
        let kept = spill.kept(server, &self.settings);
        let queue = &mut server.queue;
        if queue.is_parted() || spill.is_tight() && queue.hot_len() <= COOL_URLS {
            let rest = queue.pack(spill.room(kept), &mut spill.blocks);
            spill.write_rest_of(id, queue, &rest);
        }
        queue.survey(&spill.blocks);
        queue.tidy();
        spill.weigh(before, queue.weight());
        spill.note(server, id, &self.settings);
    }

    /// A URL is about to come into a queue: if there is little room, it will be packed at once.
    pub(in super::super) fn prepare(&mut self, id: ServerId) {
        let Some(spill) = &mut self.spill else { return };
        let queue = &mut self.servers[id.index()].queue;
        if spill.is_tight() && queue.is_vacant() {
            queue.cold_or_new();
            spill.weigh(Weight::default(), queue.weight());
        }
    }

    /// URLs have come into the queue of a server, which took `before` bytes: makes room for them.
    pub(in super::super) fn make_room(&mut self, id: ServerId, before: Weight) {
        let Some(spill) = &mut self.spill else { return };
        let server = &mut self.servers[id.index()];
        spill.weigh(before, server.queue.weight());
        spill.note(server, id, &self.settings);
        let is_ranked = !server.queue.is_by_arrival() && server.state != ServerState::Busy;
        if is_ranked && server.queue.weight().hot > RANKED_BYTES_MAX {
            self.pack(id);
        }
        if is_overlong(&self.servers[id.index()].queue) {
            self.cut(id);
        }
        self.relieve();
    }

    pub(super) fn relieve(&mut self) {
        for _ in 0..CUTS_MAX {
            let Some(spill) = &mut self.spill else { return };
            let is_full = spill.bytes() > spill.bytes_max;
            let is_hot = spill.weight.hot > spill.hot_max();
            let servers = &mut self.servers;
            if is_hot && let Some(id) = spill.hot_victim(servers) {
                self.pack(id);
            } else if !is_full {
                return;
            } else if let Some(id) = spill.cold_victim(servers, &self.settings, CUT_MIN) {
                self.cut(id);
            } else if let Some(id) = spill.hot_victim(servers) {
                self.pack(id);
            } else if !spill.halve(servers.len()) {
                if spill.kept_max > 1 {
                    return;
                }
                let Some(id) = spill.cold_victim(servers, &self.settings, 1) else { return };
                self.cut(id);
            }
        }
    }

    fn pack(&mut self, id: ServerId) {
        self.write_ahead(id);
        let spill = self.spill.as_mut().expect("there is memory to be had");
        let server = &mut self.servers[id.index()];
        let kept = spill.kept(server, &self.settings);
        let before = server.queue.weight();
        let rest = server.queue.pack(spill.room(kept), &mut spill.blocks);
        spill.write_rest_of(id, &mut server.queue, &rest);
        spill.weigh(before, server.queue.weight());
        spill.note(server, id, &self.settings);
        #[cfg(test)]
        {
            spill.seen.packs += 1;
        }
    }

    fn cut(&mut self, id: ServerId) {
        self.write_ahead(id);
        let spill = self.spill.as_mut().expect("there is a disk to go to");
        let server = &mut self.servers[id.index()];
        let kept = spill.kept(server, &self.settings);
        let before = server.queue.weight();
        spill.cut(id, &mut server.queue, kept);
        spill.weigh(before, server.queue.weight());
        spill.note(server, id, &self.settings);
        #[cfg(test)]
        {
            spill.seen.cuts += 1;
        }
        spill.cuts = spill.cuts.wrapping_add(1);
        let spill = self.spill.as_ref().expect("as above");
        self.look_ahead(spill.cuts, |later| spill.cold.coming(later));
    }

    /// A few servers more are told how many URLs a head keeps now.
    pub(in super::super) fn pass_hand(&mut self, now: Instant) {
        for _ in 0..HAND_STEPS {
            let Some(spill) = &mut self.spill else { return };
            if spill.hand >= self.servers.len() {
                return spill.double();
            }
            let id = ServerId::from_index(spill.hand);
            spill.hand += 1;
            let before = self.servers[id.index()].rank(&self.settings);
            self.limit(id);
            self.workbench.rerank(&mut self.servers, id, before, &self.settings, now);
        }
    }

    /// A server's rank counts as many URLs as make it, but no more than a head keeps.
    pub(in super::super) fn limit(&mut self, id: ServerId) {
        let server = &mut self.servers[id.index()];
        let Some(spill) = &mut self.spill else { return server.retarget(&self.settings) };
        let counted = self.settings.schedule.counted(server.visit_max(&self.settings));
        let before = server.queue.weight();
        server.queue.set_visit_max(counted.min(spill.kept_max));
        server.queue.survey(&spill.blocks);
        spill.weigh(before, server.queue.weight());
        spill.note(server, id, &self.settings);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Law: what is read of a server at once grows again when there is room for that, and the
    /// sooner the less it is; not beyond what is worth a read.
    #[test]
    fn heads_hold_more_again_when_there_is_room_for_it() {
        let settings = Settings { memory_bytes: 1_600, crawl: Some(1), ..Settings::default() };
        let mut spill = Spill::new(&settings).expect("there is a disk");
        let cases =
            [(1, 1_200, 1), (1, 1_199, 2), (2, 800, 2), (2, 799, 4), (3, 399, 4), (4, 0, 4)];
        for (read_urls, bytes, expected) in cases {
            (spill.read_urls, spill.weight.cold) = (read_urls, bytes);
            spill.double();
            assert_eq!(spill.read_urls, expected, "{read_urls} a read with {bytes} bytes");
        }
    }
}
