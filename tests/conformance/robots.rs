//! robots.txt files of google/robotstxt, crawler-commons, protego and reppy, with the verdicts that
//! their authors expect.
//!
//! All cases of tier A, on which the standard and the reference matcher agree, must pass. Tiers B
//! (beyond the standard) and C (disputed) are reported, and may not get worse.

use super::{Report, base64, folder, lines};
use std::path::Path;
use sted::robots::Rules;

/// The tier of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tier {
    /// The standard and the reference matcher agree.
    A,
    /// A case that the standard doesn't cover.
    B,
    /// Disputed.
    C,
}

/// Runs the cases that must pass.
pub fn run(folder: &Path) -> Report {
    run_tier(folder, Tier::A)
}

/// Runs the cases of one tier.
pub fn run_tier(folder: &Path, tier: Tier) -> Report {
    let mut report = Report::default();
    let name = format!("{tier:?}");
    for case in lines(&folder.join("robots.jsonl")) {
        let text = |key: &str| case[key].as_str().unwrap_or_else(|| panic!("{key} of {case}"));
        if text("tier") != name {
            continue;
        }
        let file = base64(text("robots_b64")).expect("base64 of a case");
        let (product, target) = (text("ua"), text("path"));
        let expected = case["allow"].as_bool().expect("a verdict");
        let verdict = Rules::parse(&file, product).check(target);
        report.add((verdict.allowed != expected).then(|| {
            let (id, why) = (text("id"), case["nonstandard"].as_str().unwrap_or("disputed"));
            let (product, target) = (start_of(product), start_of(target));
            let (found, line) = (verdict.allowed, verdict.line);
            format!("{id}: {product} {target}: allow={expected}, found {found} by {line} ({why})")
        }));
    }
    report
}

fn start_of(text: &str) -> String {
    text.chars().take(60).collect()
}

#[test]
#[ignore = "needs the cases: make conformance DIR=folder"]
fn all_of_tier_a() {
    let folder = folder();
    let report = run(&folder);
    assert!(report.total > 0 && report.differences.is_empty(), "{report}");
}

/// The number of cases of the other tiers that agree; raise it when more do. Six of tier C
/// contradict google-0064, 0066 and 0067 in tier A.
#[test]
#[ignore = "needs the cases: make conformance DIR=folder"]
fn the_other_tiers_no_worse_than_known() {
    let folder = folder();
    for (tier, known) in [(Tier::B, 219), (Tier::C, 25)] {
        let report = run_tier(&folder, tier);
        println!("tier {tier:?}: {report}");
        assert_eq!(report.passed, known, "tier {tier:?}");
    }
}
