//! Connections whose TLS close is not announced: a whole reply is accepted, and a body that ends
//! with the connection may be truncated, so it is requested again once and then marked.

use crate::util::LOOP;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;
use sted::commands::settings;
use sted::conf::Conf;
use sted::engine::Engine;
use sted::ground::stats::{Meter, still};
use sted::os::disk::OsDisk;
use sted::store::log;
use sted::{os, seeds};

/// A request target, its reply, and whether its TLS close is announced; then the expected number of
/// requests and the expected annotation, if any.
type Case = (&'static str, &'static str, bool, usize, Option<&'static str>);

const CASES: [Case; 8] = [
    ("/robots.txt", "HTTP/1.1 404 X\r\nContent-Length: 0\r\n\r\n", false, 1, None),
    (
        "/",
        "HTTP/1.1 200 X\r\nContent-Length: 91\r\n\r\n<!doctype html><a href=/announced>\
         <a href=/cut><a href=/chunked><a href=/chunked-cut><a h=>",
        false,
        1,
        None,
    ),
    ("/announced", "HTTP/1.1 200 X\r\n\r\n<!doctype html><p>all", true, 1, None),
    (
        "/cut",
        "HTTP/1.1 200 X\r\n\r\n<!doctype html><a href=/behind><a href=/short>",
        false,
        2,
        Some("disconnectTrunc"),
    ),
    (
        "/chunked",
        "HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n0\r\n\r\n",
        false,
        1,
        None,
    ),
    (
        "/chunked-cut",
        "HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n",
        false,
        2,
        Some("disconnectTrunc"),
    ),
    (
        "/short",
        "HTTP/1.1 200 X\r\nContent-Length: 9\r\n\r\neight...",
        false,
        2,
        Some("disconnectTrunc"),
    ),
    ("/behind", "HTTP/1.1 200 X\r\nContent-Length: 3\r\n\r\nend", false, 1, None),
];

/// Writes the authority's certificate to `roots`; returns the configuration of a server for
/// 127.0.0.1.
fn certified(roots: &Path) -> ServerConfig {
    let mut params = CertificateParams::new(Vec::new()).expect("no names");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("a key");
    let root = params.self_signed(&key).expect("a certificate");
    fs::write(roots, root.pem()).expect("writable");
    let issuer = Issuer::new(params, key);
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).expect("an address");
    let leaf = params.signed_by(&key, &issuer).expect("a certificate");
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions");
    let config = config.with_no_client_auth().with_single_cert(vec![leaf.der().clone()], key);
    config.expect("they fit")
}

/// Answers one request and closes the connection. Returns the request target.
fn answer(config: &Arc<ServerConfig>, socket: TcpStream) -> Option<String> {
    let session = ServerConnection::new(Arc::clone(config)).expect("a configuration");
    let mut tunnel = StreamOwned::new(session, socket);
    let (mut request, mut byte) = (Vec::new(), [0]);
    while !request.ends_with(b"\r\n\r\n") {
        tunnel.read_exact(&mut byte).ok()?;
        request.extend(byte);
    }
    let path = String::from_utf8(request).ok()?.split(' ').nth(1)?.to_owned();
    let (_, reply, is_announced, ..) = CASES.iter().find(|case| case.0 == path)?;
    tunnel.write_all(reply.as_bytes()).ok()?;
    if *is_announced {
        tunnel.conn.send_close_notify();
    }
    tunnel.flush().ok()?;
    tunnel.sock.shutdown(Shutdown::Write).ok()?;
    let _ = tunnel.sock.read(&mut [0; 64]);
    Some(path)
}

#[test]
fn ends_that_are_not_announced() {
    let folder = tempfile::tempdir().expect("a folder");
    let roots = folder.path().join("roots.pem");
    let config = Arc::new(certified(&roots));
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("bound").port();
    let asked = Arc::new(Mutex::new(Vec::new()));
    thread::spawn({
        let asked = Arc::clone(&asked);
        move || {
            for socket in listener.incoming().map_while(Result::ok) {
                let path = answer(&config, socket);
                asked.lock().expect("no panic").extend(path);
            }
        }
    });
    let text = format!(
        "[job]\nseeds = [\"https://127.0.0.1:{port}/\"]\n\
         [identity]\ncontact = \"crawler@sted.dev\"\n\
         [scope]\nspan = \"host\"\n[limits]\ntime_max = \"30s\"\n\
         [connections]\naddresses_allowed = [\"127.0.0.0/8\"]\n\
         [politeness]\ndelay = \"0s\"\ndelay_factor = 0\naddress_delay = \"0s\"\n\
         [tls]\nroots_file = {roots:?}\n"
    );
    let conf = Conf::parse(&text, "test").unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let mut settings = settings::engine(&conf, [7; 16]);
    settings.retries.wait = Duration::from_millis(20);
    let job = folder.path().join("job");
    fs::create_dir(&job).expect("writable");
    let disk = Box::new(OsDisk::open(&job).expect("a folder"));
    let _loop = LOOP.lock().unwrap_or_else(PoisonError::into_inner);
    let mut world = os::World::new(&settings::world(&conf, Duration::from_secs(1)))
        .unwrap_or_else(|error| panic!("{error}"));
    let (seeds, _) = seeds::parse(format!("https://127.0.0.1:{port}/").as_bytes());
    let now = world.now();
    let mut engine = Engine::new(settings, &seeds, disk, Meter::new(still), now)
        .unwrap_or_else(|error| panic!("{error}"));
    world.run(&mut engine, &mut |_| {}).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(engine.counts().servers_given_up(), 0, "the server is not to blame");
    let asked = asked.lock().expect("no panic").clone();
    let text = fs::read_to_string(job.join("crawl.log")).expect("a log");
    let mut last = BTreeMap::new();
    for line in text.lines() {
        let entry = log::parse(line).unwrap_or_else(|bad| panic!("{bad:?}: {line}"));
        last.insert(entry.url.to_owned(), (entry.status, entry.annotations.map(str::to_owned)));
    }
    for (path, reply, _, requests, note) in CASES {
        assert_eq!(asked.iter().filter(|it| *it == path).count(), requests, "{path} in {asked:?}");
        let (status, notes) = &last[&format!("https://127.0.0.1:{port}{path}")];
        assert_eq!(status.to_string(), reply[9..12], "{path}");
        let notes = notes.as_deref().unwrap_or("");
        let trunc = notes.split(',').find(|word| word.ends_with("Trunc"));
        assert_eq!(trunc, note, "{path}: {notes}");
    }
}
