//! A site of documentation, archived by one command line, looks replayed as it does live: its
//! theme's fonts, sidebars and bullets are all there.

use super::process::{Running, free_port};
use crate::util::{Run, python, root, sted};
use serde_json::Value;
use std::path::Path;

/// Pages of three layouts: a table of contents with bullets, text with code, a form. All that they
/// show is of their own site.
const PAGES: [&str; 3] = ["/", "/sessions.html", "/search.html"];

/// The archive of a site with its requisites replays to the same pictures, pixel by pixel. Without
/// them it does not, so that the comparison is known to notice.
#[test]
fn an_archived_site_looks_as_it_does_live() {
    let folder = tempfile::tempdir().expect("a folder");
    let docs = root().join("target/deps/docs/theme");
    let listen = free_port("127.0.0.1");
    let words = ["file-server", "--root", docs.to_str().expect("UTF-8"), "--listen"];
    let arguments: Vec<String> =
        words.into_iter().map(str::to_owned).chain([listen.to_string()]).collect();
    let mut server = Running::start("caddy", &arguments, folder.path(), listen);
    let live = format!("http://{listen}");

    let whole = archive(&live, &folder.path().join("whole"), &["--requisites"]);
    for (page, figures) in pictures(&whole, &live) {
        assert!(figures["drawn"].as_f64() > Some(0.2), "{page} is nearly empty: {figures}");
        assert_eq!(figures["differs"], 0.0, "{page} differs from the live page: {figures}");
    }
    let bare = archive(&live, &folder.path().join("bare"), &[]);
    for (page, figures) in pictures(&bare, &live) {
        assert!(figures["differs"].as_f64() > Some(0.01), "{page} without requisites: {figures}");
    }
    server.stop();
}

/// Archives a site with one command line, and returns the job's directory.
fn archive(live: &str, job: &Path, more: &[&str]) -> std::path::PathBuf {
    let out = job.to_str().expect("UTF-8");
    let start = format!("{live}/");
    let mut words = vec!["crawl", &start, "--contact", "tests@sted.dev", "--out", out];
    words.extend(more);
    // The site is on this machine, and the test's own: it may be asked without pauses.
    for setting in [
        "connections.addresses_allowed=[\"127.0.0.0/8\"]",
        "politeness.delay=0s",
        "politeness.delay_factor=0",
        "politeness.address_delay=0s",
    ] {
        words.extend(["--set", setting]);
    }
    let run = Run::of(sted(&words).output().expect("it starts"));
    assert_eq!(run.code, Some(0), "{}{}", run.out, run.err);
    job.to_owned()
}

/// Takes pictures of each page, live and replayed, and returns by how much they differ.
fn pictures(job: &Path, live: &str) -> Vec<(String, Value)> {
    let folder = job.with_extension("pictures");
    std::fs::create_dir(&folder).expect("a new folder");
    let mut script = python("real/looks.py");
    let run = Run::of(
        script.arg(job).arg(live).arg(&folder).args(PAGES).output().expect("python starts"),
    );
    assert_eq!(run.code, Some(0), "{}{}", run.out, run.err);
    let found: Value = serde_json::from_str(&run.out).expect("figures as JSON");
    assert_eq!(found.as_object().map_or(0, serde_json::Map::len), PAGES.len(), "{found}");
    PAGES.map(|page| (page.to_owned(), found[page].clone())).to_vec()
}
