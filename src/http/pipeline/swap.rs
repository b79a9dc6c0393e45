//! Detects replies out of order by comparing what a reply says of itself with what was requested.
//!
//! The check is needed only if other requests are in flight after the answered one; the engine
//! calls it only then.
//! Cost: nothing if no other requests are in flight; otherwise a few comparisons of short strings,
//! without allocation.

/// The header fields of a reply that could reveal that replies were swapped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Signs<'a> {
    /// The value of Content-Location; `None` if the reply doesn't have the field.
    pub content_location: Option<&'a [u8]>,
    /// The value of Location; `None` if the reply doesn't have the field.
    pub location: Option<&'a [u8]>,
    /// The value of Content-Type; `None` if the reply doesn't have the field.
    pub content_type: Option<&'a [u8]>,
}

/// The sign by which a reply seems to answer another request than its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Swap {
    /// The Content-Location of the reply names another request in flight.
    ContentLocation,
    /// The reply redirects to the path of another request in flight plus a slash, as servers do for
    /// folders.
    Redirect,
    /// The media type of the reply contradicts the file extension of its own request's path, and
    /// fits that of another request in flight.
    MediaType,
}

/// Returns whether, and by which sign, the reply to the request `asked` seems to answer one of the
/// later requests `behind`. All requests are given as path and query. No single field is
/// suspicious: pages redirect anywhere, and a missing image is often answered with a page. The
/// reply must contradict its own request and match another one in flight. A false alarm costs one
/// server its pipelining; a missed swap archives a page under the wrong URL.
pub fn suspicious(asked: &str, behind: &[&str], signs: &Signs<'_>) -> Option<Swap> {
    if behind.is_empty() {
        return None;
    }
    let is_other = |path: &[u8]| {
        path != asked.as_bytes() && behind.iter().any(|other| other.as_bytes() == path)
    };
    if signs.content_location.is_some_and(|value| is_other(path_of(value))) {
        return Some(Swap::ContentLocation);
    }
    let folder = signs.location.and_then(|value| path_of(value).strip_suffix(b"/"));
    if folder.is_some_and(is_other) {
        return Some(Swap::Redirect);
    }
    let class = signs.content_type.and_then(class_of_type)?;
    let misses = class_of_path(asked).is_some_and(|own| own != class);
    let fits = |other: &&str| class_of_path(other) == Some(class);
    (misses && behind.iter().any(fits)).then_some(Swap::MediaType)
}

/// The classes of content that both a file extension and a media type show.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Page,
    Image,
    Style,
    Script,
    Pdf,
}

const ENDINGS: [(&str, Class); 14] = [
    ("html", Class::Page),
    ("htm", Class::Page),
    ("xhtml", Class::Page),
    ("jpg", Class::Image),
    ("jpeg", Class::Image),
    ("png", Class::Image),
    ("gif", Class::Image),
    ("webp", Class::Image),
    ("svg", Class::Image),
    ("ico", Class::Image),
    ("css", Class::Style),
    ("js", Class::Script),
    ("mjs", Class::Script),
    ("pdf", Class::Pdf),
];

fn class_of_type(value: &[u8]) -> Option<Class> {
    let end = memchr::memchr(b';', value).unwrap_or(value.len());
    let (kind, subkind) = std::str::from_utf8(value[..end].trim_ascii()).ok()?.split_once('/')?;
    let is = |text: &str, one: &str| text.eq_ignore_ascii_case(one);
    match () {
        () if is(kind, "image") => Some(Class::Image),
        () if is(subkind, "html") || is(subkind, "xhtml+xml") => Some(Class::Page),
        () if is(subkind, "css") => Some(Class::Style),
        () if is(subkind, "javascript") => Some(Class::Script),
        () if is(subkind, "pdf") => Some(Class::Pdf),
        () => None,
    }
}

fn class_of_path(target: &str) -> Option<Class> {
    let path = target.split('?').next().unwrap_or_default();
    let (_, ending) = path.rsplit('/').next()?.rsplit_once('.')?;
    let (_, class) = ENDINGS.iter().find(|(known, _)| ending.eq_ignore_ascii_case(known))?;
    Some(*class)
}

/// Returns the path and the query of a reference, without its scheme, authority and fragment.
fn path_of(reference: &[u8]) -> &[u8] {
    let end = memchr::memchr(b'#', reference).unwrap_or(reference.len());
    let reference = &reference[..end];
    let after_scheme = match memchr::memmem::find(reference, b"//") {
        Some(0) => 2,
        Some(at) if reference[at - 1] == b':' => at + 2,
        _ => return reference,
    };
    let rest = &reference[after_scheme..];
    memchr::memchr(b'/', rest).map_or(b"/", |at| &rest[at..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_of_a_swap() {
        let none = Signs::default();
        let content = |value: &'static str| Signs {
            content_location: Some(value.as_bytes()),
            ..Signs::default()
        };
        let moved =
            |value: &'static str| Signs { location: Some(value.as_bytes()), ..Signs::default() };
        let typed = |value: &'static str| Signs {
            content_type: Some(value.as_bytes()),
            ..Signs::default()
        };
        let cases = [
            ("/a", "/b", none, None, "nothing said"),
            ("/a", "/b", content("/a"), None, "names itself"),
            ("/a", "/b", content("/a.en"), None, "a variant nobody asked for (RFC 9110 8.7)"),
            ("/a", "/b", content("/b"), Some(Swap::ContentLocation), "names the next request"),
            ("/a", "/b /c", content("/c"), Some(Swap::ContentLocation), "or one behind it"),
            ("/a", "/b?x=1", content("http://h:80/b?x=1#f"), Some(Swap::ContentLocation), "abs"),
            ("/a", "/", content("https://h"), Some(Swap::ContentLocation), "no path is /"),
            ("/a", "", content("/b"), None, "nothing is under way behind it"),
            ("/a", "/b", moved("/a/"), None, "a folder's own slash"),
            ("/a", "/b", moved("/b"), None, "a redirect to another page is everyday"),
            ("/a", "/b", moved("/b/"), Some(Swap::Redirect), "the slash of another folder"),
            ("/a", "/b", moved("//h/b/"), Some(Swap::Redirect), "relative to the scheme"),
            ("/a.png", "/b", typed("text/html"), None, "a missing image is often a page"),
            ("/a.png", "/b.html", typed("text/html"), Some(Swap::MediaType), "a page was next"),
            ("/a.html", "/b.PNG?v=1", typed("image/png"), Some(Swap::MediaType), "an image"),
            ("/a.html", "/b.html", typed("Text/HTML; charset=x"), None, "fits both"),
            ("/a", "/b.png", typed("image/png"), None, "no ending promises anything"),
            ("/a.html", "/b.png", typed("rubbish"), None, "no type at all"),
        ];
        for (asked, behind, signs, expected, why) in cases {
            let behind: Vec<_> = behind.split_whitespace().collect();
            assert_eq!(suspicious(asked, &behind, &signs), expected, "{asked} {behind:?}: {why}");
        }
    }
}
