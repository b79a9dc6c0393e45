//! How a node gets into a server: what it logs in with, what it encrypts with, and why a server
//! refuses it, with the key of the configuration that it is about.
//!
//! A server reports what it forbids apart from answers: a request that it forbids has none. So
//! work over a connection ends as soon as the server forbids a part of it.

use super::Settings;
use super::failure::{Failure, all, block_on, mistake, trouble};
use super::names::Names;
use async_nats::{
    Client, ConnectError, ConnectErrorKind, ConnectOptions, Event as Note, ServerError,
};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{AlertDescription, CertificateError};
use std::error::Error;
use std::io;
use std::path::Path;
use std::time::Duration;
use tokio::sync::watch;

/// The oldest version of the server that has atomic batches.
const SERVER_MIN: (u32, u32) = (2, 12);
/// How long an answer about a stream is waited for before it is asked for again. A request that
/// finds no leader of the stream is lost.
pub(super) const ANSWER_MAX: Duration = Duration::from_secs(2);
/// How long a server is tried at the start.
const CONNECT_MAX: Duration = Duration::from_secs(10);

/// Does work over a connection that ends with it.
///
/// # Errors
/// Those of the work; no server can be reached in ten seconds or lets this node in, it is too old,
/// or it forbids a part of the work.
pub(super) fn with_server<T>(
    settings: &Settings,
    work: impl AsyncFnOnce(Client) -> Result<T, Failure>,
) -> Result<T, Failure> {
    block_on(async {
        let (forbid, mut forbidden) = watch::channel(None);
        let crawl = settings.crawl.clone();
        let options = options(settings).await?.event_callback(move |note| {
            if let Some(text) = forbidden_by(&note, &crawl) {
                forbid.send_replace(Some(text));
            }
            std::future::ready(())
        });
        let client = connect(settings, options).await?;
        tokio::select! {
            result = work(client) => result,
            Ok(text) = forbidden.wait_for(Option::is_some) => {
                let servers = settings.servers.join(", ");
                let text = text.as_deref().unwrap_or_default();
                Err(mistake(login_key(settings), format!("{servers}: {text}")))
            }
        }
    })
}

/// Returns how a connection is made.
///
/// # Errors
/// A file can't be read, or isn't what its key says.
pub(super) async fn options(settings: &Settings) -> Result<ConnectOptions, Failure> {
    let Settings { crawl, node, credentials, user, roots, certificate, .. } = settings;
    let mut options = ConnectOptions::new()
        .name(format!("sted {crawl} {node}"))
        .connection_timeout(Duration::from_secs(5))
        .ping_interval(Duration::from_secs(5))
        .subscription_capacity(64 << 10)
        .request_timeout(Some(Duration::from_secs(10)));
    let unreadable =
        |key, path: &Path, how: String| mistake(key, format!("{}: {how}", path.display()));
    if let Some(path) = credentials {
        let read = options.credentials_file(path).await;
        options =
            read.map_err(|error| unreadable("cluster.credentials_file", path, all(&error)))?;
    }
    if let Some((name, path)) = user {
        let password = std::fs::read_to_string(path);
        let password =
            password.map_err(|error| unreadable("cluster.password_file", path, all(&error)))?;
        options = options.user_and_password(name.clone(), password.trim_end().to_owned());
    }
    let find_certificate = |key, path: &Path| match CertificateDer::from_pem_file(path) {
        Ok(_) => Ok(()),
        Err(error) => Err(unreadable(key, path, lacks("certificate", &error))),
    };
    if let Some(path) = roots {
        find_certificate("cluster.roots_file", path)?;
        options = options.add_root_certificates(path.clone()).require_tls(true);
    }
    if let Some((path, key)) = certificate {
        find_certificate("cluster.certificate_file", path)?;
        PrivateKeyDer::from_pem_file(key)
            .map_err(|error| unreadable("cluster.key_file", key, lacks("key", &error)))?;
        options = options.add_client_certificate(path.clone(), key.clone());
    }
    Ok(options)
}

/// Returns why a file of PEM is of no use.
fn lacks(what: &str, error: &pem::Error) -> String {
    match error {
        pem::Error::NoItemsFound => format!("there is no PEM {what} in it"),
        error => error.to_string(),
    }
}

async fn connect(settings: &Settings, options: ConnectOptions) -> Result<Client, Failure> {
    let connecting = options.connect(settings.servers.clone());
    let connected = tokio::time::timeout(CONNECT_MAX, connecting).await;
    let servers = settings.servers.join(", ");
    let client = match connected {
        Ok(Ok(client)) => client,
        Err(_) => {
            let text = format!("{servers}: no answer in {CONNECT_MAX:?}; is the server running?");
            return Err(trouble("cluster.servers", text));
        }
        Ok(Err(error)) => {
            let tls = tls_error(&error);
            let (key, text) = match tls {
                Some(tls) => refused_tls(settings, tls),
                None => refused(settings, &error),
            };
            let is_mistake = key != "cluster.servers"
                || error.kind() == ConnectErrorKind::ServerParse
                || matches!(tls, Some(rustls::Error::InvalidMessage(_)));
            let make = if is_mistake { mistake } else { trouble };
            return Err(make(key, format!("{servers}: {text}")));
        }
    };
    check_version(&client.server_info().version)
        .map_err(|text| mistake("cluster.servers", format!("{servers}: {text}")))?;
    Ok(client)
}

/// Checks that a server is new enough.
///
/// # Errors
/// It isn't, in words.
fn check_version(version: &str) -> Result<(), String> {
    if version_of(version).is_some_and(|version| version >= SERVER_MIN) {
        return Ok(());
    }
    let (major, minor) = SERVER_MIN;
    Err(format!(
        "the server is version {version}, which has no atomic batches; install nats-server \
         {major}.{minor} or newer (Debian's package is older)"
    ))
}

fn version_of(text: &str) -> Option<(u32, u32)> {
    let mut parts = text.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// Returns why a server can't be used, and the key that it is about.
fn refused(settings: &Settings, error: &ConnectError) -> (&'static str, String) {
    let how = all(error);
    match error.kind() {
        ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation => {
            let key = login_key(settings);
            let fix = match (&settings.credentials, &settings.user, &settings.certificate) {
                (Some(path), ..) => format!(
                    "it doesn't accept the credentials in {}, and its log says why: they may have \
                     expired, or be those of another operator",
                    path.display()
                ),
                (_, Some((name, path)), _) => format!(
                    "it has no user {name} with the password in {}; compare both with its \
                     authorization block",
                    path.display()
                ),
                (.., Some((path, _))) => format!(
                    "it has no user for the certificate in {}, and its log says why",
                    path.display()
                ),
                _ => "it demands a login: set user and password_file, or credentials_file".into(),
            };
            (key, format!("the server refuses the login ({}): {fix}", error.kind()))
        }
        ConnectErrorKind::Tls if settings.certificate.is_some() => {
            let fix = "the key must be that of the certificate in certificate_file";
            ("cluster.key_file", format!("{how}; {fix}"))
        }
        ConnectErrorKind::Tls => {
            let fix = "name the PEM file of the authority that has signed the server's certificate";
            ("cluster.roots_file", format!("{how}; {fix}"))
        }
        _ if is_closed(error) => {
            let mut fix = "the server closes the connection, and its log says why".to_owned();
            if settings.certificate.is_none() {
                fix.push_str("; it may demand a certificate (certificate_file and key_file)");
            }
            ("cluster.servers", format!("{how}; {fix}"))
        }
        ConnectErrorKind::ServerParse => ("cluster.servers", how),
        _ => ("cluster.servers", format!("{how}; is the server running?")),
    }
}

/// Returns why there is no encrypted connection, and the key that it is about.
fn refused_tls(settings: &Settings, error: &rustls::Error) -> (&'static str, String) {
    use AlertDescription::{
        AccessDenied, BadCertificate, CertificateExpired, CertificateRequired, CertificateRevoked,
        CertificateUnknown, UnknownCA, UnsupportedCertificate,
    };
    let Settings { roots, certificate, .. } = settings;
    match (error, roots, certificate) {
        (rustls::Error::InvalidMessage(_), Some(_), _) => {
            let fix = "the server doesn't encrypt, but roots_file demands it: write a tls block in \
                       the server's configuration, or remove roots_file";
            ("cluster.roots_file", format!("{fix} ({error})"))
        }
        (rustls::Error::InvalidMessage(_), None, _) => {
            let fix = "the server doesn't encrypt, but tls:// demands it: write a tls block in the \
                       server's configuration, or nats:// here";
            ("cluster.servers", format!("{fix} ({error})"))
        }
        (rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer), Some(path), _) => {
            let path = path.display();
            let fix = format!("no authority in {path} has signed the server's certificate");
            ("cluster.roots_file", format!("{fix} ({error}); name the file of the one that has"))
        }
        (rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer), None, _) => {
            let fix = "the server encrypts, and no authority that this system trusts has signed \
                       its certificate";
            (
                "cluster.roots_file",
                format!("{fix} ({error}); name the PEM file of the one that has"),
            )
        }
        (rustls::Error::InvalidCertificate(_), ..) => {
            let fix = "renew the server's certificate, or write the name that it is for";
            ("cluster.servers", format!("the server's certificate is no good: {error}; {fix}"))
        }
        (
            rustls::Error::AlertReceived(
                AccessDenied
                | BadCertificate
                | CertificateExpired
                | CertificateRequired
                | CertificateRevoked
                | CertificateUnknown
                | UnknownCA
                | UnsupportedCertificate,
            ),
            ..,
        ) => {
            let text = match certificate {
                None => {
                    "the server demands a certificate: set certificate_file and key_file".into()
                }
                Some((path, _)) => format!(
                    "the server refuses the certificate in {}; an authority in the ca_file of its \
                     tls block must have signed it",
                    path.display()
                ),
            };
            ("cluster.certificate_file", format!("{text} ({error})"))
        }
        _ => ("cluster.servers", format!("TLS: {error}; the server's log says why")),
    }
}

/// Returns the key of what this node logs in with.
fn login_key(settings: &Settings) -> &'static str {
    match (&settings.credentials, &settings.user, &settings.certificate) {
        (Some(_), ..) => "cluster.credentials_file",
        (None, None, Some(_)) => "cluster.certificate_file",
        _ => "cluster.user",
    }
}

/// Returns what a note says that the server forbids this node, with a fix; `None` if the note is
/// about something else. All logs of a crawl make one text.
pub(super) fn forbidden_by(note: &Note, crawl: &str) -> Option<String> {
    let Note::ServerError(ServerError::Other(text)) = note else { return None };
    let (what, subject) = text.strip_prefix("Permissions Violation for ")?.split_once(" to \"")?;
    let names = Names::of(crawl);
    let subject = subject.split('"').next().unwrap_or(subject);
    let subject = match subject {
        _ if names.partition(subject).is_some() => names.all_logs(),
        _ if subject.starts_with("_INBOX.") => "_INBOX.>".to_owned(),
        _ => subject.to_owned(),
    };
    let verb = if what == "Publish" { "publish" } else { "subscribe" };
    Some(format!(
        "the server forbids this node to {verb} to {subject}; in its configuration permit the user \
         to publish to {} and to subscribe to _INBOX.>",
        names.published().join(", ")
    ))
}

/// Returns the error of TLS among the causes of an error.
fn tls_error(error: &ConnectError) -> Option<&rustls::Error> {
    io_error(error)?.get_ref()?.downcast_ref()
}

/// Returns whether the server has closed a connection that it had accepted.
fn is_closed(error: &ConnectError) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    let kinds = [BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof];
    io_error(error).is_some_and(|error| kinds.contains(&error.kind()))
        || error.source().is_some_and(|cause| cause.to_string() == "broken pipe")
}

fn io_error(error: &ConnectError) -> Option<&io::Error> {
    let mut cause = error.source();
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref() {
            return Some(error);
        }
        cause = error.source();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_number() {
        for (text, is_enough) in [
            ("2.9.10", false),
            ("2.12.0", true),
            ("2.15.3", true),
            ("3.0.0-beta", true),
            ("", false),
        ] {
            let is = version_of(text).is_some_and(|version| version >= SERVER_MIN);
            assert_eq!(is, is_enough, "{text}");
        }
    }

    #[test]
    fn what_a_server_forbids() {
        let note = |text: &str| Note::ServerError(ServerError::Other(text.to_owned()));
        for (text, expected) in [
            (
                r#"Permissions Violation for Publish to "sted.a.log.857""#,
                "publish to sted.a.log.*;",
            ),
            (r#"Permissions Violation for Publish to "$JS.API.INFO""#, "publish to $JS.API.INFO;"),
            (
                r#"Permissions Violation for Subscription to "_INBOX.x.*" using queue "q""#,
                "subscribe to _INBOX.>;",
            ),
        ] {
            let said = forbidden_by(&note(text), "a").expect("it is forbidden");
            assert!(said.contains(expected), "{said}");
            assert!(said.contains("$KV.sted-a.>"), "{said}");
        }
        for text in ["", "Permissions Violation", "maximum connections exceeded"] {
            assert_eq!(forbidden_by(&note(text), "a"), None);
        }
        assert_eq!(forbidden_by(&Note::Connected, "a"), None);
    }
}
