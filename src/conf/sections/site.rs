//! The keys that only `[[site]]` tables have. Their other keys are those of the whole crawl that
//! have the flag `Site`.

use super::section;
use super::target::pages;
use crate::conf::kind::{decimal, text};
use crate::conf::syntax;
use crate::conf::units::{Decimal, thousandths};

section! {
    /// Settings for some of the URLs. There may be any number of these tables, up to 10,000. Each
    /// has exactly one of host, domain and prefix, and the keys that differ for these URLs. Of the
    /// tables that match a URL only the most specific one applies: a longer prefix before a shorter
    /// one, any prefix before a host, a host before a domain, a longer domain before a shorter one.
    /// A key that it leaves out has the value of the whole crawl; tables don't inherit from each
    /// other. `sted check CONF --url URL` shows which settings apply to a URL. Tables can't be
    /// reloaded.
    site: SiteKeys {
        /// Host whose URLs the table is for, with any scheme and port.
        ///
        /// Hosts below it are others: www.host.name is not host.name.
        host: String = String::new(), text("a host name", syntax::host), [];

        /// Domain whose URLs the table is for, with all hosts below it.
        ///
        /// A public suffix like co.uk is every site below it.
        domain: String = String::new(), text("a domain name", syntax::host), [];

        /// Beginning of the URLs that the table is for: scheme, host and port, too, must be equal.
        ///
        /// A server has one pace for all its URLs, so such a table can't set burst, delay and
        /// delay_factor.
        prefix: String = String::new(), text("an absolute URL", syntax::absolute), [];

        /// Pages to fetch of all these URLs together, in place of limits.pages_per_server_max and
        /// limits.pages_per_domain_max. Further URLs are dropped, and the crawl goes on.
        ///
        /// With "none" no limit but limits.pages_max applies.
        pages_max: Option<u64> = None, pages(), [];

        /// Estimated quality of these URLs, in place of what [quality] says. A URL or a host in
        /// quality.file keeps its own.
        ///
        /// Only the policies "quality", "capability" and "yield" make use of it; the mean is 1.
        quality: Decimal = thousandths(1_000), decimal(0..=1_000_000), [];
    }
}
