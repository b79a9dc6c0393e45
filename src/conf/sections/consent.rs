//! The section `[consent]`: what sites say of the use of their pages.

use super::section;
use crate::conf::kind::{Kind, choice, flag};
use crate::consent::Purpose;

section! {
    /// What sites say of the use of their pages.
    consent: Consent {
        /// Record what was said of the use of each page: Content-Signal, Content-Usage and License
        /// lines of robots.txt; Content-Usage, X-Robots-Tag and TDM fields of the reply; robots and
        /// TDM meta elements in the first 128 KiB of a page. It is in the crawl log, in a metadata
        /// record of the archive and in its index.
        ///
        /// true reads the beginning of each HTML page twice.
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
        /// | Content-Usage      | search        |           |        | train-genai | ai-use    |
        /// | ... without those  |               |           |        | train-ai    |           |
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

fn purposes() -> Kind<Purpose> {
    choice(&Purpose::ALL.map(|purpose| (purpose.name(), purpose)))
}
