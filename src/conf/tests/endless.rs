//! Tests of crawls of the open web that have no end.

use super::{Case, hold};

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
