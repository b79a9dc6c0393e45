//! What `sted check` says of a shared crawl: whether its servers can be reached and have what is
//! needed, whether the crawl was begun, and whether it would survive a loss of power.

use super::queue_of;
use crate::cluster::{member, queue::Key};
use crate::conf::Conf;
use crate::os::queue::{self, Sync};
use std::fmt::Write;

/// Returns the remarks on a shared crawl as TOML comments; empty if the crawl is this machine's
/// alone. The servers are asked.
pub(in crate::commands) fn remarks(conf: &Conf) -> String {
    let Some(settings) = queue_of(conf) else { return String::new() };
    let (crawl, node) = (&settings.crawl, &settings.node);
    let mut out = format!("# Cluster: node {node} of the crawl {crawl}; ");
    let _ = match queue::look(&settings) {
        Err(failure) => writeln!(out, "it can't begin now: {failure}"),
        Ok(None) => writeln!(out, "the servers can be reached; no node has begun it"),
        Ok(Some(look)) => {
            let entry = look.entries.iter().find(|entry| entry.key == Key::Crawl);
            let found = entry.and_then(|entry| member::crawl_in(&entry.value));
            let own = super::member_of(conf, [0; 16]);
            let difference = found.as_ref().and_then(|(crawl, _)| own.difference(crawl));
            match (difference, found) {
                (Some(difference), _) => writeln!(out, "it would be refused: {difference}"),
                (None, Some((_, nodes))) => writeln!(out, "{} nodes run it now", nodes.len()),
                (None, None) => writeln!(out, "its entry makes no sense: another version?"),
            }
        }
    };
    let _ = match conf.cluster.monitor.map(queue::sync_of) {
        None => writeln!(
            out,
            "# Cluster: write monitor = \"host:8222\" to see here whether a loss of power at the \
             server could lose pages"
        ),
        Some(Err(failure)) => writeln!(out, "# Cluster: {failure}"),
        Some(Ok(Sync::Always)) => writeln!(out, "# Cluster: the server syncs each message"),
        Some(Ok(Sync::Each(interval))) => writeln!(
            out,
            "# Cluster: the server syncs each {interval:?} only: a loss of power there loses what \
             was acknowledged since. Write sync_interval: always in its jetstream block"
        ),
    };
    out
}
