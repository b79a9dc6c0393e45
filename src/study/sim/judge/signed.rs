//! The law `signed`: requests are signed as the crawl has promised, so that another implementation
//! verifies them.
//!
//! Of a crawl that signs when it is asked, requests are signed to hosts that have asked for it in
//! the current process, and to no other.

use super::{Instant, Judge};
use crate::study::web::{Place, Proof};
use std::time::Duration;

/// Which requests a crawl signs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signs {
    /// None.
    Never,
    /// Those to hosts that ask for it.
    WhenAsked,
    /// All.
    Always,
}

/// How long the crawl may remember that a host has asked, if it isn't visited.
const REMEMBERED: Duration = Duration::from_secs(3_600);

impl Judge {
    /// Checks a request that was sent at `sent`, with what its server finds of its signature.
    pub(super) fn judge_signed(
        &mut self,
        at: Instant,
        sent: Instant,
        host: u32,
        proof: Option<&Proof>,
        named: &str,
    ) {
        let Some(proof) = proof else { return };
        let asked = self.hosts.get(&host).and_then(|watched| watched.asked_signature);
        let remembers = |asked| sent > asked && sent.since(asked) < REMEMBERED;
        let how = match (self.laws.signs, proof) {
            (_, Proof::Fails(why)) => format!("its signature fails: {why}"),
            (Signs::Never, Proof::Holds) => "it is signed".to_owned(),
            (Signs::Always, Proof::None) => "it isn't signed".to_owned(),
            (Signs::WhenAsked, Proof::Holds) if asked.is_none() => {
                "it is signed, although its host hasn't asked for that".to_owned()
            }
            (Signs::WhenAsked, Proof::None) if asked.is_some_and(remembers) => {
                "it isn't signed, although its host has asked for that".to_owned()
            }
            _ => return,
        };
        self.report("signed", at, format!("{named}: {how}"));
    }

    /// Notes that a host asks for a signature, if this reply does. A part of a reply may have been
    /// read as such.
    pub(super) fn note_signature_asked(
        &mut self,
        at: Instant,
        place: Option<Place>,
        (status, whole): (u16, bool),
    ) {
        let asks = |host: u32| self.traits.get(host as usize).is_some_and(|of| of.asks_signature);
        let Some(host) = place.map(|place| place.host).filter(|host| asks(*host)) else { return };
        if status == 403 {
            let at = if whole { at } else { Instant::FAR };
            let asked = &mut self.hosts.entry(host).or_default().asked_signature;
            *asked = Some(asked.map_or(at, |before| before.min(at)));
        }
    }
}
