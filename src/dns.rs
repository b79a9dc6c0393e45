//! Names to addresses: the cache in front of the world's resolver, and who waits for whom.

use smallvec::SmallVec;
use std::net::IpAddr;
use std::time::Duration;

/// Settings of the station.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Shortest time an answer is kept, whatever its time to live says.
    pub ttl_min: Duration,
    /// Longest time an answer is kept.
    pub ttl_max: Duration,
    /// How long "no such name" and "no address" are kept.
    pub negative_ttl: Duration,
    /// How long a time-out or a dead name server is kept before the name is asked for again.
    pub failure_ttl: Duration,
    /// Look-ups under way at once.
    pub in_flight_max: usize,
    /// Names kept; the oldest answer goes first.
    pub names_max: usize,
    /// Which addresses to ask for, and which come first.
    pub families: Families,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            ttl_min: Duration::from_secs(60),
            ttl_max: Duration::from_secs(24 * 3_600),
            negative_ttl: Duration::from_secs(600),
            failure_ttl: Duration::from_secs(30),
            in_flight_max: 1_000,
            names_max: 1_000_000,
            families: Families::Ipv4ThenIpv6,
        }
    }
}

/// Which families of addresses are asked for and tried, in which order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Families {
    /// IPv4 first, IPv6 if none works.
    #[default]
    Ipv4ThenIpv6,
    /// IPv6 first, IPv4 if none works.
    Ipv6ThenIpv4,
    /// A records only.
    Ipv4,
    /// AAAA records only.
    Ipv6,
}

/// Addresses of a name, in the order in which they are to be tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Never empty.
    pub addresses: SmallVec<[IpAddr; 4]>,
    /// The least time to live of the records.
    pub ttl: Duration,
}

/// Why a name has no address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NameFailure {
    /// NXDOMAIN: the name does not exist.
    NoSuchName,
    /// The name exists and has no address.
    NoAddress,
    /// No answer in time.
    TimedOut,
    /// The name server refused, failed (SERVFAIL), or can't be reached.
    ServerFailed,
    /// The answer made no sense, or the name can't be asked for.
    Malformed,
}
