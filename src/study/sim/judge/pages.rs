//! The law `pages`: no more pages are answered of a server, a registrable domain or a site than its
//! limit allows.
//!
//! A page of a site with a limit of its own counts for that alone. The judge counts in two ways:
//! the different pages whose replies the crawl has surely kept must not exceed a limit; all replies
//! together show whether a limit may have been reached, so that the crawl may refuse pages.

use super::reserved::Reserved;
use super::{Captures, Instant, Judge, Laws};
use crate::ground::map::{Map, Set};
use crate::study::web::{Place, Resource};
use crate::url::domain;

/// A limit on pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Limit {
    pub(super) of: Limited,
    pub(super) most: usize,
}

/// What a limit on pages is for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Limited {
    /// A server, by the number of its host.
    Server(u32),
    /// A registrable domain.
    Domain(Box<str>),
    /// A site, by its number in the laws.
    Site(usize),
}

impl Limit {
    /// Returns the limits on the pages of the host with this number and name. `site` is the number
    /// of its site in the laws.
    pub(super) fn all(number: u32, name: &str, site: Option<usize>, laws: &Laws) -> Vec<Self> {
        let own = site.and_then(|site| Some((Limited::Site(site), laws.sites[site].pages_max?)));
        let server = laws.server_pages_max.map(|most| (Limited::Server(number), most));
        let of_domain = |most| (Limited::Domain(domain::registrable(name).into()), most);
        let domain = laws.domain_pages_max.map(of_domain);
        let all = if own.is_some() { [own, None] } else { [server, domain] };
        all.into_iter().flatten().map(|(of, most)| Self { of, most }).collect()
    }
}

/// The pages that count for limits.
#[derive(Debug, Default)]
pub(super) struct Pages {
    /// The pages that were answered.
    counted: Map<Limited, Set<Place>>,
    /// The number of replies that may have been counted as pages by the crawl, in all processes.
    replies: Map<Limited, usize>,
    /// Pages that were answered, but whose replies may have been discarded. They count if they are
    /// in the archive.
    doubtful: Set<Place>,
    /// Those whose use is reserved for the purpose of the crawl.
    pub(super) reserved: Reserved,
}

impl Pages {
    pub(super) fn of(reserved: Reserved) -> Self {
        Self { reserved, ..Self::default() }
    }

    /// Notes a page that counts if it is in the archive. A redirect is none.
    pub(super) fn doubt(&mut self, place: Place, status: u16) {
        if !is_redirect(status) {
            self.doubtful.insert(place);
        }
    }

    /// Forgets what a new process doesn't know: pages that are not in the archive, or all if there
    /// is none.
    pub(super) fn restart(&mut self, archive: Option<&Captures>) {
        for pages in self.counted.values_mut() {
            pages.retain(|place| archive.is_some_and(|known| known.contains_key(place)));
        }
    }
}

fn is_redirect(status: u16) -> bool {
    (300..400).contains(&status)
}

impl Judge {
    /// Counts a page that was answered. A redirect is none.
    pub(super) fn judge_pages(&mut self, at: Instant, place: Place, status: u16) {
        if is_redirect(status) {
            return;
        }
        let mut over = Vec::new();
        let limits = self.traits.get(place.host as usize).map_or(&[][..], |it| &it.limits);
        for Limit { of, most } in limits {
            let pages = self.pages.counted.entry(of.clone()).or_default();
            if pages.insert(place) && pages.len() > *most {
                over.push(format!("{place:?} is page {} of {most} of {of:?}", pages.len()));
            }
        }
        over.into_iter().for_each(|how| self.report("pages", at, how));
    }

    /// Counts a reply, whatever becomes of it. Those that redirect, and robots.txt, are no pages.
    pub(super) fn note_reply(&mut self, host: u32, place: Option<Place>, status: u16) {
        if is_redirect(status) || place.is_some_and(|place| place.resource == Resource::Robots) {
            return;
        }
        let limits = self.traits.get(host as usize).map_or(&[][..], |it| &it.limits);
        for Limit { of, .. } in limits {
            *self.pages.replies.entry(of.clone()).or_default() += 1;
        }
    }

    /// Whether a limit on the pages of a host may have been reached.
    pub(super) fn is_limited(&self, host: u32) -> bool {
        let replies = |of| self.pages.replies.get(of).copied().unwrap_or(0);
        let limits = self.traits.get(host as usize).map_or(&[][..], |it| &it.limits);
        limits.iter().any(|Limit { of, most }| replies(of) >= *most)
    }

    /// Takes back that a page counted: its reply may have been discarded.
    pub(super) fn doubt_page(&mut self, place: Place) {
        let mut was_counted = false;
        let limits = self.traits.get(place.host as usize).map_or(&[][..], |it| &it.limits);
        for Limit { of, .. } in limits {
            was_counted |= self.pages.counted.get_mut(of).is_some_and(|all| all.remove(&place));
        }
        if was_counted {
            self.pages.doubtful.insert(place);
        }
    }

    /// Counts a page whose reply was not discarded after all: it is in the archive.
    pub(super) fn confirm_page(&mut self, at: Instant, place: Place) {
        if self.pages.doubtful.remove(&place) {
            self.judge_pages(at, place, 200);
        }
    }
}
