//! What the admin listener serves: settings of the listener, and the pages behind it.
//!
//! The listener itself runs on the side thread of the control socket (`control/admin.rs`).

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

/// Settings of the admin listener and of the file of metrics.
pub struct Admin {
    /// The address to listen on; `None` listens nowhere.
    pub listen: Option<SocketAddr>,
    /// Further names by which clients may call the listener, in lower case.
    pub hosts: Vec<String>,
    /// The file to which the metrics are written every ten seconds, if there is one.
    pub textfile: Option<PathBuf>,
    /// The pages.
    pub pages: Arc<dyn Pages>,
}

/// The pages that can be read. The side thread calls it, so it must not need the loop.
pub trait Pages: Send + Sync {
    /// Returns the page at `path`, in a form that a client with the field `Accept: accept` reads.
    /// `None` if there is no such page.
    fn page(&self, path: &str, accept: &str) -> Option<Page>;

    /// Returns the paths of all pages, for who asks for another one.
    fn paths(&self) -> &'static [&'static str];

    /// Returns the Content-Security-Policy of the pages.
    fn policy(&self) -> &'static str;
}

/// A page, as a reply of HTTP.
#[derive(Clone, Debug)]
pub struct Page {
    /// The status code.
    pub status: u16,
    /// The media type.
    pub kind: &'static str,
    /// The text.
    pub text: String,
}

/// The path of the metrics, which are also written to [`Admin::textfile`].
pub const METRICS: &str = "/metrics";
