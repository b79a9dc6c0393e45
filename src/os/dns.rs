//! Resolves names to addresses: c-ares on a thread of its own, with a mailbox and a waker.
//!
//! Promises: every look-up is answered once, whatever name servers do. A name is queried exactly as
//! given, without search domains or aliases. IPv4 and IPv6 addresses come in the order of
//! [`Families`]; the answer's time to live is the least of its records. The hosts file is consulted
//! first, then `localhost` (RFC 6761 6.3); `.onion` does not exist (RFC 7686). Nothing is cached
//! here: the station `dns` does that, and c-ares' own cache, which has no bound, is switched off.
//!
//! Both families (IPv4 and IPv6) are queried at once. The answer contains what either query found.
//! If neither found an address, the less final of the two failures is returned, because some
//! servers deny a name when they are asked for an AAAA record only (RFC 4074, section 4.2): see
//! `worse`.
//!
//! c-ares shortens its tries by the usual speed of a name server, down to a quarter of a second. A
//! name whose own servers are slow would be given up too early, so a query that timed out is
//! repeated until [`Settings::timeout`] has passed in all.
//!
//! In c-ares, an answer that can't be parsed closes the socket on which it arrived, and so uses up
//! one try of every query that was sent from that socket. So a query that failed by such an answer
//! is repeated from a port of its own, by a second channel that is created when it is first needed.
//!
//! The side thread shares only the mailbox with the loop (`work::Mailbox`): its callbacks post a
//! message, and wake the loop once for each batch of messages. They don't panic, which c-ares could
//! not handle. Dropping the resolver ends pending look-ups without an answer and joins the thread.
//!
//! Cost: a look-up takes one table entry and one boxed callback for each family; a drain without
//! answers is an uncontended lock. About 30,000 look-ups a second with 1,000 in flight. After four
//! queries from one port the system draws another port, and the case of letters is random for each
//! query (draft-vixie-dnsext-dns0x20): an answer that doesn't repeat that case is dropped. To forge
//! an answer, an attacker has to guess 16 + 16 bits for port and query number, and one bit for each
//! letter.

#![expect(clippy::disallowed_methods, reason = "reads the clock")]

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use c_ares::{Channel, EventSys, Flags, Options};
use smallvec::SmallVec;

use super::input;
use super::work::Mailbox;
use crate::conf::HostsFile;
use crate::engine::contract::{Answer, Families, LookupId, NameFailure};
use crate::ground::map::Map;

/// Settings of the resolver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The name servers to query, in order; empty for those of the system.
    pub servers: Vec<SocketAddr>,
    /// The longest wait for an answer in one try. A name is given up only after at least this time
    /// in all tries together.
    pub timeout: Duration,
    /// How often each name server is queried before a name is given up.
    pub tries: u32,
    /// The hosts file. A name that it contains is not queried.
    pub hosts_file: HostsFile,
    /// Whether the case of letters in a query is random, and answers must repeat it.
    pub mixed_case: bool,
}

impl Default for Settings {
    fn default() -> Self {
        let (servers, timeout, tries) = (Vec::new(), Duration::from_secs(5), 3);
        Self { servers, timeout, tries, hosts_file: HostsFile::System, mixed_case: true }
    }
}

/// Why the resolver could not start.
#[derive(Debug)]
pub enum Error {
    /// The configured hosts file can't be read.
    Hosts {
        /// The path of the file.
        path: PathBuf,
        /// The error that the system reported.
        source: io::Error,
    },
    /// c-ares doesn't start: no name servers are known, or the system can't create a thread.
    Start(c_ares::Error),
}

/// The resolver: the look-ups in flight, and the side thread that queries name servers.
pub struct Resolver {
    channel: Channel,
    /// The c-ares channel that sends each query from a port of its own; `None` until it is needed.
    alone: Option<Channel>,
    settings: Settings,
    hosts: Hosts,
    pending: Map<LookupId, Pending>,
    mailbox: Arc<Mailbox<Message>>,
    /// The answers that [`Self::drain`] hands out; the list is swapped with the mailbox's to avoid
    /// allocations.
    messages: Vec<Message>,
}

/// A look-up that is in flight: its answer has not been handed out yet.
struct Pending {
    name: Box<str>,
    families: Families,
    since: Instant,
    /// The number of address families (IPv4, IPv6) that have no result yet.
    missing: u8,
    ipv4: Found,
    ipv6: Found,
}

/// The result of a look-up for one address family (IPv4 or IPv6). A family that is not queried has
/// the failure `NoSuchName`.
type Found = Result<Addresses, NameFailure>;

/// The addresses found for one family; never empty.
struct Addresses {
    list: SmallVec<[IpAddr; 4]>,
    ttl_seconds: u32,
}

#[derive(Clone, Copy)]
enum Family {
    Ipv4,
    Ipv6,
}

/// A result that the side thread posts.
struct Message {
    lookup: LookupId,
    family: Family,
    /// Whether the query was sent from a port of its own.
    alone: bool,
    found: Found,
}

/// The number of queries sent from one port. It is low because an attacker who forges answers has
/// to guess each new port.
const QUESTIONS_PER_PORT: u32 = 4;
/// The length of the longest hosts file that is read, in bytes.
const HOSTS_BYTES_MAX: u64 = 256 << 20;

impl Resolver {
    /// Reads the hosts file and starts the side thread, which uses `waker` to wake the loop.
    pub fn new(settings: &Settings, waker: Arc<mio::Waker>) -> Result<Self, Error> {
        Ok(Self {
            channel: channel(settings, QUESTIONS_PER_PORT).map_err(Error::Start)?,
            alone: None,
            settings: settings.clone(),
            hosts: Hosts::read(&settings.hosts_file)?,
            pending: Map::default(),
            mailbox: Arc::new(Mailbox::new(waker)),
            messages: Vec::new(),
        })
    }

    /// Starts a look-up of `name` with the id `lookup`; [`Self::drain`] hands out its answer. The
    /// name is spelled as in a URL, is not an IP address, and may end in a dot.
    ///
    /// # Panics
    /// A look-up with this id is already in flight.
    pub fn resolve(&mut self, lookup: LookupId, name: &str, families: Families) {
        let (ipv4, ipv6) = match families {
            Families::Ipv4ThenIpv6 | Families::Ipv6ThenIpv4 => (true, true),
            Families::Ipv4 => (true, false),
            Families::Ipv6 => (false, true),
        };
        let pending = Pending {
            name: name.into(),
            families,
            since: Instant::now(),
            missing: u8::from(ipv4) + u8::from(ipv6),
            ipv4: Err(NameFailure::NoSuchName),
            ipv6: Err(NameFailure::NoSuchName),
        };
        let before = self.pending.insert(lookup, pending);
        assert!(before.is_none(), "a look-up has its number for itself");
        if ipv4 {
            self.ask(lookup, name, Family::Ipv4, false);
        }
        if ipv6 {
            self.ask(lookup, name, Family::Ipv6, false);
        }
    }

    /// Calls `take` with each look-up finished since the last call, and its answer or failure. Call
    /// it after the waker has fired.
    pub fn drain(&mut self, mut take: impl FnMut(LookupId, Result<Answer, NameFailure>)) {
        let mut messages = std::mem::take(&mut self.messages);
        self.mailbox.collect(&mut messages);
        for message in messages.drain(..) {
            if let Some((lookup, result)) = self.settle(message) {
                take(lookup, result);
            }
        }
        self.messages = messages;
    }

    /// Returns the number of look-ups in flight.
    pub fn in_flight(&self) -> usize {
        self.pending.len()
    }

    /// Looks the name up in the hosts file, or else queries the name servers.
    fn ask(&mut self, lookup: LookupId, name: &str, family: Family, alone: bool) {
        let mailbox = Arc::clone(&self.mailbox);
        let post = move |found| mailbox.post(Message { lookup, family, alone, found });
        if !is_askable(name) {
            return post(Err(NameFailure::Malformed));
        }
        if let Some(found) = self.hosts.find(name, family) {
            return post(found);
        }
        let channel = match &mut self.alone {
            Some(own) if alone => own,
            _ => &mut self.channel,
        };
        match family {
            Family::Ipv4 => channel.query_a(name, move |reply| {
                post(reply.map_err(failure).and_then(|found| {
                    addresses(found.iter().map(|at| (at.ipv4().into(), at.ttl())))
                }));
            }),
            Family::Ipv6 => channel.query_aaaa(name, move |reply| {
                post(reply.map_err(failure).and_then(|found| {
                    addresses(found.iter().map(|at| (at.ipv6().into(), at.ttl())))
                }));
            }),
        }
    }

    /// Stores the result of one family of a look-up. Returns the look-up's answer once all of its
    /// families have a result, and `None` before.
    fn settle(&mut self, message: Message) -> Option<(LookupId, Result<Answer, NameFailure>)> {
        let Message { lookup, family, alone, found } = message;
        let pending = self.pending.get_mut(&lookup).expect("a look-up waits for its messages");
        let early = pending.since.elapsed() < self.settings.timeout;
        let again = match found {
            Err(NameFailure::TimedOut) if early => Some(alone),
            Err(NameFailure::Malformed) if !alone && is_askable(&pending.name) => Some(true),
            _ => None,
        };
        if let Some(alone) = again {
            let name = pending.name.clone();
            if alone && self.alone.is_none() {
                // If no second channel can be created, the first one has to do.
                self.alone = channel(&self.settings, 1).ok();
            }
            self.ask(lookup, &name, family, alone);
            return None;
        }
        match family {
            Family::Ipv4 => pending.ipv4 = found,
            Family::Ipv6 => pending.ipv6 = found,
        }
        pending.missing -= 1;
        if pending.missing > 0 {
            return None;
        }
        let whole = self.pending.remove(&lookup).expect("it was there a moment ago");
        Some((lookup, whole.answer()))
    }
}

impl Pending {
    /// Returns the addresses of both families in the configured order, or the failure if there are
    /// none.
    fn answer(self) -> Result<Answer, NameFailure> {
        let (first, second) = match self.families {
            Families::Ipv4ThenIpv6 | Families::Ipv4 => (self.ipv4, self.ipv6),
            Families::Ipv6ThenIpv4 | Families::Ipv6 => (self.ipv6, self.ipv4),
        };
        let found = match (first, second) {
            (Ok(mut first), Ok(second)) => {
                first.ttl_seconds = first.ttl_seconds.min(second.ttl_seconds);
                first.list.extend(second.list);
                first
            }
            (Ok(found), Err(_)) | (Err(_), Ok(found)) => found,
            (Err(first), Err(second)) => return Err(worse(first, second)),
        };
        let ttl = Duration::from_secs(found.ttl_seconds.into());
        Ok(Answer { addresses: found.list, ttl })
    }
}

/// Returns the less final of two failures: a name does not exist only if both families say so.
fn worse(one: NameFailure, other: NameFailure) -> NameFailure {
    let openness = |failure: &NameFailure| match failure {
        NameFailure::TimedOut => 4,
        NameFailure::ServerFailed => 3,
        NameFailure::Malformed => 2,
        NameFailure::NoAddress => 1,
        NameFailure::NoSuchName => 0,
    };
    std::cmp::max_by_key(one, other, openness)
}

/// Maps an error of c-ares to a failure of the name. Lack of memory counts as temporary, like a
/// failing server.
fn failure(error: c_ares::Error) -> NameFailure {
    use c_ares::Error as Ares;
    match error {
        Ares::ENOTFOUND => NameFailure::NoSuchName,
        Ares::ENODATA => NameFailure::NoAddress,
        Ares::ETIMEOUT => NameFailure::TimedOut,
        Ares::ESERVFAIL
        | Ares::EREFUSED
        | Ares::ENOTIMP
        | Ares::ECONNREFUSED
        | Ares::ENOSERVER
        | Ares::ENOMEM => NameFailure::ServerFailed,
        _ => NameFailure::Malformed,
    }
}

/// Returns whether c-ares takes the name literally. To c-ares a backslash begins an escape, and an
/// empty name is the root. It checks lengths and empty labels itself.
fn is_askable(name: &str) -> bool {
    !matches!(name, "" | ".") && name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\')
}

/// Collects the addresses and the least time to live of one family's records, at most 32 (c-ares
/// drops the rest).
fn addresses(records: impl Iterator<Item = (IpAddr, i32)>) -> Found {
    let mut found = Addresses { list: SmallVec::new(), ttl_seconds: u32::MAX };
    for (address, ttl) in records {
        found.list.push(address);
        // RFC 2181, section 8: a time to live with the top bit set counts as zero. c-ares turns it
        // into the largest number.
        let ttl = if ttl == i32::MAX { 0 } else { u32::try_from(ttl).unwrap_or(0) };
        found.ttl_seconds = found.ttl_seconds.min(ttl);
    }
    if found.list.is_empty() { Err(NameFailure::NoAddress) } else { Ok(found) }
}

fn channel(settings: &Settings, questions_per_port: u32) -> c_ares::Result<Channel> {
    let mut flags = Flags::NOSEARCH | Flags::NOALIASES | Flags::EDNS;
    let mut options = Options::new();
    options
        .set_event_thread(EventSys::Default)
        .set_timeout(settings.timeout.max(Duration::from_millis(1)))
        .set_max_timeout(settings.timeout.max(Duration::from_millis(1)))
        .set_tries(settings.tries.max(1))
        .set_udp_max_queries(Some(questions_per_port))
        .set_query_cache_max_ttl(0)
        .set_no_rotate()
        .set_lookups("b")?;
    if settings.servers.is_empty() {
        // Without this flag c-ares would query a server on this machine, which doesn't exist.
        flags |= Flags::NO_DFLT_SVR;
    } else {
        // Name servers are configured, so the machine's own configuration must not matter.
        options.set_resolvconf_path("/dev/null")?;
    }
    if settings.mixed_case {
        flags |= Flags::DNS_0X20;
    }
    options.set_flags(flags);
    let mut channel = Channel::with_options(options)?;
    if !settings.servers.is_empty() {
        channel.set_servers(settings.servers.iter().map(SocketAddr::to_string))?;
    }
    Ok(channel)
}

/// The entries of a hosts file, which is read once.
#[derive(Default)]
struct Hosts {
    names: Map<Box<str>, SmallVec<[IpAddr; 1]>>,
    /// The invalid lines: how many there are, and the line number and the text of the first.
    unread: Option<(usize, usize, String)>,
}

/// The time to live of an address from the hosts file, which is not read again in this run.
const HOSTS_TTL_SECONDS: u32 = 24 * 3_600;

/// Invalid lines are cut to this many characters in reports.
const UNREAD_CHARS_MAX: usize = 200;

/// Describes the invalid lines of a configured hosts file; `None` if there are none. The system's
/// own file is not checked.
pub fn unread_hosts(file: &HostsFile) -> Option<String> {
    let HostsFile::File(path) = file else { return None };
    let (lines, first, text) = Hosts::read(file).ok()?.unread?;
    Some(format!(
        "{}: line {first}: {text:?}: not an address and its names; skipped \
         (lines of this kind: {lines})",
        path.display()
    ))
}

impl Hosts {
    fn read(file: &HostsFile) -> Result<Self, Error> {
        let text = match file {
            HostsFile::File(path) => input::read(path, HOSTS_BYTES_MAX)
                .map_err(|source| Error::Hosts { path: path.clone(), source })?,
            HostsFile::System => {
                input::read(Path::new("/etc/hosts"), HOSTS_BYTES_MAX).unwrap_or_default()
            }
            HostsFile::None => Vec::new(),
        };
        // Decode as UTF-8, or as the byte order mark says.
        Ok(Self::parse(&encoding_rs::UTF_8.decode(&text).0))
    }

    /// Parses a hosts file: an address and its names on each line; `#` begins a comment; lines end
    /// in LF, CR LF or CR. Invalid lines are counted and skipped, as in resolvers.
    fn parse(text: &str) -> Self {
        let mut hosts = Self::default();
        for (number, line) in (1..).zip(text.replace("\r\n", "\n").split(['\n', '\r'])) {
            let line = line.split('#').next().unwrap_or_default().trim();
            let mut words = line.split_ascii_whitespace().peekable();
            let address = words.next().and_then(|word| word.parse().ok());
            let Some(address) = address.filter(|_| words.peek().is_some()) else {
                if !line.is_empty() {
                    let text = || line.chars().take(UNREAD_CHARS_MAX).collect();
                    hosts.unread.get_or_insert_with(|| (0, number, text())).0 += 1;
                }
                continue;
            };
            for name in words {
                let list = hosts.names.entry(name.to_ascii_lowercase().into()).or_default();
                if !list.contains(&address) {
                    list.push(address);
                }
            }
        }
        hosts
    }

    /// Looks up the addresses of one family of `name`. `None` means that the file doesn't contain
    /// the name, so name servers must be queried. A name in the file has only the addresses in the
    /// file.
    fn find(&self, name: &str, family: Family) -> Option<Found> {
        let name = name.strip_suffix('.').unwrap_or(name);
        let loopback = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
        let all = match self.names.get(name) {
            Some(all) => all,
            None if name == "localhost" || name.ends_with(".localhost") => &loopback[..],
            None => return None,
        };
        let wanted = |address: &&IpAddr| address.is_ipv4() == matches!(family, Family::Ipv4);
        let list: SmallVec<[IpAddr; 4]> = all.iter().filter(wanted).copied().collect();
        if list.is_empty() {
            return Some(Err(NameFailure::NoAddress));
        }
        Some(Ok(Addresses { list, ttl_seconds: HOSTS_TTL_SECONDS }))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hosts { path, source } => {
                write!(f, "cannot read hosts file {}: {source}", path.display())
            }
            Self::Start(source) => write!(f, "cannot start the resolver: {source}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Hosts { source, .. } => Some(source),
            Self::Start(source) => Some(source),
        }
    }
}

#[cfg(test)]
mod tests;
