//! The parts that are the same in all requests to a site.
//!
//! The header fields of a site are the operator's secrets: they are sent to the URLs of that site
//! only. Each request is written for its own URL, so a redirect to another site carries none. They
//! are left out of the request records of the archive.

use crate::engine::settings::Settings;
use crate::ground::map::Map;
use crate::http::request::{BadField, Fixed};
use crate::url::UrlRef;
use crate::url::site::{SiteId, Sites};
use std::sync::Arc;

/// The fixed parts of all requests.
#[derive(Debug)]
pub(in crate::engine) struct Requests {
    crawl: Fixed,
    sites: Arc<Sites>,
    own: Map<SiteId, Own>,
}

/// The fixed parts of requests to a site.
#[derive(Debug)]
struct Own {
    sent: Fixed,
    /// What is archived: no field of the site, nor one of the crawl that the site's replaces.
    recorded: Fixed,
}

impl Requests {
    /// Renders the fields of the crawl, and of each site that has some.
    ///
    /// # Errors
    /// Returns the first field that can't be sent.
    pub(in crate::engine) fn new(settings: &Settings) -> Result<Self, BadField> {
        let crawl = &settings.identity.fields;
        let mut own = Map::default();
        for (site, fields) in settings.sites.fields.iter().enumerate() {
            if fields.is_empty() {
                continue;
            }
            let is_replaced =
                |name: &String| fields.iter().any(|(other, _)| other.eq_ignore_ascii_case(name));
            let kept = crawl.iter().filter(|(name, _)| !is_replaced(name)).cloned();
            let kept: Vec<(String, String)> = kept.collect();
            let sent: Vec<_> = kept.iter().chain(fields).cloned().collect();
            let parts = Own { sent: settings.fixed(&sent)?, recorded: settings.fixed(&kept)? };
            own.insert(site as SiteId, parts);
        }
        let (crawl, sites) = (settings.fixed(crawl)?, Arc::clone(&settings.sites.index));
        Ok(Self { crawl, sites, own })
    }

    /// Returns what a request for a URL consists of besides its URL and cookies.
    pub(in crate::engine) fn sent_to(&self, url: &str) -> &Fixed {
        self.own_of(url).map_or(&self.crawl, |own| &own.sent)
    }

    /// Returns what is archived of a request for a URL.
    pub(in crate::engine) fn recorded_of(&self, url: &str) -> &Fixed {
        self.own_of(url).map_or(&self.crawl, |own| &own.recorded)
    }

    fn own_of(&self, url: &str) -> Option<&Own> {
        if self.own.is_empty() {
            return None;
        }
        let url = UrlRef::from_canonical(url.as_bytes()).expect("it is a URL of the crawl");
        self.own.get(&self.sites.of(url)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::request::Own as OwnParts;
    use crate::url::site::Matcher;

    /// Laws: a site's fields are sent to its URLs alone, and never archived.
    #[test]
    fn fields_of_a_site_stay_there() {
        let field = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let matchers = [Matcher::host("a.test"), Matcher::prefix("http://b.test/x/")];
        let matchers: Vec<Matcher> = matchers.into_iter().flatten().collect();
        let mut settings = Settings::default();
        settings.identity.user_agent = "u".to_owned();
        settings.identity.fields = vec![field("Accept", "*/*"), field("X-Key", "crawl")];
        settings.sites.index = Arc::new(Sites::new(&matchers));
        settings.sites.fields = vec![
            vec![field("Authorization", "SECRET"), field("Cookie", "s=SECRET")],
            vec![field("x-key", "SECRET")],
        ];
        let requests = Requests::new(&settings).expect("plain fields");
        let text = |fixed: &Fixed| {
            let mut out = Vec::new();
            let own = OwnParts { cookies: Some(b"c=1"), ..OwnParts::default() };
            fixed.write_get(&mut out, "/", "h", &own);
            String::from_utf8(out).expect("ASCII")
        };
        for (url, has, crawls) in [
            ("http://a.test/", true, true),
            ("https://a.test:444/q", true, true),
            ("http://b.a.test/", false, true),
            ("http://b.test/x/1", true, false),
            ("http://b.test/", false, true),
            ("https://b.test/x/1", false, true),
        ] {
            let (sent, kept) = (text(requests.sent_to(url)), text(requests.recorded_of(url)));
            assert_eq!(sent.contains("SECRET"), has, "{url}: {sent}");
            assert!(!kept.contains("SECRET"), "{url}: {kept}");
            assert_eq!(kept.contains("X-Key: crawl"), crawls, "{url}: {kept}");
            assert!(sent.contains("c=1") && sent.contains("Accept: */*"), "{url}: {sent}");
        }
        assert!(text(requests.sent_to("http://a.test/")).contains("Cookie: s=SECRET; c=1\r\n"));
    }
}
