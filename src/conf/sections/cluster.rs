//! The section `[cluster]`: several machines that share one crawl.

use super::{GIB, MIB, MINUTE, SECOND, section};
use crate::conf::kind::{Kind, count, count_of, list, parsed, path, size, text, time};
use crate::conf::syntax;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

section! {
    /// Several machines that share this crawl, through a server of NATS JetStream (2.12 or newer).
    /// Each runs sted with the same configuration, but for cluster.node and job.directory.
    cluster: Cluster {
        /// Name of the shared crawl, by which its nodes find each other at the servers. "none":
        /// this machine crawls alone.
        ///
        /// Two crawls of one name would be taken for one.
        name: Option<String> = None, names().or("none"), [Kept];

        /// Name of this node, another one on each machine. A job directory belongs to a node.
        ///
        /// Of two nodes with one name, the second waits until the first is gone.
        node: Option<String> = None, names().or("none"), [Kept];

        /// URLs of the servers: nats://host:port, or tls://host:port to encrypt in any case.
        ///
        /// With several that are a NATS cluster, name all: the crawl survives the loss of one if
        /// replicas is 3.
        servers: Vec<String> = vec!["nats://127.0.0.1:4222".into()], servers(), [];

        /// File with the credentials of this node: the JWT and key that `nsc` writes.
        credentials_file: Option<PathBuf> = None, path().or("none"), [];

        /// User by whose name this node logs in; its password is in password_file.
        ///
        /// A server that limits its users must permit this one to publish to $JS.API.>, $JS.FC.>,
        /// $KV.sted-NAME.> and sted.NAME.log.*, where NAME is the crawl's, and to subscribe to
        /// _INBOX.>.
        user: Option<String> = None, text("a user", syntax::word).or("none"), [];

        /// File with the password of user.
        password_file: Option<PathBuf> = None, path().or("none"), [];

        /// PEM file of the only authorities that may have signed the servers' certificates. With
        /// one, connections must be encrypted. "none" trusts the authorities of the system.
        roots_file: Option<PathBuf> = None, path().or("none"), [];

        /// PEM file of the certificate by which this node logs in; its key is in key_file.
        certificate_file: Option<PathBuf> = None, path().or("none"), [];

        /// PEM file of the key of certificate_file.
        key_file: Option<PathBuf> = None, path().or("none"), [];

        /// Address of the monitoring port of a server, which `sted check` asks whether the server
        /// syncs each message to disk. A crawl doesn't need it.
        monitor: Option<SocketAddr> = None, monitor().or("none"), [];

        /// Number of servers that store each message. It counts when the first node begins the
        /// crawl.
        ///
        /// With 1, the crawl waits while its server is down; with 3 it survives the loss of one
        /// server, with 5 of two. More than 1 needs as many servers in one NATS cluster.
        replicas: u32 = 1, count_of(&[1, 3, 5]), [];

        /// How long a node that falls silent is waited for before others take its servers over.
        /// All nodes must have the same.
        ///
        /// Short: a node that is stopped for a while, or can't reach the servers, loses what it
        /// has. Long: its servers rest until then.
        lease: Duration = 30 * SECOND, time(5 * SECOND..=10 * MINUTE), [];

        /// How much faster or slower the clocks of two machines may run, in millionths. All nodes
        /// must have the same.
        ///
        /// Clocks that NTP slews stay within 500.
        drift_ppm: u32 = 1_000, count(0..=100_000), [];

        /// The most nodes that the crawl may have. All nodes must have the same.
        ///
        /// The visits to an address are divided among the nodes, so politeness.address_visits_max
        /// must be as large.
        nodes_max: u32 = 4, count(1..=1_000), [];

        /// How long links for other nodes wait for more, so that they travel together.
        ///
        /// Short: more messages, up to the few hundred syncs a second that a server can do. Long:
        /// pages of other nodes are found later, and a killed node has more to fetch again.
        batch_wait: Duration = 5 * SECOND, time(Duration::from_millis(100)..=MINUTE), [];

        /// Memory for what waits to be sent to other nodes. Beyond it, it waits on disk.
        outbox: usize = 64 * MIB as usize, size(MIB..=64 * GIB), [];

        /// Number of links to other nodes' pages that are remembered, and not sent again. It is
        /// rounded up to a power of two.
        ///
        /// One takes 66 bits. If quality.source is "inlinks" and quality.site "domain", as many
        /// links between domains are remembered beside them, which takes the same again.
        ///
        /// Small: links that many pages have are sent again and again.
        links_cached: u32 = 1 << 20, count(256..=1 << 30), [];
    }
}

/// The name of a crawl or of a node.
fn names() -> Kind<String> {
    text("names of a-z, 0-9 and '-'", syntax::node)
}

fn monitor() -> Kind<SocketAddr> {
    parsed("an address with a port", syntax::listener, ToString::to_string)
}

fn servers() -> Kind<Vec<String>> {
    list(text("URLs of NATS servers", syntax::queue))
}
