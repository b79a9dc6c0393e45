//! Which certificates a TLS stream trusts, and how failures are reported.
//!
//! The roots are those of Mozilla's programme, compiled in, or those of one PEM file; never both,
//! so that the file is the complete list. Text that reaches the log has a bounded length.

use std::path::Path;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, DigitallySignedStruct, InvalidMessage, RootCertStore, SignatureScheme,
    SupportedCipherSuite,
};

use super::{Error, KeyExchange};
use crate::engine::contract::{CertificateFault, CloseReason, TlsFault};
use crate::os::input;

/// Creates the cryptography provider, which offers the key exchange `first` first, and suites with
/// AES-128 before others, as browsers do. Their hash, SHA-256, has instructions on processors where
/// that of AES-256, SHA-384, has none (decision 119).
pub(super) fn provider(first: KeyExchange) -> CryptoProvider {
    use aws_lc_rs::kx_group::{SECP256R1, SECP384R1, X25519, X25519MLKEM768};
    let kx_groups = match first {
        KeyExchange::Classic => vec![X25519, SECP256R1, SECP384R1, X25519MLKEM768],
        KeyExchange::PostQuantum => vec![X25519MLKEM768, X25519, SECP256R1, SECP384R1],
    };
    let mut provider = CryptoProvider { kx_groups, ..aws_lc_rs::default_provider() };
    let name = |suite: &SupportedCipherSuite| suite.suite().as_str().unwrap_or_default();
    provider.cipher_suites.sort_by_key(|suite| !name(suite).contains("AES_128"));
    provider
}

/// Returns a cipher suite's name in the IANA registry, without rustls' prefix for TLS 1.3.
pub(super) fn registered(suite: &'static str) -> &'static str {
    match suite {
        "TLS13_AES_128_GCM_SHA256" => "TLS_AES_128_GCM_SHA256",
        "TLS13_AES_256_GCM_SHA384" => "TLS_AES_256_GCM_SHA384",
        "TLS13_CHACHA20_POLY1305_SHA256" => "TLS_CHACHA20_POLY1305_SHA256",
        other => other,
    }
}

/// The length of the longest file of roots that is read, in bytes.
const ROOTS_BYTES_MAX: u64 = 64 << 20;

/// Loads the trusted root certificates: those of the PEM file `file`, or the compiled-in ones if it
/// is `None`.
pub(super) fn roots(file: Option<&Path>) -> Result<RootCertStore, Error> {
    let Some(path) = file else {
        return Ok(RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() });
    };
    let failed = |source| Error::Roots { path: path.to_owned(), source };
    let text = input::read(path, ROOTS_BYTES_MAX).map_err(|error| failed(pem::Error::Io(error)))?;
    let certificates = CertificateDer::pem_slice_iter(&text);
    let certificates: Vec<_> = certificates.collect::<Result<_, _>>().map_err(failed)?;
    let mut roots = RootCertStore::empty();
    let (added, ignored) = roots.add_parsable_certificates(certificates);
    if ignored > 0 {
        log::warn!("{ignored} certificates of {} are not valid roots", path.display());
    }
    if added == 0 { Err(Error::NoRoots(path.to_owned())) } else { Ok(roots) }
}

/// A verifier that accepts every certificate, for operators who prefer a forged page to none.
#[derive(Debug)]
pub(super) struct Unverified(pub(super) Arc<CryptoProvider>);

impl ServerCertVerifier for Unverified {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// System errors of a connect which mean that a router, or a firewall of this machine, refused the
/// connection (RFC 792, RFC 1812 5.2.7.1, RFC 4443 3.1).
pub(super) const ON_THE_WAY: [i32; 7] = [
    libc::EACCES,
    libc::EPERM,
    libc::EPROTO,
    libc::ENOPROTOOPT,
    libc::EOPNOTSUPP,
    libc::EHOSTDOWN,
    libc::ENONET,
];

/// Maps an error of rustls to the reason why the connection ended.
pub(super) fn reason_of_tls(error: &rustls::Error) -> CloseReason {
    match error {
        rustls::Error::InvalidCertificate(bad) => {
            log::debug!("certificate refused: {}", shortened(bad.to_string()));
            CloseReason::Certificate(certificate_fault(bad))
        }
        _ => CloseReason::Tls(tls_fault(error), shortened(error.to_string())),
    }
}

fn certificate_fault(bad: &CertificateError) -> CertificateFault {
    use CertificateError as Bad;
    match bad {
        Bad::Expired | Bad::ExpiredContext { .. } => CertificateFault::Expired,
        Bad::NotValidYet | Bad::NotValidYetContext { .. } => CertificateFault::NotYetValid,
        Bad::NotValidForName | Bad::NotValidForNameContext { .. } => CertificateFault::WrongHost,
        Bad::UnknownIssuer => CertificateFault::UnknownIssuer,
        Bad::Revoked => CertificateFault::Revoked,
        Bad::InvalidPurpose | Bad::InvalidPurposeContext { .. } => CertificateFault::WrongPurpose,
        Bad::BadSignature => CertificateFault::BadSignature,
        // webpki's error has no type of its own here. Tools create self-signed certificates as
        // those of an authority, which webpki rejects before it looks for an issuer.
        Bad::Other(other) if other.to_string() == "CaUsedAsEndEntity" => {
            CertificateFault::SelfSigned
        }
        _ => CertificateFault::Invalid,
    }
}

fn tls_fault(error: &rustls::Error) -> TlsFault {
    use rustls::{AlertDescription as Alert, PeerIncompatible as Peer};
    match error {
        // A TLS record begins with its type; plain text and other protocols don't.
        rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType) => TlsFault::NotTls,
        rustls::Error::InvalidMessage(InvalidMessage::UnknownProtocolVersion) => TlsFault::NotTls,
        // RFC 8446, section 6.2.
        rustls::Error::AlertReceived(Alert::HandshakeFailure | Alert::InsufficientSecurity) => {
            TlsFault::NoCipher
        }
        rustls::Error::AlertReceived(Alert::ProtocolVersion) => TlsFault::Version,
        rustls::Error::AlertReceived(_) => TlsFault::Alert,
        rustls::Error::PeerIncompatible(
            Peer::ServerDoesNotSupportTls12Or13 | Peer::ServerTlsVersionIsDisabledByOurConfig,
        ) => TlsFault::Version,
        rustls::Error::PeerIncompatible(_) => TlsFault::NoCipher,
        _ => TlsFault::Broken,
    }
}

/// Cuts text that the peer may have influenced to 200 bytes.
fn shortened(mut words: String) -> String {
    let end = (0..=words.len().min(200)).rev().find(|&at| words.is_char_boundary(at));
    words.truncate(end.expect("the beginning is a boundary"));
    words
}
