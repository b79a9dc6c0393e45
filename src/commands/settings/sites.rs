//! Converts the tables `[[site]]` to the settings of each part.
//!
//! All parts know a table by its number in the list.

use crate::conf::SiteTable;
use crate::engine::settings::SiteSettings;
use crate::frontier::scheduler::SitePace;
use crate::ground::quality::Quality;
use crate::url::scope::SiteRules;
use crate::url::site::Sites;
use std::sync::Arc;

/// Returns the look-up of the tables.
pub(super) fn index(tables: &[SiteTable]) -> Arc<Sites> {
    Arc::new(Sites::new(tables.iter().map(|table| &table.matcher)))
}

/// Returns what the tables say about bursts and rests.
pub(super) fn paces(tables: &[SiteTable]) -> Vec<SitePace> {
    let pace = |table: &SiteTable| {
        let own = &table.politeness;
        SitePace {
            burst: table.has("burst").then_some(own.burst),
            delay: table.has("delay").then_some(own.delay),
            delay_factor_milli: table.has("delay_factor").then_some(own.delay_factor.thousandths()),
        }
    };
    tables.iter().map(pace).collect()
}

/// Returns what the tables say about limits and requests.
pub(super) fn settings(tables: &[SiteTable]) -> SiteSettings {
    let pages_max = |table: &SiteTable| table.has("pages_max").then_some(table.keys.pages_max);
    SiteSettings {
        index: index(tables),
        fields: tables.iter().map(|table| fields(table.headers())).collect(),
        pages_max: tables.iter().map(pages_max).collect(),
        requisites: tables
            .iter()
            .map(|table| table.has("requisites").then_some(table.links.requisites))
            .collect(),
    }
}

/// Returns the names and values of header fields.
pub(super) fn fields(lines: &[String]) -> Vec<(String, String)> {
    let field = |line: &String| {
        let (name, value) = line.split_once(':')?;
        Some((name.trim().to_owned(), value.trim().to_owned()))
    };
    lines.iter().filter_map(field).collect()
}

/// Returns the qualities of the URLs of the tables.
pub(super) fn qualities(tables: &[SiteTable]) -> Vec<Option<Quality>> {
    let quality =
        |table: &SiteTable| table.has("quality").then(|| super::quality_of(table.keys.quality));
    tables.iter().map(quality).collect()
}

/// Returns what the tables say about the scope.
pub(super) fn rules(tables: &[SiteTable]) -> Vec<SiteRules> {
    let rules = |table: &SiteTable| {
        let own = &table.scope;
        SiteRules {
            name: table.name(),
            depth_max: table.has("depth_max").then(|| own.depth_max.unwrap_or(u32::MAX)),
            include: table.has("include").then(|| own.include.clone()),
            exclude: table.has("exclude").then(|| own.exclude.clone()),
        }
    };
    tables.iter().map(rules).collect()
}
