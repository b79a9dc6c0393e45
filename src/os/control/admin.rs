//! The admin listener: serves pages that can only be read, over TCP, and keeps the file of metrics.
//!
//! A page in a browser may send requests to any address, and the name of its own host may resolve
//! to this one (DNS rebinding). So a request must call the listener by an address, `localhost` or a
//! configured name; replies allow no other origin to read them, and nothing can be changed.

#![expect(clippy::disallowed_types, reason = "the listener of the admin page")]

use super::routes::Page as Reply;
use super::site::Site;
use crate::os::admin::{Admin, METRICS, Page, Pages};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::http::uri::Authority;
use hyper::{Method, Request, Response, StatusCode};
use std::fs;
use std::io;
use std::net::{self, IpAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;

/// The time between two writes of the file of metrics.
const TEXTFILE_PERIOD: Duration = Duration::from_secs(10);

/// The admin listener, bound but not served yet.
pub(in crate::os) struct Bound {
    listener: Option<net::TcpListener>,
    admin: Admin,
}

impl Bound {
    /// Binds the listener of `admin`.
    pub(in crate::os) fn bind(admin: Admin) -> io::Result<Self> {
        let listener = admin.listen.map(net::TcpListener::bind).transpose()?;
        if let Some(listener) = &listener {
            listener.set_nonblocking(true)?;
            log::info!("the admin page is at http://{}/", listener.local_addr()?);
        }
        Ok(Self { listener, admin })
    }

    /// Passes the listener to the runtime that this is called in. Returns it and the file of
    /// metrics, as far as they are configured.
    pub(super) fn open(self) -> io::Result<(Option<Listener>, Option<Textfile>)> {
        let Admin { hosts, textfile, pages, .. } = self.admin;
        let file = textfile.map(|path| Textfile { path, pages: Arc::clone(&pages) });
        let listener = self.listener.map(TcpListener::from_std).transpose()?;
        Ok((listener.map(|listener| Listener { listener, hosts, pages }), file))
    }
}

/// The admin listener.
pub(super) struct Listener {
    listener: TcpListener,
    hosts: Vec<String>,
    pages: Arc<dyn Pages>,
}

impl Site for Listener {
    const NAME: &str = "the admin listener";
    type Stream = TcpStream;
    /// The address that the client has connected to.
    type Peer = Option<IpAddr>;

    async fn accept(&self) -> io::Result<TcpStream> {
        Ok(self.listener.accept().await?.0)
    }

    fn peer(stream: &TcpStream) -> Option<IpAddr> {
        stream.local_addr().ok().map(|address| address.ip().to_canonical())
    }

    async fn answer(&self, request: Request<Incoming>, peer: &Option<IpAddr>) -> Reply {
        let page = self.page(&request, *peer);
        let mut reply = Response::new(Full::new(Bytes::from(page.text)));
        *reply.status_mut() = StatusCode::from_u16(page.status).expect("a status of ours");
        let fields = reply.headers_mut();
        let mut set =
            |name: HeaderName, value| fields.insert(name, HeaderValue::from_static(value));
        set(header::CONTENT_TYPE, page.kind);
        set(header::CACHE_CONTROL, "no-store");
        set(header::CONTENT_SECURITY_POLICY, self.pages.policy());
        set(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
        set(header::REFERRER_POLICY, "no-referrer");
        set(HeaderName::from_static("cross-origin-resource-policy"), "same-origin");
        if page.status == 405 {
            set(header::ALLOW, "GET, HEAD");
        }
        reply
    }
}

impl Listener {
    /// Returns the page for a request that arrived at the address `local`.
    fn page(&self, request: &Request<Incoming>, local: Option<IpAddr>) -> Page {
        let Some(host) = host_of(request) else {
            return refusal(400, "the request names no host, or several".to_owned());
        };
        if !is_ours(&host, local, &self.hosts) {
            log::warn!("the admin listener: refused a request for the host {host:?}");
            let text = format!("{host:?} is not a name of this listener; add it to admin.hosts");
            return refusal(421, text);
        }
        if ![Method::GET, Method::HEAD].contains(request.method()) {
            return refusal(405, "this listener takes only GET and HEAD".to_owned());
        }
        let path = request.uri().path();
        self.pages.page(path, &accept_of(request.headers())).unwrap_or_else(|| {
            let paths = self.pages.paths().join(" ");
            refusal(404, format!("no page {path:?}; there are: {paths}"))
        })
    }
}

fn refusal(status: u16, text: String) -> Page {
    Page { status, kind: "text/plain; charset=utf-8", text: text + "\n" }
}

/// Returns the host that a request is for, in lower case and without its port.
fn host_of<B>(request: &Request<B>) -> Option<String> {
    let mut fields = request.headers().get_all(header::HOST).iter();
    let (field, second) = (fields.next()?, fields.next());
    let field: Authority = field.to_str().ok()?.parse().ok()?;
    // A target with a host takes precedence over the field (RFC 9112, 3.2.2).
    let host = request.uri().authority().unwrap_or(&field).host();
    second.is_none().then(|| host.to_ascii_lowercase())
}

/// Returns whether the listener goes by this name. Any name could be made to resolve to its
/// address, so a name must be one that only its owner gives it.
fn is_ours(host: &str, local: Option<IpAddr>, hosts: &[String]) -> bool {
    let literal = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    if let Ok(address) = literal.parse::<IpAddr>() {
        let address = address.to_canonical();
        return address.is_loopback()
            || local == Some(address)
            || hosts.iter().any(|known| known == host);
    }
    let name = host.strip_suffix('.').unwrap_or(host);
    name == "localhost" || name.ends_with(".localhost") || hosts.iter().any(|known| known == name)
}

/// Returns the value of the field `Accept`, whose lines form one list.
fn accept_of(headers: &HeaderMap) -> String {
    let values = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    values.collect::<Vec<_>>().join(",")
}

/// The file of metrics, for programs that read files instead of asking.
pub(super) struct Textfile {
    path: PathBuf,
    pages: Arc<dyn Pages>,
}

impl Textfile {
    /// Returns the path of the file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the file every period. A failure is reported once, until a write succeeds.
    pub(super) async fn keep(self) {
        let mut has_failed = false;
        loop {
            let page = self.pages.page(METRICS, "").filter(|page| page.status == 200);
            // Before the crawl has begun there is nothing to write.
            let Some(page) = page else {
                sleep(Duration::from_secs(1)).await;
                continue;
            };
            let written = replace(&self.path, &page.text);
            match &written {
                Err(error) if !has_failed => {
                    log::warn!("{}: can't write the metrics: {error}", self.path.display());
                }
                Ok(()) if has_failed => log::info!("{}: written again", self.path.display()),
                _ => {}
            }
            has_failed = written.is_err();
            sleep(TEXTFILE_PERIOD).await;
        }
    }
}

/// Replaces a file at once, so that no reader sees half of it.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    // The collector reads files whose names end in `.prom`.
    name.push(".new");
    let new = path.with_file_name(name);
    fs::write(&new, text)?;
    fs::rename(&new, path)
}

/// Removes the file of metrics of a crawl that ends. Without it nobody takes its last figures for
/// present ones.
pub(super) fn remove(path: &Path) {
    if let Err(error) = fs::remove_file(path)
        && error.kind() != io::ErrorKind::NotFound
    {
        log::warn!("{}: can't remove it: {error}", path.display());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(target: &str, fields: &[&str]) -> Option<String> {
        let mut request = Request::builder().uri(target);
        for field in fields {
            request = request.header(header::HOST, *field);
        }
        host_of(&request.body(()).expect("a valid request"))
    }

    #[test]
    fn the_host_of_a_request() {
        for (target, fields, expected) in [
            ("/", &["LocalHost:9600"][..], Some("localhost")),
            ("/", &["[::1]:9600"], Some("[::1]")),
            ("/", &["127.0.0.1"], Some("127.0.0.1")),
            ("http://evil.test/", &["localhost"], Some("evil.test")),
            ("/", &[], None),
            ("/", &["localhost", "localhost"], None),
            ("/", &["a b"], None),
            ("/", &["localhost/x"], None),
            ("/", &["user@localhost"], Some("localhost")),
        ] {
            assert_eq!(host(target, fields).as_deref(), expected, "{target} {fields:?}");
        }
    }

    #[test]
    fn only_own_names_are_answered() {
        let local = Some("192.0.2.7".parse().expect("an address"));
        let hosts = ["crawler.example".to_owned()];
        for host in [
            "localhost",
            "localhost.",
            "sted.localhost",
            "127.0.0.1",
            "127.8.8.8",
            "[::1]",
            "[::ffff:127.0.0.1]",
            "192.0.2.7",
            "crawler.example",
            "crawler.example.",
        ] {
            assert!(is_ours(host, local, &hosts), "{host}");
        }
        for host in [
            "",
            ".",
            "evil.test",
            "localhost.evil.test",
            "evillocalhost",
            "192.0.2.8",
            "x.crawler.example",
            "2130706433",
            "[::]",
            "0.0.0.0",
            "127.0.0.1.evil.test",
        ] {
            assert!(!is_ours(host, local, &hosts), "{host}");
        }
    }
}
