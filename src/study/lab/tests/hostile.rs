//! Tests of hostile hosts over real sockets: each does what its name says.

use super::*;
use crate::study::web::{Manner, Naming};

#[test]
fn closes_resets_and_cuts() {
    let lab = Lab::hostile(&[
        Hostile::EarlyClose,
        Hostile::Reset,
        Hostile::CutBody,
        Hostile::MidPipelineClose,
        Hostile::StallBody,
        Hostile::Refused,
    ]);
    let ask = |name: &str, requests: String| {
        let mut stream = lab.connect(name);
        stream.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
        stream.write_all(requests.as_bytes()).unwrap();
        let (bytes, ended) = read_all(&mut stream);
        (String::from_utf8(bytes).unwrap(), ended)
    };
    let one = |name: &str, path: &str| ask(name, get(name, path, ""));
    assert_eq!(one("early-close.test", "/"), (String::new(), None));
    assert_eq!(
        one("reset.test", "/at-once"),
        (String::new(), Some(io::ErrorKind::ConnectionReset))
    );
    let (half, ended) = one("reset.test", "/later");
    assert_eq!(ended, Some(io::ErrorKind::ConnectionReset));
    assert!(half.contains("Content-Length: 4000") && half.len() < 3_000, "{}", half.len());
    let (half, ended) = one("cut-body.test", "/");
    assert!(ended.is_none() && half.contains("Content-Length: 4000") && half.len() < 3_000);
    let (half, ended) = one("stall-body.test", "/");
    assert_eq!(ended, Some(io::ErrorKind::WouldBlock), "still open");
    assert!(half.contains("Content-Length: 4000") && half.len() < 3_000);
    let name = "mid-pipeline-close.test";
    let eight = (0..8).map(|page| get(name, &format!("/p{page}"), "")).collect();
    let (three, ended) = ask(name, eight);
    assert_eq!((three.matches("HTTP/1.1 200 OK").count(), ended), (3, None));
    assert!(!three.contains("Connection: close"));
    let refused = lab.web.host(lab.web.host_named("refused.test").unwrap());
    let error = TcpStream::connect((refused.address, lab.ready.http_port)).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
}

#[test]
fn replies_without_end() {
    let lab = Lab::hostile(&[Hostile::EndlessHead, Hostile::EndlessBody, Hostile::Mute]);
    for (name, least) in [("endless-head.test", 1 << 20), ("endless-body.test", 20 << 20)] {
        let mut stream = lab.connect(name);
        stream.write_all(get(name, "/", "").as_bytes()).unwrap();
        let mut buffer = vec![0; 1 << 16];
        let (mut sum, mut head_ended) = (0, false);
        while sum < least {
            let length = stream.read(&mut buffer).unwrap();
            assert!(length > 0, "{name} ended after {sum}");
            head_ended |= buffer[..length].windows(4).any(|four| four == b"\r\n\r\n");
            sum += length;
        }
        assert_eq!(head_ended, name == "endless-body.test");
    }
    // Other clients are served at the same time.
    let mut stream = lab.connect("h0000.test");
    stream.write_all(get("h0000.test", "/", "").as_bytes()).unwrap();
    read_reply(&mut stream);
    let mut mute = lab.connect("mute.test");
    mute.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    mute.write_all(get("mute.test", "/robots.txt", "").as_bytes()).unwrap();
    assert_eq!(read_all(&mut mute), (Vec::new(), Some(io::ErrorKind::WouldBlock)));
}

#[test]
fn replies_out_of_order_and_counted_refusals() {
    let lab = Lab::hostile(&[Hostile::Swapped, Hostile::RetryAfter]);
    let name = "swapped.test";
    let mut stream = lab.connect(name);
    let three: String = (1..=3).map(|page| get(name, &format!("/p{page}"), "")).collect();
    stream.write_all(three.as_bytes()).unwrap();
    for page in [3, 2, 1] {
        let (head, _) = read_reply(&mut stream);
        assert!(head.contains(&format!("Content-Location: /p{page}\r\n")), "{head}");
    }
    let name = "retry-after.test";
    let mut stream = lab.connect(name);
    for status in [503, 503, 200, 200] {
        stream.write_all(get(name, "/twice", "").as_bytes()).unwrap();
        let (head, _) = read_reply(&mut stream);
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{head}");
        assert_eq!(head.contains("Retry-After: 1\r\n"), status == 503);
    }
}

/// Nobody can connect to a listener with a full queue.
#[test]
fn a_full_host_takes_no_connection() {
    let lab = Lab::hostile(&[Hostile::Full]);
    let full = lab.web.host(lab.web.host_named("full.test").unwrap());
    let at = SocketAddr::from((full.address, lab.ready.http_port));
    let error = TcpStream::connect_timeout(&at, Duration::from_millis(300)).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
}

/// The lab must reach every host that is reachable by its name and behaviour.
#[test]
fn every_hostile_host_listens_or_has_a_reason_not_to() {
    let lab = Lab::of(web::Settings { hosts: 1, pages: 1, ..web::Settings::hostile() });
    for number in 1..lab.web.hosts() {
        let host = lab.web.host(number);
        let spec = host.hostile.unwrap().spec();
        let port =
            if spec.certificate.is_some() { lab.ready.https_port } else { lab.ready.http_port };
        let at = SocketAddr::from((host.address, port));
        let reached = TcpStream::connect_timeout(&at, Duration::from_millis(200)).is_ok();
        let named = matches!(spec.naming, Naming::Address | Naming::OverTcp);
        let expected = named && !matches!(spec.manner, Manner::Refuse | Manner::Full);
        assert_eq!(reached, expected, "{}", host.name);
    }
}

#[test]
fn a_mute_host_does_not_shake_hands() {
    let folder = tempfile::tempdir().unwrap();
    let pem = folder.path().join("ca.pem");
    let web = web::Settings { hosts: 1, pages: 1, hostile: vec![Hostile::MuteTls], ..small() };
    let lab = Lab::start(Settings { web, ca: Some(pem.clone()), ..Settings::default() });
    let config = Arc::new(trusting(&lab, &pem));
    let name = "mute-tls.test".try_into().unwrap();
    let mut client = rustls::ClientConnection::new(config, name).unwrap();
    let mut stream = lab.connect("mute-tls.test");
    stream.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    client.write_tls(&mut stream).unwrap();
    assert_eq!(read_all(&mut stream), (Vec::new(), Some(io::ErrorKind::WouldBlock)));
}

/// A host that drips waits between two bytes most of the time; the client's end is logged at once.
#[test]
fn the_end_of_a_drip_is_logged_when_it_comes() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let web = web::Settings { hostile: vec![Hostile::Drip], ..small() };
    let lab = Lab::start(Settings { web, log: Some(log.clone()), ..Settings::default() });
    let mut stream = lab.connect("drip.test");
    stream.write_all(get("drip.test", "/head", "").as_bytes()).unwrap();
    let mut byte = [0];
    stream.read_exact(&mut byte).unwrap();
    drop(stream);
    // The next byte is nine tenths of a second away; the log is written every tenth.
    std::thread::sleep(Duration::from_millis(500));
    let text = std::fs::read_to_string(&log).unwrap();
    lab.stop();
    assert!(text.contains("\"why\":\"client\""), "{text}");
}
