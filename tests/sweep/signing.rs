//! Signed requests in simulated crawls: the servers verify them by another implementation.

use super::{Plan, run_plan};
use crate::trials::each;
use std::sync::Arc;
use sted::engine::settings::{Settings, Signing};
use sted::http::signature::{Key, Signer};
use sted::study::sim::judge::{Laws, Signs};
use sted::study::web::{self, Hostile, Keys};

/// The private key of the crawls: that of RFC 9421, appendix B.1.4.
const KEY: &str = "-----BEGIN PRIVATE KEY-----\n\
    MC4CAQAwBQYDK2VwBCIEIJ+DYvh6SEqVTm50DFtMDoQikTmiCqirVv9mWG9qfSnF\n\
    -----END PRIVATE KEY-----\n";
/// Another one.
const OTHER_KEY: &str = "-----BEGIN PRIVATE KEY-----\n\
    MC4CAQAwBQYDK2VwBCIEIAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8g\n\
    -----END PRIVATE KEY-----\n";

/// Hosts that ask for signatures.
const KINDS: [Hostile; 3] = [Hostile::Signatures, Hostile::SignedRobots, Hostile::SignedRedirect];

fn signer(pem: &str) -> Arc<Signer> {
    let key = Key::from_pem(pem.as_bytes()).expect("a key");
    Arc::new(Signer::new(key, "https://crawler.example"))
}

fn keys(pem: &str) -> Keys {
    let key = Key::from_pem(pem.as_bytes()).expect("a key");
    Keys::parse(&key.directory()).expect("its directory")
}

/// Draws whether requests are signed. Two seeds of eight sign when they are asked, one always; of
/// one more the servers would notice a signature.
pub(super) fn draw(seed: u64, web: &mut web::Settings, engine: &mut Settings, laws: &mut Laws) {
    let signs = match (seed ^ (seed >> 7)) % 8 {
        1 | 5 => Signs::WhenAsked,
        3 => Signs::Always,
        6 => Signs::Never,
        _ => return,
    };
    web.keys = Some(keys(KEY));
    laws.signs = signs;
    let on_demand = signs == Signs::WhenAsked;
    if signs != Signs::Never {
        engine.signing = Some(Signing { signer: signer(KEY), on_demand });
    }
    for kind in KINDS {
        if !web.hostile.is_empty() && !web.hostile.contains(&kind) {
            web.hostile.push(kind);
        }
    }
}

/// A crawl of a host that asks for signatures.
fn plan(seed: u64, signs: Signs) -> Plan {
    let mut plan = Plan::of(seed);
    plan.web.hostile = KINDS.to_vec();
    plan.laws.tries_max = 62;
    plan.laws.signs = signs;
    plan.web.keys = Some(keys(KEY));
    let on_demand = signs == Signs::WhenAsked;
    plan.engine.signing =
        (signs != Signs::Never).then(|| Signing { signer: signer(KEY), on_demand });
    plan
}

#[test]
fn hosts_that_ask_for_signatures_get_them() {
    let seeds: Vec<u64> = (1..=12).collect();
    for signs in [Signs::Never, Signs::WhenAsked, Signs::Always] {
        each(
            &seeds,
            |seed| run_plan(plan(seed, signs), false).verdict,
            |seed| format!("{seed}, {signs:?}"),
        );
    }
}

/// Sabotage: a crawl that signs by another key, or not as it has promised, breaks the law.
#[test]
fn the_law_notices() {
    let noticed = |mut plan: Plan, signing: Option<Signing>| {
        plan.engine.signing = signing;
        run_plan(plan, false).verdict.is_err_and(|how| how.contains("law `signed`"))
    };
    let by = |pem, on_demand| Some(Signing { signer: signer(pem), on_demand });
    for seed in 1..=4 {
        assert!(noticed(plan(seed, Signs::Always), by(OTHER_KEY, false)), "{seed}: another key");
        assert!(noticed(plan(seed, Signs::Always), by(KEY, true)), "{seed}: too few");
        assert!(noticed(plan(seed, Signs::WhenAsked), by(KEY, false)), "{seed}: too many");
        assert!(noticed(plan(seed, Signs::WhenAsked), None), "{seed}: none when asked");
        assert!(noticed(plan(seed, Signs::Never), by(KEY, false)), "{seed}: none is promised");
    }
}
