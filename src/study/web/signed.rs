//! Verifies signed requests (Web Bot Auth) as a server does, by another implementation than the
//! crawler's.
//!
//! Laws: a request holds if its signature is that of a key of the directory over what it covers,
//! which is at least authority, path and agent; and if it is used between its two times, which are
//! at most a minute apart.
//! Source: RFC 9421; draft-ietf-webbotauth-httpsig-protocol-00.

use sfv::{FieldType, ListEntry, Parser};
use std::fmt;
use std::sync::Arc;
use web_bot_auth::components::{CoveredComponent, DerivedComponent, HTTPFieldParameters};
use web_bot_auth::keyring::{JSONWebKeySet, KeyRing};
use web_bot_auth::message_signatures::SignedMessage;
use web_bot_auth::{SignatureAgentLink, WebBotAuthVerifier};

/// How much the clock of a client may be ahead of the server's, in seconds.
const SKEW_S: i64 = 5;
/// How long a signature may be valid, in seconds.
const LIFETIME_S: i64 = 60;
/// The maximum number of fields of a request.
const FIELDS_MAX: usize = 64;

/// The header fields by which a server asks for a signature: one dictionary, of which another
/// member comes first.
pub(super) const ASKS: &str = "Accept-Signature: sig0=(\"@authority\");tag=\"app\"\r\n\
                        Accept-Signature: sig1=(\"@method\" \"@authority\" \"@path\" \
                        \"signature-agent\";key=\"sig1\");created;expires;keyid;\
                        tag=\"web-bot-auth\"\r\n";

/// The public keys that a server knows.
#[derive(Clone)]
pub struct Keys {
    /// The document that they are from.
    text: Arc<str>,
    ring: Arc<KeyRing>,
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Keys").field(&self.text).finish()
    }
}

impl PartialEq for Keys {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

/// What a request says of who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proof {
    /// The request isn't signed.
    None,
    /// It is signed by a known key.
    Holds,
    /// Its signature doesn't hold, for this reason.
    Fails(String),
}

impl Keys {
    /// Reads the keys of a directory: a JSON Web Key Set, as `sted key show` prints it.
    ///
    /// # Errors
    /// The text is no such document, or has no Ed25519 key.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = |why: String| format!("{why}; `sted key show` prints such a document");
        let keys: JSONWebKeySet = serde_json::from_str(text)
            .map_err(|error| wrong(format!("is no set of keys: {error}")))?;
        let mut ring = KeyRing::default();
        for key in keys.keys {
            let read = key.algorithm().and_then(|algorithm| Ok((algorithm, key.public_key()?)));
            let (algorithm, public) =
                read.map_err(|error| wrong(format!("has a key that isn't read: {error:?}")))?;
            ring.import_raw(key.b64_thumbprint(), algorithm, public);
        }
        Ok(Self { text: text.into(), ring: Arc::new(ring) })
    }

    /// Verifies a request, given its head up to and including the empty line, at this time in
    /// seconds since 1970; if that is `None`, at the time that the signature names.
    pub fn proof(&self, head: &[u8], unix: Option<u64>) -> Proof {
        let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
        let mut request = httparse::Request::new(&mut fields);
        if !matches!(request.parse(head), Ok(httparse::Status::Complete(_))) {
            return Proof::Fails("the request can't be parsed".to_owned());
        }
        let message = Message(&request);
        if message.field("signature-input").is_empty() {
            return Proof::None;
        }
        let unix = unix.and_then(|unix| i64::try_from(unix).ok());
        self.verify(&message, unix).map_or_else(Proof::Fails, |()| Proof::Holds)
    }

    fn verify(&self, message: &Message<'_>, unix: Option<i64>) -> Result<(), String> {
        let verifier = WebBotAuthVerifier::parse(message).map_err(|error| error.to_string())?;
        let agents = verifier.get_signature_agents();
        let [SignatureAgentLink::External(agent)] = &agents[..] else {
            return Err(format!("it has not one agent: {agents:?}"));
        };
        if !agent.starts_with("https://") {
            return Err(format!("the agent isn't an https origin: {agent}"));
        }
        let base = &verifier.get_parsed_label().base;
        let covers = |wanted: &CoveredComponent| base.components.contains_key(wanted);
        let path = CoveredComponent::Derived(DerivedComponent::Path { req: false });
        let authority = CoveredComponent::Derived(DerivedComponent::Authority { req: false });
        if !covers(&path) || !covers(&authority) {
            return Err("authority or path isn't covered".to_owned());
        }
        let times = &base.parameters.details;
        let (Some(created), Some(expires)) = (times.created, times.expires) else {
            return Err("it has no times".to_owned());
        };
        let now = unix.unwrap_or(created);
        if created > now + SKEW_S || expires <= now || expires - created > LIFETIME_S {
            return Err(format!("created {created}, expires {expires}, but it is {now}"));
        }
        verifier.verify(&self.ring, None).map(|_| ()).map_err(|error| error.to_string())
    }
}

/// A parsed request.
struct Message<'a>(&'a httparse::Request<'a, 'a>);

impl Message<'_> {
    /// Returns the values of all fields with a name.
    fn field(&self, name: &str) -> Vec<String> {
        let own = self.0.headers.iter().filter(|field| field.name.eq_ignore_ascii_case(name));
        own.map(|field| String::from_utf8_lossy(field.value).trim().to_owned()).collect()
    }

    /// Returns the value of a member of a field that is a dictionary (RFC 9421 2.1.2).
    fn member(&self, name: &str, key: &str) -> Option<String> {
        let text = self.field(name).join(", ");
        let all = Parser::new(&text).parse::<sfv::Dictionary>().ok()?;
        match all.get(key)? {
            ListEntry::Item(item) => Some(item.serialize()),
            ListEntry::InnerList(_) => None,
        }
    }
}

impl SignedMessage for Message<'_> {
    fn lookup_component(&self, wanted: &CoveredComponent) -> Vec<String> {
        match wanted {
            CoveredComponent::HTTP(field) => match &field.parameters.0[..] {
                [] => self.field(&field.name),
                [HTTPFieldParameters::Key(key)] => {
                    self.member(&field.name, key).into_iter().collect()
                }
                _ => Vec::new(),
            },
            CoveredComponent::Derived(DerivedComponent::Method { .. }) => {
                self.0.method.map(str::to_owned).into_iter().collect()
            }
            CoveredComponent::Derived(DerivedComponent::Authority { .. }) => {
                self.field("host").iter().map(|host| host.to_ascii_lowercase()).collect()
            }
            CoveredComponent::Derived(DerivedComponent::Path { .. }) => {
                let target = self.0.path.unwrap_or_default();
                vec![target.split('?').next().unwrap_or_default().to_owned()]
            }
            CoveredComponent::Derived(DerivedComponent::Query { .. }) => {
                let target = self.0.path.unwrap_or_default();
                vec![format!("?{}", target.split_once('?').map_or("", |(_, query)| query))]
            }
            CoveredComponent::Derived(_) => Vec::new(),
        }
    }
}
