//! Where the links of a reply may be: in header fields, and in its body if that is HTML or CSS.

use crate::engine::wire::Reply;
use crate::http::coding::Coding;
use crate::http::is_redirect;
use crate::http::mime::{self, Markup, MediaType};
use crate::http::response::Head;
use crate::links::{self, Cut, Directives, Found};
use smallvec::SmallVec;

/// The sources of links in a reply, and what is needed to read them.
#[derive(Debug)]
pub(in crate::engine) struct LinkSources {
    /// The target of a `Refresh` field.
    pub(super) refresh: Option<Box<[u8]>>,
    /// The references in `Link` fields.
    pub(super) head_links: Found,
    pub(super) directives: Directives,
    /// The charset that the Content-Type field names.
    pub(super) charset: Option<SmallVec<[u8; 32]>>,
    pub(super) codings: SmallVec<[Coding; 3]>,
    pub(super) markup: Markup,
    /// Whether the body may be a sitemap or a feed, by its media type.
    pub(in crate::engine) is_xml: bool,
    /// Whether requisites of the page are fetched.
    pub(super) requisites: bool,
    /// What was out of the ordinary in the reply, as annotations for its line in the crawl log.
    pub(in crate::engine) notes: SmallVec<[&'static str; 2]>,
}

/// Returns whether a media type is one of XML documents that aren't pages.
fn is_xml(media: Option<&MediaType>) -> bool {
    let essence = media.map_or(&b""[..], |media| &media.essence);
    let all: [&[u8]; 5] = [
        b"application/xml",
        b"text/xml",
        b"application/rss+xml",
        b"application/atom+xml",
        b"application/rdf+xml",
    ];
    all.contains(&essence)
}

impl LinkSources {
    /// Returns the sources of links in `reply`, whose head is `head`.
    pub(in crate::engine) fn of(reply: &Reply, head: &Head, settings: &links::Settings) -> Self {
        let bytes = reply.head();
        let is_page = (200..400).contains(&head.status);
        let codings = head.codings(bytes);
        let media = MediaType::of(head, bytes);
        let mut notes = SmallVec::new();
        if is_redirect(head.status) && head.has(bytes, "location") {
            notes.push("badLocation");
        }
        if codings.has_unknown {
            notes.push("codingUnknown");
        }
        let markup = match mime::markup(media.as_ref(), head, bytes) {
            _ if !is_page => Markup::Other,
            Markup::Other => Markup::Other,
            Markup::Css if !settings.requisites => Markup::Other,
            _ if codings.too_many => {
                notes.push("codingsTooMany");
                Markup::Other
            }
            // A body with a content coding is examined later, when it is decoded.
            Markup::Sniff
                if codings.known.is_empty() && !mime::looks_like_html(reply.payload()) =>
            {
                Markup::Other
            }
            markup => markup,
        };
        let (mut head_links, mut directives) = (Found::new(), Directives::default());
        let mut refresh = None;
        if is_page {
            for (name, value) in head.fields(bytes) {
                if name.eq_ignore_ascii_case(b"link") {
                    links::header_links(value, settings, &mut head_links);
                } else if name.eq_ignore_ascii_case(b"x-robots-tag") {
                    directives = directives | links::robots_tag(value, &settings.product);
                }
            }
            let target = head.field(bytes, "refresh").and_then(links::refresh);
            refresh = target.and_then(|(_, target)| target).map(Box::from);
        }
        Self {
            refresh,
            head_links,
            directives,
            is_xml: is_page && is_xml(media.as_ref()),
            charset: media.and_then(|media| media.charset),
            codings: codings.known,
            markup,
            requisites: settings.requisites,
            notes,
        }
    }

    /// Returns whether the reply may have links.
    pub(in crate::engine) fn has_any(&self) -> bool {
        let has_links =
            self.head_links.links().len() > 0 || self.head_links.cut() != Cut::default();
        self.refresh.is_some() || has_links || self.markup != Markup::Other
    }
}
