//! The stand: all servers running, the resolver of their names, and a crawl of them.

use super::access::{self, Hit};
use super::process::{Running, free_port};
use super::relay::{Relay, Seen, Watch};
use super::servers::{Place, Server};
use super::sites::{Docs, RELAYS, Site};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use std::fs::{self, Permissions};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

/// How a server of the stand is set up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) server: Server,
    /// If set, a relay is in front of it and delays replies by this time.
    pub(super) relay: Option<Duration>,
    /// The Crawl-delay in its robots.txt in seconds, as spelled there.
    pub(super) crawl_delay: Option<&'static str>,
}

/// Running servers. They stop when this is dropped.
#[derive(Debug)]
pub(super) struct Stand {
    pub(super) sites: Vec<Site>,
    /// The address of the resolver.
    pub(super) names: SocketAddr,
    running: Vec<Running>,
    watch: Option<Watch>,
    folder: TempDir,
}

impl Stand {
    /// Starts everything.
    pub(super) fn start(parts: &[Part]) -> Self {
        // Servers that drop root's rights must be able to enter.
        let open = Permissions::from_mode(0o755);
        let folder = tempfile::Builder::new().prefix("sted-real-").permissions(open).tempdir();
        let folder = folder.expect("temporary folders can be made");
        let docs = Docs::find(folder.path());
        let mut relays = Vec::new();
        let mut places = Vec::new();
        let mut sites = Vec::new();
        for (number, part) in (10..).zip(parts) {
            let place = place(folder.path(), part.server, number);
            let mut front = place.listen;
            if let Some(think) = part.relay {
                let relay = Relay::listen(&format!("{RELAYS}{number}"), place.listen, think);
                front = relay.address();
                relays.push(relay);
            }
            sites.push(Site {
                server: part.server,
                name: place.name.clone(),
                front,
                root: place.root.clone(),
                crawl_delay: part.crawl_delay,
            });
            places.push(place);
        }
        certify(&folder.path().join("ca.pem"), &places);
        let names = free_port("127.77.0.1");
        let mut running = vec![resolve(folder.path(), names, &sites)];
        for (site, place) in sites.iter().zip(&places) {
            site.furnish(&sites, &docs);
            let (name, text) = site.server.configuration(place);
            fs::write(place.folder.join(name), text).expect("the folder is ours");
            let (program, arguments) = site.server.command(place);
            running.push(Running::start(program, &arguments, &place.folder, place.listen));
        }
        let watch = (!relays.is_empty()).then(|| Watch::begin(relays));
        Self { sites, names, running, watch, folder }
    }

    /// Returns the folder for a crawl's files.
    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Stops everything; returns what the servers and the relays have recorded, in the order of
    /// `sites`.
    pub(super) fn end(&mut self) -> (Vec<Vec<Hit>>, Vec<Seen>) {
        self.running.iter_mut().for_each(Running::stop);
        let folder = |site: &Site| self.folder().join(site.server.name());
        let hits = self.sites.iter().map(|site| access::read(site.server, &folder(site)));
        (hits.collect(), self.watch.take().map_or_else(Vec::new, Watch::end))
    }
}

/// Creates the folders of a server and chooses its address and name.
fn place(folder: &Path, server: Server, number: u8) -> Place {
    let folder = folder.join(server.name());
    let root = folder.join("root");
    fs::create_dir_all(&root).expect("the folder is ours");
    let listen = free_port(&format!("127.77.0.{number}"));
    Place { folder, root, listen, name: format!("{}.sted.test", server.name()) }
}

/// Creates an authority, and a certificate by it for each server.
fn certify(authority: &Path, places: &[Place]) {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(rcgen::DnType::CommonName, "sted test authority");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let key = KeyPair::generate().expect("keys can be made");
    let own = params.self_signed(&key).expect("it signs itself");
    fs::write(authority, own.pem()).expect("the folder is ours");
    let issuer = Issuer::new(params, key);
    for place in places {
        let key = KeyPair::generate().expect("keys can be made");
        let params = CertificateParams::new([place.name.clone()]).expect("it is a name");
        let leaf = params.signed_by(&key, &issuer).expect("the authority signs");
        let write = |name: &str, text: String| fs::write(place.folder.join(name), text);
        write("certificate.pem", leaf.pem()).expect("the folder is ours");
        write("key.pem", key.serialize_pem()).expect("the folder is ours");
    }
}

/// Starts a resolver that has only the sites' names.
fn resolve(folder: &Path, listen: SocketAddr, sites: &[Site]) -> Running {
    let folder: PathBuf = folder.join("unbound");
    fs::create_dir(&folder).expect("the folder is ours");
    let mut text = UNBOUND
        .replace("@FOLDER@", &folder.display().to_string())
        .replace("@IP@", &listen.ip().to_string())
        .replace("@PORT@", &listen.port().to_string());
    for site in sites {
        text += &format!("    local-data: \"{}. 300 IN A {}\"\n", site.name, site.front.ip());
    }
    let file = folder.join("unbound.conf");
    fs::write(&file, text).expect("the folder is ours");
    let arguments = ["-d", "-p", "-c"].map(str::to_owned);
    let arguments = [arguments.as_slice(), &[file.display().to_string()]].concat();
    Running::start("unbound", &arguments, &folder, listen)
}

const UNBOUND: &str = r#"
server:
    directory: "@FOLDER@"
    chroot: ""
    username: ""
    use-syslog: no
    do-daemonize: no
    interface: @IP@@@PORT@
    access-control: 127.0.0.0/8 allow
    num-threads: 1
    module-config: "iterator"
    do-not-query-localhost: no
    local-zone: "test." static
"#;
