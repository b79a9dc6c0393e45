//! Signed requests to hosts of the lab. Hosts verify them by one other implementation, the requests
//! in the archive are verified by a second one.

use super::crawl::{Crawl, Logged};
use crate::util::{Run, python, run, sted};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use tempfile::TempDir;

/// Two keys, each with its directory document.
struct Keys {
    folder: TempDir,
}

impl Keys {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let keys = Self { folder };
        for name in ["own", "other"] {
            let made = Run::of(sted(&["key", "new", &keys.pem(name)]).output().expect("it runs"));
            assert_eq!(made.code, Some(0), "{}", made.err);
            fs::write(keys.path(name, "json"), &made.out).expect("written");
        }
        keys
    }

    fn path(&self, name: &str, kind: &str) -> PathBuf {
        self.folder.path().join(format!("{name}.{kind}"))
    }

    fn pem(&self, name: &str) -> String {
        self.path(name, "pem").display().to_string()
    }

    /// Crawls a web with a host that asks for signatures and knows the key `known`; `sign` says
    /// which requests are signed.
    fn crawl(&self, sign: &str, known: &str) -> Crawl {
        let keys_file = self.path(known, "json");
        let crawl = Crawl::of(&format!(
            "{CONF}keys_file = {keys_file:?}\n[identity.signature]\nsign = \"{sign}\"\n\
             key = \"{}\"\nagent = \"https://crawler.example\"\n",
            self.pem("own")
        ));
        assert_eq!(crawl.run.code, Some(0), "{}{}", crawl.run.out, crawl.run.err);
        crawl
    }

    /// Returns the numbers of requests in an archive: all, unsigned ones, and valid ones.
    fn verified(&self, crawl: &Crawl) -> [u64; 3] {
        let mut script = python("lab/signing.py");
        script.arg(crawl.job()).args(["own", "other"].map(|name| self.path(name, "json")));
        let run = Run::of(script.output().expect("python starts"));
        assert_eq!(run.code, Some(0), "{}{}", run.out, run.err);
        let counts: Value = serde_json::from_str(&run.out).expect("counts as JSON");
        ["requests", "unsigned", "valid"].map(|name| counts[name].as_u64().expect("a number"))
    }
}

const CONF: &str = r#"
[job]
name = "signing"
directory = "job"
[politeness]
burst = "server"
delay = "0s"
delay_factor = 0
address_delay = "0s"
domain_delay = "0s"
[web]
preset = "plain"
hosts = 30
seeds = 30
pages = 1100
page_bytes = "2KB"
tls_share = 0.3
hostile = ["signatures", "signed-robots", "signed-redirect"]
[lab]
directory = "lab"
events = "requests"
"#;

/// The host that asks for signatures of its pages.
const ASKS: &str = "signatures.test";

/// Returns the log's lines of the pages that are refused without a signature.
fn of_host(crawl: &Crawl) -> Vec<Logged> {
    let all = crawl.log().into_iter();
    all.filter(|line| line.url.contains(ASKS) && line.url.contains("/signed")).collect()
}

#[test]
fn all_requests_are_signed() {
    let keys = Keys::new();
    let crawl = keys.crawl("always", "own");
    let [requests, unsigned, valid] = keys.verified(&crawl);
    assert!(valid > 1_000 && unsigned == 0 && valid == requests, "{valid} of {requests}");
    let lines = of_host(&crawl);
    assert!(lines.len() == 12 && lines.iter().all(|line| line.outcome == "ok"), "{lines:?}");
    let counts = &crawl.summary()["counts"];
    assert!(counts["signed"].as_u64() > Some(1_000), "{counts}");
    assert_eq!(counts["signed"], counts["requests"], "{counts}");
}

/// Only requests to the hosts that ask are signed, and what was refused is requested once more.
/// Their robots.txt is known before a page is requested.
#[test]
fn who_asks_gets_a_signature() {
    let keys = Keys::new();
    let crawl = keys.crawl("when-asked", "own");
    let [requests, unsigned, valid] = keys.verified(&crawl);
    assert!(requests > 1_000 && unsigned > 900, "{valid} of {requests}");
    let lines = of_host(&crawl);
    let mut by_url: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for line in &lines {
        by_url.entry(&line.url).or_default().push(&line.outcome);
    }
    assert_eq!(by_url.len(), 12);
    let asked = lines.iter().filter(|line| line.outcome == "signature-asked").count();
    assert!((1..=12).contains(&asked), "{by_url:?}");
    let is_right = |tries: &Vec<&str>| matches!(tries[..], ["ok"] | ["signature-asked", "ok"]);
    assert!(by_url.values().all(is_right), "{by_url:?}");
    let all = crawl.log();
    let all = all.iter().filter(|line| line.outcome == "signature-asked").count();
    assert_eq!(crawl.summary()["counts"]["outcomes"]["signature-asked"], all as u64);
    let mut others = BTreeSet::new();
    for line in crawl.log() {
        let of = |name: &str| line.url.contains(name);
        if line.outcome == "ok" && (of(ASKS) || of("signed-")) {
            others.insert(line.url.clone());
        } else if line.url.ends_with("/closed") {
            assert_eq!(line.outcome, "robots-denied", "{line:?}");
        }
    }
    assert!(valid >= 20 && valid <= others.len() as u64 + 2, "{valid} of {others:?}");
    let audit =
        Run::of(sted(&["audit", &crawl.job().display().to_string()]).output().expect("runs"));
    assert_eq!(audit.code, Some(0), "{}{}", audit.out, audit.err);
}

/// Hosts refuse signatures by a key that they don't know: the pages are refused, once each.
#[test]
fn a_wrong_key_is_refused() {
    let keys = Keys::new();
    for sign in ["always", "when-asked", "none"] {
        let crawl = keys.crawl(sign, "other");
        let lines = of_host(&crawl);
        let tries = if sign == "when-asked" { 12..=24 } else { 12..=12 };
        assert!(tries.contains(&lines.len()), "{sign}: {lines:?}");
        let refused = lines.iter().filter(|line| line.outcome == "http-error").count();
        let asked = lines.iter().filter(|line| line.outcome == "signature-asked").count();
        assert!(refused == 12 && refused + asked == lines.len(), "{sign}: {lines:?}");
    }
}

#[test]
fn keys_are_made_once_and_shown() {
    let keys = Keys::new();
    let file = keys.pem("own");
    let mode = fs::metadata(&file).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "{mode:o}");
    let shown = run(&["key", "show", &file]);
    let made = fs::read_to_string(keys.path("own", "json")).expect("a document");
    assert_eq!((shown.code, &shown.out), (Some(0), &made));
    let again = run(&["key", "new", &file]);
    assert_eq!(again.code, Some(2), "{}", again.err);
    assert!(again.err.contains("never replaced"), "{}", again.err);
    // The public part that OpenSSL computes is in the document.
    let mut read = Command::new("openssl");
    read.args(["pkey", "-in", &file, "-pubout", "-outform", "DER"]);
    let der = read.output().expect("openssl runs").stdout;
    let document: Value = serde_json::from_str(&made).expect("JSON");
    let x = document["keys"][0]["x"].as_str().expect("a text");
    let encoded = base64_url(&der[der.len() - 32..]);
    assert_eq!(x, encoded);
    let none = run(&["key", "show", "Cargo.toml"]);
    assert_eq!(none.code, Some(2), "{}", none.err);
    assert!(none.err.contains("has no private key"), "{}", none.err);
}

fn base64_url(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::prelude::BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

/// The configuration names what is missing; a key that can't be read ends the command.
#[test]
fn a_signature_needs_a_key_and_an_agent() {
    let keys = Keys::new();
    let conf = keys.path("crawl", "toml");
    let path = conf.display().to_string();
    let base = "[job]\nseeds = [\"http://a.test/\"]\n[scope]\nspan = \"host\"\n\
                [identity]\ncontact = \"me@a.org\"\n[identity.signature]\nsign = \"always\"\n";
    let own = keys.pem("own");
    let pem = |file: &str| format!("key = \"{file}\"\n");
    let agent = "agent = \"https://crawler.example\"\n".to_owned();
    for (more, code, says) in [
        (String::new(), 2, "identity.signature.key: missing"),
        (pem(&own), 2, "identity.signature.agent: missing"),
        (pem(&own) + "agent = \"https://a.example/bot\"\n", 2, "is no https origin"),
        (pem("/nowhere.pem") + &agent, 2, "cannot open /nowhere.pem"),
        (pem(&path) + &agent, 2, "has no private key in PEM"),
        (pem(&own) + "kye = 1\n" + &agent, 2, "did you mean key?"),
        (pem(&own) + &agent, 0, "# Signs with: key "),
    ] {
        fs::write(&conf, format!("{base}{more}")).expect("written");
        let run = run(&["check", &path]);
        assert_eq!(run.code, Some(code), "{more}: {}{}", run.out, run.err);
        assert!(format!("{}{}", run.out, run.err).contains(says), "{more}: {}{}", run.out, run.err);
    }
    let set = run(&["check", &path, "--set", "identity.signature.sign=when-asked"]);
    assert!(
        set.out.contains("[identity.signature]\nsign = \"when-asked\""),
        "{}{}",
        set.out,
        set.err
    );
}
