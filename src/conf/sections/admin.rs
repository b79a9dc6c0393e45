//! The section `[admin]`: where programs and browsers read the state of a running crawl.

use super::section;
use crate::conf::kind::{Kind, choice, list, parsed, path, text};
use crate::conf::syntax;
use std::net::SocketAddr;
use std::path::PathBuf;

section! {
    /// A web page about the running crawl, and its metrics for Prometheus. Both can only be read;
    /// `sted ctl` gives commands.
    admin: Admin {
        /// Address and port of the page: / is for people, /metrics for Prometheus, /status.json for
        /// other programs. Port 0 takes a free port, which the log names.
        ///
        /// Who can connect, every user of this machine included, sees what is crawled.
        listen: Option<SocketAddr> = None, listener().or("none"), [];

        /// Addresses that may be listened on: "loopback", those of this machine only; "any".
        ///
        /// "any" lets other machines read the page: there is no password and no encryption.
        addresses: bool = false, addresses(), [];

        /// Further host names by which browsers and Prometheus may call the listener. An IP address
        /// of the listener and localhost need no entry.
        ///
        /// A request for any other name is refused, so that no foreign page in a browser can read
        /// this one. Behind a proxy, write the name that it passes on.
        hosts: Vec<String> = Vec::new(), list(text("host names", syntax::host)), [];

        /// File to which the metrics are written every ten seconds, for the textfile collector of
        /// Prometheus's node exporter. Its name must end in .prom. It is removed when the crawl
        /// ends.
        ///
        /// After a kill the file remains; the collector reports its age.
        textfile: Option<PathBuf> = None, path().or("none"), [];
    }
}

fn listener() -> Kind<SocketAddr> {
    parsed("an address with a port", syntax::listener, ToString::to_string)
}

/// Whether other addresses than those of this machine may be listened on.
fn addresses() -> Kind<bool> {
    choice(&[("loopback", false), ("any", true)])
}
