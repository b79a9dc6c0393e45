//! No ordinary page is taken for a challenge: not those of the documentation that `make deps` gets
//! and that comes with Rust, nor those of the lab. Each challenge of the lab is.

use crate::util::root;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use std::{fs, iter};
use sted::http::challenge::{self, BODY_BYTES, in_page, is_script_only};
use sted::study::web::{Answer, Place, Ports, Resource, Settings, WALLS, Wall, Web};

/// The number of pages that are looked at, of the lab and at most of documentation.
const PAGES: usize = 15_000;

/// Collects the pages below a folder, at most `PAGES`.
fn pages(folder: &Path, list: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            pages(&path, list);
        } else if path.extension().is_some_and(|ext| ext == "html") && list.len() < PAGES {
            list.push(path);
        }
    }
}

/// Returns pages of documentation: that of `make deps`, and that of Rust if it is installed.
pub fn documentation() -> Vec<PathBuf> {
    let mut list = Vec::new();
    pages(&root().join("target/deps/docs"), &mut list);
    assert!(list.len() > 1_000, "{} pages of documentation; `make deps` gets it", list.len());
    let sysroot = Command::new("rustc").args(["--print", "sysroot"]).output().expect("it starts");
    let sysroot = String::from_utf8(sysroot.stdout).expect("a path");
    pages(&Path::new(sysroot.trim()).join("share/doc/rust/html"), &mut list);
    list
}

#[test]
fn documentation_is_no_challenge() {
    let list = documentation();
    let mut found = Vec::new();
    for path in &list {
        let text = fs::read(path).expect("it can be read");
        // A field that ordinary pages have, too. Under status 200 it counts beside a page without a
        // link, which some of these are.
        let fields = || [(&b"x-kpsdk-ct"[..], &b"0ab"[..])].into_iter();
        let others = [301, 304, 401, 404, 410, 500].map(|it| in_page(it, fields(), Some(&text)));
        found.extend(others.into_iter().flatten().map(|it| (it, path)));
        found.extend(in_page(200, iter::empty(), Some(&text)).map(|it| (it, path)));
    }
    println!("{} pages of documentation", list.len());
    assert!(found.is_empty(), "{} of {}: {:?}", found.len(), list.len(), found.first());
}

/// Each challenge of the lab is recognized as what it is, and without its mark as nothing.
#[test]
fn each_challenge_is_known() {
    let found = |wall: &Wall, is_bare: bool| {
        let (fields, body) = if is_bare { ("", body_of(wall)) } else { (wall.fields, wall.body()) };
        let lines = fields.lines().filter_map(|line| line.split_once(": "));
        let lines = lines.map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        in_page(wall.status, lines, Some(body.as_bytes()))
    };
    for wall in &WALLS {
        assert_eq!(found(wall, false), Some(wall.product), "{wall:?}");
        assert_eq!(found(wall, true), None, "{wall:?}");
    }
    let products: BTreeSet<_> = WALLS.iter().map(|wall| wall.product).collect();
    assert_eq!(products, challenge::products().collect());
    let pages: BTreeSet<_> = WALLS.iter().map(|wall| (wall.fields, wall.body())).collect();
    assert_eq!(pages.len(), WALLS.len());
}

/// Returns the text of a challenge without its mark.
fn body_of(wall: &Wall) -> String {
    let body = wall.body();
    let title = body.find("</title>").expect("a title") + "</title>".len();
    format!("{}<p>Checking your browser.</p>", &body[..title])
}

#[test]
fn the_lab_is_no_challenge() {
    let pages = PAGES as u32;
    let settings = Settings { hosts: 100, pages, duplicate: 0.1, ..Settings::default() };
    let web = Web::new(settings, Ports::default());
    let mut count = 0;
    for host in 0..web.hosts() {
        for page in 0..web.pages_of(host) {
            let place = Place { host, resource: Resource::Page(page) };
            let Answer::Reply(reply) = web.answer_at(place, Duration::ZERO) else { continue };
            let fields = reply.fields.lines().filter_map(|line| line.split_once(": "));
            let fields = fields.map(|(name, value)| (name.as_bytes(), value.as_bytes()));
            let text = &reply.body[..reply.body.len().min(BODY_BYTES)];
            let found = in_page(reply.status, fields, Some(text));
            assert_eq!(found, None, "{place:?}: {}", String::from_utf8_lossy(text));
            assert!(!is_script_only(text));
            count += 1;
        }
    }
    assert_eq!(count, PAGES);
}
