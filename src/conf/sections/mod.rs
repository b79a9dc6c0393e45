//! The sections of the file: each key is declared once, by [`section`], in the file of its topic.
//!
//! A declaration has the key's help, name, type, default, kind and flags. From it follow the field
//! of the section's struct, its default, reading, printing, `sted check`, and the key's entry in
//! `conf/reference.toml`, which `make golden` writes. To add a key: declare it, use it.
//! The help's first paragraph says what the key does; the second, after an empty line, what goes
//! wrong at both ends of its range. The order is the URL's journey.

mod admin;
mod archive;
mod cluster;
mod consent;
mod discovery;
mod fetch;
mod order;
mod recrawl;
mod site;
mod study;
mod target;
mod web;

pub use admin::Admin;
pub use archive::{DiskFull, DiskSpace, Memory, Report, State, Store};
pub use cluster::Cluster;
pub use consent::{Consent, Repeats};
pub use discovery::{Discovery, Sitemaps};
pub use fetch::{Challenges, Connections, Fetch, HostsFile, Links, Names, Pipeline, Tls};
pub use order::{Politeness, Qualities, Retries, Schedule};
pub use recrawl::Recrawl;
pub use site::SiteKeys;
pub use study::{Compare, Events, Lab, Over, Profile, Sim, Worth};
pub use target::{Identity, Job, Limits, Scheme, Scope, Sign, Signature, UrlKey};
pub use web::{Allowance, Preset, Web};

// Types of values that belong to the parts.
pub use crate::frontier::Burst;
pub use crate::frontier::policy::Policy;
pub use crate::rating::{Site, Source};

use super::Conf;
use super::walk::Walk;
use std::time::Duration;

/// Declares a section: its struct with the defaults, and the walk over its keys.
macro_rules! section {
    (
        $(#[doc = $about:literal])*
        $name:ident $(. $part:ident)?: $section:ident {
            $(
                $(#[doc = $help:literal])*
                $key:ident: $type:ty = $default:expr, $kind:expr, [$($flag:ident),*];
            )*
        }
    ) => {
        // The text is also the manual's: there a [name] is a section of the file, not a link.
        #[allow(rustdoc::broken_intra_doc_links, rustdoc::invalid_html_tags, rustdoc::bare_urls)]
        $(#[doc = $about])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $section {
            $($(#[doc = $help])* pub $key: $type,)*
        }

        impl Default for $section {
            fn default() -> Self {
                Self { $($key: $default,)* }
            }
        }

        impl $section {
            pub(super) fn walk(&mut self, walk: &mut crate::conf::walk::Walk<'_>) {
                let name = concat!(stringify!($name) $(, ".", stringify!($part))?);
                walk.section(name, &[$($about),*]);
                $({
                    let flags = &[$(crate::conf::walk::Flag::$flag),*];
                    walk.key(stringify!($key), &mut self.$key, &$kind, flags, &[$($help),*]);
                })*
            }
        }
    };
}
use section;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const TIB: u64 = 1 << 40;
const MILLISECOND: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);
const DAY: Duration = Duration::from_secs(86_400);

/// Walks over the keys that only tables of sites have, and over the sections that have keys with
/// the flag `Site`.
pub(super) fn walk_site(
    walk: &mut Walk<'_>,
    own: &mut SiteKeys,
    scope: &mut Scope,
    politeness: &mut Politeness,
    fetch: &mut Fetch,
    links: &mut Links,
) {
    own.walk(walk);
    scope.walk(walk);
    politeness.walk(walk);
    fetch.walk(walk);
    links.walk(walk);
}

/// Walks over every key; over those of synthetic webs only if the file has one.
pub(super) fn walk(conf: &mut Conf, walk: &mut Walk<'_>) {
    conf.job.walk(walk);
    conf.limits.walk(walk);
    conf.identity.walk(walk);
    conf.signature.walk(walk);
    conf.scope.walk(walk);
    conf.url.walk(walk);
    conf.schedule.walk(walk);
    conf.quality.walk(walk);
    conf.politeness.walk(walk);
    conf.retries.walk(walk);
    conf.recrawl.walk(walk);
    conf.names.walk(walk);
    conf.connections.walk(walk);
    conf.tls.walk(walk);
    conf.pipeline.walk(walk);
    conf.fetch.walk(walk);
    conf.links.walk(walk);
    conf.discovery.walk(walk);
    conf.consent.walk(walk);
    conf.repeats.walk(walk);
    conf.store.walk(walk);
    conf.memory.walk(walk);
    conf.state.walk(walk);
    conf.disk.walk(walk);
    conf.report.walk(walk);
    conf.admin.walk(walk);
    conf.cluster.walk(walk);
    let lab = walk.optional("lab", &mut conf.lab);
    let has_lab = lab.is_some();
    if let Some(lab) = lab {
        lab.walk(walk);
    }
    let compare = walk.optional("compare", &mut conf.compare);
    if has_lab || compare.is_some() {
        conf.web.start_from_preset(walk);
        conf.web.walk(walk);
    }
    if let Some(compare) = compare {
        conf.sim.walk(walk);
        compare.walk(walk);
    }
    if let Some(profile) = walk.optional("profile", &mut conf.profile) {
        profile.walk(walk);
    }
}
