//! Replies and pages read in the shortest way: a head to a length, a page to references, a
//! reference to a host and a path.

use memchr::memmem;

/// Bytes of the head and of the body behind it; `None` if the head isn't whole.
///
/// # Panics
/// At a reply that isn't a page of known length: this is no crawler.
pub(crate) fn head(bytes: &[u8]) -> Option<(usize, usize)> {
    let end = memmem::find(bytes, b"\r\n\r\n")? + 4;
    let head = &bytes[..end];
    assert!(head.starts_with(b"HTTP/1.1 200 "), "{}", String::from_utf8_lossy(head));
    let mut lines = head.split(|byte| *byte == b'\n');
    let length = lines.find_map(|line| {
        let (name, value) = line.split_at_checked(15)?;
        name.eq_ignore_ascii_case(b"content-length:").then_some(value)
    });
    let text = std::str::from_utf8(length.expect("a known length")).expect("digits");
    Some((end, text.trim().parse().expect("digits")))
}

/// What stands in every `href="..."` of a page, as it is written.
pub(crate) fn references<'a>(
    finder: &memmem::Finder<'_>,
    page: &'a [u8],
    mut each: impl FnMut(&'a str),
) {
    let mut rest = page;
    while let Some(at) = finder.find(rest) {
        rest = &rest[at + HREF.len()..];
        let Some(end) = memchr::memchr(b'"', rest) else { return };
        if let Ok(reference) = std::str::from_utf8(&rest[..end]) {
            each(reference);
        }
        rest = &rest[end..];
    }
}

/// What references stand behind.
pub(crate) const HREF: &[u8] = b"href=\"";

/// Where a reference leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target<'a> {
    /// This path of the same host, whole.
    Here(&'a str),
    /// This authority, and its path.
    There(&'a str, &'a str),
    /// Nowhere we go.
    Nowhere,
}

/// Joins a reference to the path of its page by cutting and pasting; `room` is where it may paste.
pub(crate) fn join<'a>(base: &str, reference: &'a str, room: &'a mut String) -> Target<'a> {
    let reference = reference.split('#').next().unwrap_or("");
    if let Some(rest) = reference.strip_prefix("http://") {
        let slash = rest.find('/').unwrap_or(rest.len());
        let (authority, path) = rest.split_at(slash);
        return Target::There(authority, if path.is_empty() { "/" } else { decoded(path, room) });
    }
    if reference.starts_with('/') {
        return Target::Here(decoded(reference, room));
    }
    if reference.is_empty() || reference.contains(':') {
        return Target::Nowhere;
    }
    let base = base.split('?').next().unwrap_or(base);
    let (mut folder, mut rest) = (&base[..=base.rfind('/').unwrap_or(0)], reference);
    loop {
        if let Some(below) = rest.strip_prefix("./") {
            rest = below;
        } else if let Some(above) = rest.strip_prefix("../") {
            rest = above;
            let parent = folder[..folder.len() - 1].rfind('/');
            folder = &folder[..=parent.unwrap_or(0)];
        } else {
            break;
        }
    }
    room.clear();
    room.push_str(folder);
    room.push_str(rest);
    if rest.contains("&amp;") {
        *room = room.replace("&amp;", "&");
    }
    Target::Here(room)
}

/// The one character reference that URLs need.
fn decoded<'a>(path: &'a str, room: &'a mut String) -> &'a str {
    if !path.contains('&') {
        return path;
    }
    *room = path.replace("&amp;", "&");
    room
}

/// The law of joining, by example.
pub(crate) fn check() {
    let cases = [
        ("/a/b", "c", "/a/c"),
        ("/a/b?x=/y/", "../c?d=1&amp;e=2", "/c?d=1&e=2"),
        ("/a/", "./", "/a/"),
        ("/a/", "../../../c#d", "/c"),
        ("/a/", "/c?d&amp;e", "/c?d&e"),
    ];
    for (base, reference, path) in cases {
        assert_eq!(join(base, reference, &mut String::new()), Target::Here(path), "{reference}");
    }
    let mut room = String::new();
    assert_eq!(join("/", "http://a.test:1", &mut room), Target::There("a.test:1", "/"));
    assert_eq!(join("/", "mailto:a", &mut room), Target::Nowhere);
    let mut found = Vec::new();
    let page = b"<a href=\"x\"> <a class=y href=\"z\"><a href=\"cut";
    references(&memmem::Finder::new(HREF), page, |reference| found.push(reference));
    assert_eq!(found, ["x", "z"]);
    assert_eq!(head(b"HTTP/1.1 200 OK\r\ncontent-length: 12\r\n\r\nx"), Some((39, 12)));
    assert_eq!(head(b"HTTP/1.1 200 OK\r\ncontent-length: 12\r\n"), None);
}
