//! Names to addresses: c-ares on its own thread, a mailbox, a waker.
//!
//! Promises: every look-up is answered once, whatever name servers do; a name is asked for exactly
//! as given, without search domains or aliases; addresses come in the order of [`Families`], with
//! the least time to live of the records. The hosts file goes first, then `localhost` (RFC 6761
//! 6.3); `.onion` does not exist (RFC 7686). Nothing is cached: that is the station's work, and
//! c-ares' own cache, which knows no bound, is switched off.
//!
//! Both families are asked at once and waited for. What either found is the answer; if neither
//! found any, the failure that leaves more open is told, for there are servers that deny a name
//! when asked for an AAAA record only (RFC 4074, section 4.2): `worse`.
//!
//! c-ares shortens its tries to a name server by the server's usual speed, down to a quarter of a
//! second. A name whose own servers are slow would be given up too early by that, so a question
//! that timed out is asked again until [`Settings::timeout`] has passed in all.
//!
//! To c-ares an answer that can't be read ends its socket, and with it a try of each question that
//! left from there. So a question that failed by such an answer is asked again from a port of its
//! own, by a second channel that comes to be with the first of them: there it can fail for itself
//! only.
//!
//! The side thread shares nothing with the loop but the mailbox (`work::Mailbox`): its
//! callbacks post and wake, once a batch. They don't panic, which c-ares could not bear. Dropping
//! the resolver ends what is under way unanswered and joins the thread.
//!
//! Cost: a look-up is one table entry and one boxed callback a family; a drain without answers is
//! an uncontended lock. Some 30,000 look-ups a second at 1,000 under way. Datagrams of at most
//! four questions leave from one port, then the system draws another one, and the case of letters
//! is drawn for each question (draft-vixie-dnsext-dns0x20): an answer that doesn't repeat it is
//! dropped. Together with the number of the question a forger has to guess some 16 + 16 bits and
//! one for each letter.

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
    /// Name servers to ask, in order; none: those of the system.
    pub servers: Vec<SocketAddr>,
    /// How long one try waits for an answer at most, and all tries together at least.
    pub timeout: Duration,
    /// How often each name server is asked before a name is given up.
    pub tries: u32,
    /// Names that are not asked for.
    pub hosts_file: HostsFile,
    /// Draw the case of each letter of a question, and take only answers that repeat it.
    pub mixed_case: bool,
}

impl Default for Settings {
    fn default() -> Self {
        let (servers, timeout, tries) = (Vec::new(), Duration::from_secs(5), 3);
        Self { servers, timeout, tries, hosts_file: HostsFile::System, mixed_case: true }
    }
}

/// Why there is no resolver.
#[derive(Debug)]
pub enum Error {
    /// The hosts file that was named can't be read.
    Hosts {
        /// Its path.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// c-ares doesn't start: no name servers are known, or the system has no thread left.
    Start(c_ares::Error),
}

/// Look-ups under way, and the side thread that does them.
pub struct Resolver {
    channel: Channel,
    /// The channel that asks each question from a port of its own.
    alone: Option<Channel>,
    settings: Settings,
    hosts: Hosts,
    pending: Map<LookupId, Pending>,
    mailbox: Arc<Mailbox<Letter>>,
    /// Swapped with the mailbox's list, so that neither is allocated again.
    letters: Vec<Letter>,
}

/// One look-up under way.
struct Pending {
    name: Box<str>,
    families: Families,
    since: Instant,
    /// Families still to be heard of.
    missing: u8,
    ipv4: Found,
    ipv6: Found,
}

/// What is known of one family; at first that it was not asked for.
type Found = Result<Addresses, NameFailure>;

/// Addresses of one family, never none.
struct Addresses {
    list: SmallVec<[IpAddr; 4]>,
    ttl_seconds: u32,
}

#[derive(Clone, Copy)]
enum Family {
    Ipv4,
    Ipv6,
}

/// What the side thread says.
struct Letter {
    lookup: LookupId,
    family: Family,
    /// The question had a port of its own.
    alone: bool,
    found: Found,
}

/// Questions sent from one port: who wants to forge answers has to find each port anew.
const QUESTIONS_PER_PORT: u32 = 4;
/// Longest hosts file that is read, in bytes.
const HOSTS_BYTES_MAX: u64 = 256 << 20;

impl Resolver {
    /// Reads the hosts file and starts the side thread; `waker` is what it wakes the loop with.
    pub fn new(settings: &Settings, waker: Arc<mio::Waker>) -> Result<Self, Error> {
        Ok(Self {
            channel: channel(settings, QUESTIONS_PER_PORT).map_err(Error::Start)?,
            alone: None,
            settings: settings.clone(),
            hosts: Hosts::read(&settings.hosts_file)?,
            pending: Map::default(),
            mailbox: Arc::new(Mailbox::new(waker)),
            letters: Vec::new(),
        })
    }

    /// Looks `name` up; [`Self::drain`] will answer. The name is as in a URL, not an address; it
    /// may end in a dot. `lookup` must not be under way: that is asserted.
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

    /// Hands out what became of look-ups since the last call. To be called after the waker fired.
    pub fn drain(&mut self, mut take: impl FnMut(LookupId, Result<Answer, NameFailure>)) {
        let mut letters = std::mem::take(&mut self.letters);
        self.mailbox.collect(&mut letters);
        for letter in letters.drain(..) {
            if let Some((lookup, result)) = self.settle(letter) {
                take(lookup, result);
            }
        }
        self.letters = letters;
    }

    /// Look-ups not yet answered.
    pub fn in_flight(&self) -> usize {
        self.pending.len()
    }

    /// Asks the hosts file, or else the name servers.
    fn ask(&mut self, lookup: LookupId, name: &str, family: Family, alone: bool) {
        let mailbox = Arc::clone(&self.mailbox);
        let post = move |found| mailbox.post(Letter { lookup, family, alone, found });
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

    /// Files one family's result; returns the whole once both are there.
    fn settle(&mut self, letter: Letter) -> Option<(LookupId, Result<Answer, NameFailure>)> {
        let Letter { lookup, family, alone, found } = letter;
        let pending = self.pending.get_mut(&lookup).expect("a look-up waits for its letters");
        let early = pending.since.elapsed() < self.settings.timeout;
        let again = match found {
            Err(NameFailure::TimedOut) if early => Some(alone),
            Err(NameFailure::Malformed) if !alone && is_askable(&pending.name) => Some(true),
            _ => None,
        };
        if let Some(alone) = again {
            let name = pending.name.clone();
            if alone && self.alone.is_none() {
                // Without a second channel the first goes on doing what it can.
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
    /// Both families in their order, or why there is neither.
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

/// Of two failures the one that leaves more open: a name is dead only if nothing speaks for it.
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

/// What a failure of c-ares means for the name. Its own lack of memory passes, as a server's does.
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

/// Whether c-ares takes the name for what it says: a backslash begins an escape there, and an empty
/// name is the root. Lengths and empty labels it checks itself.
fn is_askable(name: &str) -> bool {
    !matches!(name, "" | ".") && name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\')
}

/// Records of one family, of which there are at most 32 (c-ares drops the rest).
fn addresses(records: impl Iterator<Item = (IpAddr, i32)>) -> Found {
    let mut found = Addresses { list: SmallVec::new(), ttl_seconds: u32::MAX };
    for (address, ttl) in records {
        found.list.push(address);
        // RFC 2181, section 8: a time to live with the top bit set counts as nought. c-ares makes
        // the largest number of it.
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
        // Rather an error now than questions to a server on this machine that isn't there.
        flags |= Flags::NO_DFLT_SVR;
    } else {
        // Servers were named: nothing is to depend on the machine's own configuration.
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

/// Names that are not asked for: a hosts file, read once.
#[derive(Default)]
struct Hosts {
    names: Map<Box<str>, SmallVec<[IpAddr; 1]>>,
    /// Lines that are no entry: how many, the first one's number and what it says.
    unread: Option<(usize, usize, String)>,
}

/// How long an entry of the hosts file is good for; the file is not read again in this run.
const HOSTS_TTL_SECONDS: u32 = 24 * 3_600;

/// Characters of a line that is no entry, for a report.
const UNREAD_CHARS_MAX: usize = 200;

/// What is wrong with lines of the hosts file that are no entry. The system's own is not the
/// operator's work, and not looked at.
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
        // UTF-8, or what the byte order mark says.
        Ok(Self::parse(&encoding_rs::UTF_8.decode(&text).0))
    }

    /// One address and its names a line; `#` begins a comment; lines end in LF, CR LF or CR. A line
    /// that isn't so is counted and skipped, as resolvers do.
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

    /// `None` if the name servers are to be asked: the name is not here at all, as a name that is
    /// here stands for what is written and nothing else.
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
