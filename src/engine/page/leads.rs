//! What a reply leads to, by its head: a redirect, header fields with links, a body that is HTML.

use crate::engine::redirect::is_redirect;
use crate::engine::settings::Settings;
use crate::engine::wire::Reply;
use crate::http::coding::Coding;
use crate::http::mime::{self, Html, MediaType};
use crate::http::response::Head;
use crate::links::{self, Cut, Directives, Found};
use smallvec::SmallVec;

/// What is to be followed of a reply.
#[derive(Debug)]
pub(in crate::engine) struct Leads {
    /// Where a `Refresh` field leads.
    pub(super) refresh: Option<Box<[u8]>>,
    /// References in `Link` fields.
    pub(super) head_links: Found,
    pub(super) directives: Directives,
    /// The charset that its Content-Type names.
    pub(super) charset: Option<SmallVec<[u8; 32]>>,
    pub(super) codings: SmallVec<[Coding; 3]>,
    pub(super) html: Html,
    notes: SmallVec<[&'static str; 2]>,
}

impl Leads {
    /// What is to be followed of `reply`, whose head is `head`.
    pub(in crate::engine) fn of(reply: &Reply, head: &Head, settings: &Settings) -> Self {
        let bytes = reply.head();
        let is_page = (200..400).contains(&head.status);
        let codings = head.codings(bytes);
        let media = MediaType::of(head, bytes);
        let mut notes = SmallVec::new();
        if is_redirect(head.status, true) && head.has(bytes, "location") {
            notes.push("badLocation");
        }
        if codings.has_unknown {
            notes.push("codingUnknown");
        }
        let html = match mime::html(media.as_ref(), head, bytes) {
            _ if !is_page => Html::No,
            Html::No => Html::No,
            _ if codings.too_many => {
                notes.push("codingsTooMany");
                Html::No
            }
            // What is coded is looked at when it is decoded.
            Html::Sniff if codings.known.is_empty() && !mime::looks_like_html(reply.payload()) => {
                Html::No
            }
            html => html,
        };
        let (mut head_links, mut directives) = (Found::new(), Directives::default());
        let mut refresh = None;
        if is_page {
            for (name, value) in head.fields(bytes) {
                if name.eq_ignore_ascii_case(b"link") {
                    links::header_links(value, &settings.links, &mut head_links);
                } else if name.eq_ignore_ascii_case(b"x-robots-tag") {
                    directives = directives | links::robots_tag(value, &settings.links.product);
                }
            }
            let target = head.field(bytes, "refresh").and_then(links::refresh);
            refresh = target.and_then(|(_, target)| target).map(Box::from);
        }
        Self {
            refresh,
            head_links,
            directives,
            charset: media.and_then(|media| media.charset),
            codings: codings.known,
            html,
            notes,
        }
    }

    /// What was out of the ordinary: annotations of its line, and counted.
    pub(in crate::engine) fn notes(&self) -> impl Iterator<Item = &'static str> {
        self.notes.iter().copied()
    }

    /// Whether there is anything to be followed, or looked for.
    pub(in crate::engine) fn has_any(&self) -> bool {
        let has_links =
            self.head_links.links().len() > 0 || self.head_links.cut() != Cut::default();
        self.refresh.is_some() || has_links || self.html != Html::No
    }
}
