//! The admin page, `/status.json` and the metrics of a running crawl.
//!
//! Once a second the loop hands over a [`Snapshot`], and only if one of the keys `admin.listen` and
//! `admin.textfile` is set. The side thread makes the pages of it, so a request costs the loop
//! nothing.

mod encode;
mod metrics;
mod snapshot;

use crate::conf::Conf;
use crate::engine::Engine;
use crate::ground::disk::Disk;
use crate::ground::time::Instant;
use crate::os::disk::OsDisk;
use crate::os::{Admin, METRICS, Page, Pages, View};
use serde_json::json;
use snapshot::{Bounds, Shown, Snapshot};
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The time between two snapshots.
const PERIOD: Duration = Duration::from_secs(1);
/// The page for people.
const PAGE: &str = include_str!("admin/page.html");
/// What the page may do: run its own script, which is named by its hash, and ask this
/// listener.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; \
                      script-src 'sha256-OYfyTI95sxf1p8r2ecPtUOd+enN9Uuj14SA6AvdGsKI='; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'";

/// Returns the settings of the admin listener and its board, if the configuration has one.
pub(super) fn admin(conf: &Conf) -> Option<(Admin, Arc<Board>)> {
    let settings = &conf.admin;
    if settings.listen.is_none() && settings.textfile.is_none() {
        return None;
    }
    let board = Arc::new(Board::new(conf));
    let admin = Admin {
        listen: settings.listen,
        hosts: settings.hosts.clone(),
        textfile: settings.textfile.clone(),
        pages: Arc::clone(&board) as Arc<dyn Pages>,
    };
    Some((admin, board))
}

/// Where the loop puts its last snapshot, and the side thread reads it.
pub(super) struct Board {
    last: Mutex<Option<Arc<Snapshot>>>,
    bounds: Bounds,
    /// The disk of the job directory, to measure its free space.
    disk: Mutex<Option<OsDisk>>,
}

impl Board {
    fn new(conf: &Conf) -> Self {
        let disk = OsDisk::open_to_read(&conf.job.directory).ok();
        Self { last: Mutex::default(), bounds: Bounds::of(conf), disk: Mutex::new(disk) }
    }

    fn metrics(&self, shown: &Shown<'_>, accept: &str) -> Page {
        let format = encode::Format::accepted(accept);
        let text = encode::text(&metrics::all(), shown, format);
        Page { status: 200, kind: format.media_type(), text }
    }
}

impl Pages for Board {
    fn page(&self, path: &str, accept: &str) -> Option<Page> {
        if path == "/" {
            let text = PAGE.to_owned();
            return Some(Page { status: 200, kind: "text/html; charset=utf-8", text });
        }
        if ![METRICS, "/status.json"].contains(&path) {
            return None;
        }
        let Some(snapshot) = lock(&self.last).clone() else {
            let text = "the crawl is starting\n".to_owned();
            return Some(Page { status: 503, kind: "text/plain; charset=utf-8", text });
        };
        let free_bytes = lock(&self.disk).as_mut().and_then(|disk| disk.free().ok().flatten());
        let shown = Shown {
            snapshot: &snapshot,
            bounds: &self.bounds,
            resident_bytes: resident_bytes(),
            free_bytes,
        };
        Some(match path {
            METRICS => self.metrics(&shown, accept),
            _ => Page { status: 200, kind: "application/json", text: json(&shown) },
        })
    }

    fn paths(&self) -> &'static [&'static str] {
        &["/", METRICS, "/status.json"]
    }

    fn policy(&self) -> &'static str {
        POLICY
    }
}

/// Puts a snapshot on the board once a period.
pub(super) struct Publisher {
    board: Option<Arc<Board>>,
    due: Instant,
    last: Option<Arc<Snapshot>>,
    began: Arc<snapshot::Beginning>,
}

impl Publisher {
    /// Returns the publisher of a run that begins with the engine as it is.
    pub(super) fn new(board: Option<Arc<Board>>, engine: &Engine) -> Self {
        let began = Arc::new(snapshot::Beginning::of(engine));
        Self { board, due: Instant::ZERO, last: None, began }
    }

    /// Publishes the present figures if a period has passed since the last ones.
    pub(super) fn publish(&mut self, view: &View<'_>) {
        let Some(board) = &self.board else { return };
        if view.now.at < self.due {
            return;
        }
        self.due = view.now.at + PERIOD;
        let snapshot = Arc::new(Snapshot::of(view, &self.began, self.last.as_deref()));
        *lock(&board.last) = Some(Arc::clone(&snapshot));
        self.last = Some(snapshot);
    }
}

/// Returns the longest time between two calls of [`Publisher::publish`].
pub(super) fn period(board: Option<&Arc<Board>>) -> Duration {
    board.map_or(Duration::MAX, |_| PERIOD)
}

/// Formats the figures as JSON, for the page and for other programs.
fn json(shown: &Shown<'_>) -> String {
    let snapshot = shown.snapshot;
    let looping = &snapshot.looping;
    let seconds = |us: u64| us as f64 / 1e6;
    let value = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "job": shown.bounds.job,
        "unix_s": snapshot.unix_s(),
        "status": snapshot.status,
        "counts": snapshot.counts,
        "archive": snapshot.archive,
        "seen": snapshot.seen,
        "waits": snapshot.wait_texts(),
        "loop": {
            "turns": looping.turns,
            "busy": looping.busy,
            "lag_s": {
                "p50": seconds(looping.lag_us.quantile(0.5)),
                "p99": seconds(looping.lag_us.quantile(0.99)),
                "max": seconds(looping.lag_us.max()),
            },
            "recent_lag_s": {
                "p99": seconds(looping.recent_us.quantile(0.99)),
                "max": seconds(looping.recent_us.max()),
            },
        },
        "memory": shown.memory(),
        "resident_bytes": shown.resident_bytes,
        "disk": { "free_bytes": shown.free_bytes, "free_min_bytes": shown.bounds.free_min },
    });
    let mut text = serde_json::to_string(&value).expect("plain values with names as keys");
    text.push('\n');
    text
}

/// Returns the memory of the process that is in RAM, in bytes.
fn resident_bytes() -> Option<u64> {
    let text = fs::read_to_string(Path::new("/proc/self/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

/// Locks what no panic leaves half changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine as _;
    use base64::prelude::BASE64_STANDARD;
    use sha2::{Digest, Sha256};

    /// Law: browsers run the script of the page, and no other. After a change of the script, the
    /// hash that this test names belongs into [`POLICY`].
    #[test]
    fn the_policy_names_the_script() {
        let (_, script) = PAGE.split_once("<script>").expect("it has a script");
        let (script, after) = script.split_once("</script>").expect("the script ends");
        assert!(!after.contains("<script"), "there is one script");
        let hash = BASE64_STANDARD.encode(Sha256::digest(script));
        assert!(POLICY.contains(&format!("'sha256-{hash}'")), "the hash is now {hash}");
    }

    /// Law: nothing of the page comes from elsewhere, and text is never parsed as HTML.
    #[test]
    fn the_page_is_self_contained() {
        for bad in ["innerHTML", "outerHTML", "insertAdjacent", "document.write", "src=", "<link"] {
            assert!(!PAGE.contains(bad), "{bad}");
        }
        assert_eq!(PAGE.matches("http://").count(), 1, "the namespace of SVG");
    }
}
