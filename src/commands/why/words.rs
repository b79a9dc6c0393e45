//! Outcomes, numbers and times in words.

use super::history::Line;
use crate::engine::why::Waiting;
use crate::ground::time::UnixTime;
use indicatif::HumanCount;
use std::borrow::Cow;

/// Outcomes that are not self-explanatory, by their names in the crawl log.
const WORDS: [(&str, &str); 40] = [
    ("challenges", "its server shows challenges in place of its pages"),
    ("challenged", "its server shows a challenge in place of the page"),
    ("reserved", "its use is reserved for the purpose of the crawl, so nothing of it is kept"),
    ("signature-asked", "its server asks for a signature, so it is requested again with one"),
    ("robots-denied", "robots.txt forbids it"),
    ("robots-unreachable", "robots.txt of its server can't be fetched"),
    ("dns-no-such-name", "its host name does not exist"),
    ("dns-no-address", "its host name has no address"),
    ("dns-timed-out", "its host name could not be resolved in time"),
    ("dns-failed", "its host name could not be resolved"),
    ("forbidden-address", "its address may not be connected to (connections.addresses_allowed)"),
    ("connect-refused", "the connection was refused"),
    ("connect-timed-out", "the connection was not established in time"),
    ("unreachable", "there is no route to its server"),
    ("tls-timed-out", "the TLS handshake took too long"),
    ("reset", "the connection was reset"),
    ("closed-early", "the connection was closed before the reply"),
    ("head-timed-out", "the head of the reply did not arrive in time"),
    ("body-timed-out", "the body of the reply stalled"),
    ("fetch-timed-out", "the whole fetch took too long"),
    ("head-too-large", "the head of the reply is too large"),
    ("body-too-large", "the body is longer than fetch.body_bytes_max"),
    ("malformed-head", "the head of the reply is malformed"),
    ("malformed-framing", "the framing of the body is malformed"),
    ("cut-short", "the reply ended before its announced end"),
    ("redirect-limit", "more redirects in a row than fetch.redirects_max"),
    ("redirect-loop", "the redirects lead back to a URL of their chain"),
    ("redirect-to-known", "the target of the redirect was fetched or queued before"),
    ("canonical-known", "a page that prefers it to its own URL was fetched (url.join_canonical)"),
    ("repeats", "the pages of its directory, or under its path, repeat (repeats.end_after)"),
    ("queue-full", "a limit on queued URLs was reached (memory.urls_max, urls_per_server_max)"),
    ("servers-max", "the limit on servers was reached (memory.servers_max)"),
    (
        "servers-per-domain-max",
        "the limit on servers of one domain was reached (memory.servers_per_domain_max)",
    ),
    ("blocked", "the operator has blocked it"),
    ("server-retired", "its server was given up"),
    ("certificate", "the certificate of its server was not accepted"),
    ("failures", "its server failed too often in a row"),
    ("crawl-delay", "its server asks for a longer delay than politeness.crawl_delay_max"),
    ("name", "the host name of its server can't be resolved"),
    ("local", "this machine had no descriptor or port left"),
];

/// The names of reasons for which a URL is out of scope.
const SCOPE: [&str; 13] = [
    "scheme",
    "port",
    "length",
    "depth",
    "elsewhere",
    "path-depth",
    "segment-repeats",
    "query-params",
    "param-repeats",
    "excluded",
    "not-included",
    "requisite-hops",
    "of-requisite",
];

/// Describes an outcome, given by its name in the crawl log.
pub(super) fn of(outcome: &str) -> Cow<'static, str> {
    if let Some((_, words)) = WORDS.iter().find(|(name, _)| *name == outcome) {
        return Cow::Borrowed(words);
    }
    if SCOPE.contains(&outcome) {
        return format!("it is out of scope ({outcome})").into();
    }
    outcome.replace('-', " ").into()
}

/// Returns whether an outcome is that of a URL that was not requested on purpose.
pub(super) fn is_refusal(outcome: &str) -> bool {
    const OTHERS: [&str; 10] = [
        "robots-denied",
        "robots-unreachable",
        "forbidden-address",
        "redirect-limit",
        "redirect-loop",
        "redirect-to-known",
        "canonical-known",
        "queue-full",
        "servers-max",
        "servers-per-domain-max",
    ];
    SCOPE.contains(&outcome) || OTHERS.contains(&outcome) || outcome == "blocked"
}

/// Describes the outcome in a line of the crawl log.
pub(super) fn outcome_of(line: &Line) -> String {
    match (&line.reason, line.status) {
        (None, 0) => "no fetch, but the rules of robots.txt".to_owned(),
        (Some(reason), 0) => format!("no fetch: {reason}"),
        (Some(reason), _) => of(reason).into_owned(),
        (None, status @ 1..) => format!("status {status}"),
        (None, status) => format!("code {status}"),
    }
}

/// Says how many URLs go before one.
pub(super) fn before(waiting: &Waiting) -> String {
    match (waiting.before_min, waiting.before_max) {
        (0, 0) => "no URL of its server goes before it".to_owned(),
        (1, 1) => "1 URL goes before it".to_owned(),
        (least, most) if least == most => format!("{} URLs go before it", number(least)),
        (least, most) => format!("{} to {} URLs go before it", number(least), number(most)),
    }
}

/// Formats a number with separators.
pub(super) fn number(number: u64) -> String {
    HumanCount(number).to_string()
}

/// Formats a time: only the time of day if it is on the same day as `now_us`.
pub(super) fn when(us: u64, now_us: u64) -> String {
    let (time, now) = (UnixTime::from_micros(us).civil(), UnixTime::from_micros(now_us).civil());
    let (text, today) = (time.to_seconds(), now.to_seconds());
    let (Some(day), Some(clock)) = (text.get(..10), text.get(11..19)) else { return text };
    match today.starts_with(day) {
        true => format!("{clock} UTC"),
        false => format!("{day} {clock} UTC"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::url::scope::Rejection;

    #[test]
    fn every_reason_of_the_scope_is_known() {
        use Rejection::*;
        let all = [
            Scheme,
            Port,
            Length,
            Depth,
            Elsewhere,
            PathDepth,
            SegmentRepeats,
            QueryParams,
            ParamRepeats,
            Excluded,
            NotIncluded,
            RequisiteHops,
            OfRequisite,
        ];
        for why in all {
            assert!(is_refusal(why.name()), "{why:?}");
        }
        assert_eq!(of("depth"), "it is out of scope (depth)");
        assert_eq!(of("reset"), "the connection was reset");
        assert_eq!(of("tls-no-common-suite"), "tls no common suite");
    }

    #[test]
    fn times_of_another_day_have_a_date() {
        let now = 1_795_686_000_000_000;
        assert_eq!(when(now, now), "09:40:00 UTC");
        assert_eq!(when(now + 86_400_000_000, now), "2026-11-27 09:40:00 UTC");
    }
}
