//! Pages that change: the version of a page is a function of the time since the web began.
//!
//! A page changes as a Poisson process does, at a rate drawn for its host and for itself; some
//! change at fixed distances, some with every request. Some pages aren't there at first, and pages
//! link to them only once they are; some vanish. A version is named by the time of the change that
//! made it, so nothing is stored: time is cut into pieces of [`MEAN`] expected changes, and the
//! changes within a piece follow from the page and the number of the piece.
//!
//! Only HTML and binary pages change. A host may send ETag and Last-Modified fields, by which its
//! pages can be asked for conditionally (RFC 9110, section 13.1).
//!
//! Law: a page has the version at any time that it has when asked for all times in order.
//! Cost: some draws for a version, and those of the page's links where pages appear.

use super::draw::{Draw, Purpose};
use super::page::{Kind, Reply};
use super::settings::Changes;
use super::{Place, Resource, Web};
use std::fmt::Write;
use std::time::Duration;

/// A page at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// The page isn't there yet (404).
    NotYet,
    /// The page as it is since this time after the web began.
    Since(Duration),
    /// The page is there no more (410).
    Gone,
}

/// The expected number of changes in a piece of time.
const MEAN: f64 = 4.0;
/// The most changes in a piece of time: more are as good as impossible.
const PIECE_MAX: usize = 32;
/// The shortest and the longest mean time between two changes, in seconds.
const INTERVAL: (f64, f64) = (0.001, 1e10);

/// How one page changes.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Manner {
    Never,
    /// With a mean time between two changes, in seconds.
    AtRandom(f64),
    /// At fixed distances, in microseconds; the second number is the time of the first change.
    Scheduled(u64, u64),
    Always,
}

impl Web {
    /// Returns the version of a page `at` a time since the web began.
    pub fn version(&self, place: Place, at: Duration) -> Version {
        let Some((changes, page)) = self.changing(place) else {
            return Version::Since(Duration::ZERO);
        };
        let (born, dies) = self.life(changes, place.host, page);
        if at < born {
            return Version::NotYet;
        }
        if dies.is_some_and(|dies| dies <= at) {
            return Version::Gone;
        }
        let own = self.last_change(place.host, page, at);
        let links = self.births(changes, place).filter(|birth| *birth <= at).max();
        Version::Since(own.max(born).max(links.unwrap_or_default()))
    }

    /// Returns when a page becomes another after a time since the web began; `None` if never.
    pub fn next_change(&self, place: Place, after: Duration) -> Option<Duration> {
        let (changes, page) = self.changing(place)?;
        let (born, dies) = self.life(changes, place.host, page);
        if after < born {
            return Some(born);
        }
        if dies.is_some_and(|dies| dies <= after) {
            return None;
        }
        let own = self.next_own_change(place.host, page, after);
        let links = self.births(changes, place).filter(|birth| *birth > after).min();
        own.into_iter().chain(links).chain(dies).min()
    }

    /// Returns whether a page has appeared `at` a time since the web began. It may have vanished.
    pub(super) fn has_appeared(&self, place: Place, at: Duration) -> bool {
        let Some((changes, page)) = self.changing(place) else { return true };
        self.life(changes, place.host, page).0 <= at
    }

    /// Adds to a reply what shows its version, or makes it one of a page that isn't there.
    pub(super) fn age_reply(&self, place: Place, at: Duration, reply: &mut Reply) {
        let Some((changes, _)) = self.changing(place) else { return };
        let since = match self.version(place, at) {
            Version::Since(since) => since,
            Version::NotYet => return *reply = Reply::not_found(),
            Version::Gone => {
                return *reply = Reply::html(410, "<!DOCTYPE html><title>Gone</title>".to_owned());
            }
        };
        let number = since.as_micros() as u64;
        reply.body.extend(format!("<!-- {number:016x} -->").bytes());
        let epoch = httpdate::parse_http_date("Thu, 01 Jan 1970 00:00:00 GMT").expect("a date");
        let date = |at| httpdate::fmt_http_date(epoch + Duration::from_secs(changes.epoch) + at);
        let _ = write!(reply.fields, "Date: {}\r\n", date(at));
        let mut draw = self.draw(Purpose::Validator, place.host, 0);
        let (etag, modified) = (draw.chance(changes.etags), draw.chance(changes.modified));
        if etag {
            let _ = write!(reply.fields, "ETag: \"{number:x}\"\r\n");
        }
        if modified {
            let _ = write!(reply.fields, "Last-Modified: {}\r\n", date(since));
        }
    }

    /// Returns the settings of changes and the number of the page, if it is one that may change.
    fn changing(&self, place: Place) -> Option<(&Changes, u32)> {
        let Resource::Page(page) = place.resource else { return None };
        let changes = self.settings().changes.as_ref()?;
        let may = matches!(self.kind(place.host, page), Kind::Html | Kind::Binary);
        may.then_some((changes, page))
    }

    /// Returns when a page appears, and when it vanishes, if it does. The root of a host is always
    /// there.
    fn life(&self, changes: &Changes, host: u32, page: u32) -> (Duration, Option<Duration>) {
        let mut draw = self.draw(Purpose::Life, host, page);
        if page == 0 {
            return (Duration::ZERO, None);
        }
        let born = if draw.chance(changes.appear) { draw.unit() } else { 0.0 };
        let dies = draw.chance(changes.vanish).then(|| born + draw.unit() * (1.0 - born));
        (changes.span.mul_f64(born), dies.map(|dies| changes.span.mul_f64(dies)))
    }

    /// Returns when the pages appear that a page links to and that aren't there at first.
    fn births(&self, changes: &Changes, place: Place) -> impl Iterator<Item = Duration> + '_ {
        let links = if changes.appear > 0.0 { self.links(place) } else { Vec::new() };
        links.into_iter().filter_map(|link| {
            let (changes, page) = self.changing(link.to)?;
            let (born, _) = self.life(changes, link.to.host, page);
            (born > Duration::ZERO).then_some(born)
        })
    }

    fn manner(&self, host: u32, page: u32) -> Manner {
        let Some(changes) = &self.settings().changes else { return Manner::Never };
        let median = changes.interval.median.as_secs_f64();
        let of_host = self.draw(Purpose::HostRate, host, 0).normal() * changes.interval.sigma;
        let mut draw = self.draw(Purpose::PageRate, host, page);
        let of_page = draw.normal() * changes.page_sigma;
        let mean = (median * super::draw::exp(of_host + of_page)).clamp(INTERVAL.0, INTERVAL.1);
        let kind = draw.unit();
        if kind < changes.always {
            Manner::Always
        } else if kind < changes.always + changes.scheduled {
            let micros = |seconds: f64| (seconds * 1e6) as u64;
            Manner::Scheduled(micros(mean), micros(draw.unit() * mean))
        } else {
            Manner::AtRandom(mean)
        }
    }

    /// Returns when a page has changed last, other than by its links; zero if it never did.
    fn last_change(&self, host: u32, page: u32, at: Duration) -> Duration {
        match self.manner(host, page) {
            Manner::Never => Duration::ZERO,
            Manner::Always => at,
            Manner::Scheduled(period, first) => {
                let since = (at.as_micros() as u64).checked_sub(first);
                let last = since.map(|since| first + since / period * period);
                Duration::from_micros(last.unwrap_or(0))
            }
            Manner::AtRandom(mean) => {
                let length = MEAN * mean;
                let last = (at.as_secs_f64() / length) as u64;
                let found = (0..=last).rev().find_map(|piece| {
                    let all = self.changes_within(host, page, piece, length);
                    all.into_iter().rev().find(|change| *change <= at)
                });
                found.unwrap_or_default()
            }
        }
    }

    /// Returns when a page changes next, other than by its links.
    fn next_own_change(&self, host: u32, page: u32, after: Duration) -> Option<Duration> {
        match self.manner(host, page) {
            Manner::Never => None,
            Manner::Always => Some(after + Duration::from_micros(1)),
            Manner::Scheduled(period, first) => {
                let since = (after.as_micros() as u64).checked_sub(first);
                let next = since.map_or(first, |since| first + (since / period + 1) * period);
                Some(Duration::from_micros(next))
            }
            Manner::AtRandom(mean) => {
                let length = MEAN * mean;
                let first = (after.as_secs_f64() / length) as u64;
                (first..).find_map(|piece| {
                    let all = self.changes_within(host, page, piece, length);
                    all.into_iter().find(|change| *change > after)
                })
            }
        }
    }

    /// Returns the changes of a page within a piece of time, in order. `length` is that of a piece,
    /// in seconds.
    fn changes_within(&self, host: u32, page: u32, piece: u64, length: f64) -> Vec<Duration> {
        let mut draw: Draw = self.draw(Purpose::Change, host, page).part(piece);
        // A Poisson number: how many uniform numbers have a product above e^-MEAN.
        let (least, mut count, mut product) = (super::draw::exp(-MEAN), 0, draw.unit());
        while product > least && count < PIECE_MAX {
            product *= draw.unit();
            count += 1;
        }
        let from = piece as f64 * length;
        let mut times: Vec<Duration> =
            (0..count).map(|_| seconds(from + draw.unit() * length)).collect();
        times.sort_unstable();
        times
    }
}

/// Returns whether the page that `reply` shows is the one that a conditional request says the
/// client has: the values of its If-None-Match and If-Modified-Since fields, which may be empty.
/// The first decides if there is one (RFC 9110, section 13.2.2).
pub fn is_unmodified(reply: &Reply, none_match: &[u8], modified_since: &[u8]) -> bool {
    if reply.status != 200 {
        return false;
    }
    let field = |name: &str| {
        let own = reply.fields.lines().find_map(|line| line.strip_prefix(name));
        own.map_or(&b""[..], str::as_bytes)
    };
    if !none_match.is_empty() {
        let own = field("ETag: ");
        let mut tags = none_match.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
        return !own.is_empty() && tags.any(|tag| tag == own || tag == b"*");
    }
    let date = |text: &[u8]| {
        std::str::from_utf8(text).ok().and_then(|text| httpdate::parse_http_date(text).ok())
    };
    match (date(field("Last-Modified: ")), date(modified_since)) {
        (Some(own), Some(since)) => own <= since,
        _ => false,
    }
}

/// Returns a time in whole microseconds, in which all worlds count.
fn seconds(seconds: f64) -> Duration {
    Duration::from_micros((seconds * 1e6) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::random::Random;
    use crate::study::web::{Budget, Manifest, Outcome};
    use crate::study::web::{Ports, Settings, TimeSpread};

    fn changes() -> Changes {
        Changes {
            epoch: 1_767_225_600,
            interval: TimeSpread { median: Duration::from_secs(1_000), sigma: 1.3 },
            page_sigma: 0.8,
            scheduled: 0.1,
            always: 0.05,
            appear: 0.2,
            vanish: 0.1,
            span: Duration::from_secs(20_000),
            etags: 0.5,
            modified: 0.5,
        }
    }

    fn web(changes: Changes) -> Web {
        let settings = Settings {
            hosts: 8,
            pages: 800,
            binary: 0.1,
            not_found: 0.1,
            changes: Some(changes),
            ..Settings::default()
        };
        Web::new(settings, Ports::default())
    }

    fn all(web: &Web) -> impl Iterator<Item = Place> + '_ {
        (0..web.pages_total()).map(|index| web.place_of(index))
    }

    /// Law: of a web that changes, pages are expected to be requested any number of times, also
    /// those that redirects lead to.
    #[test]
    fn there_is_no_most() {
        let settings = Settings { redirect: 0.3, ..web(changes()).settings().clone() };
        let manifest = Manifest::new(&Web::new(settings, Ports::default()), Budget::default());
        let led_to = manifest.entries.iter().filter(|entry| entry.outcomes == [Outcome::Redirect]);
        let most: Vec<u32> = led_to.map(|entry| entry.requests.max).collect();
        assert!(most.len() > 50 && most.iter().all(|most| *most == u32::MAX), "{most:?}");
    }

    /// Law: between a change and the next one a page has one version, and each change gives
    /// another.
    #[test]
    fn versions_follow_from_the_changes() {
        let (web, mut random, mut kinds) = (web(changes()), Random(3), [0; 3]);
        for place in all(&web) {
            let mut at = Duration::ZERO;
            for _ in 0..20 {
                let version = web.version(place, at);
                kinds[match version {
                    Version::NotYet => 0,
                    Version::Since(_) => 1,
                    Version::Gone => 2,
                }] += 1;
                if let Version::Since(since) = version {
                    assert!(since <= at, "{place:?}");
                    assert_eq!(web.version(place, since), version, "{place:?}");
                }
                let Some(next) = web.next_change(place, at) else { break };
                assert!(next > at);
                let within =
                    (next - at).mul_f64(random.unit()).saturating_sub(Duration::from_micros(1));
                assert_eq!(web.version(place, at + within), version, "{place:?} at {at:?}");
                assert_ne!(web.version(place, next), version, "{place:?} at {next:?}");
                at = next;
            }
        }
        assert!(kinds.iter().all(|count| *count > 30), "{kinds:?}");
    }

    /// The changes of a page are as many as its mean time says.
    #[test]
    fn pages_change_as_often_as_they_are_meant_to() {
        let interval = TimeSpread { median: Duration::from_secs(100), sigma: 0.0 };
        let still = Changes { appear: 0.0, vanish: 0.0, always: 0.0, page_sigma: 0.0, ..changes() };
        for scheduled in [0.0, 1.0] {
            let web = web(Changes { scheduled, interval, ..still.clone() });
            let place = Place { host: 1, resource: Resource::Page(0) };
            let (mut at, mut count, until) = (Duration::ZERO, 0, Duration::from_secs(1_000_000));
            while let Some(next) = web.next_change(place, at).filter(|next| *next < until) {
                (at, count) = (next, count + 1);
            }
            assert!((9_600..10_400).contains(&count), "{count} of 10,000");
        }
    }

    /// A reply shows its version, and a conditional request gets it only if it is another.
    #[test]
    fn replies_show_their_version() {
        let web = web(changes());
        let (mut tags, mut dates) = (0, 0);
        for place in all(&web) {
            let Resource::Page(page) = place.resource else { continue };
            let at = Duration::from_secs(5_000);
            let mut reply = web.page_reply(place.host, page, at);
            let again = web.page_reply(place.host, page, at);
            assert!(reply == again);
            let compact = web.compact(&web.host(place.host), page, false, at);
            assert_eq!(
                (compact.reply.status, &compact.reply.fields),
                (reply.status, &reply.fields)
            );
            assert_eq!(compact.text_bytes, reply.body.len() as u64, "{place:?}");
            if web.kind(place.host, page) == Kind::NotFound || reply.status != 200 {
                continue;
            }
            let field = |name: &str| {
                let own = again.fields.lines().find_map(|line| line.strip_prefix(name));
                own.unwrap_or("").as_bytes().to_vec()
            };
            let (tag, date) = (field("ETag: "), field("Last-Modified: "));
            assert_eq!(is_unmodified(&reply, &tag, b""), !tag.is_empty());
            assert_eq!(is_unmodified(&reply, b"", &date), !date.is_empty());
            assert!(!is_unmodified(&reply, b"\"x\"", &date), "the tag decides");
            assert!(!is_unmodified(&reply, b"", b"Thu, 01 Jan 1970 00:00:00 GMT"));
            (tags, dates) =
                (tags + u32::from(!tag.is_empty()), dates + u32::from(!date.is_empty()));
            let Some(next) = web.next_change(place, at) else { continue };
            let new = web.page_reply(place.host, page, next);
            assert!(new.body != reply.body, "{place:?}");
            assert!(tag.is_empty() || !is_unmodified(&new, &tag, b""));
            reply.status = 404;
            assert!(!is_unmodified(&reply, &tag, &date));
        }
        assert!(tags > 50 && dates > 50, "{tags} {dates}");
    }

    /// A page is linked to once it is there.
    #[test]
    fn links_appear_with_their_pages() {
        let web = web(changes());
        let (early, late) = (Duration::ZERO, changes().span);
        let links = |place: Place, at| {
            let Resource::Page(page) = place.resource else { return 0 };
            let body = web.page_reply(place.host, page, at).body;
            String::from_utf8_lossy(&body).matches("href").count()
        };
        let places: Vec<Place> =
            all(&web).filter(|place| web.has_appeared(*place, early)).collect();
        let before: usize = places.iter().map(|place| links(*place, early)).sum();
        let after: usize = places.iter().map(|place| links(*place, late)).sum();
        assert!(after > before + before / 20, "{before} {after}");
    }
}
