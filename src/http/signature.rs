//! Signs requests, so that a server can verify who asks: Web Bot Auth.
//!
//! A signature covers the method, the authority, the path and the query of a request, and the
//! origin at which the operator publishes the key. It ends [`LIFETIME_S`] after it was made. It
//! adds the fields `Signature-Agent`, `Signature-Input` and `Signature`, and no other.
//!
//! Law: the same request in the same second has the same signature, since Ed25519 takes no random
//! numbers. The private key is in no output.
//! Cost: of a signature, 20 to 40 microseconds and at least four allocations.
//! Source: RFC 9421 (signatures), RFC 7517 and 8037 (keys), RFC 7638 (their names), and
//! draft-ietf-webbotauth-httpsig-protocol-00.

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair};
use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use serde_json::json;
use sfv::{ListEntry, Parser};
use sha2::{Digest, Sha256};
use std::fmt;

/// The label of a signature among those of a request.
const LABEL: &str = "sig1";
/// What the signature is for, so that it isn't taken for that of another protocol.
const TAG: &str = "web-bot-auth";
/// How long a signature is valid, in seconds: what is seen of it on the way can't be used for long.
pub const LIFETIME_S: u64 = 60;

/// Where the directory of an origin's keys is published.
pub const DIRECTORY_PATH: &str = "/.well-known/http-message-signatures-directory";
/// The media type of the directory.
pub const DIRECTORY_TYPE: &str = "application/http-message-signatures-directory+json";

/// A private key, and the name of its public part.
pub struct Key {
    pair: Ed25519KeyPair,
    id: String,
}

/// The error for a text that isn't a private key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadKey(pub String);

impl fmt::Display for BadKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadKey {}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Key").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Key {
    /// Reads a private key: a PEM file with Ed25519 in PKCS #8, as `sted key new` and OpenSSL write
    /// it.
    ///
    /// # Errors
    /// The text has no such key.
    pub fn from_pem(text: &[u8]) -> Result<Self, BadKey> {
        let bad = |why: &str| BadKey(format!("{why}; `sted key new` writes such a file"));
        let der = in_pem(text)
            .ok_or_else(|| bad("it has no private key in PEM (-----BEGIN PRIVATE KEY-----)"))?;
        let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(&der)
            .map_err(|_| bad("its key isn't an Ed25519 key"))?;
        Ok(Self::of(pair))
    }

    fn of(pair: Ed25519KeyPair) -> Self {
        // RFC 8037 A.3: these members, in this order, without white space.
        let x = public_part(&pair);
        let jwk = format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{x}"}}"#);
        Self { id: BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(jwk)), pair }
    }

    /// Returns the name of the key: the thumbprint of its public part.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the document to publish at [`DIRECTORY_PATH`]: a set of keys with this one.
    pub fn directory(&self) -> String {
        let x = public_part(&self.pair);
        let key = json!({ "kty": "OKP", "crv": "Ed25519", "kid": self.id, "x": x, "use": "sig" });
        let text = serde_json::to_string_pretty(&json!({ "keys": [key] }));
        text.expect("strings as keys") + "\n"
    }
}

/// Returns the bytes of the private key in a text (RFC 7468); `None` if there is none.
fn in_pem(text: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(text).ok()?;
    let (_, rest) = text.split_once("-----BEGIN PRIVATE KEY-----")?;
    let (body, _) = rest.split_once("-----END PRIVATE KEY-----")?;
    let body: String = body.split_ascii_whitespace().collect();
    BASE64_STANDARD.decode(body).ok()
}

fn public_part(pair: &Ed25519KeyPair) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(pair.public_key())
}

/// Signs the requests of one operator.
#[derive(Debug)]
pub struct Signer {
    key: Key,
    /// The origin at which the key is published, in quotes.
    agent: String,
}

impl Signer {
    /// Creates a signer with a key. `agent` is the origin at which it is published.
    ///
    /// # Panics
    /// Panics if `agent` has a space, `"`, `\`, or a byte that isn't printable ASCII.
    pub fn new(key: Key, agent: &str) -> Self {
        let is_clean = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\');
        assert!(agent.bytes().all(is_clean), "an origin: {agent:?}");
        Self { key, agent: format!("\"{agent}\"") }
    }

    /// Returns the name of its key.
    pub fn key_id(&self) -> &str {
        self.key.id()
    }

    /// Returns the header fields that sign a GET request, each with CRLF before it and none after
    /// it. `authority` is the host, and the port unless it is the scheme's default; `target` the
    /// path and the query; `unix` the time in seconds since 1970.
    pub fn fields(&self, authority: &str, target: &str, unix: u64) -> String {
        // RFC 9421 2.2.7: without a query, its value is a question mark alone.
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let Self { key, agent } = self;
        let params = format!(
            "(\"@method\" \"@authority\" \"@path\" \"@query\" \"signature-agent\";key=\"{LABEL}\");\
             created={unix};expires={};keyid=\"{}\";alg=\"ed25519\";tag=\"{TAG}\"",
            unix + LIFETIME_S,
            key.id
        );
        // RFC 9421 2.5: a line for each component, with its value, then the parameters.
        let base = format!(
            "\"@method\": GET\n\"@authority\": {authority}\n\"@path\": {path}\n\
             \"@query\": ?{query}\n\"signature-agent\";key=\"{LABEL}\": {agent}\n\
             \"@signature-params\": {params}"
        );
        let signature = BASE64_STANDARD.encode(key.pair.sign(base.as_bytes()));
        format!(
            "\r\nSignature-Agent: {LABEL}={agent}\r\nSignature-Input: {LABEL}={params}\
             \r\nSignature: {LABEL}=:{signature}:"
        )
    }
}

/// The components that a signature covers.
const COVERED: [&str; 5] = ["@method", "@authority", "@path", "@query", "signature-agent"];

/// Returns whether a server asks for a signature of this kind: whether the value of an
/// `Accept-Signature` field (RFC 9421, section 5.1) has a member with the tag of Web Bot Auth that
/// wants no more than a signature covers, and no nonce. A value that can't be parsed asks for
/// nothing.
///
/// Cost: one pass over the value.
pub fn is_asked_by(value: &[u8]) -> bool {
    let Ok(all) = Parser::new(value).parse::<sfv::Dictionary>() else { return false };
    all.values().any(|member| {
        let ListEntry::InnerList(asked) = member else { return false };
        let is_own = |tag: &sfv::BareItem| tag.as_string().is_some_and(|tag| tag.as_str() == TAG);
        let is_covered = |item: &sfv::Item| {
            item.bare_item.as_string().is_some_and(|name| COVERED.contains(&name.as_str()))
        };
        asked.params.get("tag").is_some_and(is_own)
            && !asked.params.contains_key("nonce")
            && asked.items.iter().all(is_covered)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The key of RFC 9421, appendix B.1.4.
    const PEM: &str = "-----BEGIN PRIVATE KEY-----\n\
        MC4CAQAwBQYDK2VwBCIEIJ+DYvh6SEqVTm50DFtMDoQikTmiCqirVv9mWG9qfSnF\n\
        -----END PRIVATE KEY-----\n";

    #[test]
    fn a_key_has_its_thumbprint() {
        let key = Key::from_pem(PEM.as_bytes()).expect("a key");
        assert_eq!(key.id(), "poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U");
        assert!(key.directory().contains("\"JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs\""));
        assert!(!format!("{key:?}").contains("n4Ni"), "the private part isn't shown");
    }

    #[test]
    fn what_is_no_key_is_refused() {
        for wrong in ["", "a key", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"]
        {
            assert!(Key::from_pem(wrong.as_bytes()).is_err(), "{wrong:?}");
        }
    }

    /// What the fields say, and that a signature depends on each part of what it covers.
    #[test]
    fn a_signature_covers_its_request() {
        let key = || Key::from_pem(PEM.as_bytes()).expect("a key");
        let signer = Signer::new(key(), "https://crawler.example");
        let fields = signer.fields("a.test:81", "/p?q", 1_700_000_000);
        let lines: Vec<&str> = fields.split("\r\n").collect();
        assert_eq!(lines[1], "Signature-Agent: sig1=\"https://crawler.example\"");
        assert_eq!(
            lines[2],
            "Signature-Input: sig1=(\"@method\" \"@authority\" \"@path\" \"@query\" \
             \"signature-agent\";key=\"sig1\");created=1700000000;expires=1700000060;\
             keyid=\"poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U\";alg=\"ed25519\";\
             tag=\"web-bot-auth\""
        );
        let of = |fields: &str| fields.rsplit("\r\n").next().map(str::to_owned);
        let signature = of(&fields);
        assert_eq!(signature, of(&signer.fields("a.test:81", "/p?q", 1_700_000_000)));
        let elsewhere = Signer::new(key(), "https://b.example");
        for other in [
            signer.fields("a.test", "/p?q", 1_700_000_000),
            signer.fields("a.test:81", "/p/?q", 1_700_000_000),
            signer.fields("a.test:81", "/p?other", 1_700_000_000),
            signer.fields("a.test:81", "/p", 1_700_000_000),
            signer.fields("a.test:81", "/p?q", 1_700_000_001),
            elsewhere.fields("a.test:81", "/p?q", 1_700_000_000),
        ] {
            assert_ne!(signature, of(&other));
        }
    }

    #[test]
    fn servers_ask_in_their_field() {
        for (value, asks) in [
            ("sig1=(\"@authority\");tag=\"web-bot-auth\"", true),
            ("a=(\"@method\");created;keyid;tag=\"web-bot-auth\", b=()", true),
            ("sig1=(\"@authority\" \"signature-agent\";key=\"sig1\")", false),
            ("b=(\"@path\" \"signature-agent\";key=\"b\");tag=\"web-bot-auth\"", true),
            ("sig1=(\"@authority\" \"content-digest\");tag=\"web-bot-auth\"", false),
            ("sig1=(\"@authority\");nonce=\"x\";tag=\"web-bot-auth\"", false),
            ("sig1=(\"@authority\");tag=\"another\"", false),
            ("sig1=(\"@authority\");tag=1", false),
            ("sig1=1;tag=\"web-bot-auth\"", false),
            ("sig1", false),
            ("", false),
            ("(((", false),
            ("sig1=(\"\u{e9}\");tag=\"web-bot-auth\"", false),
        ] {
            assert_eq!(is_asked_by(value.as_bytes()), asks, "{value:?}");
        }
    }
}
