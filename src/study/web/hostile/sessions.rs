//! Pages whose links all have new session ids.
//!
//! A crawler that takes each spelling for a page of its own requests each page as often as there
//! are links to it. The index links to each page with one fixed id; a crawler that recognises
//! session ids requests that spelling, and none of the others, which lead to the same pages.
//!
//! Law: the ids of two links differ, and links to one page differ in nothing else.

use super::super::draw::{Draw, Purpose};
use std::fmt::Write;

/// The number of pages, a quarter of them with each kind of id.
pub(in super::super) const PAGES: u32 = 20;

/// Returns the path of a page as the index spells it, with the page's one fixed id.
pub(in super::super) fn path(page: u32) -> String {
    spelled(page, PAGES)
}

/// Returns the path of a page as a link on page `from` spells it, with an id of that link.
fn spelled(page: u32, from: u32) -> String {
    let mut draw = Draw::new(0, Purpose::Path, from, page);
    match page % 4 {
        0 => format!("/p{page};jsessionid={}", id(&mut draw, b"0123456789ABCDEF", 32)),
        1 => {
            format!("/p{page}?PHPSESSID={}", id(&mut draw, b"0123456789abcdefghijklmnopqrstuv", 26))
        }
        2 => format!("/p{page}?sid={}", id(&mut draw, b"0123456789abcdef", 32)),
        _ => format!("/(S({}))/p{page}", id(&mut draw, b"abcdefghijklmnopqrstuvwxyz012345", 24)),
    }
}

/// Returns an id of `len` characters. The first two are `a1`, so that it has a letter and a digit.
fn id(draw: &mut Draw, letters: &[u8], len: usize) -> String {
    let rest = (2..len).map(|_| letters[draw.below(letters.len() as u32) as usize]);
    b"a1".iter().copied().chain(rest).map(char::from).collect()
}

/// Returns the number of the page at a path, whatever its session id; `None` if there is none.
pub(in super::super) fn page_at(path: &str) -> Option<u32> {
    let path = path.split([';', '?']).next()?;
    let (_, number) = path.rsplit_once("/p")?;
    let page = number.parse().ok().filter(|page| *page < PAGES && number.len() < 3)?;
    let is_in_segment = path.starts_with("/(S(");
    (is_in_segment == (page % 4 == 3)).then_some(page)
}

/// Returns the body of page number `page`, with links to all pages.
pub(in super::super) fn body(page: u32) -> String {
    let mut body = format!("<!DOCTYPE html><title>Page {page}</title>\n");
    for to in 0..PAGES {
        let _ = writeln!(body, "<a href=\"{}\">page {to}</a>", spelled(to, page));
    }
    body
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_link_has_an_id_of_its_own() {
        let links = |from| (0..PAGES).map(move |page| (page, spelled(page, from)));
        let all: Vec<_> = (0..=PAGES).flat_map(links).collect();
        let different: BTreeSet<_> = all.iter().map(|(_, path)| path).collect();
        assert_eq!(different.len() as u32, PAGES * (PAGES + 1));
        for (page, path) in &all {
            assert_eq!(page_at(path), Some(*page), "{path}");
        }
        assert!(body(3).contains(&spelled(7, 3)) && !body(3).contains(&path(7)));
        for path in ["/p20", "/p3", "/(S(x))/p1", "/p", "/", "/p1x"] {
            assert_eq!(page_at(path), None, "{path}");
        }
    }
}
