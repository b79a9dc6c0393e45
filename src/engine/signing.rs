//! Signs requests, and notices which servers ask for it.
//!
//! If only those to servers that ask are signed, a reply that refuses the page and asks isn't the
//! page: its URL is requested once more, with a signature. So are all that follow it to its server.
//!
//! Cost: that of a signature ([`SIGN_UNITS`]); of a reply with `Accept-Signature`, a pass over such
//! fields.

use super::Engine;
use super::backlog::Item;
use super::ledger::Work;
use super::outcome::Outcome;
use super::wire::FinishedFetch;
use crate::frontier::ServerId;
use crate::http::signature;

/// The cost of a signature, in units of work (see `ledger`).
const SIGN_UNITS: usize = 24 << 10;
/// The maximum length of all `Accept-Signature` fields that are read, in bytes.
const ASKED_BYTES_MAX: usize = 4 << 10;
/// The cost of a byte of it, in units of work.
const ASKED_WEIGHT: usize = 16;

impl Engine {
    /// Returns whether requests to a server are signed now.
    pub(super) fn signs(&self, id: ServerId) -> bool {
        let signing = self.settings.signing.as_ref();
        signing.is_some_and(|signing| !signing.on_demand || self.sites.get(id).asks_signature())
    }

    /// Returns the fields that sign the request for a URL of a server.
    pub(super) fn signature_of(&mut self, id: ServerId, item: &Item) -> Option<Box<str>> {
        let signing = self.settings.signing.as_ref()?;
        self.turn.charge(Work::Signed, SIGN_UNITS);
        let (authority, unix) = (self.backlog.origin(id).authority(), self.turn.unix());
        Some(signing.signer.fields(authority, &item.target, unix.seconds().into()).into())
    }

    /// Notes whether a reply asks for a signature that its request didn't have. If it refuses the
    /// page for want of one, its outcome says so from here on.
    pub(super) fn note_asked(&mut self, id: ServerId, fetched: &mut FinishedFetch<'_>) {
        let may_ask = self.settings.signing.is_some() && fetched.fetch.identity.signature.is_none();
        let Some(head) = fetched.head.filter(|_| may_ask) else { return };
        // A member of the dictionary is on one line; several lines are one dictionary.
        let mut left = ASKED_BYTES_MAX;
        let within = |value: &&[u8]| {
            let rest = left.checked_sub(value.len());
            left = rest.unwrap_or(0);
            rest.is_some()
        };
        let lines = fetched.fields("accept-signature");
        let is_asked = { lines }.take_while(within).any(signature::is_asked_by);
        self.turn.charge(Work::Signed, ASKED_WEIGHT * (ASKED_BYTES_MAX - left));
        if !is_asked {
            return;
        }
        self.sites.get_mut(id).set_asks_signature();
        let is_reply = matches!(fetched.outcome, Outcome::Status(_) | Outcome::Short(..));
        // Those of the others that may pass have a wait of their own.
        let is_refused =
            matches!(head.status, 400..=499) && !matches!(head.status, 408 | 425 | 429);
        if is_refused && is_reply {
            fetched.outcome = Outcome::SignatureAsked(head.status);
        }
    }
}
