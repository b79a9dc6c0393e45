//! No ordinary page counts as a repeated one: not those of the documentation that `make deps` gets
//! and that comes with Rust, nor those of the lab. All hosts of the lab whose pages are alike do.

use crate::challenges::documentation;
use std::fs;
use std::path::Path;
use std::time::Duration;
use sted::repeats::{Change, Likeness, Pace, Repeats, Settings};
use sted::study::web::wire::{Step, Terms, script};
use sted::study::web::{self, Answer, Hostile, Place, Ports, Resource, Web};
use sted::url::Fingerprinter;

/// The number of pages of the lab that are looked at.
const PAGES: u32 = 15_000;

fn repeats() -> Repeats {
    Repeats::new(Settings::default(), Fingerprinter::new([1; 16]))
}

/// Returns the target that a page of documentation has at its server.
fn target_of(path: &Path) -> String {
    let path = path.display().to_string();
    let roots = ["share/doc/rust/html", "target/deps/docs"];
    let at = roots.iter().find_map(|root| Some(path.find(root)? + root.len()));
    path[at.expect("it is below one of them")..].to_owned()
}

/// All pages of a directory come in a row, in the order of their names, which is where the next is
/// most like the one before. The words of all are read, whatever lengths they are received with.
#[test]
fn documentation_does_not_repeat() {
    let (mut repeats, mut changes) = (repeats(), Vec::new());
    let mut list = documentation();
    list.sort();
    for path in &list {
        let body = fs::read(path).expect("it can be read");
        let target = target_of(path);
        let own = Likeness::of(body.len(), &body, true);
        let change = repeats.note("http://docs.test", &target, own);
        changes.extend(change.map(|change| (target, change)));
    }
    println!("{} pages of documentation", list.len());
    assert!(changes.is_empty(), "{changes:?}");
}

#[test]
fn the_lab_does_not_repeat() {
    let mut repeats = repeats();
    let settings =
        web::Settings { hosts: 100, pages: PAGES, duplicate: 0.1, ..web::Settings::default() };
    let web = Web::new(settings, Ports::default());
    let mut count = 0;
    for host in 0..web.hosts() {
        for page in 0..web.pages_of(host) {
            let place = Place { host, resource: Resource::Page(page) };
            let Answer::Reply(reply) = web.answer_at(place, Duration::ZERO) else { continue };
            let own = Likeness::of(reply.body.len(), &reply.body, true);
            let change = repeats.note(&web.host(host).name, &web.path(place), own);
            assert_eq!(change, None, "{place:?}");
            count += 1;
        }
    }
    assert_eq!(count, PAGES);
}

/// Each is slowed, and ends, after as many pages as the settings say and the first one, whose words
/// aren't read. Pages of random words aren't alike.
#[test]
fn each_trap_of_the_lab_repeats() {
    let Settings { slow_after, end_after, .. } = Settings::default();
    for kind in [Hostile::Calendar, Hostile::Facets, Hostile::Maze] {
        let changes = changes_of(kind, u32::from(end_after) + 1);
        let rows: Vec<(u32, Pace)> = changes.iter().map(|(at, all)| (*at, all.pace)).collect();
        let expected = [(slow_after, Pace::Slowed), (end_after, Pace::Ended)]
            .map(|(after, pace)| (u32::from(after) + 1, pace));
        assert_eq!(rows, expected, "{kind:?}: {changes:?}");
    }
    assert_eq!(changes_of(Hostile::Babble, 2_000), []);
}

/// Returns what is slowed or ended after how many of the first pages of a host without end.
fn changes_of(kind: Hostile, pages: u32) -> Vec<(u32, Change)> {
    let settings = web::Settings { hostile: vec![kind], ..web::Settings::default() };
    let web = Web::new(settings, Ports::default());
    let (mut repeats, mut changes) = (repeats(), Vec::new());
    let host = web.host_named(&format!("{}.test", kind.name())).expect("it is there");
    for index in 0..pages {
        let place = Place { host, resource: Resource::Row { row: 1, index } };
        let Answer::Play(play) = web.answer_at(place, Duration::ZERO) else { panic!("a page") };
        let steps = script(&web, place, play, 0, Terms::default());
        let [Step::Send(bytes)] = &steps[..] else { panic!("{steps:?}") };
        let head = bytes.windows(4).position(|end| end == b"\r\n\r\n").expect("a head");
        let (origin, target) = (&web.host(host).name, web.path(place));
        let has_words = repeats.wants_words(origin, &target, bytes.len());
        let own = Likeness::of(bytes.len(), &bytes[head + 4..], has_words);
        let change = repeats.note(origin, &target, own);
        changes.extend(change.map(|change| (index + 1, change)));
    }
    changes
}
