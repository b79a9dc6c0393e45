//! The section `[consent]`: what sites say of the use of their pages.

use super::section;
use crate::conf::kind::flag;

section! {
    /// What sites say of the use of their pages.
    consent: Consent {
        /// Record what was said of the use of each page: Content-Signal, Content-Usage and License
        /// lines of robots.txt; Content-Usage, X-Robots-Tag and TDM fields of the reply; robots and
        /// TDM meta elements in the first 128 KiB of a page. It is in the crawl log, in a metadata
        /// record of the archive and in its index.
        ///
        /// true decodes the beginning of each HTML page twice.
        record: bool = true, flag(), [];
    }
}
