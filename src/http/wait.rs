//! Parses `Retry-After`: how long a server asks the client to wait, in seconds or as a date.
//!
//! Source: RFC 9110 10.2.3 and 5.6.7.

use crate::ground::time::UnixTime;
use std::time::Duration;

/// Returns the longest wait that the values of `Retry-After`, of which a reply may have several,
/// ask for. A date is relative to the reply's own `Date`, so that a wrong clock of the server does
/// no harm, or to `now` if the reply has none. Returns `None` if no value is valid, or all dates
/// are past.
pub fn retry_after<'a>(
    values: impl Iterator<Item = &'a [u8]>,
    date: Option<&[u8]>,
    now: UnixTime,
) -> Option<Duration> {
    values.filter_map(|value| wait_of(value, date, now)).max()
}

fn wait_of(value: &[u8], date: Option<&[u8]>, now: UnixTime) -> Option<Duration> {
    let value = std::str::from_utf8(value).ok()?.trim();
    let (whole, part) = value.split_once('.').unwrap_or((value, ""));
    if !whole.is_empty() && [whole, part].concat().bytes().all(|byte| byte.is_ascii_digit()) {
        // A number that overflows means a very long time. A fraction of a second counts as a whole
        // second.
        let is_part = part.bytes().any(|digit| digit != b'0');
        let seconds = whole.parse().unwrap_or(u64::MAX).saturating_add(u64::from(is_part));
        return Some(Duration::from_secs(seconds));
    }
    let until = seconds_of(value)?;
    let date = date.and_then(|date| seconds_of(std::str::from_utf8(date).ok()?.trim()));
    let from = date.unwrap_or(now.as_micros() / 1_000_000);
    until.checked_sub(from).filter(|wait| *wait > 0).map(Duration::from_secs)
}

/// Parses a date to seconds since 1970, in any of the three forms: IMF-fixdate, RFC 850, asctime.
/// Letters may be in any case, and the offset of GMT may replace its name, as in mail. Returns
/// `None` if the date is invalid.
fn seconds_of(date: &str) -> Option<u64> {
    let parse = |date: &str| httpdate::parse_http_date(date).ok();
    let mut known = date.to_ascii_lowercase();
    let zones = [" gmt", " utc", " +0000", " -0000"];
    if let Some(front) = zones.iter().find_map(|zone| known.strip_suffix(zone)) {
        known = front.to_owned() + " GMT";
    }
    // The date parser requires capital first letters of days and months.
    let mut is_inside = false;
    let capital = |letter: char| {
        let was_inside = std::mem::replace(&mut is_inside, letter.is_ascii_alphabetic());
        if was_inside { letter } else { letter.to_ascii_uppercase() }
    };
    let known: String = known.chars().map(capital).collect();
    let since = parse(&known)?.duration_since(parse("Thu, 01 Jan 1970 00:00:00 GMT")?);
    since.ok().map(|since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_and_dates() {
        // The example of the standard: Sun, 06 Nov 1994 08:49:37 GMT.
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
            ("sun, 06 nov 1994 08:51:37 gmt", None, Some(120), "lower case"),
            ("SUNDAY, 06-NOV-94 08:51:37 GMT", None, Some(120), "upper case"),
            ("sun nov  6 08:51:37 1994", None, Some(120), "asctime in lower case"),
            ("Sun, 06 Nov 1994 08:51:37 +0000", None, Some(120), "GMT as an offset"),
            ("Sun, 06 Nov 1994 08:51:37 UTC", None, Some(120), "GMT by its other name"),
            ("Sun, 06 Nov 1994 08:51:37 +0100", None, None, "another zone"),
            (
                "Sun, 06 Nov 1994 08:51:37 GMT",
                Some("sun, 06 nov 1994 08:50:37 gmt"),
                Some(60),
                "both",
            ),
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
            ("1.5", None, Some(2), "a part of a second"),
            ("3.0", None, Some(3), "no part of a second"),
            ("3.", None, Some(3), "no part of a second"),
            ("99999999999999999999999.5", None, Some(u64::MAX), "more than fits"),
            (".5", None, None, "no number of seconds"),
            ("1.2.3", None, None, "no number of seconds"),
            ("1,5", None, None, "no number of seconds"),
            ("soon", None, None, "no date"),
            ("", None, None, "nothing"),
        ];
        for (value, date, expected, why) in cases {
            let now = UnixTime::from_micros(NOW * 1_000_000);
            let wait = wait_of(value.as_bytes(), date.map(str::as_bytes), now);
            assert_eq!(wait, expected.map(Duration::from_secs), "{why}: {value:?}");
        }
    }

    #[test]
    fn of_several_the_longest_counts() {
        let now = UnixTime::from_micros(784_111_777_000_000);
        let cases: [(&[&str], Option<u64>); 6] = [
            (&[], None),
            (&["1", "60"], Some(60)),
            (&["60", "1"], Some(60)),
            (&["soon", "5"], Some(5)),
            (&["5", "Sun, 06 Nov 1994 08:51:37 GMT"], Some(120)),
            (&["soon", ""], None),
        ];
        for (values, expected) in cases {
            let wait = retry_after(values.iter().map(|value| value.as_bytes()), None, now);
            assert_eq!(wait, expected.map(Duration::from_secs), "{values:?}");
        }
    }
}
