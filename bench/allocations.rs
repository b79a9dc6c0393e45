//! Counts the memory allocations of a crawl, per page.
//!
//! Question: are there allocations per page in the steady state beyond those listed here with their
//! reasons? Two crawls of the lab's `bench` web are compared, one three times as long as the other:
//! the additional allocations of the longer one are divided by its additional pages, so one-time
//! work cancels out. Only the loop's thread is counted, exactly; the lab and side threads are not.
//! With TLS the count depends on how a page is cut into records: a lab that does not get its core
//! writes shorter ones, each of which is an allocation. So a count that exceeds the list is
//! repeated, at most twice, and the lowest counts: an unlisted allocation would be in all of them.
//!
//! `cargo bench --bench allocations` prints a line of JSON for each kind of crawl and fails if
//! there are more than listed. Under `cargo test` it does the same with smaller webs.

#![expect(clippy::disallowed_methods, reason = "a bench writes its own configuration")]

use std::path::Path;
use sted::commands::{ConfFile, crawl};
use sted::study::serve;

#[global_allocator]
static ALLOCATOR: counting::Counting = counting::Counting;

/// Kinds of crawl: their configuration, and the allocations per page that they may make.
const KINDS: [Kind; 3] = [
    Kind { name: "none", store: "none", tls_share: 0, listed: &PAGE },
    Kind { name: "warc", store: "warc", tls_share: 0, listed: &PAGE },
    Kind { name: "tls", store: "none", tls_share: 1, listed: &PAGE_BY_TLS },
];

/// The reason and the number per page of this web, each of whose pages has one link to a new URL
/// and 24 to known ones.
const PAGE: [(&str, f64); 4] = [
    ("a visit takes a new URL: its target and the page it was found on", 1.0),
    ("the URL of a request under way, for the log and the archive", 1.0),
    ("the URL of a page is kept with the new URLs that were found on it", 0.2),
    ("the set of known URLs grows, by a segment at a time", 0.25),
];
const PAGE_BY_TLS: [(&str, f64); 5] = [
    PAGE[0],
    PAGE[1],
    PAGE[2],
    PAGE[3],
    (
        "rustls: each record that is decrypted, two a page, and that is sent, for some requests",
        2.75,
    ),
];
/// Allocations per page by buffers and tables that grow with the crawl.
const GROWTH: f64 = 0.15;
/// The most counts of a kind, repeated while they exceed the list.
const COUNTS_MAX: usize = 3;

struct Kind {
    name: &'static str,
    store: &'static str,
    tls_share: u8,
    listed: &'static [(&'static str, f64)],
}

fn main() {
    // A crawl starts its lab as a process of the program it runs in.
    let words: Vec<String> = std::env::args().collect();
    if let [_, word, path] = &words[..]
        && word == "web"
    {
        serve::run(&ConfFile::new(Path::new(path)), None).unwrap_or_else(|error| panic!("{error}"));
        return;
    }
    let is_bench = words.iter().any(|word| word == "--bench");
    let pages = if is_bench { 100 } else { 20 };
    let over: Vec<&str> =
        KINDS.iter().filter(|kind| is_over(kind, pages)).map(|kind| kind.name).collect();
    assert!(over.is_empty(), "allocations that are not listed: {over:?}");
}

/// Whether a crawl of that kind allocates more than listed, in every count.
fn is_over(kind: &Kind, pages: u32) -> bool {
    let listed: f64 = kind.listed.iter().map(|(_, count)| count).sum();
    let is_over = (0..COUNTS_MAX).all(|_| count(kind, pages, listed) > listed + GROWTH);
    if is_over {
        eprintln!("{}: listed are:", kind.name);
        kind.listed.iter().for_each(|(why, count)| eprintln!("  {count}: {why}"));
    }
    is_over
}

/// Returns the allocations per page.
fn count(kind: &Kind, pages: u32, listed: f64) -> f64 {
    let (one, three) = (run(kind, pages), run(kind, 3 * pages));
    let more = (three.pages - one.pages) as f64;
    let allocations = (three.allocations - one.allocations) as f64 / more;
    let bytes = (three.bytes - one.bytes) as f64 / more;
    println!(
        "{{\"kind\":\"{}\",\"pages\":{more},\"allocations_per_page\":{allocations:.3},\
         \"bytes_per_page\":{bytes:.0},\"listed\":{listed}}}",
        kind.name
    );
    allocations
}

struct Taken {
    pages: u64,
    allocations: u64,
    bytes: u64,
}

/// Runs one crawl of the lab's web to its end, on this thread.
fn run(kind: &Kind, pages_per_host: u32) -> Taken {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let path = folder.path().join("crawl.toml");
    std::fs::write(&path, conf(kind, pages_per_host, folder.path())).expect("writable");
    let before = counting::so_far();
    let asked = crawl::Asked { targets: vec![path], ..crawl::Asked::default() };
    let exit = crawl::run(&asked).unwrap_or_else(|error| panic!("{error}"));
    let after = counting::so_far();
    let summary = std::fs::read_to_string(folder.path().join("job/summary.json")).expect("there");
    let summary: serde_json::Value = serde_json::from_str(&summary).expect("JSON");
    let pages = summary["counts"]["pages"].as_u64().expect("a number");
    assert_eq!(pages, 64 * u64::from(pages_per_host), "{exit:?}");
    Taken { pages, allocations: after.0 - before.0, bytes: after.1 - before.1 }
}

fn conf(kind: &Kind, pages_per_host: u32, folder: &Path) -> String {
    let (store, tls_share, folder) = (kind.store, kind.tls_share, folder.display());
    let pages = 64 * pages_per_host;
    format!(
        r#"
[identity]
contact = "bench@sted.dev"
[job]
directory = "{folder}/job"
[politeness]
burst = "server"
delay = "0s"
delay_factor = 0
address_delay = "0s"
domain_delay = "0s"
[store]
format = "{store}"
[lab]
directory = "{folder}/lab"
manifest = false
[web]
preset = "bench"
pages = {pages}
tls_share = {tls_share}
"#
    )
}

/// The system's allocator, with a count for each thread.
///
/// Proof of the unsafe code: every call is passed on unchanged to an allocator that keeps the
/// trait's contract; the counts are plain numbers of the calling thread, made without an allocation
/// and never dropped.
mod counting {
    use std::alloc::{GlobalAlloc, Layout, System};
    use std::cell::Cell;

    thread_local! {
        static COUNT: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
    }

    pub(crate) struct Counting;

    /// Returns the allocations of this thread, and their bytes.
    pub(crate) fn so_far() -> (u64, u64) {
        COUNT.get()
    }

    fn count(bytes: usize) {
        // A thread that ends may still free and allocate memory.
        let _ = COUNT.try_with(|count| {
            let (calls, total) = count.get();
            count.set((calls + 1, total + bytes as u64));
        });
    }

    // SAFETY: see the module's proof.
    unsafe impl GlobalAlloc for Counting {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            count(layout.size());
            // SAFETY: the caller keeps `alloc`'s contract.
            unsafe { System.alloc(layout) }
        }

        unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
            count(layout.size());
            // SAFETY: the caller keeps `alloc_zeroed`'s contract.
            unsafe { System.alloc_zeroed(layout) }
        }

        unsafe fn realloc(&self, at: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
            count(bytes);
            // SAFETY: the caller keeps `realloc`'s contract, and `at` is the system's.
            unsafe { System.realloc(at, layout, bytes) }
        }

        unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
            // SAFETY: the caller keeps `dealloc`'s contract, and `at` is the system's.
            unsafe { System.dealloc(at, layout) }
        }
    }
}
