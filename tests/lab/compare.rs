//! Compares the results of a crawl with the lab's expectations, URL by URL.

use super::crawl::{Crawl, Event, Expected, Logged, What};
use std::collections::{BTreeMap, BTreeSet};
use sted::conf::Burst;

/// Expectations and results, by URL.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// The lab's expectations.
    pub expected: BTreeMap<String, Expected>,
    /// The crawl's results.
    pub got: BTreeMap<String, Got>,
    /// The number of additional requests that a server may get, for comparisons of replies to
    /// pipelined requests.
    pub compared_max: u64,
}

/// The results for one URL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Got {
    /// The last outcome in the crawl log, if there is one.
    pub outcome: Option<String>,
    /// Requests in the lab's log.
    pub requests: u64,
    /// Lines of the index: file and offset of each.
    pub indexed: BTreeSet<(String, u64)>,
    /// Records that the crawl log refers to.
    pub logged: BTreeSet<(String, u64)>,
}

impl Facts {
    /// Collects expectations and results of a crawl.
    pub fn of(crawl: &Crawl) -> Self {
        let expected = crawl.manifest();
        let mut got: BTreeMap<String, Got> = BTreeMap::new();
        for Logged { url, outcome, stored } in crawl.log() {
            let url = got.entry(url).or_default();
            // This line is about the end of a chain, not about the URL's own outcome.
            if outcome != "redirect-to-known" {
                url.outcome = Some(outcome);
            }
            url.logged.extend(stored);
        }
        for (url, file, offset) in crawl.index() {
            let new = got.entry(url.clone()).or_default().indexed.insert((file, offset));
            assert!(new, "{url}: two lines for one record");
        }
        let origins: BTreeMap<&str, &str> = expected.keys().map(|url| split(url)).collect();
        for Event { host, what, .. } in crawl.events() {
            if let What::Request(path) = what {
                let origin = origins.get(&*host).copied().unwrap_or("nowhere://");
                got.entry(format!("{origin}{path}")).or_default().requests += 1;
            }
        }
        let pipelines = crawl.conf.politeness.burst != Burst::Requests(1);
        let compared_max = if pipelines { crawl.conf.pipeline.probation.into() } else { 0 };
        Self { expected, got, compared_max }
    }

    /// Returns the outcomes at well-behaved hosts, without their ports, which differ from run to
    /// run.
    pub fn of_behaving(&self) -> BTreeSet<(String, Option<String>)> {
        let all = self.got.iter().filter(|(url, _)| behaves(url));
        let portless = |url: &str| {
            let (host, origin) = split(url);
            format!("{host}{}", &url[origin.len()..])
        };
        all.map(|(url, got)| (portless(url), got.outcome.clone())).collect()
    }

    /// Returns all deviations, one per line.
    pub fn mistakes(&self) -> Vec<String> {
        let open = self.expected.iter().filter(|(_, expected)| expected.open);
        let repeats = |expected: &Expected| expected.outcomes.iter().any(|it| it == "repeats");
        let endless: BTreeMap<&str, bool> =
            open.map(|(url, expected)| (split(url).0, repeats(expected))).collect();
        let none = Got::default();
        let mut mistakes = Vec::new();
        let mut compared: BTreeMap<&str, u64> = BTreeMap::new();
        let urls: BTreeSet<&String> = self.expected.keys().chain(self.got.keys()).collect();
        for url in urls {
            let got = self.got.get(url).unwrap_or(&none);
            let mut wrong = |what: String| mistakes.push(format!("{url}: {what}"));
            if got.indexed != got.logged {
                wrong(format!("index {:?}, log {:?}", got.indexed, got.logged));
            }
            match self.expected.get(url) {
                Some(expected) => {
                    // One comparison, and a batch whose connection ends is requested again once.
                    let more = self.compared_max.min(2);
                    let more = more.min(got.requests.saturating_sub(expected.requests.1));
                    *compared.entry(split(url).0).or_default() += more;
                    let got = Got { requests: got.requests - more, ..got.clone() };
                    let mut expected = expected.clone();
                    if more > 0 {
                        // A request that was returned to the queue may have used up a refusal.
                        let refused = expected.outcomes.iter().any(|name| name == "http-error");
                        expected.outcomes.extend(refused.then(|| "ok".to_owned()));
                    }
                    judge(&expected, &got, &mut wrong);
                }
                None if endless.contains_key(split(url).0) => {
                    judge_endless(got, endless[split(url).0], &mut wrong);
                }
                None => wrong(format!("nobody could know it: {got:?}")),
            }
        }
        let over = compared.into_iter().filter(|(host, _)| behaves(host));
        // Comparisons, two of a batch with equal replies, and as many batches of two that ended
        // before theirs.
        for (host, count) in over.filter(|(_, count)| *count > 4 * self.compared_max) {
            mistakes.push(format!("{host}: {count} requests too many"));
        }
        mistakes
    }
}

/// Whether a URL, or a host's name, belongs to a well-behaved host.
fn behaves(url: &str) -> bool {
    let host = url.split_once("://").map_or(url, |(_, rest)| rest);
    host.starts_with('h') && host[1..].starts_with(|digit: char| digit.is_ascii_digit())
}

fn judge(expected: &Expected, got: &Got, wrong: &mut impl FnMut(String)) {
    match &got.outcome {
        Some(outcome) if expected.outcomes.contains(outcome) => {}
        other => wrong(format!("outcome {other:?}, not {:?}", expected.outcomes)),
    }
    let (requests, records) = (expected.requests, expected.records);
    if !(requests.0..=requests.1).contains(&got.requests) {
        wrong(format!("{} requests, not {requests:?}", got.requests));
    }
    let indexed = got.indexed.len() as u64;
    if !(records.0..=records.1).contains(&indexed) {
        wrong(format!("{indexed} records, not {records:?}"));
    }
}

/// Checks a page of an endless site: it is fetched once, or dropped by a limit, or as one that
/// `repeats` if such are known there.
fn judge_endless(got: &Got, repeats: bool, wrong: &mut impl FnMut(String)) {
    let count = match got.outcome.as_deref() {
        Some("ok") => 1,
        Some("queue-full") => 0,
        Some("repeats") if repeats => 0,
        other => return wrong(format!("outcome {other:?} deep in a site without end")),
    };
    if (got.requests, got.indexed.len()) != (count, count as usize) {
        wrong(format!("{} requests, {} records", got.requests, got.indexed.len()));
    }
}

/// Splits a URL into its host's name and its origin.
fn split(url: &str) -> (&str, &str) {
    let begin = url.find("://").expect("a URL") + 3;
    let end = url[begin..].find('/').expect("a path") + begin;
    let authority = &url[begin..end];
    (authority.split(':').next().unwrap_or(authority), &url[..end])
}

/// The comparison notices each kind of difference.
#[test]
fn differences_are_seen() {
    let expected = Expected {
        outcomes: vec!["ok".to_owned()],
        requests: (1, 1),
        records: (1, 1),
        open: false,
    };
    let place = ("file".to_owned(), 7);
    let got = Got {
        outcome: Some("ok".to_owned()),
        requests: 1,
        indexed: [place.clone()].into(),
        logged: [place].into(),
    };
    let url = "http://a.test:81/";
    let facts = Facts {
        expected: [(url.to_owned(), expected)].into(),
        got: [(url.to_owned(), got.clone())].into(),
        compared_max: 0,
    };
    assert_eq!(facts.mistakes(), Vec::<String>::new());
    let with = |url: &str, got: Got| {
        let mut facts = facts.clone();
        facts.got.insert(url.to_owned(), got);
        facts.mistakes()
    };
    let cases = [
        (Got { outcome: Some("reset".to_owned()), ..got.clone() }, "outcome"),
        (Got { outcome: None, ..got.clone() }, "outcome"),
        (Got { requests: 0, ..got.clone() }, "0 requests"),
        (Got { requests: 2, ..got.clone() }, "2 requests"),
        (Got { indexed: BTreeSet::new(), ..got.clone() }, "0 records"),
        (Got { logged: BTreeSet::new(), ..got.clone() }, "log {}"),
    ];
    for (changed, says) in cases {
        let mistakes = with(url, changed.clone());
        assert!(mistakes.iter().any(|line| line.contains(says)), "{changed:?}: {mistakes:?}");
    }
    // A host may get four times as many more requests, a URL two of them.
    let mut facts = Facts { compared_max: 2, ..facts.clone() };
    for (path, requests, mistakes) in
        [("", 3, 0), ("b", 4, 1), ("b", 3, 0), ("c", 3, 0), ("d", 3, 0), ("e", 2, 1)]
    {
        let url = format!("http://h0000.test/{path}");
        let expected = facts.expected.values().next().expect("one").clone();
        facts.expected.insert(url.clone(), expected);
        facts.got.insert(url.clone(), Got { requests, ..got.clone() });
        assert_eq!(facts.mistakes().len(), mistakes, "{url}: {:?}", facts.mistakes());
    }
    let unknown = with("http://a.test:81/other", got);
    assert!(unknown.len() == 1 && unknown[0].contains("nobody"), "{unknown:?}");
}
