//! Requisites of pages, which may be wanted although they are out of scope: a page in scope is
//! shown with the images, style sheets and fonts that it loads from other hosts.
//!
//! A requisite has the depth of its page, and counts the hops from it: a page refers to a style
//! sheet (1), which imports another one (2), which loads a font (3). Beyond
//! [`Settings::requisite_hops`](super::Settings::requisite_hops) a requisite is a link like any
//! other. So a chain of requisites ends, and within the scope none is lost.
//!
//! A frame in scope is a page of its own. A frame elsewhere is a requisite. On pages that are out
//! of scope, links are not followed.

use super::{Rejection, Scope};
use crate::url::UrlRef;

/// Which requisites of pages are wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Requisites {
    /// Those in scope.
    #[default]
    Scope,
    /// Those of pages in scope, wherever they are.
    Any,
}

/// How far away a URL was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Distance {
    /// The number of links from a seed.
    pub depth: u16,
    /// The number of hops from the page that the URL is a requisite of; 0 for a page.
    pub requisite: u8,
}

/// How a page refers to a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reference {
    /// By a link to follow.
    Link,
    /// By a frame, which is loaded with the page.
    Frame,
    /// As a resource, which is loaded with the page.
    Requisite,
}

impl Scope {
    /// Checks a URL to which a page refers. `from` is the distance of the page; `is_page` says
    /// whether the page is in scope itself. Returns the distance of the URL if it is wanted.
    /// `listed` is that of [`Scope::check_after`].
    pub fn check_reference<'a>(
        &self,
        url: UrlRef<'a>,
        reference: Reference,
        from: Distance,
        is_page: bool,
        listed: &mut &'a str,
    ) -> Result<Distance, Rejection> {
        let linked = Distance { depth: from.depth.saturating_add(1), requisite: 0 };
        let loaded = Distance { requisite: from.requisite.saturating_add(1), ..from };
        let is_near = loaded.requisite <= self.settings.requisite_hops;
        if is_page && (reference != Reference::Requisite || !is_near) {
            let checked = self.check_after(url, linked.depth.into(), listed);
            let is_last = !is_near && self.settings.requisites == Requisites::Scope;
            if checked.is_ok() || is_last || reference == Reference::Link {
                return checked.map(|()| linked);
            }
        }
        match reference {
            Reference::Link => Err(Rejection::OfRequisite),
            _ if is_near => self.check_distance(url, loaded, listed).map(|()| loaded),
            _ => Err(Rejection::RequisiteHops),
        }
    }

    /// Checks a URL that was found at this distance. `listed` is that of [`Scope::check_after`].
    pub fn check_distance<'a>(
        &self,
        url: UrlRef<'a>,
        at: Distance,
        listed: &mut &'a str,
    ) -> Result<(), Rejection> {
        let checked = self.check_after(url, at.depth.into(), listed);
        if checked.is_ok() || at.requisite == 0 || self.settings.requisites == Requisites::Scope {
            return checked;
        }
        self.check_as(url, None, &mut "")
    }

    /// Returns whether a URL that is out of scope would be fetched as a requisite of a page.
    pub(super) fn may_be_requisite(&self, url: UrlRef<'_>) -> bool {
        self.settings.requisites == Requisites::Any && self.check_as(url, None, &mut "").is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::url::Url;
    use crate::url::scope::{FromSeeds, Settings};

    /// The distance that is expected, or the reason for refusing the URL.
    type Expected = Result<(u16, u8), Rejection>;
    type Case<'a> = (&'a str, Reference, (u16, u8), bool, Expected, Expected);

    #[test]
    fn what_a_page_refers_to() {
        use Reference::{Frame, Link, Requisite};
        use Rejection::{Depth, Elsewhere, OfRequisite, RequisiteHops};
        let seed = Url::parse("http://a.test/").expect("a URL");
        let scope = |requisites| {
            let set = Settings {
                from_seeds: FromSeeds::Host,
                depth_max: 2,
                include: vec!["a.test".to_owned()],
                exclude: vec!["/ad".to_owned()],
                requisites,
                ..Settings::default()
            };
            Scope::new(set, [&seed]).expect("good settings")
        };
        let (near, any) = (scope(Requisites::Scope), scope(Requisites::Any));
        let (a, b, ad) = ("http://a.test/x", "http://b.test/x", "http://b.test/ad");
        // The URL, how it is referred to, the depth and hops of the page, whether that is in scope,
        // and what is expected with "scope" and with "any".
        let cases: [Case<'_>; 18] = [
            (a, Link, (1, 0), true, Ok((2, 0)), Ok((2, 0))),
            (a, Link, (2, 0), true, Err(Depth), Err(Depth)),
            (b, Link, (1, 0), true, Err(Elsewhere), Err(Elsewhere)),
            (a, Link, (1, 1), true, Ok((2, 0)), Ok((2, 0))),
            (a, Link, (1, 1), false, Err(OfRequisite), Err(OfRequisite)),
            (a, Requisite, (2, 0), true, Ok((2, 1)), Ok((2, 1))),
            (a, Requisite, (1, 2), true, Ok((1, 3)), Ok((1, 3))),
            (a, Requisite, (1, 3), true, Ok((2, 0)), Ok((2, 0))),
            (a, Requisite, (2, 3), true, Err(Depth), Err(RequisiteHops)),
            (b, Requisite, (2, 0), true, Err(Elsewhere), Ok((2, 1))),
            (b, Requisite, (2, 2), false, Err(Elsewhere), Ok((2, 3))),
            (b, Requisite, (2, 3), false, Err(RequisiteHops), Err(RequisiteHops)),
            (a, Requisite, (2, 2), false, Ok((2, 3)), Ok((2, 3))),
            (a, Requisite, (1, 3), false, Err(RequisiteHops), Err(RequisiteHops)),
            (ad, Requisite, (1, 0), true, Err(Elsewhere), Err(Rejection::Excluded)),
            (a, Frame, (1, 0), true, Ok((2, 0)), Ok((2, 0))),
            (a, Frame, (2, 0), true, Ok((2, 1)), Ok((2, 1))),
            (b, Frame, (1, 0), true, Err(Elsewhere), Ok((1, 1))),
        ];
        for (text, reference, (depth, requisite), is_page, in_scope, anywhere) in cases {
            let url = Url::parse(text).expect("a URL");
            let from = Distance { depth, requisite };
            for (scope, expected) in [(&near, in_scope), (&any, anywhere)] {
                let checked = scope.check_reference(url.view(), reference, from, is_page, &mut "");
                let found = checked.map(|at| (at.depth, at.requisite));
                assert_eq!(found, expected, "{text} {reference:?} {from:?} {is_page}");
                if let Ok(at) = checked {
                    assert_eq!(scope.check_distance(url.view(), at, &mut ""), Ok(()));
                }
            }
        }
    }
}
