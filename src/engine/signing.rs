//! Signs requests, and notices which servers ask for it.
//!
//! If only those to servers that ask are signed, a reply that refuses the page and asks isn't the
//! page: its URL is requested once more, with a signature. So are all that follow it to its server.
//!
//! Cost: that of a signature ([`SIGN_UNITS`]); of a reply with `Accept-Signature`, a pass over it.

use super::Engine;
use super::backlog::Item;
use super::ledger::Work;
use super::outcome::Outcome;
use super::wire::FinishedFetch;
use crate::frontier::ServerId;
use crate::http::signature;

/// The cost of a signature, in units of work (see `ledger`).
const SIGN_UNITS: usize = 24 << 10;
/// The cost of a byte of `Accept-Signature`.
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

    /// Notes whether a reply asks for a signature. If it refuses the page for want of one,
    /// its outcome says so from here on.
    pub(super) fn note_asked(&mut self, id: ServerId, fetched: &mut FinishedFetch<'_>) {
        let Some(head) = fetched.head.filter(|_| self.settings.signing.is_some()) else { return };
        let (mut bytes, mut is_asked) = (0, false);
        for value in fetched.fields("accept-signature") {
            bytes += value.len();
            is_asked |= signature::is_asked_by(value);
        }
        self.turn.charge(Work::Signed, ASKED_WEIGHT * bytes);
        let (fetch, outcome) = (&fetched.fetch, fetched.outcome);
        if !is_asked || fetch.signature.is_some() {
            return;
        }
        self.sites.get_mut(id).set_asks_signature();
        let is_reply = matches!(outcome, Outcome::Status(_) | Outcome::Short(..));
        if (400..500).contains(&head.status) && is_reply {
            fetched.outcome = Outcome::SignatureAsked(head.status);
        }
    }
}
