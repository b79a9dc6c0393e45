//! Interprets the relations of a link: whether it leads to a page, embeds a resource, may be
//! followed.
//!
//! The relations are those of the HTML standard's table of link types and of the IANA registry that
//! lead a reader to another page. Feeds, searches, licences of code and connection hints are
//! neither pages nor resources.

/// The combined meaning of a list of relations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Rel {
    /// True if the link leads to a page.
    pub(super) page: bool,
    /// True if the link embeds a resource of this page.
    pub(super) embed: bool,
    /// True if the list contains `nofollow`.
    pub(super) nofollow: bool,
    /// True if the list contains `canonical`: the link names the URL that the page prefers.
    pub(super) canonical: bool,
}

/// Relations that lead to pages.
const PAGE: [&[u8]; 19] = [
    b"alternate",
    b"author",
    b"bookmark",
    b"canonical",
    b"contents",
    b"first",
    b"help",
    b"home",
    b"index",
    b"last",
    b"license",
    b"next",
    b"prev",
    b"previous",
    b"privacy-policy",
    b"start",
    b"terms-of-service",
    b"toc",
    b"up",
];

/// Relations that embed resources of a page.
const EMBED: [&[u8]; 9] = [
    b"apple-touch-icon",
    b"apple-touch-icon-precomposed",
    b"icon",
    b"image_src",
    b"manifest",
    b"mask-icon",
    b"modulepreload",
    b"preload",
    b"stylesheet",
];

impl Rel {
    /// Returns the meaning of a list of relations. `media` is the declared media type of the
    /// target, if there is one. A style sheet is never a page (`alternate stylesheet`), and neither
    /// is a target of another type than HTML.
    pub(super) fn of(list: &[u8], media: Option<&[u8]>) -> Self {
        let mut rel = Self::default();
        for word in list.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()) {
            let is = |known: &&[u8]| word.eq_ignore_ascii_case(known);
            rel.page |= PAGE.iter().any(is);
            rel.embed |= EMBED.iter().any(is);
            rel.nofollow |= is(&b"nofollow".as_slice());
            rel.canonical |= is(&b"canonical".as_slice());
        }
        rel.page &= !rel.embed && media.is_none_or(is_page);
        rel
    }
}

fn is_page(media: &[u8]) -> bool {
    let essence = media.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    let is = |known: &[u8]| essence.eq_ignore_ascii_case(known);
    essence.is_empty() || is(b"text/html") || is(b"application/xhtml+xml")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relations() {
        let cases: [(&str, Option<&str>, bool, bool, bool); 10] = [
            ("next", None, true, false, false),
            ("Canonical", None, true, false, false),
            ("  Next\tNoFollow ", None, true, false, true),
            ("alternate", Some("application/atom+xml"), false, false, false),
            ("alternate", Some("Text/HTML; charset=utf-8"), true, false, false),
            ("alternate", Some(""), true, false, false),
            ("alternate stylesheet", None, false, true, false),
            ("shortcut icon", Some("image/x-icon"), false, true, false),
            ("dns-prefetch preconnect", None, false, false, false),
            ("", None, false, false, false),
        ];
        for (list, media, page, embed, nofollow) in cases {
            let rel = Rel::of(list.as_bytes(), media.map(str::as_bytes));
            let canonical = list == "Canonical";
            assert_eq!(rel, Rel { page, embed, nofollow, canonical }, "{list} {media:?}");
        }
    }
}
