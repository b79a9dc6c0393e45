//! The dates of sitemaps and feeds.

use jiff::civil::Date;
use jiff::fmt::rfc2822;
use jiff::tz::TimeZone;
use jiff::{Timestamp, civil};

/// Returns a date in seconds since 1970: one of the profile of ISO 8601 that the W3C recommends
/// (from the year alone to fractions of a second) or of RFC 2822. A date without a time is its
/// first second, in UTC. `None` if it is none, or before 1970.
pub fn read(text: &str) -> Option<u32> {
    let text = text.trim();
    let day = |date: Date| date.to_zoned(TimeZone::UTC).ok().map(|at| at.timestamp());
    let time = || {
        let (year, month) = text.split_once('-').unwrap_or((text, "1"));
        let is_short =
            text.len() <= 7 && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
        if is_short && year.len() == 4 {
            return day(Date::new(year.parse().ok()?, month.parse().ok()?, 1).ok()?);
        }
        let stamp = text.parse::<Timestamp>().ok();
        let stamp =
            stamp.or_else(|| day(text.parse::<Date>().ok().filter(|_| text.len() == 10)?));
        // A time without a zone.
        let stamp = stamp.or_else(|| {
            let local = text.parse::<civil::DateTime>().ok()?;
            local.to_zoned(TimeZone::UTC).ok().map(|at| at.timestamp())
        });
        stamp.or_else(|| rfc2822::DateTimeParser::new().parse_timestamp(text).ok())
    };
    u32::try_from(time()?.as_second()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_of_all_forms() {
        let noon = 1_700_000_000 / 86_400 * 86_400 + 43_200;
        for (text, expected) in [
            ("2023-11-14", Some(noon - 43_200)),
            ("2023-11", Some(1_698_796_800)),
            ("2023", Some(1_672_531_200)),
            ("2023-11-14T12:00Z", Some(noon)),
            (" 2023-11-14T12:00:00+00:00\n", Some(noon)),
            ("2023-11-14T13:00:00.25+01:00", Some(noon)),
            ("2023-11-14T12:00:00", Some(noon)),
            ("2023-11-14 12:00:00", Some(noon)),
            ("Tue, 14 Nov 2023 12:00:00 GMT", Some(noon)),
            ("14 Nov 2023 14:00:00 +0200", Some(noon)),
            ("1969-12-31", None),
            ("2023-13-01", None),
            ("yesterday", None),
            ("", None),
            ("20231114", Some(noon - 43_200)),
        ] {
            assert_eq!(read(text), expected, "{text:?}");
        }
    }
}
