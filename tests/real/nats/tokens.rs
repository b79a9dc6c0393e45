//! Credentials of a node and the configuration of a server that accepts them: an operator, an
//! account and a user, whose tokens (JWT) each the one before has signed.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use nkeys::KeyPair;
use serde_json::{Value, json};

/// Credentials with the server's half.
pub(super) struct Tokens {
    /// The lines of the server's configuration.
    pub(super) configuration: String,
    /// The text of the node's file.
    pub(super) credentials: String,
}

/// Makes keys, and all tokens.
pub(super) fn make() -> Tokens {
    let (operator, user) = (KeyPair::new_operator(), KeyPair::new_user());
    let [account, system] = [(); 2].map(|()| KeyPair::new_account());
    let trusted = token(&operator, &operator, json!({ "type": "operator" }));
    let limits = json!({
        "subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1, "wildcards": true,
        "conn": -1, "leaf": -1, "mem_storage": -1, "disk_storage": -1, "streams": -1,
        "consumer": -1,
    });
    let [preload, system_preload] =
        [(&account, limits), (&system, json!({}))].map(|(of, limits)| {
            let text = token(&operator, of, json!({ "type": "account", "limits": limits }));
            format!("{}: {text:?}", of.public_key())
        });
    let configuration = format!(
        "operator: {trusted:?}\nsystem_account: {}\nresolver: MEMORY\n\
         resolver_preload {{ {preload}, {system_preload} }}",
        system.public_key()
    );
    let limits = json!({ "type": "user", "subs": -1, "data": -1, "payload": -1 });
    let (text, seed) = (token(&account, &user, limits), user.seed().expect("it was made here"));
    let credentials = format!(
        "-----BEGIN NATS USER JWT-----\n{text}\n------END NATS USER JWT------\n\n\
         -----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
    );
    Tokens { configuration, credentials }
}

/// Returns what `by` says of `of`, signed.
fn token(by: &KeyPair, of: &KeyPair, mut claims: Value) -> String {
    claims["version"] = 2.into();
    let body = json!({
        "jti": of.public_key(), "iat": 1_700_000_000, "iss": by.public_key(),
        "sub": of.public_key(), "name": "sted", "nats": claims,
    });
    let head = json!({ "typ": "JWT", "alg": "ed25519-nkey" });
    let [head, body] = [head, body].map(|part| URL_SAFE_NO_PAD.encode(part.to_string()));
    let text = format!("{head}.{body}");
    let signature = by.sign(text.as_bytes()).expect("it has a seed");
    format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature))
}
