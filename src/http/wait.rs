//! How long a server asks to be left alone: `Retry-After`, in seconds or as a date.
//!
//! Source: RFC 9110 10.2.3 and 5.6.7.

use crate::time::UnixTime;
use std::time::Duration;

/// The wait that a `Retry-After` of this value asks for. A date is relative to the reply's own
/// `Date`, so that a clock that is wrong does no harm; to `now` if the reply has none. `None` if
/// the value makes no sense, or if its date is over.
pub fn retry_after(value: &[u8], date: Option<&[u8]>, now: UnixTime) -> Option<Duration> {
    let value = std::str::from_utf8(value).ok()?.trim();
    if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        // More digits than fit mean a very long time.
        return Some(Duration::from_secs(value.parse().unwrap_or(u64::MAX)));
    }
    let until = seconds_of(value)?;
    let date = date.and_then(|date| seconds_of(std::str::from_utf8(date).ok()?.trim()));
    let from = date.unwrap_or(now.as_micros() / 1_000_000);
    until.checked_sub(from).filter(|wait| *wait > 0).map(Duration::from_secs)
}

/// Seconds since 1970 of a date in any of the three forms: IMF-fixdate, RFC 850, asctime.
fn seconds_of(date: &str) -> Option<u64> {
    let parse = |date| httpdate::parse_http_date(date).ok();
    let since = parse(date)?.duration_since(parse("Thu, 01 Jan 1970 00:00:00 GMT")?);
    since.ok().map(|since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_and_dates() {
        // Sun, 06 Nov 1994 08:49:37 GMT, the standard's example.
        const NOW: u64 = 784_111_777;
        let own = Some("Sun, 06 Nov 1994 08:49:37 GMT");
        let cases = [
            ("120", None, Some(120), "seconds"),
            (" 120 ", own, Some(120), "blanks"),
            ("0", None, Some(0), "at once"),
            ("99999999999999999999999", None, Some(u64::MAX), "more than fits"),
            ("Sun, 06 Nov 1994 08:51:37 GMT", None, Some(120), "IMF-fixdate"),
            ("Sunday, 06-Nov-94 08:51:37 GMT", None, Some(120), "RFC 850"),
            ("Sun Nov  6 08:51:37 1994", None, Some(120), "asctime"),
            ("Sun, 06 Nov 1994 08:51:37 GMT", own, Some(120), "by the reply's own clock"),
            (
                "Sat, 01 Jan 2000 00:01:00 GMT",
                Some("Sat, 01 Jan 2000 00:00:00 GMT"),
                Some(60),
                "which is wrong",
            ),
            ("Sun, 06 Nov 1994 08:51:37 GMT", Some("yesterday"), Some(120), "a Date of no sense"),
            ("Sun, 06 Nov 1994 08:49:37 GMT", own, None, "over"),
            ("Sun, 06 Nov 1994 08:00:00 GMT", None, None, "long over"),
            ("Thu, 01 Jan 1900 00:00:00 GMT", None, None, "before all time"),
            ("-5", None, None, "no number of seconds"),
            ("1.5", None, None, "no number of seconds"),
            ("soon", None, None, "no date"),
            ("", None, None, "nothing"),
        ];
        for (value, date, expected, why) in cases {
            let now = UnixTime::from_micros(NOW * 1_000_000);
            let wait = retry_after(value.as_bytes(), date.map(str::as_bytes), now);
            assert_eq!(wait, expected.map(Duration::from_secs), "{why}: {value:?}");
        }
    }
}
