//! What it costs that servers change hands: how long each isn't asked.

use super::{NAMES, Shared};
use crate::lab::crawl::{Event, What};
use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::time::Duration;
use sted::store::log;

/// The changes of the owner of a server during a crawl without faults.
#[derive(Debug)]
pub(super) struct Handovers {
    /// The time between the last page of the earlier owner and the first of the next, in order.
    gaps: Vec<Duration>,
    /// The longest time in which the lab got no request at all.
    silence: Duration,
}

impl Handovers {
    pub(super) fn count(&self) -> usize {
        self.gaps.len()
    }

    pub(super) fn median(&self) -> Duration {
        self.gaps.get(self.gaps.len() / 2).copied().unwrap_or_default()
    }
}

impl fmt::Display for Handovers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (least, most) = (self.gaps.first(), self.gaps.last());
        write!(
            f,
            "{} servers changed hands and weren't asked for {:.2?} to {:.2?}, median {:.2?}; no \
             server at all was asked for {:.2?} at most",
            self.count(),
            least.copied().unwrap_or_default(),
            most.copied().unwrap_or_default(),
            self.median(),
            self.silence
        )
    }
}

/// Returns the host of a URL, and the path and query.
fn place_of(url: &str) -> (String, String) {
    let (_, rest) = url.split_once("://").expect("an absolute URL");
    let (authority, path) = rest.split_once('/').expect("it has a path");
    let host = authority.split_once(':').map_or(authority, |(host, _)| host);
    (host.to_owned(), format!("/{path}"))
}

impl Shared {
    /// Finds the changes of owners in the lab's log. Which node has asked for a page is in the
    /// nodes' logs.
    pub(super) fn handovers(&mut self) -> Handovers {
        self.stand.end_lab();
        let mut owners: BTreeMap<(String, String), usize> = BTreeMap::new();
        for node in 0..self.nodes.len() {
            let text = fs::read_to_string(self.job(node).join("crawl.log")).expect("a log");
            for line in text.lines().filter(|line| !line.contains(" - rules {")) {
                let entry = log::parse(line).unwrap_or_else(|error| panic!("{error}: {line}"));
                // No answer, no request; and whose chain leads to a known page hasn't asked for it.
                let is_other = entry.extra.reason.as_deref() == Some("redirect-to-known");
                if entry.status > 0 && !is_other {
                    owners.insert(place_of(entry.url), node);
                }
            }
        }
        let mut last: BTreeMap<String, (usize, u64)> = BTreeMap::new();
        // What an owner has to wait, less what clocks of two processes differ by.
        let least = self.stand.conf.politeness.delay_max - Duration::from_millis(5);
        let (mut gaps, mut silence, mut before) = (Vec::new(), 0, None);
        let lab = fs::read_to_string(self.stand.path("lab/events.jsonl")).expect("the lab's log");
        for event in Event::all_in(&lab) {
            let What::Request(path) = event.what else { continue };
            let at = event.at_us;
            silence = silence.max(at - before.replace(at).unwrap_or(at));
            if path == "/robots.txt" {
                // Each owner asks for it.
                continue;
            }
            let url = (event.host.clone(), path);
            let Some(node) = owners.get(&url) else { continue };
            if let Some((owner, asked)) = last.insert(event.host, (*node, at))
                && owner != *node
            {
                let gap = Duration::from_micros(at - asked);
                let names = (NAMES[owner], NAMES[*node]);
                assert!(gap > least, "{names:?}: {} of {url:?} after {gap:?}", event.connection);
                gaps.push(gap);
            }
        }
        gaps.sort();
        Handovers { gaps, silence: Duration::from_micros(silence) }
    }
}
