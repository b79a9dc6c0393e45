//! Certificates made at the lab's start: an authority, and valid and invalid server certificates.
//!
//! All server certificates share one key (ECDSA P-256): making thousands of keys would take longer
//! than signing, and clients don't notice.

use super::Error;
use crate::study::web::Certificate;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::NoServerSessionStorage;
use std::sync::Arc;

/// The lab's certificate authority.
pub(super) struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
    key: KeyPair,
}

impl Authority {
    /// Creates an authority with a new key.
    pub(super) fn new() -> Result<Self, Error> {
        let mut params = CertificateParams::new(Vec::new()).map_err(made)?;
        params.distinguished_name.push(rcgen::DnType::CommonName, "synthetic web");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate().map_err(made)?;
        let pem = params.self_signed(&key).map_err(made)?.pem();
        let issuer = Issuer::new(params, key);
        Ok(Self { pem, issuer, key: KeyPair::generate().map_err(made)? })
    }

    /// Returns the authority's own certificate in PEM.
    pub(super) fn pem(&self) -> &str {
        &self.pem
    }

    /// Returns the TLS configuration of a server with this kind of certificate for these names,
    /// which `resumes` sessions or not.
    pub(super) fn config(
        &self,
        names: Vec<String>,
        certificate: Certificate,
        resumes: bool,
    ) -> Result<Arc<ServerConfig>, Error> {
        let names = match certificate {
            Certificate::WrongName => vec!["another.test".to_owned()],
            _ => names,
        };
        let mut params = CertificateParams::new(names).map_err(made)?;
        params.use_authority_key_identifier_extension = true;
        if certificate == Certificate::Expired {
            params.not_before = rcgen::date_time_ymd(2020, 1, 1);
            params.not_after = rcgen::date_time_ymd(2020, 12, 31);
        }
        let leaf = match certificate {
            Certificate::UnknownIssuer => params.self_signed(&self.key),
            _ => params.signed_by(&self.key, &self.issuer),
        };
        let chain = vec![leaf.map_err(made)?.der().clone()];
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(self.key.serialize_der()));
        let provider = Arc::new(aws_lc_rs::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(made)?
            .with_no_client_auth()
            .with_single_cert(chain, key);
        let mut config = config.map_err(made)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        if resumes {
            config.ticketer = aws_lc_rs::Ticketer::new().map_err(made)?;
        } else {
            config.session_storage = Arc::new(NoServerSessionStorage {});
            config.send_tls13_tickets = 0;
        }
        Ok(Arc::new(config))
    }
}

fn made(error: impl std::fmt::Display) -> Error {
    Error::Certificate(error.to_string())
}
