//! Links of pages on which two parsers of browser quality agree, compared with the scanner's.
//!
//! Each case is a page with the sets of absolute URLs that `a`, `area`, `frame` and `iframe` lead
//! to, that it embeds, and that its forms submit to. The scanner reads tags, not a tree: it also
//! finds links in tags that a tree builder drops or hides. These cases are listed in [`ACCEPTED`].

use super::{Report, base64, folder, lines};
use std::collections::BTreeSet;
use std::path::Path;
use sted::links::{Found, Kind, Progress, Scanner, Settings};
use url::Url;

/// Runs `html.jsonl` in `folder`.
pub fn run(folder: &Path) -> Report {
    let settings = Settings { requisites: true, forms: true, ..Settings::default() };
    let mut scanner = Scanner::new(settings);
    let mut found = Found::new();
    let mut report = Report::default();
    for case in lines(&folder.join("html.jsonl")) {
        let text = |key: &str| case[key].as_str().unwrap_or_else(|| panic!("no {key} in {case}"));
        let page = base64(text("html_b64")).expect("base64");
        let charset = encoding_rs::Encoding::for_label(text("charset").as_bytes());
        found.clear();
        scanner.begin(charset.expect("a known charset"));
        while scanner.scan(&page, 16, &mut found) == Progress::More {}
        let sets = sets(&found, text("base"));
        let wanted = ["follow", "embed", "form"].map(|key| {
            let list = case[key].as_array().unwrap_or_else(|| panic!("no {key} in {case}"));
            list.iter().map(|url| url.as_str().expect("a URL").to_owned()).collect()
        });
        let differs = (sets != wanted).then(|| {
            let page = String::from_utf8_lossy(&page);
            format!("{}: {page:?}: expected {wanted:?}, found {sets:?}", text("id"))
        });
        report.add(differs);
    }
    report
}

/// The URLs that are followed, embedded and submitted to.
type Sets = [BTreeSet<String>; 3];

fn sets(found: &Found, page: &str) -> Sets {
    let page = Url::parse(page).expect("a base");
    let text = |bytes| std::str::from_utf8(bytes).expect("references are UTF-8");
    let base = found.base().and_then(|base| page.join(text(base)).ok()).unwrap_or(page);
    let mut sets = Sets::default();
    for link in found.links() {
        let set = match link.kind {
            Kind::Anchor | Kind::Frame => 0,
            Kind::Embed | Kind::Related => 1,
            Kind::Form => 2,
            Kind::Refresh | Kind::Header | Kind::Listed => continue,
        };
        let joined = base.join(link.reference).ok();
        let Some(mut url) = joined.filter(|url| matches!(url.scheme(), "http" | "https")) else {
            continue;
        };
        url.set_fragment(None);
        sets[set].insert(url.into());
    }
    sets
}

/// Cases that differ, with the reason: a link in a `template` is not part of a page until a script
/// copies it, but browsers show templates that declare a shadow root.
const ACCEPTED: [(&str, &str); 2] = [
    ("template.dat#23+inj", "links in a template that is never closed"),
    ("template.dat#90+inj", "links in templates that are never closed"),
];

#[test]
#[ignore = "needs the cases: make conformance DIR=folder"]
fn all_but_templates() {
    let folder = folder();
    let report = run(&folder);
    let ids = report.differences.iter().map(|line| line.split(':').next().unwrap_or(line));
    let accepted = ACCEPTED.map(|(id, _)| id);
    assert!(report.total > 0 && ids.eq(accepted), "accepted: {ACCEPTED:?}\n{report}");
}
