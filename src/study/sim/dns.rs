//! Simulated name servers: how long a look-up takes and what it returns.
//!
//! A host of a web has the one address of its description; a look-up takes the host's own time. A
//! share of look-ups fails, half by silence (the resolver gives up after its tries) and half by an
//! error of the name server. Names of hostile hosts are answered as the kind of the host demands.

use super::hosts::Hosts;
use super::net::Origin;
use super::scene::Scene;
use super::scripted::{ROUND_TRIP, Scripts};
use super::settings::Away;
use crate::engine::contract::{Answer, Families, NameFailure};
use crate::study::web::Naming;
use crate::study::web::script::PRIVATE;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

/// The time a look-up takes, and its result.
pub(super) type Found = (Duration, Result<Answer, NameFailure>);

/// The time to live of the name servers' answers.
const TTL: Duration = Duration::from_secs(3_600);
/// How long a resolver waits for a silent name server: three tries of five seconds.
const PATIENCE: Duration = Duration::from_secs(15);
/// How long it takes to learn that a name does not exist.
const NOBODY: Duration = Duration::from_millis(10);
/// An address that no crawler should connect to: clouds serve credentials at it.
const FORBIDDEN: Ipv4Addr = Ipv4Addr::new(169, 254, 169, 254);

/// Looks up `name` at the name servers of a script or of a web.
pub(super) fn look_up(
    origin: &mut Origin,
    name: &str,
    families: Families,
    scene: &mut Scene,
) -> Found {
    match origin {
        Origin::Script(scripts) => of_script(scripts, name),
        Origin::Web(hosts) => {
            let host = hosts.web.host_named(name);
            of_web(hosts, host, families, scene)
        }
    }
}

/// Looks up a host of a script: each has an address of its own, unless the script says otherwise.
fn of_script(scripts: &mut Scripts, name: &str) -> Found {
    let asked = scripts.lookups.entry(name.to_owned()).or_default();
    let before = std::mem::replace(asked, *asked + 1);
    let denial = scripts.script.names.get(name).and_then(|denial| denial.after(before));
    let answer = match denial {
        None => answer(scripts.address_of(name)),
        Some("private") => answer(IpAddr::V4(PRIVATE)),
        Some("no-such-name") => Err(NameFailure::NoSuchName),
        Some("no-address") => Err(NameFailure::NoAddress),
        Some("timed-out") => Err(NameFailure::TimedOut),
        Some(_) => Err(NameFailure::ServerFailed),
    };
    (ROUND_TRIP / 2, answer)
}

/// Looks up the host `number` of a web; `None` stands for a name that no host has.
fn of_web(hosts: &mut Hosts, number: Option<u32>, families: Families, scene: &mut Scene) -> Found {
    let Some(number) = number else { return (NOBODY, Err(NameFailure::NoSuchName)) };
    let mut draw = hosts.lookup(number);
    let (fails, in_silence) = (draw.chance(hosts.faults(scene.now).dns_failures), draw.chance(0.5));
    let away = hosts.away(number, scene.now);
    let traits = &hosts.at(number).host;
    let (time, address) = (traits.dns_time, traits.address);
    match away {
        Some(Away::Silent) => return (PATIENCE, Err(NameFailure::TimedOut)),
        Some(Away::Unreachable) => return (NOBODY, Err(NameFailure::ServerFailed)),
        Some(Away::Denied) => return (time, Err(NameFailure::NoSuchName)),
        Some(Away::Empty) => return (time, Err(NameFailure::NoAddress)),
        Some(Away::Private) => return (time, answer(IpAddr::V4(FORBIDDEN))),
        Some(Away::Refuses) | None => {}
    }
    if fails {
        scene.figures.faults += 1;
        return match in_silence {
            true => (PATIENCE, Err(NameFailure::TimedOut)),
            false => (time, Err(NameFailure::ServerFailed)),
        };
    }
    let naming = traits.hostile.map_or(Naming::Address, |kind| kind.spec().naming);
    hosts.found(number);
    match naming {
        // Hosts have IPv4 addresses only.
        Naming::Address | Naming::OverTcp if families == Families::Ipv6 => {
            (time, Err(NameFailure::NoAddress))
        }
        Naming::Address => (time, answer(IpAddr::V4(address))),
        Naming::OverTcp => (time * 2, answer(IpAddr::V4(address))),
        Naming::Forbidden => (time, answer(IpAddr::V4(FORBIDDEN))),
        Naming::NoSuchName => (time, Err(NameFailure::NoSuchName)),
        Naming::NoAddress => (time, Err(NameFailure::NoAddress)),
        Naming::Fails => (time, Err(NameFailure::ServerFailed)),
        // The resolver ignores the bad packet and waits for a better one.
        Naming::Mute | Naming::Garbled => (PATIENCE, Err(NameFailure::TimedOut)),
    }
}

fn answer(address: IpAddr) -> Result<Answer, NameFailure> {
    Ok(Answer { addresses: smallvec::smallvec![address], ttl: TTL })
}
