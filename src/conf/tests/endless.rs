//! Tests of crawls that have no end: of the open web, and those that come back to known pages; and
//! of crawls that obey what sites say.

use super::{Case, hold, lab};

/// A configuration of the real web without a limit.
fn endless(text: &str) -> String {
    format!("job.seeds = [\"https://a.org/\"]\nidentity.contact = \"me@a.org\"\n{text}")
}

const CLASHES: &[Case] = &[
    (endless, "", Some("scope.span"), "the open web has no end"),
    (endless, "scope.span = \"domain\"", None, "the seeds' domains have one"),
    (endless, "limits.pages_max = 9", None, "a limit of pages"),
    (endless, "limits.bytes_max = \"9MiB\"", None, "a limit of bytes"),
    (endless, "limits.time_max = \"9h\"", None, "a limit of time"),
    (endless, "limits.time_max = \"none\"", Some("scope.span"), "no limit, and others unsaid"),
    (endless, "limits.pages_max = \"none\"", None, "the operator has said so"),
];

#[test]
fn a_crawl_without_end_is_meant() {
    hold(CLASHES);
}

const AGAIN: &[Case] = &[
    (lab, "recrawl.policy = \"greedy\"", None, "a crawl that comes back"),
    (lab, "recrawl.policy = \"often\"", Some("recrawl.policy"), "no policy"),
    (
        lab,
        "recrawl.policy = \"greedy\"\nstate.keep = false",
        Some("recrawl.policy"),
        "known pages are a part of the state",
    ),
    (
        lab,
        "recrawl.policy = \"greedy\"\ncluster.name = \"c\"\ncluster.node = \"a\"\n\
         cluster.servers = [\"nats://a.test:4222\"]",
        Some("recrawl.policy"),
        "a shared crawl doesn't come back",
    ),
    (
        lab,
        "recrawl.interval_min = \"9d\"\nrecrawl.interval_max = \"8d\"",
        Some("recrawl.interval_min"),
        "no time is between them",
    ),
];

#[test]
fn a_crawl_that_comes_back_can() {
    hold(AGAIN);
}

const BUDGETS: &[Case] = &[
    (lab, "schedule.budget_max = 100", None, "domains have budgets"),
    (lab, "schedule.budget_max = 0", Some("schedule.budget_max"), "nothing would be fetched"),
    (lab, "schedule.budget_max = 9", Some("schedule.budget_min"), "the least is more"),
    (lab, "schedule.budget_max = 9\nschedule.budget_min = 9", None, "all have the same"),
    (
        lab,
        "schedule.budget_max = 100\nstate.keep = false",
        Some("schedule.budget_max"),
        "what waits is a part of the state",
    ),
    (
        lab,
        "schedule.budget_max = 100\ncluster.name = \"c\"\ncluster.node = \"a\"\n\
         cluster.servers = [\"nats://a.test:4222\"]",
        Some("schedule.budget_max"),
        "a shared crawl has none",
    ),
];

#[test]
fn domains_can_have_budgets() {
    hold(BUDGETS);
}

const CONSENT: &[Case] = &[
    (lab, "consent.purpose = \"archive\"", None, "a purpose may be stated"),
    (lab, "consent.purpose = \"archive\"\nconsent.obey = true", None, "a purpose that obeys"),
    (lab, "consent.purpose = \"train\"", Some("consent.purpose"), "no purpose"),
    (lab, "consent.obey = true", Some("consent.obey"), "nothing is reserved for no purpose"),
    (
        lab,
        "consent.purpose = \"archive\"\nconsent.obey = true\nconsent.record = false",
        Some("consent.obey"),
        "what isn't recorded isn't known",
    ),
];

#[test]
fn what_is_obeyed_is_known() {
    hold(CONSENT);
}
