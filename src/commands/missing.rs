//! Finds what is missing at the end of a crawl: failed seeds, URLs of given-up servers, what
//! default limits cut, what the archive lost.
//!
//! A crawl with nothing missing ends with exit code 0, otherwise with 12. Servers that never
//! answered are listed but don't make a crawl incomplete. Neither does what was cut by a limit that
//! the configuration sets to a value of its own, because the operator asked for that.

use crate::conf::Conf;
use crate::engine::admission::domains;
use crate::engine::counts::{Counts, Loss};
use crate::engine::outcome::ServerLimit;
use std::fmt::Write;

/// The most seeds that the summary lists, and also the most servers.
const LISTED: usize = 10;

/// From this number of rejected certificates on, the fault may be on this machine.
const CERTIFICATES_MIN: usize = 8;

/// The causes by which something is cut, each with the keys that set the limit; it has no keys if
/// the limit is fixed. A link that is too long is out of scope and doesn't count as cut.
const BOUNDS: &[(&str, &[&str])] = &[
    ("servers-max", &["memory.servers_max"]),
    ("servers-per-domain-max", &["memory.servers_per_domain_max"]),
    ("pages-per-server-max", &["limits.pages_per_server_max"]),
    ("pages-per-domain-max", &["limits.pages_per_domain_max"]),
    ("site-pages-max", &["pages_max in its [[site]]"]),
    ("linksCut", &["links.links_max"]),
    ("codingTooLarge", &["fetch.decoded_bytes_max"]),
    ("charsetTooLarge", &["fetch.decoded_bytes_max"]),
    ("lenTrunc", &["fetch.body_bytes_max"]),
    ("queue-full", &["memory.urls_max", "memory.urls_per_server_max"]),
    ("body-too-large", &["fetch.body_bytes_max"]),
    ("redirect-limit", &["fetch.redirects_max"]),
    ("retries-max", &["retries.retries_max"]),
    ("linksBytesCut", &[]),
    ("urlsBytesCut", &[]),
    ("codingsTooMany", &[]),
    ("head-too-large", &[]),
];

/// What is missing at the end of a crawl.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Missing {
    /// Some of the failed seeds, each with its cause. Their total number is `seeds_count`.
    seeds: Vec<(String, String)>,
    seeds_count: u64,
    /// The given-up servers with which the most URLs were lost.
    servers: Vec<(String, Loss)>,
    urls: u64,
    /// The number of given-up servers that had answered at least one request before.
    answered: u64,
    /// The number of servers whose certificates were rejected, if it is large and none was
    /// accepted; otherwise 0.
    certificates: usize,
    /// The number of captures (archived responses) that the archive lost but that count as fetched.
    lost: u64,
    /// Some of the archive files that lost captures, each with the number that it lost.
    lost_files: Vec<(String, u64)>,
    /// What was cut: the cause, how often, the keys that set the limit, and whether all of these
    /// keys have their default values.
    cuts: Vec<(String, u64, &'static [&'static str], bool)>,
}

impl Missing {
    pub(super) fn of(counts: &Counts, conf: &Conf) -> Self {
        let seeds = counts.seeds.failed.iter().take(LISTED);
        let mut servers: Vec<(String, Loss)> =
            counts.losses.largest.iter().map(|(name, loss)| (name.clone(), loss.clone())).collect();
        servers.sort_by_key(|(_, loss)| std::cmp::Reverse(loss.urls));
        servers.truncate(LISTED);
        let cuts = BOUNDS.iter().filter_map(|(cause, keys)| {
            let outcomes = counts.outcomes.get(*cause).copied().unwrap_or(0);
            let count = counts.cut.get(*cause).copied().unwrap_or(0).max(outcomes);
            let keys = keys_of(cause, keys, conf);
            (count > 0).then(|| ((*cause).to_owned(), count, keys, are_defaults(conf, keys)))
        });
        let lost = counts.archive_damaged.iter().filter(|(_, lost)| **lost > 0);
        Self {
            lost: counts.cut.get("archive-lost").copied().unwrap_or(0),
            lost_files: lost.take(LISTED).map(|(file, lost)| (file.clone(), *lost)).collect(),
            seeds: seeds.map(|(url, why)| (url.clone(), why.to_string())).collect(),
            seeds_count: counts.seeds.failed_count(),
            servers,
            urls: counts.losses.urls,
            answered: counts.losses.answered,
            certificates: certificates(counts),
            cuts: cuts.collect(),
        }
    }

    /// Returns whether anything is missing that the operator asked for: then the exit code is 12.
    pub(super) fn is_any(&self) -> bool {
        let cut = self.cuts.iter().any(|(.., default)| *default);
        let servers = self.answered > 0 || self.certificates > 0;
        self.seeds_count > 0 || servers || self.lost > 0 || cut
    }

    /// Formats what is missing for people, one line each: what, how often, why, and a fix.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        if self.seeds_count > 0 {
            let _ = writeln!(text, "{:<22}{}", "failed seeds", self.seeds_count);
            for (url, why) in &self.seeds {
                let _ = writeln!(text, "  {url}: {why}; {}", fix(why));
            }
            rest(&mut text, self.seeds_count, self.seeds.len());
        }
        if self.urls > 0 {
            let _ = writeln!(
                text,
                "{:<22}{} URLs; {} of the servers had answered; retry with --retry-given-up",
                "lost with servers", self.urls, self.answered
            );
            for (origin, Loss { urls, cause, answered }) in &self.servers {
                let never = if *answered { "" } else { ", never answered" };
                let _ = writeln!(text, "  {origin}: {urls} URLs: {cause}{never}; {}", fix(cause));
            }
        }
        if self.certificates > 0 {
            let _ = writeln!(
                text,
                "{:<22}all rejected, of at least {} servers: check this machine's clock, \
                 tls.roots_file, and whether a proxy intercepts TLS; then retry with \
                 --retry-given-up",
                "certificates", self.certificates
            );
        }
        self.push_lost(&mut text);
        for (cause, count, keys, is_default) in &self.cuts {
            let fix = bound_fix(keys, *is_default);
            let _ = writeln!(text, "{:<22}{cause}: {count} times; {fix}", "cut by a limit");
        }
        text
    }

    fn push_lost(&self, text: &mut String) {
        if self.lost > 0 {
            let _ = writeln!(
                text,
                "{:<22}{} captures lost: restore the files from a copy, or run `sted crawl \
                 --rebuild` to fetch them again",
                "archive damaged", self.lost
            );
        }
        for (file, lost) in &self.lost_files {
            let _ = writeln!(text, "  {file}: {lost}");
        }
    }
}

/// Returns how to raise the limit that is the cause of a loss, in the words of the summary; `None`
/// if the cause is no limit.
pub(super) fn fix_of_bound(cause: &str, conf: &Conf) -> Option<String> {
    let (_, keys) = BOUNDS.iter().find(|(known, _)| *known == cause)?;
    let keys = keys_of(cause, keys, conf);
    Some(bound_fix(keys, are_defaults(conf, keys)))
}

fn bound_fix(keys: &[&str], is_default: bool) -> String {
    match (keys.is_empty(), is_default) {
        (true, _) => "this limit is fixed; the crawl log names the pages".to_owned(),
        (false, true) => format!("raise {} (at its default)", keys.join(" or ")),
        (false, false) => format!("raise {}", keys.join(" or ")),
    }
}

/// Returns the keys that set the limit of a cause. The number of servers in a domain is limited by
/// its own key and by a share of all servers. The lesser of the two limits applies, so raising the
/// other has no effect.
fn keys_of(cause: &str, keys: &'static [&'static str], conf: &Conf) -> &'static [&'static str] {
    let share = domains::share_of(conf.memory.servers_max);
    if cause == ServerLimit::OfDomain.cause() && share < conf.memory.servers_per_domain_max {
        &["memory.servers_max"]
    } else {
        keys
    }
}

/// Returns the number of servers whose certificates were rejected. Returns 0 if there are fewer
/// than [`CERTIFICATES_MIN`], or if any TLS handshake succeeded: then the fault is probably not on
/// this machine.
fn certificates(counts: &Counts) -> usize {
    let refused = counts.losses.largest.values();
    let refused = refused.filter(|loss| loss.cause.starts_with("certificate-")).count();
    let accepted = counts.handshakes_full + counts.handshakes_resumed;
    if accepted == 0 && refused >= CERTIFICATES_MIN { refused } else { 0 }
}

fn rest(text: &mut String, count: u64, listed: usize) {
    let more = count.saturating_sub(listed as u64);
    if more > 0 {
        let _ = writeln!(text, "  and {more} more");
    }
}

/// Returns whether all of these keys have their default values.
fn are_defaults(conf: &Conf, keys: &[&str]) -> bool {
    let value = |conf: &Conf, key: &str| {
        let keys = conf.keys().into_iter();
        let mut found = keys.filter(|it| key == format!("{}.{}", it.section, it.name));
        found.next().map(|key| key.value)
    };
    let default = Conf::default();
    // Sites have no defaults, so their keys aren't found.
    let is_default =
        |key: &&str| value(conf, key).is_some_and(|own| value(&default, key) == Some(own));
    keys.iter().all(is_default)
}

/// Returns the advice for fixing a cause of loss.
pub(super) fn fix(cause: &str) -> &'static str {
    match cause {
        "dns-no-such-name" | "dns-no-address" => "check the name",
        "dns-timed-out" | "dns-failed" => "check the name servers (names.servers)",
        "forbidden-address" => "a host of your own needs connections.addresses_allowed",
        "connect-refused" | "connect-timed-out" | "unreachable" => "check scheme, host and port",
        cause if cause.starts_with("certificate-") => certificate_fix(cause),
        "tls-not-tls" => "the server doesn't speak TLS on this port: check it, or use http://",
        "tls-no-cipher" | "tls-version" => "the server has no secure TLS version or cipher suite",
        "tls-alert" => "the server refuses TLS for this name: check the host",
        "tls-too-long" => "the TLS handshake is too long: raise tls.handshake_bytes_max",
        "tls-closed" | "tls-broken" => "the server or the network breaks off TLS: try later",
        "tls-timed-out" => "TLS is slow: raise connections.tls_timeout, or try later",
        "reset" | "closed-early" | "cut-short" => {
            "the server breaks off connections: try later, or slower"
        }
        "head-timed-out" => "the server is slow: raise connections.head_timeout, or try later",
        "body-timed-out" => "the server is slow: raise connections.body_timeout, or try later",
        "fetch-timed-out" => "the server is slow: raise connections.fetch_timeout, or try later",
        "malformed-head" | "malformed-framing" | "head-too-large" => {
            "the response is not valid HTTP/1.1: crawl.log has its first bytes"
        }
        "body-too-large" => "raise fetch.body_bytes_max",
        "local" => "no descriptors or ports were left: raise `ulimit -n`",
        "robots-denied" => "robots.txt disallows it",
        "challenged" | "challenges" => {
            "it shows challenges in place of pages: ask its operator, or set fetch.challenges = \
             \"evidence\" to see them"
        }
        "401" => "it asks for a password: give it a field in a [[site]] table",
        "402" => "it asks for payment: its line in crawl.log has the price, if it names one",
        "403" => "it refuses the crawler: ask its operator",
        "429" => "it asks for a slower pace: lower politeness, or try later",
        "451" => "it may not show the page, by law",
        "reserved" => {
            "its site reserves this use: set consent.obey = false to keep it all the same"
        }
        "crawl-delay" => "its Crawl-delay is too long: raise politeness.crawl_delay_max",
        "robots-unreachable" => {
            "robots.txt can't be fetched, which disallows everything: see its line in crawl.log"
        }
        "queue-full" | "servers-max" | "servers-per-domain-max" => "raise the limit in [memory]",
        "pages-per-server-max" | "pages-per-domain-max" => "raise the limit in [limits]",
        "site-pages-max" => "raise pages_max in its [[site]] table",
        "elsewhere" => "it redirects out of scope: add that host to scope.hosts",
        "repeats" => "its pages are alike: set repeats.end_after = \"none\" to fetch them all",
        "redirect-limit" => "raise fetch.redirects_max",
        "redirect-loop" => "it redirects in a loop, even with its cookies",
        "excluded" | "not-included" => "scope.exclude or scope.include rejects it",
        "scheme" => "it redirects to a scheme that is not in scope.schemes",
        cause if cause.starts_with(['4', '5']) => {
            "the server responds with this status; check the URL"
        }
        _ => "see its lines in crawl.log",
    }
}

/// Returns the advice for a rejected certificate, by the cause of the rejection.
fn certificate_fix(cause: &str) -> &'static str {
    match cause {
        "certificate-expired" | "certificate-not-yet-valid" => {
            "the certificate has expired or is not valid yet, or this machine's clock is wrong"
        }
        "certificate-wrong-host" => "the certificate is for another host: check the name",
        "certificate-unknown-issuer" | "certificate-self-signed" => {
            "no trusted authority signed the certificate: if you trust it, set tls.roots_file"
        }
        _ => "the certificate is not valid: only the site's operator can replace it",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::contract::{CertificateFault, NameFailure, TlsFault};
    use crate::engine::outcome::{Outcome, PagesLimit};

    #[test]
    fn only_what_was_asked_for_is_missing() {
        let conf = Conf::default();
        let missing = |counts: &Counts| Missing::of(counts, &conf);
        let mut counts = Counts::default();
        assert!(!missing(&counts).is_any() && missing(&counts).text().is_empty());
        let loss = |answered| Loss { urls: 7, cause: "reset".into(), answered };
        counts.losses.urls = 7;
        counts.losses.largest.insert("http://a.test".to_owned(), loss(false));
        assert!(!missing(&counts).is_any(), "a server that never answered is only listed");
        assert!(missing(&counts).text().contains("http://a.test: 7 URLs: reset, never answered"));
        counts.losses.answered = 1;
        assert!(missing(&counts).is_any());
        counts.losses.answered = 0;
        counts.cut.insert("servers-max".into(), 3);
        assert!(missing(&counts).is_any(), "the bound is the program's own");
        let mut conf = Conf::default();
        conf.memory.servers_max = 5;
        let missing = Missing::of(&counts, &conf);
        assert!(!missing.is_any() && missing.text().contains("raise memory.servers_max"));
    }

    /// A domain is limited by the lesser of two keys, and that one is named.
    #[test]
    fn the_key_that_binds_is_named() {
        let mut counts = Counts::default();
        counts.cut.insert("servers-per-domain-max".into(), 3);
        for (servers_max, per_domain, is_any, fix) in [
            (1_000_000, 1_000, true, "raise memory.servers_per_domain_max (at its default)\n"),
            (10_000, 1_000, true, "raise memory.servers_per_domain_max (at its default)\n"),
            (1_000, 1_000, false, "raise memory.servers_max\n"),
            (1_000, 100, false, "raise memory.servers_per_domain_max\n"),
            (1_000_000, 1_000_000, true, "raise memory.servers_max (at its default)\n"),
        ] {
            let mut conf = Conf::default();
            conf.memory.servers_max = servers_max;
            conf.memory.servers_per_domain_max = per_domain;
            let missing = Missing::of(&counts, &conf);
            let case = format!("{servers_max} and {per_domain}: {}", missing.text());
            assert_eq!(missing.is_any(), is_any, "{case}");
            assert!(missing.text().ends_with(fix), "{case}");
        }
    }

    /// Captures that the archive has lost make a crawl incomplete.
    #[test]
    fn a_damaged_archive_is_not_whole() {
        let mut counts = Counts::default();
        counts.archive_damaged.insert("warc/a.warc.gz".to_owned(), 0);
        assert!(!Missing::of(&counts, &Conf::default()).is_any(), "they were fetched again");
        counts.archive_damaged.insert("warc/b.warc.gz".to_owned(), 34);
        counts.cut.insert("archive-lost".into(), 34);
        let missing = Missing::of(&counts, &Conf::default());
        let text = missing.text();
        let said = ["34 captures lost", "--rebuild", "warc/b.warc.gz: 34"];
        assert!(missing.is_any() && said.iter().all(|it| text.contains(it)), "{text}");
        assert!(!text.contains("a.warc.gz"), "{text}");
    }

    #[test]
    fn ten_failed_seeds_are_listed_and_all_are_counted() {
        let mut counts = Counts::default();
        for number in 0..25 {
            counts.seeds.failed.insert(format!("http://{number}.test/"), "404".into());
        }
        let missing = Missing::of(&counts, &Conf::default());
        let text = missing.text();
        assert!(missing.is_any() && text.contains("and 15 more"), "{text}");
        assert_eq!(text.matches(".test/: 404; the server responds with").count(), 10);
    }

    /// Every outcome that is a fault has a fix of its own.
    #[test]
    fn every_fault_has_a_fix() {
        use Outcome as O;
        let certificates = [
            CertificateFault::Expired,
            CertificateFault::NotYetValid,
            CertificateFault::WrongHost,
            CertificateFault::UnknownIssuer,
            CertificateFault::SelfSigned,
            CertificateFault::Revoked,
            CertificateFault::WrongPurpose,
            CertificateFault::BadSignature,
            CertificateFault::Invalid,
        ];
        let tls = [
            TlsFault::NotTls,
            TlsFault::NoCipher,
            TlsFault::Version,
            TlsFault::Alert,
            TlsFault::TooLong,
            TlsFault::Closed,
            TlsFault::Broken,
        ];
        let names = [NameFailure::NoSuchName, NameFailure::NoAddress, NameFailure::TimedOut];
        let others = [
            O::RobotsDenied,
            O::RobotsUnreachable,
            O::ForbiddenAddress,
            O::ConnectRefused,
            O::ConnectTimedOut,
            O::Unreachable,
            O::TlsTimedOut,
            O::Reset,
            O::ClosedEarly,
            O::HeadTimedOut,
            O::BodyTimedOut,
            O::FetchTimedOut,
            O::HeadTooLarge,
            O::BodyTooLarge,
            O::MalformedHead,
            O::MalformedFraming,
            O::CutShort,
            O::QueueFull,
            O::TooMany(ServerLimit::All),
            O::TooMany(ServerLimit::OfDomain),
            O::PagesMax(PagesLimit::Server),
            O::PagesMax(PagesLimit::Domain),
            O::PagesMax(PagesLimit::Site),
            O::Excluded,
            O::Local,
        ];
        let faults = certificates.map(O::Certificate).into_iter().chain(tls.map(O::Tls));
        for outcome in faults.chain(names.map(O::Name)).chain(others) {
            assert_ne!(fix(outcome.name()), fix(""), "{}", outcome.name());
        }
    }

    /// With a wrong clock, missing roots or a captive portal, no certificate is accepted.
    #[test]
    fn certificates_that_all_are_refused_are_our_fault() {
        let mut counts = Counts::default();
        for number in 0..CERTIFICATES_MIN {
            assert!(!Missing::of(&counts, &Conf::default()).is_any(), "{number} prove nothing");
            let loss = Loss { urls: 1, cause: "certificate-expired".into(), answered: false };
            counts.losses.largest.insert(format!("https://{number}.test"), loss);
        }
        let missing = Missing::of(&counts, &Conf::default());
        assert!(missing.is_any() && missing.text().contains("check this machine's clock"));
        counts.handshakes_full = 1;
        assert!(!Missing::of(&counts, &Conf::default()).is_any(), "one was accepted");
    }
}
