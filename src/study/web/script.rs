//! A scripted conversation: what one server says on each of its connections, as text.
//!
//! A protocol bug becomes a script, not a program. The same script is played by the simulated
//! network and by real sockets; the [`Player`] is a pure state machine, fed with bytes and time.
//!
//! ```text
//! # A comment: what this shows.
//! conf politeness.burst = "server"
//! seed http://a.test/
//! name b.test no-such-name          # or: no-address, private, timed-out, failed
//! name c.test private 2             # for its first two look-ups only
//! host a.test                       # what follows is a.test's
//! on connection                     # its first one; the last script serves all further ones
//!   request /robots.txt             # waits for this request; another one is a fault
//!   request /a with k=1;l=2         # ... with these cookies; without `with` it has none
//!   reply 404
//!   request /
//!   reply 200 links /x /y
//!   reply 302 to /z
//!   raw HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel
//!   fill 1048576                    # so many bytes of body
//!   body <p>caf\xe9</p>             # Content-Length, the end of the head, and this body
//!   wait 200ms
//!   close                           # or: reset, mute
//! refuse a.test                     # nothing listens there
//! expect http://a.test/x ok         # the outcome of a URL: its last line in the crawl log
//! expect http://a.test/y ok after 2 # ... after so many lines
//! note http://a.test/y linksCut     # ... and an annotation of that line, its detail or evidence
//! requests a.test 4                 # requests the server has seen
//! connections a.test 1
//! ```
//! A script ends with its last step: then the player waits, and answers nothing.

use crate::ground::time::Instant;
use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;
use std::time::Duration;

/// A whole script.
#[derive(Clone, Debug, Default)]
pub struct Script {
    /// Lines of configuration, `section.key = value`.
    pub conf: Vec<String>,
    /// Seeds, in order.
    pub seeds: Vec<String>,
    /// Names that don't resolve.
    pub names: BTreeMap<String, Denial>,
    /// Hosts that refuse connections.
    pub refusing: Vec<String>,
    /// What each host does on its connections.
    pub hosts: BTreeMap<String, Vec<Vec<Step>>>,
    /// What each URL is to come to, and after how many lines in the log.
    pub outcomes: Vec<(String, String, Option<usize>)>,
    /// Annotations that the last line of a URL is to have.
    pub notes: Vec<(String, String)>,
    /// Requests each host is to see.
    pub requests: Vec<(String, usize)>,
    /// Connections each host is to see.
    pub connections: Vec<(String, usize)>,
}

/// What a resolver says of a name in place of its address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// What it says.
    pub why: String,
    /// For how many look-ups of the name; `None`: always.
    pub lookups: Option<usize>,
}

impl Denial {
    /// What it says to a look-up of which so many came before.
    pub fn after(&self, lookups: usize) -> Option<&str> {
        self.lookups.is_none_or(|most| lookups < most).then_some(&*self.why)
    }
}

/// The address that a resolver says where a script has it say a private one.
pub const PRIVATE: Ipv4Addr = Ipv4Addr::new(10, 1, 2, 3);

/// One thing a server does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Waits for a request of this target, with these cookies if it may have any.
    Request(String, Option<String>),
    /// Sends these bytes.
    Send(Vec<u8>),
    /// Does nothing for so long.
    Wait(Duration),
    /// Closes in order.
    Close,
    /// Closes with a reset.
    Reset,
    /// Answers nothing any more.
    Mute,
}

/// A line that makes no sense: its number, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// Counted from 1.
    pub line: usize,
    /// What is wrong with it.
    pub reason: String,
}

impl Script {
    /// Reads a script.
    pub fn parse(text: &str) -> Result<Self, Mistake> {
        let mut script = Self::default();
        let mut host = None;
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            script.line(line, &mut host).map_err(|reason| Mistake {
                line: index + 1,
                reason: format!("{reason}: {line}"),
            })?;
        }
        Ok(script)
    }

    fn line(&mut self, line: &str, host: &mut Option<String>) -> Result<(), String> {
        let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
        let words: Vec<&str> = rest.split_whitespace().collect();
        match (verb, words.as_slice()) {
            ("conf", [_, ..]) => self.conf.push(rest.to_owned()),
            ("seed", [url]) => self.seeds.push((*url).to_owned()),
            ("name", [name, why, lookups @ ..]) => {
                let lookups = match lookups {
                    [] => None,
                    [count] => Some(count.parse().map_err(|_| "not a number")?),
                    _ => return Err("too many words".to_owned()),
                };
                let denial = Denial { why: (*why).to_owned(), lookups };
                self.names.insert((*name).to_owned(), denial);
            }
            ("refuse", [name]) => self.refusing.push((*name).to_owned()),
            ("host", [name]) => *host = Some((*name).to_owned()),
            ("on", ["connection"]) => {
                let host = host.clone().ok_or("a connection without a host")?;
                self.hosts.entry(host).or_default().push(Vec::new());
            }
            ("expect", [url, name]) => {
                self.outcomes.push(((*url).to_owned(), (*name).to_owned(), None));
            }
            ("expect", [url, name, "after", count]) => {
                let count = count.parse().map_err(|_| "not a number")?;
                self.outcomes.push(((*url).to_owned(), (*name).to_owned(), Some(count)));
            }
            ("note", [url, _, ..]) => {
                let words = rest[url.len()..].trim_start();
                self.notes.push(((*url).to_owned(), words.to_owned()));
            }
            ("requests" | "connections", [name, count]) => {
                let list =
                    if verb == "requests" { &mut self.requests } else { &mut self.connections };
                list.push(((*name).to_owned(), count.parse().map_err(|_| "not a number")?));
            }
            _ => {
                let host = host.as_ref().ok_or("not a line of a script")?;
                let steps = self.hosts.get_mut(host).and_then(|list| list.last_mut());
                steps.ok_or("a step without a connection")?.push(step(verb, rest, &words)?);
            }
        }
        Ok(())
    }
}

fn step(verb: &str, rest: &str, words: &[&str]) -> Result<Step, String> {
    Ok(match (verb, words) {
        ("request", [target]) => Step::Request((*target).to_owned(), None),
        ("request", [target, "with", cookies]) => {
            Step::Request((*target).to_owned(), Some((*cookies).to_owned()))
        }
        ("reply", [status, rest @ ..]) => {
            Step::Send(reply(status.parse().map_err(|_| "not a status")?, rest)?)
        }
        ("raw", _) => Step::Send(unescape(rest)),
        ("body", _) => {
            let body = unescape(rest);
            let end = format!("Content-Length: {}\r\n\r\n", body.len());
            Step::Send([end.as_bytes(), &body].concat())
        }
        ("fill", [count]) => {
            let count = count.parse().map_err(|_| "not a number")?;
            Step::Send(std::iter::repeat_n(b'x', count).collect())
        }
        ("wait", [time]) => {
            let ms = time.strip_suffix("ms").and_then(|ms| ms.parse().ok());
            Step::Wait(Duration::from_millis(ms.ok_or("not a time in ms")?))
        }
        ("close", []) => Step::Close,
        ("reset", []) => Step::Reset,
        ("mute", []) => Step::Mute,
        _ => return Err("not a step".to_owned()),
    })
}

/// A whole reply with a length: `links` fills the body, `to` is a Location, `field` adds one,
/// `closing` announces the end of the connection.
fn reply(status: u16, words: &[&str]) -> Result<Vec<u8>, String> {
    let (mut fields, mut body) = (String::new(), String::new());
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match *word {
            "links" => {
                let links: Vec<&str> = words.by_ref().copied().collect();
                body = links.iter().map(|link| format!("<a href=\"{link}\">x</a>\n")).collect();
            }
            "to" => {
                let target = words.next().ok_or("to where?")?;
                fields += &format!("Location: {target}\r\n");
            }
            "field" => {
                let field = words.next().ok_or("which field?")?;
                fields += &field.replacen(':', ": ", 1);
                fields += "\r\n";
            }
            "text" => body = words.by_ref().copied().collect::<Vec<_>>().join("\n"),
            "closing" => fields += "Connection: close\r\n",
            _ => return Err(format!("{word:?} is not part of a reply")),
        }
    }
    let kind = if body.starts_with('<') { "text/html" } else { "text/plain" };
    let len = body.len();
    Ok(format!(
        "HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\n{fields}Content-Length: {len}\r\n\r\n{body}"
    )
    .into_bytes())
}

/// `\r`, `\n`, `\0` and `\xHH` stand for bytes, `\\` for itself.
fn unescape(text: &str) -> Vec<u8> {
    let (mut bytes, mut chars) = (Vec::new(), text.chars());
    while let Some(char) = chars.next() {
        if char != '\\' {
            bytes.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
            continue;
        }
        match chars.next() {
            Some('r') => bytes.push(b'\r'),
            Some('n') => bytes.push(b'\n'),
            Some('0') => bytes.push(0),
            Some('x') => {
                let digits: String = chars.by_ref().take(2).collect();
                bytes.push(u8::from_str_radix(&digits, 16).unwrap_or(b'?'));
            }
            Some(other) => bytes.extend_from_slice(other.encode_utf8(&mut [0; 4]).as_bytes()),
            None => bytes.push(b'\\'),
        }
    }
    bytes
}

/// Plays one connection of a script.
#[derive(Clone, Debug)]
pub struct Player {
    steps: VecDeque<Step>,
    input: Vec<u8>,
    until: Option<Instant>,
    /// Targets asked for so far.
    requests: Vec<String>,
    /// Requests that were not the ones waited for.
    faults: Vec<String>,
}

/// What a player does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Play {
    /// Send this, then ask again.
    Send(Vec<u8>),
    /// Nothing before then, unless bytes come.
    WaitUntil(Instant),
    /// Nothing without more bytes.
    WaitForBytes,
    /// Close in order.
    Close,
    /// Close with a reset.
    Reset,
}

impl Player {
    /// Plays these steps.
    pub fn new(steps: &[Step]) -> Self {
        Self {
            steps: steps.iter().cloned().collect(),
            input: Vec::new(),
            until: None,
            requests: Vec::new(),
            faults: Vec::new(),
        }
    }

    /// Bytes from the client.
    pub fn received(&mut self, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
    }

    /// What to do now.
    pub fn play(&mut self, now: Instant) -> Play {
        loop {
            match self.steps.front() {
                Some(Step::Request(target, expected)) => {
                    let (target, expected) = (target.clone(), expected.clone());
                    let Some((asked, cookies)) = self.request() else { return Play::WaitForBytes };
                    if cookies != expected {
                        self.faults.push(format!("{asked} with {cookies:?}, not {expected:?}"));
                    }
                    if asked != target {
                        self.faults.push(format!("asked for {asked}, not for {target}"));
                    }
                    self.requests.push(asked);
                }
                Some(Step::Send(bytes)) => {
                    let bytes = bytes.clone();
                    self.steps.pop_front();
                    return Play::Send(bytes);
                }
                Some(Step::Wait(time)) => {
                    let until = *self.until.get_or_insert(now + *time);
                    if until > now {
                        return Play::WaitUntil(until);
                    }
                    self.until = None;
                }
                Some(Step::Close) => return Play::Close,
                Some(Step::Reset) => return Play::Reset,
                Some(Step::Mute) | None => {
                    self.count_unasked();
                    return Play::WaitForBytes;
                }
            }
            self.steps.pop_front();
        }
    }

    /// Targets asked for so far.
    pub fn requests(&self) -> &[String] {
        &self.requests
    }

    /// What went otherwise than the script says.
    pub fn faults(&self) -> &[String] {
        &self.faults
    }

    /// Requests that no step waits for are counted too.
    fn count_unasked(&mut self) {
        while let Some((asked, _)) = self.request() {
            self.requests.push(asked);
        }
    }

    /// The next request that has come whole: its target, and its cookies without blanks.
    fn request(&mut self) -> Option<(String, Option<String>)> {
        let end = self.input.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
        let head: Vec<u8> = self.input.drain(..end).collect();
        let head = String::from_utf8_lossy(&head);
        let target = head.lines().next()?.split(' ').nth(1).unwrap_or("").to_owned();
        let cookies = head.lines().find_map(|line| line.strip_prefix("Cookie: "));
        Some((target, cookies.map(|cookies| cookies.replace(' ', ""))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_read_and_played() {
        let text = "conf a.b = 1\nseed http://a.test/\nhost a.test\non connection\n  request /\n  \
                    wait 5ms\n  reply 200 links /x\n  raw a\\r\\n\\x41\n  close\n\
                    expect http://a.test/ ok after 1\n";
        let script = Script::parse(text).unwrap();
        let mut player = Player::new(&script.hosts["a.test"][0]);
        let at = |us| Instant::from_micros(us);
        assert_eq!(player.play(at(0)), Play::WaitForBytes);
        player.received(b"GET / HTTP/1.1\r\nHost: a.test\r\n");
        assert_eq!(player.play(at(1)), Play::WaitForBytes, "half a request");
        player.received(b"\r\n");
        assert_eq!(player.play(at(2)), Play::WaitUntil(at(5_002)));
        let Play::Send(bytes) = player.play(at(5_002)) else { panic!("a reply") };
        assert!(bytes.ends_with(b"\r\n\r\n<a href=\"/x\">x</a>\n"));
        assert_eq!(player.play(at(5_002)), Play::Send(b"a\r\nA".to_vec()));
        assert_eq!(player.play(at(5_002)), Play::Close);
        assert_eq!((player.requests().len(), player.faults().len()), (1, 0));
    }

    #[test]
    fn mistakes_name_their_line() {
        let cases = [
            ("seed", 1, "a seed without a URL"),
            ("host a.test\nreply 200", 2, "a step without a connection"),
            ("\nhost a.test\non connection\nreply x", 4, "not a status"),
            ("host a.test\non connection\nreply 200 sideways", 3, "not part of a reply"),
            ("on connection", 1, "a connection without a host"),
        ];
        for (text, line, why) in cases {
            assert_eq!(Script::parse(text).unwrap_err().line, line, "{why}");
        }
    }
}
