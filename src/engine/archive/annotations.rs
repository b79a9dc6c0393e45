//! The annotations of crawl-log lines: words for what was out of the ordinary.
//!
//! Law: `CRAWL-LOG.md` documents each.

use crate::engine::outcome::{Outcome, Shortfall};
use crate::store::Truncated;

/// The annotation of a fetch of a page that was fetched before.
pub(in crate::engine) const AGAIN: &str = ANNOTATIONS[0];

/// All annotations, except for numbers of tries.
pub(super) const ANNOTATIONS: [&str; 42] = [
    "again",
    "sitemap",
    "feed",
    "sitemapUnread",
    "sitemapCut",
    "sitemapBroken",
    "sitemapEntries",
    "sitemapForeign",
    "lenTrunc",
    "timeTrunc",
    "disconnectTrunc",
    "trunc",
    "oddHead",
    "consentCut",
    "retried",
    "replayed",
    "notReadBack",
    "compared",
    "putBack",
    "surplus",
    "rules",
    "robots-challenge",
    "robots-cut",
    "robots-html",
    "robots-label",
    "badLocation",
    "codingUnknown",
    "codingsTooMany",
    "codingLabel",
    "codingSum",
    "codingTooLarge",
    "codingBroken",
    "charsetTooLarge",
    "charsetLate",
    "linksCut",
    "linksBytesCut",
    "linkTooLong",
    "srcdocNested",
    "valueTooLong",
    "baseTooLong",
    "urlTooLong",
    "urlsBytesCut",
];

/// Returns the WARC mark for a reply that was truncated with this outcome; `None` if it was not.
pub(super) fn truncation(outcome: Outcome) -> Option<Truncated> {
    match outcome {
        Outcome::BodyTooLarge => Some(Truncated::Length),
        Outcome::Short(_, shortfall) => Some(truncation_of(shortfall)),
        Outcome::BodyTimedOut | Outcome::FetchTimedOut => Some(Truncated::Time),
        Outcome::CutShort | Outcome::Reset => Some(Truncated::Disconnect),
        _ => None,
    }
}

fn truncation_of(shortfall: Shortfall) -> Truncated {
    match shortfall {
        Shortfall::Closed | Shortfall::Reset => Truncated::Disconnect,
        Shortfall::Stalled | Shortfall::Overdue => Truncated::Time,
        Shortfall::Framing => Truncated::Unspecified,
    }
}

/// Returns the name of a body that ended early, in annotations and counts.
pub(in crate::engine) fn cut_as(shortfall: Shortfall) -> &'static str {
    annotation(truncation_of(shortfall))
}

/// Returns whether a reply with this outcome goes to the archive: complete ones do, and truncated
/// ones for which WARC has a mark.
pub(super) fn is_kept(outcome: Outcome) -> bool {
    matches!(outcome, Outcome::Status(_)) || truncation(outcome).is_some()
}

/// Returns the annotation of a reply that was truncated with this outcome; `None` if it was not.
pub(in crate::engine) fn cut_of(outcome: Outcome) -> Option<&'static str> {
    truncation(outcome).map(annotation)
}

pub(super) fn annotation(truncated: Truncated) -> &'static str {
    match truncated {
        Truncated::Length => "lenTrunc",
        Truncated::Time => "timeTrunc",
        Truncated::Disconnect => "disconnectTrunc",
        Truncated::Unspecified => "trunc",
    }
}
