//! Items: URLs that wait to be fetched, and their encoding.
//!
//! ```text
//! payload  letter | bits: purpose, 4 via, 8 late, requisite << 4 | redirects | tries | depth u16
//!          | for a robots.txt: server u32, redirects; for a hop: chain u32; for a page that is
//!          visited again: what is known of it, with its length
//!          | target | if there is one: "\n" and the page it was found on
//! ```
//!
//! Law: what is encoded is decoded as it was, and no bytes panic.

use crate::frontier::{Key, ServerId};
use crate::ground::codec::{Put, Short, Take};
use crate::ground::quality::Quality;
use crate::recrawl::known::Known;
use crate::url::scope::Distance;
use std::ops::{Deref, Range};
use std::rc::Rc;

/// The target of every server's robots.txt.
pub(in crate::engine) const ROBOTS_TXT: &str = "/robots.txt";

/// One URL that waits to be fetched. Its origin (scheme, host and port) is not in it: it is that of
/// the server in whose queue the URL waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// The path and query, beginning with `/`.
    pub target: Text,
    /// The quality that was estimated when the URL was discovered.
    pub quality: Quality,
    /// The number of the URL in the order of arrival; set when the item is taken from its queue.
    pub arrival: u64,
    /// The number of links that lead from a seed to the URL.
    pub depth: u16,
    /// The number of hops from the page that the URL is a requisite of; 0 for a page.
    pub requisite: u8,
    /// The number of redirects that were followed to reach the URL.
    pub hops: u8,
    /// The number of tries of the URL that failed.
    pub tries: u8,
    /// Whether the URL was put behind the others of its server.
    pub is_late: bool,
    /// What the URL is fetched for.
    pub purpose: Purpose,
    /// Heritrix's letter for how the URL was found (`L`, `E`, `R`, ...); `-` for a seed.
    pub found_as: u8,
    /// The URL of the page on which this one was found; `None` if there is none.
    pub via: Option<Text>,
    /// What is known of the page that is visited again, encoded (`recrawl::known`); `None` if it
    /// isn't.
    pub known: Option<Box<[u8]>>,
}

/// A part of a shared string: the target and the page of an [`Item`] use one allocation.
#[derive(Clone, Debug)]
pub struct Text {
    whole: Rc<str>,
    range: Range<usize>,
}

/// What a URL is fetched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A page of the crawl.
    Page,
    /// The robots.txt of the server with this id, after this number of redirects, which may have
    /// led to another server.
    Robots(ServerId, u8),
    /// A page that a redirect led to: the next hop of the chain with this number.
    Hop(u32),
    /// A page that was fetched before: see [`Item::known`].
    Again,
}

const PURPOSES: u8 = 3;
const HAS_VIA: u8 = 4;
const IS_LATE: u8 = 8;
/// The position of the hops of a requisite in the bits of a payload: 15 fit in.
const REQUISITE: u32 = 4;
const VIA: u8 = b'\n';

impl Item {
    /// Returns whether the item is queued ahead of the pages of its server.
    pub fn is_first(&self) -> bool {
        match self.purpose {
            Purpose::Page => false,
            // A page that is tried again waits behind the others, as new ones do.
            Purpose::Again => self.tries == 0,
            Purpose::Robots(..) | Purpose::Hop(_) => true,
        }
    }

    /// Returns whether a visit was granted to the item, so that its server is called.
    pub fn is_granted(&self) -> bool {
        self.parts().is_granted()
    }

    /// Returns whether the item is a robots.txt file, which no robots.txt forbids.
    pub fn is_robots(&self) -> bool {
        matches!(self.purpose, Purpose::Robots(..))
    }

    /// Returns whether the item may become a page that counts for the limits on pages.
    pub fn may_become_page(&self) -> bool {
        matches!(self.purpose, Purpose::Page | Purpose::Hop(_))
    }

    /// Returns the key that determines the item's position in its queue.
    pub fn key(&self) -> Key {
        Key { is_first: self.is_first(), quality: self.quality, arrival: self.arrival }
    }

    /// Returns the fields of the item that its payload holds, borrowed.
    pub fn parts(&self) -> Parts<'_> {
        let Self { depth, requisite, hops, tries, is_late, purpose, found_as, .. } = *self;
        let known = self.known.as_deref().unwrap_or_default();
        Parts {
            found_as,
            hops,
            tries,
            is_late,
            depth,
            requisite,
            purpose,
            target: &self.target,
            via: self.via.as_deref(),
            known,
        }
    }

    /// Decodes a payload, which its queue returned with this key.
    ///
    /// # Errors
    /// The bytes are no payload.
    pub fn decode(payload: &[u8], key: Key) -> Result<Self, Short> {
        let (parts, text) = Parts::of(payload)?;
        let whole: Rc<str> = text.into();
        let part = |range| Text { whole: Rc::clone(&whole), range };
        let target = parts.target.len();
        let via = parts.via.map(|_| part(target + 1..whole.len()));
        Ok(parts.item_of((part(0..target), via), key.quality, key.arrival))
    }

    /// Returns how far away the URL was found.
    pub fn distance(&self) -> Distance {
        Distance { depth: self.depth, requisite: self.requisite }
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        &self.whole[self.range.clone()]
    }
}

impl<T: Into<Rc<str>>> From<T> for Text {
    fn from(text: T) -> Self {
        let whole = text.into();
        let range = 0..whole.len();
        Self { whole, range }
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Text {}

/// The fields of an [`Item`] that its payload holds.
#[derive(Clone, Copy, Debug)]
pub struct Parts<'a> {
    /// Heritrix's letter for how the URL was found.
    pub found_as: u8,
    /// The number of redirects that were followed to reach the URL.
    pub hops: u8,
    /// The number of tries of the URL that failed.
    pub tries: u8,
    /// Whether the URL was put behind the others of its server.
    pub is_late: bool,
    /// The number of links that lead from a seed to the URL.
    pub depth: u16,
    /// The number of hops from the page that the URL is a requisite of; 0 for a page.
    pub requisite: u8,
    /// What the URL is fetched for.
    pub purpose: Purpose,
    /// The path and query, beginning with `/`.
    pub target: &'a str,
    /// The URL of the page on which this one was found; `None` if there is none.
    pub via: Option<&'a str>,
    /// What is known of the page that is visited again, encoded; empty for all others.
    pub known: &'a [u8],
}

impl<'a> Parts<'a> {
    /// Decodes a payload into its parts. Also returns the text at the end of the payload, which
    /// holds the target and the page.
    fn of(payload: &'a [u8]) -> Result<(Self, &'a str), Short> {
        let mut take = Take::new(payload);
        let [found_as, bits, hops, tries] = take.array()?;
        let depth = take.u16()?;
        let requisite = bits >> REQUISITE;
        let purpose = match bits & PURPOSES {
            0 => Purpose::Page,
            1 => Purpose::Robots(ServerId(take.u32()?), take.u8()?),
            2 => Purpose::Hop(take.u32()?),
            _ => Purpose::Again,
        };
        let mut known: &[u8] = &[];
        if purpose == Purpose::Again {
            known = take.bytes()?;
            Known::decode(&mut Take::new(known))?;
        }
        let text = std::str::from_utf8(take.rest()).map_err(|_| Short)?;
        let (target, via) = match bits & HAS_VIA {
            0 => (text, None),
            _ => {
                let end = memchr::memchr(VIA, text.as_bytes()).ok_or(Short)?;
                (&text[..end], Some(&text[end + 1..]))
            }
        };
        if !target.starts_with('/') {
            return Err(Short);
        }
        let is_late = bits & IS_LATE != 0;
        let own =
            Self { found_as, hops, tries, is_late, depth, requisite, purpose, target, via, known };
        Ok((own, text))
    }

    /// Returns an item with these fields and this quality.
    pub fn item(&self, quality: Quality) -> Item {
        let texts = (self.target.into(), self.via.map(Text::from));
        self.item_of(texts, quality, 0)
    }

    fn item_of(&self, (target, via): (Text, Option<Text>), quality: Quality, arrival: u64) -> Item {
        let Self { found_as, hops, tries, is_late, depth, requisite, purpose, known, .. } = *self;
        let known = (purpose == Purpose::Again).then(|| known.into());
        Item {
            target,
            quality,
            arrival,
            depth,
            requisite,
            hops,
            tries,
            is_late,
            purpose,
            found_as,
            via,
            known,
        }
    }

    pub(super) fn is_first(&self) -> bool {
        match self.purpose {
            Purpose::Page => false,
            // A page that is tried again waits behind the others, as new ones do.
            Purpose::Again => self.tries == 0,
            Purpose::Robots(..) | Purpose::Hop(_) => true,
        }
    }

    pub(super) fn is_granted(&self) -> bool {
        self.purpose == Purpose::Again && self.is_first()
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        let purpose = match self.purpose {
            Purpose::Page => 0,
            Purpose::Robots(..) => 1,
            Purpose::Hop(_) => 2,
            Purpose::Again => 3,
        };
        let has_via = if self.via.is_some() { HAS_VIA } else { 0 };
        let is_late = if self.is_late { IS_LATE } else { 0 };
        let bits = purpose | has_via | is_late | self.requisite << REQUISITE;
        out.extend_from_slice(&[self.found_as, bits, self.hops, self.tries]);
        out.put_u16(self.depth);
        match self.purpose {
            Purpose::Page => {}
            Purpose::Robots(of, redirects) => {
                out.put_u32(of.0);
                out.put_u8(redirects);
            }
            Purpose::Hop(chain) => out.put_u32(chain),
            Purpose::Again => out.put_bytes(self.known),
        }
        out.extend_from_slice(self.target.as_bytes());
        if let Some(via) = self.via {
            out.push(VIA);
            out.extend_from_slice(via.as_bytes());
        }
    }
}

/// Returns the item that fetches a server's own robots.txt.
pub fn robots_item(id: ServerId) -> Item {
    Item {
        target: ROBOTS_TXT.into(),
        quality: Quality::ZERO,
        arrival: 0,
        depth: 0,
        requisite: 0,
        hops: 0,
        tries: 0,
        is_late: false,
        purpose: Purpose::Robots(id, 0),
        found_as: b'P',
        via: None,
        known: None,
    }
}

/// Returns whether bytes read from disk are a valid payload.
pub fn is_payload(payload: &[u8]) -> bool {
    Parts::of(payload).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_come_out_as_they_went_in() {
        let page = Item {
            target: "/a?b=c".into(),
            quality: Quality::ONE,
            arrival: 7,
            depth: 300,
            requisite: 15,
            hops: 2,
            tries: 1,
            is_late: true,
            purpose: Purpose::Page,
            found_as: b'L',
            via: Some("https://a.test/page\u{e9}".into()),
            known: None,
        };
        let robots = Purpose::Robots(ServerId(70_000), 3);
        let others = [
            Item { via: None, ..page.clone() },
            Item { purpose: robots, via: Some("".into()), ..page.clone() },
            Item { purpose: Purpose::Hop(u32::MAX), ..page.clone() },
        ];
        let known = crate::recrawl::known::tests::known();
        let mut bytes = Vec::new();
        known.encode(&mut bytes);
        let again = Item { purpose: Purpose::Again, known: Some(bytes.into()), ..page.clone() };
        for item in [page, again].iter().chain(&others) {
            let mut payload = Vec::new();
            item.parts().encode(&mut payload);
            assert_eq!(Item::decode(&payload, item.key()).as_ref(), Ok(item));
            assert!((0..payload.len().min(7)).all(|cut| !is_payload(&payload[..cut])));
        }
    }
}
