//! Tests of which certificates the stream accepts.

use super::*;
use rcgen::ExtendedKeyUsagePurpose;
use std::path::Path;

#[test]
fn certificates_are_judged() {
    let authority = Authority::new("one");
    let good: Spoil = |_| ();
    let cases: [(&str, Spoil, Result<(), CertificateFault>); 6] = [
        ("www.good.test", good, Ok(())),
        ("*.good.test", good, Ok(())),
        ("other.test", good, Err(CertificateFault::WrongHost)),
        (
            "www.good.test",
            |params| params.not_after = rcgen::date_time_ymd(2020, 1, 1),
            Err(CertificateFault::Expired),
        ),
        (
            "www.good.test",
            |params| params.not_before = rcgen::date_time_ymd(2090, 1, 1),
            Err(CertificateFault::NotYetValid),
        ),
        (
            "www.good.test",
            |params| params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth],
            Err(CertificateFault::WrongPurpose),
        ),
    ];
    for (name, spoil, expected) in cases {
        let address = serve(authority.server(name, spoil), pong);
        let client = authority.client();
        let mut peer = Peer::connect(address, Some(&client), "www.good.test");
        let result = peer.handshake().map(|facts| facts.tls.unwrap().verified);
        let expected = expected.map(|()| true).map_err(CloseReason::Certificate);
        assert_eq!(result, expected, "{name}");
        // The server handles one connection after the other.
        drop(peer);
        let full = u64::from(expected.is_ok());
        assert_eq!(client.handshakes(), Handshakes { full, resumed: 0 });

        let settings = Settings { verify: false, ..authority.settings() };
        let client = Client::new(&settings).unwrap();
        let mut peer = Peer::connect(address, Some(&client), "www.good.test");
        assert!(!peer.handshake().unwrap().tls.unwrap().verified, "{name}: anything goes");
        assert_eq!(peer.ping(), ("pong\n".to_owned(), CloseReason::End));
    }
}

#[test]
fn strangers_are_not_trusted() {
    let (authority, stranger) = (Authority::new("one"), Authority::new("other"));
    let address = serve(stranger.server("good.test", |_| ()), pong);
    let unknown = CloseReason::Certificate(CertificateFault::UnknownIssuer);
    let compiled_in = Client::new(&Settings::default()).unwrap();
    for client in [authority.client(), compiled_in] {
        let mut peer = Peer::connect(address, Some(&client), "good.test");
        assert_eq!(peer.handshake(), Err(unknown.clone()));
    }
    let own = rcgen::generate_simple_self_signed(vec!["good.test".to_owned()]).unwrap();
    let config = server_config(own.cert.der().clone(), &own.signing_key, rustls::ALL_VERSIONS);
    let address = serve(config, pong);
    let mut peer = Peer::connect(address, Some(&authority.client()), "good.test");
    assert_eq!(peer.handshake(), Err(unknown), "signed by itself");
    // A certificate as `openssl req -x509` creates it.
    let mut params = CertificateParams::new(vec!["good.test".to_owned()]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let own = params.self_signed(&key).unwrap();
    let config = server_config(own.der().clone(), &key, rustls::ALL_VERSIONS);
    let mut peer = Peer::connect(serve(config, pong), Some(&authority.client()), "good.test");
    let own = CloseReason::Certificate(CertificateFault::SelfSigned);
    assert_eq!(peer.handshake(), Err(own));
}

#[test]
fn addresses_are_names_too() {
    let authority = Authority::new("one");
    let address = serve(authority.server("127.0.0.1", |_| ()), pong);
    let mut peer = Peer::connect(address, Some(&authority.client()), "127.0.0.1");
    peer.handshake().unwrap();
    assert_eq!(peer.ping(), ("pong\n".to_owned(), CloseReason::End));
    let client = authority.client();
    for (name, good) in [("[::1]", true), ("a_b.test", true), ("a.test.", true), ("a b", false)] {
        let socket = mio::net::TcpStream::connect(address).unwrap();
        assert_eq!(Stream::tls(socket, &client, name).is_ok(), good, "{name}");
    }
}

#[test]
fn bad_roots_are_our_own_trouble() {
    let error = |roots: &Path| {
        let roots_file = Some(roots.to_owned());
        Client::new(&Settings { roots_file, ..Settings::default() }).err().unwrap().to_string()
    };
    assert!(error(Path::new("/nowhere")).starts_with("cannot read certificates from /nowhere: "));
    for text in ["", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        assert!(error(file.path()).starts_with("no certificate to trust in "), "{text:?}");
    }
}
