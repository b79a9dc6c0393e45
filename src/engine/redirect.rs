//! Decides which replies are redirects, and where they lead.
//!
//! A reply is a redirect if its status is one of five (the "redirect status" of the Fetch standard)
//! and its `Location` is a valid http(s) URL. Any other 3xx reply is a page: 300, 304, 305 and 306
//! are not followed (RFC 9110 15.4.1, 15.4.6, 15.4.7), and the body of a redirect without a valid
//! `Location` is shown, as in browsers.

use crate::http::is_redirect;
use crate::http::response::Head;
use crate::url::{Batch, Url, UrlRef, canon::Joiner};

/// Returns where a reply to the URL `from` redirects, or `None` if it is no redirect. `head` is the
/// parsed head of the reply and `bytes` are the bytes it was parsed from. Of several `Location`
/// fields the first that isn't empty counts, as in Chromium. The work that this takes is added to
/// `units`.
pub(super) fn redirect_target(
    head: &Head,
    bytes: &[u8],
    from: UrlRef<'_>,
    units: &mut usize,
) -> Option<Url> {
    if !is_redirect(head.status) {
        return None;
    }
    let is_location = |name: &[u8]| name.eq_ignore_ascii_case(b"location");
    let mut fields = head.fields(bytes);
    let (_, location) = fields.find(|(name, value)| is_location(name) && !value.is_empty())?;
    let mut batch = Batch::new();
    let mut joiner = Joiner::new(from);
    let joined = joiner.join(location, encoding_rs::UTF_8, &mut batch);
    *units += location.len() + joiner.take_work();
    joined.ok()?;
    Some(batch.get(0).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::response::{Limits, Reader};

    #[test]
    fn only_a_usable_location_of_five_statuses_is_followed() {
        let cases: [(&str, &[u8], Option<&str>, &str); 17] = [
            ("301", b"Location: /z", Some("http://a.test/z"), "RFC 9110 15.4.2"),
            ("302", b"location: z?q", Some("http://a.test/d/z?q"), "15.4.3, relative"),
            ("303", b"Location: //b.test", Some("http://b.test/"), "15.4.4"),
            ("307", b"Location: https://b.test/x", Some("https://b.test/x"), "15.4.8"),
            ("308", b"Location: /z#here", Some("http://a.test/z"), "15.4.9, no fragment"),
            ("300", b"Location: /z", None, "15.4.1: a choice for whoever reads it"),
            ("304", b"Location: /z", None, "15.4.5: about a copy that we don't have"),
            ("305", b"Location: /z", None, "15.4.6: deprecated"),
            ("306", b"Location: /z", None, "15.4.7: unused"),
            ("399", b"Location: /z", None, "unknown"),
            ("200", b"Location: /z", None, "no redirect at all"),
            ("302", b"X: y", None, "no Location"),
            ("302", b"Location: ", None, "an empty one, as in Chromium"),
            ("302", b"Location: \r\nLocation: /z", Some("http://a.test/z"), "the first of use"),
            ("302", b"Location: mailto:x@y", None, "not of the web"),
            ("302", b"Location: http://[/", None, "no URL"),
            ("302", b"Location: /caf\xe9?\xe9", Some("http://a.test/caf%E9?%E9"), "not UTF-8"),
        ];
        let from = Url::parse("http://a.test/d/").expect("a URL");
        for (status, field, expected, why) in cases {
            let mut bytes = format!("HTTP/1.1 {status} x\r\n").into_bytes();
            bytes.extend_from_slice(field);
            bytes.extend_from_slice(b"\r\n\r\n");
            let mut reader = Reader::new(Limits::default());
            reader.begin();
            reader.read(&bytes, true).expect("a head");
            let target = redirect_target(reader.head(), &bytes, from.view(), &mut 0);
            let text = target.as_ref().map(|url| url.as_str());
            assert_eq!(text, expected, "{status} {}: {why}", field.escape_ascii());
        }
    }

    /// The cost is charged even if the target is invalid: mapping a host name to ASCII is
    /// expensive.
    #[test]
    fn what_a_location_costs_is_counted() {
        let from = Url::parse("http://a.test/d/").expect("a URL");
        let host = "\u{6f22}".repeat(300);
        for (location, least) in [("/z", 2), (&*host, host.len()), (&format!("//{host}"), 40_000)] {
            let bytes = format!("HTTP/1.1 301 x\r\nLocation: {location}\r\n\r\n").into_bytes();
            let mut reader = Reader::new(Limits::default());
            reader.begin();
            reader.read(&bytes, true).expect("a head");
            let mut units = 0;
            redirect_target(reader.head(), &bytes, from.view(), &mut units);
            assert!(units >= least, "{units} units");
        }
    }
}
