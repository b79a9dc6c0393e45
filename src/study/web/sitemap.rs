//! The sitemaps of the hosts: which pages they list, and what they say of them.

use super::draw::Purpose;
use super::page::Reply;
use super::{Place, Resource, Robots, Version, Web};
use crate::ground::time::UnixTime;
use std::fmt::Write;
use std::time::Duration;

impl Web {
    /// Returns whether the robots.txt of a host names a sitemap.
    pub fn has_sitemap(&self, host: u32) -> bool {
        // This is called for every host; most webs have no sitemap at all.
        self.settings.sitemaps > 0.0
            && self.hostile_of(host).is_none()
            && !matches!(self.robots_of(host), Robots::None | Robots::Deny)
            && self.draw(Purpose::Sitemap, host, 0).chance(self.settings.sitemaps)
    }

    /// Returns the sitemap of a host, `at` a time since the web began: all pages that are there,
    /// with the times of their last changes if pages change. A host that lies says that they all
    /// just changed.
    pub(super) fn sitemap_reply(&self, host: u32, at: Duration) -> Reply {
        let lies = self.draw(Purpose::Sitemap, host, 1).chance(self.settings.sitemap_lies);
        let mut text = String::from(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n",
        );
        for page in 0..self.pages_of(host) {
            let place = Place { host, resource: Resource::Page(page) };
            let changes = self.settings.changes.as_ref();
            let modified = match changes.map(|how| (how, self.version(place, at))) {
                None => None,
                Some((_, Version::NotYet | Version::Gone)) => continue,
                Some((how, Version::Since(since))) => {
                    let since = if lies { at } else { since };
                    let micros = how.epoch * 1_000_000 + since.as_micros() as u64;
                    Some(UnixTime::from_micros(micros).civil().to_seconds())
                }
            };
            let url = self.url(place).replace('&', "&amp;");
            let _ = write!(text, "<url><loc>{url}</loc>");
            if let Some(modified) = modified {
                let _ = write!(text, "<lastmod>{modified}</lastmod>");
            }
            text.push_str("</url>\n");
        }
        text.push_str("</urlset>\n");
        Reply { content_type: "application/xml", ..Reply::text(text) }
    }
}
