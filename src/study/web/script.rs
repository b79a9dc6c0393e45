//! A scripted conversation: what a server sends on each of its connections, as text.
//!
//! A bug in the protocol becomes a script, not a program. The same script is played by the
//! simulated network and over real sockets; the [`Player`] is a pure state machine that receives
//! bytes and time.
//!
//! ```text
//! # A comment: what this script shows.
//! conf politeness.burst = "server"
//! seed http://a.test/
//! name b.test no-such-name          # or: no-address, private, timed-out, failed
//! name c.test private 2             # for its first two look-ups only
//! host a.test                       # the following lines are about a.test
//! on connection                     # its first one; the last script serves all further ones
//!   request /robots.txt             # waits for this request; any other is a fault
//!   request /a with k=1;l=2         # ... with these cookies; without `with` it has none
//!   reply 404
//!   request /
//!   reply 200 links /x /y
//!   reply 302 to /z
//!   raw HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel
//!   fill 1048576                    # this many bytes of body
//!   body <p>caf\xe9</p>             # Content-Length, the end of the head, and this body
//!   wait 200ms
//!   close                           # or: reset, mute
//! refuse a.test                     # a.test refuses connections
//! expect http://a.test/x ok         # the outcome of a URL: its last line in the crawl log
//! expect http://a.test/y ok after 2 # ... which is its second line
//! note http://a.test/y linksCut     # ... and an annotation of that line, its detail or evidence
//! note http://a.test/y without x    # none of them begins with these letters
//! requests a.test 4                 # the number of requests that the server has received
//! connections a.test 1
//! ```
//! After the last step the player waits and answers nothing.

use crate::ground::time::Instant;
use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;
use std::time::Duration;

/// A parsed script: what it configures, what its servers do, and what it expects of the crawl.
#[derive(Clone, Debug, Default)]
pub struct Script {
    /// Lines of configuration, as `section.key = value`.
    pub conf: Vec<String>,
    /// The URLs that the crawl starts from, in order.
    pub seeds: Vec<String>,
    /// Names that don't resolve, each with the answer it gets.
    pub names: BTreeMap<String, Denial>,
    /// Hosts that refuse connections.
    pub refusing: Vec<String>,
    /// The steps of each host, one list for each connection in the order of opening.
    pub hosts: BTreeMap<String, Vec<Vec<Step>>>,
    /// Expected outcomes: the URL, the outcome, and the number of its lines in the crawl log;
    /// `None` if any number is right.
    pub outcomes: Vec<(String, String, Option<usize>)>,
    /// Expected annotations: a URL, and the text that its last log line has.
    pub notes: Vec<(String, String)>,
    /// The number of requests expected at each host: its name and the number.
    pub requests: Vec<(String, usize)>,
    /// The number of connections expected at each host: its name and the number.
    pub connections: Vec<(String, usize)>,
}

/// What a resolver answers for a name instead of its address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// The kind of answer, in the word of the script, such as `no-such-name`.
    pub why: String,
    /// How many look-ups of the name get this answer before the others get the address; `None`: all
    /// of them.
    pub lookups: Option<usize>,
}

impl Denial {
    /// Returns the kind of answer that a look-up gets after `lookups` earlier ones of the name;
    /// `None` if it gets the address.
    pub fn after(&self, lookups: usize) -> Option<&str> {
        self.lookups.is_none_or(|most| lookups < most).then_some(&*self.why)
    }
}

/// The address that a look-up gets if its kind of answer is `private`.
pub const PRIVATE: Ipv4Addr = Ipv4Addr::new(10, 1, 2, 3);

/// One thing a server does on a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Waits for a request of this target with these cookies; `None`: without cookies.
    Request(String, Option<String>),
    /// Sends these bytes.
    Send(Vec<u8>),
    /// Does nothing for this long.
    Wait(Duration),
    /// Closes the connection in order.
    Close,
    /// Closes the connection with a reset.
    Reset,
    /// Answers nothing any more, and leaves the connection open.
    Mute,
}

/// A line that can't be parsed: its number, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// Line number, counted from 1.
    pub line: usize,
    /// What is wrong with the line.
    pub reason: String,
}

impl Script {
    /// Parses a script.
    ///
    /// # Errors
    /// The first line that can't be parsed.
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

/// Returns a complete reply with Content-Length. The words after the status change it: `links`
/// fills the body, `to` adds a Location, `field` adds a header field, `closing` announces the end
/// of the connection.
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

/// Replaces the escapes `\r`, `\n`, `\0`, `\xHH` and `\\` by their bytes.
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

/// Plays the server's side of one connection.
#[derive(Clone, Debug)]
pub struct Player {
    steps: VecDeque<Step>,
    input: Vec<u8>,
    until: Option<Instant>,
    /// The targets of the requests received so far.
    requests: Vec<String>,
    /// Descriptions of requests that differ from what the script expects.
    faults: Vec<String>,
}

/// What a player does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Play {
    /// Send this, then call [`Player::play`] again.
    Send(Vec<u8>),
    /// Wait until this time, or until bytes arrive.
    WaitUntil(Instant),
    /// Wait for more bytes.
    WaitForBytes,
    /// Close the connection in order.
    Close,
    /// Close the connection with a reset.
    Reset,
}

impl Player {
    /// Creates a player of the steps of one connection.
    pub fn new(steps: &[Step]) -> Self {
        Self {
            steps: steps.iter().cloned().collect(),
            input: Vec::new(),
            until: None,
            requests: Vec::new(),
            faults: Vec::new(),
        }
    }

    /// Takes in bytes from the client.
    pub fn received(&mut self, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
    }

    /// Returns what the player's owner has to do now.
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

    /// Returns the targets of the requests received so far.
    pub fn requests(&self) -> &[String] {
        &self.requests
    }

    /// Describes all deviations from what the script expects.
    pub fn faults(&self) -> &[String] {
        &self.faults
    }

    /// Takes the requests that no step waits for into the list of requests.
    fn count_unasked(&mut self) {
        while let Some((asked, _)) = self.request() {
            self.requests.push(asked);
        }
    }

    /// Removes the next complete request from the bytes received; returns its target, and its
    /// cookies without blanks. `None` if no request is complete.
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
