//! The sections `[consent]`, what sites say of the use of their pages, and `[repeats]`, pages that
//! are alike.

use super::section;
use crate::conf::kind::{Kind, choice, count, flag};
use crate::consent::Purpose;

section! {
    /// What sites say of the use of their pages.
    consent: Consent {
        /// Record what was said of the use of each page: Content-Signal, Content-Usage and License
        /// lines of robots.txt; Content-Usage, X-Robots-Tag and TDM fields of the reply; robots and
        /// TDM meta elements in the first 128 KiB of a page. It is in the crawl log, in a metadata
        /// record of the archive and in its index.
        ///
        /// true scans the beginning of each HTML page once more.
        record: bool = true, flag(), [];

        /// What the pages are for. The table has the words by which a signal speaks of a purpose:
        /// with "no", "n" or 1 the site reserves the use, with "yes", "y" or 0 it allows it, and
        /// each directive of robots reserves it. Of several signals the strictest counts; a use of
        /// which nothing is said is allowed. Lines of robots.txt count for the group of the crawler
        /// (identity.product), and for paths as its rules do.
        ///
        /// | signal             | search        | archive   | mining | ai-train    | ai-input  |
        /// |--------------------|---------------|-----------|--------|-------------|-----------|
        /// | Content-Signal     | search        |           |        | ai-train    | ai-input  |
        /// | Content-Usage      | search        |           |        | train-ai,   | ai-use    |
        /// |                    |               |           |        | train-genai |           |
        /// | ... without those  | bots          | bots      | bots   | bots        | bots      |
        /// | robots             | noindex, none | noarchive |        | noai        | noai      |
        /// | robots of an image |               |           |        | noimageai   | noimageai |
        /// | TDM-Reservation    |               |           | 0, 1   | 0, 1        | 0, 1      |
        purpose: Option<Purpose> = None, purposes().or("none"), [];

        /// Don't keep pages whose use is reserved for the purpose: they have no record in the
        /// archive, and the outcome "reserved" in the crawl log. Their links are followed.
        ///
        /// true keeps less than robots.txt allows, and requests as much.
        obey: bool = false, flag(), [];
    }
}

section! {
    /// Sites that show the same page under ever new URLs: calendars, listings by all combinations
    /// of filters, traps. Pages are alike if they have the same length and the same first 32 KiB,
    /// or there the same words if they are more than 200; of URLs with a query, or with a segment
    /// of their path without letters, if the words are nearly the same (at most 3 of the 64 bits
    /// of their SimHash differ). The words of a page are read if it is about as long as the one
    /// before, as received.
    repeats: Repeats {
        /// Alike pages in a row, in a directory or under one path with queries, after which its
        /// URLs go behind the others of their server. Numbers in paths count as the same.
        ///
        /// Small delays series of short pages; a page that differs ends it.
        slow_after: u16 = 12, count(2..=10_000), [];

        /// Alike pages in a row after which its URLs are left out, with the outcome "repeats" in
        /// the crawl log. A resumed crawl starts to count again.
        ///
        /// Small loses pages that differ little; "none" fetches them all.
        end_after: Option<u16> = Some(40), count(2..=10_000).or("none"), [];
    }
}

fn purposes() -> Kind<Purpose> {
    choice(&Purpose::ALL.map(|purpose| (purpose.name(), purpose)))
}
