//! The answer to the question why a URL was fetched, was not, or waits: plain values, which are
//! also a reply of the control socket.

use crate::ground::quality::Quality;
use serde::{Deserialize, Serialize};

/// What a crawl knows of a URL.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Why {
    /// When the question was answered, in microseconds since 1970.
    pub at_us: u64,
    /// The text that was asked about.
    pub asked: String,
    /// What is known.
    pub subject: Subject,
    /// What could not be read from the disk, so that the answer may be incomplete.
    pub errors: Vec<String>,
}

/// What the question is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Subject {
    /// The text is no URL that can be fetched, for this reason.
    NotUrl(String),
    /// The text is a URL.
    Url(Box<About>),
}

/// How the crawl decides about a URL, step by step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// The canonical URL, which is requested.
    pub url: String,
    /// The key by which it is deduplicated.
    pub key: String,
    /// The rules that make the key differ from the URL.
    pub key_rules: Vec<String>,
    /// Whether the URL is in scope.
    pub in_scope: bool,
    /// The rule that decides about the scope.
    pub scope_rule: String,
    /// What robots.txt says.
    pub robots: RobotsView,
    /// Whether a URL with this key is known to the seen test; `None` if it can't be said now.
    pub is_known: Option<bool>,
    /// Where the URL is now.
    pub place: Place,
    /// The URL's server, if the crawl knows it.
    pub server: Option<ServerView>,
    /// What is known of the page for its next visit, if the crawl comes back to it and its state
    /// on disk was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known: Option<KnownPage>,
    /// The outcome that the URL would get without a request if it came up now; `None` if it would
    /// be requested.
    pub outcome: Option<String>,
    /// What the request of the URL has to wait for.
    pub obstacles: Vec<Obstacle>,
    /// The earliest time at which the URL could be requested, in microseconds since 1970; `None`
    /// if it can't be said, or if the URL is not to be requested.
    pub earliest_us: Option<u64>,
}

/// A page that was fetched and is visited again, as of the last checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownPage {
    /// The URL that is visited: the one that was asked about, or another one with the same key.
    pub url: String,
    /// When it comes up, in microseconds since 1970. If a visit isn't worth the crawl's bar then,
    /// it is filed again.
    pub due_us: u64,
    /// When it was visited last, in microseconds since 1970.
    pub visited_us: u64,
    /// How many visits after the first found another payload.
    pub changed: u64,
    /// How many found the same.
    pub unchanged: u64,
    /// How many visits in a row have found nothing.
    pub gone: u64,
    /// The signals of change since the last visit.
    pub signals: u64,
    /// Whether it is a sitemap or a feed.
    pub is_list: bool,
    /// The time between two changes that is expected, in seconds; of a list, between two changes
    /// of its pages.
    pub change_interval_s: u64,
    /// What a visit would be worth now, as a percentage of the bar.
    pub worth_percent: u64,
}

/// What robots.txt says about a URL.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RobotsView {
    /// The verdict.
    pub verdict: RobotsVerdict,
    /// The number of the deciding line of the file, from 1; `None` if no rule applies.
    pub line: Option<u32>,
    /// The rule on that line.
    pub rule: Option<String>,
    /// Until when the verdict is valid, in microseconds since 1970.
    pub until_us: Option<u64>,
    /// What the file says of the use of the page; `None` if nothing.
    #[serde(default)]
    pub usage: Option<UsageView>,
}

/// What a robots.txt says of the use of a page.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageView {
    /// Its lines, without their paths.
    pub lines: Vec<String>,
    /// The purposes for which it reserves the page.
    pub reserved: Vec<String>,
    /// The purposes for which it allows the page.
    pub allowed: Vec<String>,
}

/// The verdict of robots.txt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RobotsVerdict {
    /// The crawl does not obey robots.txt.
    NotObeyed,
    /// The file is not known yet, and is requested before the first page.
    NotKnown,
    /// The file is being requested.
    Requested,
    /// The file redirects to another server, and its answer has not arrived.
    Redirected,
    /// The file allows the URL.
    Allowed,
    /// The file forbids the URL.
    Disallowed,
    /// The file can't be fetched, which forbids all pages.
    Unreachable,
}

/// Where a URL is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum Place {
    /// The URL is in no queue and is not being fetched.
    Nowhere,
    /// The URL is being fetched.
    Fetching {
        /// When the request was sent, in microseconds since 1970.
        sent_us: u64,
    },
    /// The URL was fetched, and its links are being found; then its line is written.
    Processing,
    /// The URL redirects, and this next hop has not been fetched yet.
    Redirected {
        /// The URL of the hop.
        to: String,
    },
    /// A reply to the URL is in the archive, and is to be read back.
    ReadBack,
    /// The URL waits in the queue of its server.
    Waiting(Waiting),
    /// The URL is not among the next URLs of its server; the others were not searched.
    Unsure {
        /// The number of URLs that were searched.
        searched: u64,
    },
    /// The URL is kept on disk, because the operator has paused its prefix.
    Paused,
    /// The URL waits on disk for a later pass, if it isn't fetched yet: its domain has URLs over
    /// its budget.
    OverBudget {
        /// The number of other domains that link to its domain, estimated.
        linked_by: u32,
        /// The number of URLs of its domain that are queued in a pass.
        budget: u32,
    },
}

/// A URL in a queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting {
    /// The URL as it waits: the URL that was asked about, or another one with the same key.
    pub url: String,
    /// The fewest URLs of the queue that go before it.
    pub before_min: u64,
    /// The most URLs of the queue that go before it.
    pub before_max: u64,
    /// Whether it is on disk.
    pub is_on_disk: bool,
    /// Whether it is the next hop of a redirect chain.
    pub is_hop: bool,
    /// The number of links from a seed.
    pub depth: u32,
    /// The quality with which it was queued.
    pub quality: Quality,
    /// The number of tries that failed.
    pub tries: u32,
    /// The letter for how it was found; `-` for a seed.
    pub found_as: char,
    /// The page on which it was found.
    pub via: Option<String>,
}

/// The server of a URL.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerView {
    /// Its scheme, host and port.
    pub origin: String,
    /// Its state: idle, ready, reading, visited, resting or given up.
    pub state: String,
    /// Why it was given up; `None` if it was not.
    pub given_up: Option<String>,
    /// The number of URLs in its queue.
    pub urls: u64,
    /// The number of visits so far.
    pub visits: u64,
    /// The number of visits in a row that failed.
    pub failures: u32,
    /// The Crawl-delay that its robots.txt asks for, in milliseconds.
    pub crawl_delay_ms: Option<u64>,
    /// The most requests of one visit; `None` if the server decides.
    pub burst: Option<u32>,
}

/// Something that the request of a URL has to wait for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Obstacle {
    /// What it is, in words.
    pub text: String,
    /// Until when it lasts, in microseconds since 1970; `None` if that is not known.
    pub until_us: Option<u64>,
    /// Whether it may last until the operator does something.
    pub is_open: bool,
}
