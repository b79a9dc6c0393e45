//! The page on the crawl log, src/store/CRAWL-LOG.md, against the code: it has every outcome, code,
//! annotation, rule and JSON member, and nothing else.

use std::collections::BTreeSet;
use sted::frontier::Rule;

const PAGE: &str = include_str!("../src/store/CRAWL-LOG.md");

/// Returns the words in backquotes in the first column of the table of a section.
fn listed(section: &str) -> BTreeSet<&'static str> {
    let rest = PAGE.split_once(&format!("\n## {section}\n")).expect("a section").1;
    let rows = rest.split("\n## ").next().expect("some text").lines();
    let cells = rows.filter_map(|row| row.strip_prefix("| `")?.split_once(" |").map(|row| row.0));
    cells.flat_map(|cell| cell.split('`').step_by(2)).filter(|word| !word.is_empty()).collect()
}

/// Returns the literals in a source file between two texts.
fn literals(source: &'static str, from: &str, to: &str) -> BTreeSet<&'static str> {
    let rest = source.split_once(from).unwrap_or_else(|| panic!("no {from}")).1;
    let body = rest.split_once(to).unwrap_or_else(|| panic!("no {to}")).0;
    body.split('"').skip(1).step_by(2).collect()
}

#[test]
fn every_outcome_and_nothing_else_is_documented() {
    let outcome = include_str!("../src/engine/outcome.rs");
    let contract = include_str!("../src/engine/contract.rs");
    let end = "\n    }\n";
    let mut names = literals(outcome, "pub fn name(self) -> &'static str {", end);
    for causes in outcome.split("pub fn cause(self) -> &'static str {").skip(1) {
        names.extend(literals(causes, "", end));
    }
    let faults = contract.split("pub fn name(self) -> &'static str {").skip(1);
    for fault in faults {
        names.extend(literals(fault, "", end));
    }
    let scope = include_str!("../src/url/scope.rs");
    names.append(&mut literals(scope, "pub fn name(self) -> &'static str {", end));
    assert_eq!(listed("Outcomes"), names);
}

#[test]
fn every_code_and_nothing_else_is_documented() {
    let outcome = include_str!("../src/engine/outcome.rs");
    let table = outcome.split_once("pub fn verdict(self)").expect("the table").1;
    let table = table.split_once("Verdict { url, server, code }").expect("its end").0;
    let words = table.split([' ', ')', ',']);
    let mut codes: BTreeSet<&str> = words.filter(|word| word.starts_with('-')).collect();
    codes.insert("0");
    let codes: BTreeSet<&str> =
        codes.into_iter().filter(|code| code.parse::<i32>().is_ok()).collect();
    assert_eq!(listed("Status codes"), codes);
}

#[test]
fn every_annotation_and_nothing_else_is_documented() {
    let record = include_str!("../src/engine/archive/annotations.rs");
    let mut words = literals(record, "const ANNOTATIONS: ", "];");
    words.extend(["1t", "2t"]);
    assert_eq!(listed("Annotations"), words);
}

#[test]
fn every_rule_and_nothing_else_is_documented() {
    assert_eq!(listed("Rules of rests"), Rule::ALL.map(Rule::name).into_iter().collect());
}

#[test]
fn every_json_member_and_nothing_else_is_documented() {
    let log = include_str!("../src/store/log.rs");
    let extra = log.split_once("pub struct Extra<'a> {").expect("the members").1;
    let extra = extra.split_once("\n}\n").expect("its end").0;
    let mut members = BTreeSet::new();
    let mut renamed = None;
    for line in extra.lines() {
        if let Some(name) = line.split_once("rename = \"") {
            renamed = name.1.split('"').next();
        } else if let Some(field) = line.trim().strip_prefix("pub ") {
            members.insert(renamed.take().unwrap_or_else(|| field.split(':').next().expect("one")));
        }
    }
    assert_eq!(listed("JSON members"), members);
}
