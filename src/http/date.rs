//! Dates of HTTP as numbers of seconds.
//!
//! Source: RFC 9110, sections 5.6.7 and 8.8.2.2.

use std::time::Duration;

/// The date from which seconds are counted.
const EPOCH: &str = "Thu, 01 Jan 1970 00:00:00 GMT";

/// Returns the date so many seconds after 1970-01-01T00:00:00Z.
pub fn of_seconds(seconds: u32) -> String {
    let epoch = httpdate::parse_http_date(EPOCH).expect("a date");
    httpdate::fmt_http_date(epoch + Duration::from_secs(seconds.into()))
}

/// Returns the seconds since 1970 of a date, if formatting them gives the same bytes again.
pub fn exact_seconds(field: &[u8]) -> Option<u32> {
    let text = std::str::from_utf8(field).ok()?;
    let time = httpdate::parse_http_date(text).ok()?;
    let epoch = httpdate::parse_http_date(EPOCH).ok()?;
    let seconds = u32::try_from(time.duration_since(epoch).ok()?.as_secs()).ok()?;
    (of_seconds(seconds) == text).then_some(seconds)
}

/// Returns a Last-Modified field by which its page can be asked for again: that of a page which the
/// server made a second before it sent it, or earlier. A page may change twice within a second and
/// keep its field, so that asking by it would call the later version unmodified for ever. `date` is
/// the server's Date field; without one, the time of the request, `asked`, in seconds since 1970,
/// stands for it.
///
/// Source: RFC 9110, section 8.8.2.2.
pub fn last_modified(field: &[u8], date: Option<&[u8]>, asked: u32) -> Option<u32> {
    let sent = date.and_then(exact_seconds).unwrap_or(asked);
    exact_seconds(field).filter(|modified| *modified < sent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_this_second_are_not_asked_for_by_it() {
        let (made, next) = (of_seconds(1_000), of_seconds(1_001));
        let of =
            |date: Option<&str>, at| last_modified(made.as_bytes(), date.map(str::as_bytes), at);
        assert_eq!(of(Some(&made), 5_000), None);
        assert_eq!(of(Some(&next), 5_000), Some(1_000));
        assert_eq!(of(Some(&next), 500), Some(1_000), "the server's clock, not ours");
        assert_eq!(of(None, 1_000), None);
        assert_eq!(of(None, 1_001), Some(1_000));
        assert_eq!(of(Some("yesterday"), 1_000), None, "no date");
    }

    #[test]
    fn only_what_reads_back_is_a_number() {
        let cases: [(&[u8], Option<u32>); 6] = [
            (b"Thu, 01 Jan 1970 00:00:01 GMT", Some(1)),
            (b"Sun, 06 Nov 1994 08:49:37 GMT", Some(784_111_777)),
            (b"Sunday, 06-Nov-94 08:49:37 GMT", None),
            (b"Sun Nov  6 08:49:37 1994", None),
            (b"Wed, 31 Dec 1969 23:59:59 GMT", None),
            (b"\xff", None),
        ];
        for (field, seconds) in cases {
            assert_eq!(exact_seconds(field), seconds, "{}", field.escape_ascii());
        }
        assert_eq!(of_seconds(784_111_777), "Sun, 06 Nov 1994 08:49:37 GMT");
    }
}
