//! Commands: what an operator asks of a running crawl, and the reply.
//!
//! A command is an input of the contract: [`Engine::command`](super::Engine::command). The world
//! receives commands on a socket in the job directory; a simulation draws them from its seed.
//!
//! ```text
//! {"verb":"pause","target":"host:a.test"}         a command as JSON
//! {"verb":"slow","host":"a.test","delay_ms":5000}
//! {"verb":"add_seeds","seeds":["http://b.test/"]}
//! ```
//!
//! A target is written as a kind and a value:
//!
//! ```text
//! all   server:https://a.test:8443   host:a.test   domain:a.test   address:192.0.2.1
//! prefix:https://a.test/shop/
//! ```

use crate::url::Url;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// What an operator asks of a running crawl.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verb", rename_all = "snake_case", deny_unknown_fields)]
pub enum Command {
    /// Request nothing from the target until it is resumed. Its URLs stay queued.
    Pause {
        /// What is paused.
        target: Target,
    },
    /// Ends the pause of exactly this target.
    Resume {
        /// What was paused.
        target: Target,
    },
    /// Request nothing from the target. Its URLs get the outcome `blocked` when they would be
    /// requested, and so do URLs that are discovered later.
    Block {
        /// What is blocked; not `all`.
        target: Target,
    },
    /// Ends the block of exactly this target. URLs with the outcome `blocked` keep it.
    Unblock {
        /// What was blocked.
        target: Target,
    },
    /// Send one request a visit to a host, and rest at least `delay_ms` after it, whatever the
    /// configuration allows.
    Slow {
        /// The name of the host, without a port.
        host: String,
        /// The rest after each request, in milliseconds; 0 ends the command's effect.
        delay_ms: u64,
    },
    /// Queue these URLs as seeds, at most [`SEEDS_MAX`], and extend the scope to them as if they
    /// had been configured.
    AddSeeds {
        /// The URLs.
        seeds: Vec<String>,
    },
    /// Try the servers again that were given up, with their URLs.
    Revive,
    /// Use the configuration as it is now, as far as its keys may change while a crawl runs. A
    /// world reads the file and calls [`Engine::reload`](super::Engine::reload).
    Reload {
        /// The keys that have changed, each with its new value; empty when an operator asks.
        #[serde(default)]
        changed: Vec<String>,
    },
    /// Write a checkpoint as soon as possible.
    Checkpoint,
    /// Begin a new file of the crawl log and a new WARC file.
    Rotate,
    /// End the crawl as a signal does: replies in progress may finish; then it can be resumed.
    Stop,
}

/// The most seeds that one command adds, so that no turn becomes long.
pub const SEEDS_MAX: usize = 1_000;

/// A command with the name of the operator who gave it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// Who gave the command: a user's name or number, for the log.
    pub by: String,
    /// Its number in the list of commands to all nodes of a shared crawl, if it came from there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared: Option<u64>,
    /// The command.
    #[serde(flatten)]
    pub command: Command,
}

impl Order {
    /// Returns a command to this crawl alone.
    pub fn new(by: impl Into<String>, command: Command) -> Self {
        Self { by: by.into(), shared: None, command }
    }
}

/// The commands to all nodes of a shared crawl.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedOrders {
    /// The version of the list.
    pub format: u32,
    /// The commands, in order of their numbers.
    pub orders: Vec<SharedOrder>,
}

/// A command to all nodes of a shared crawl.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedOrder {
    /// The number of the command, counted from 1.
    pub number: u64,
    /// When it was given, in UTC.
    pub at: String,
    /// Who gave it, and what it is.
    #[serde(flatten)]
    pub order: Order,
}

/// The engine's reply to a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The command has taken effect.
    Done {
        /// The number of the command in the log of commands, counted from 1. The command survives a
        /// crash once [`Engine::durable_commands`](super::Engine::durable_commands) has reached
        /// this number; the world replies to the operator only then.
        number: u64,
        /// What happened, for people.
        text: String,
    },
    /// The command was not carried out: why, and what to do.
    Refused(String),
}

/// What a command applies to.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Target {
    /// The whole crawl.
    All,
    /// A server: scheme, host and port, as in `https://a.test:8443`.
    Server(String),
    /// All servers with this host name, in lower case.
    Host(String),
    /// All servers whose hosts are this domain or below it, in lower case.
    Domain(String),
    /// All servers that are visited at this address.
    Address(IpAddr),
    /// All URLs that begin with this canonical URL.
    Prefix(String),
}

/// Why a text is no target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadTarget(String);

impl fmt::Display for BadTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "\"{}\" is no target; write all, server:ORIGIN, host:NAME, domain:NAME, address:IP or \
             prefix:URL",
            self.0.escape_debug()
        )
    }
}

impl std::error::Error for BadTarget {}

impl FromStr for Target {
    type Err = BadTarget;

    /// Parses `KIND:VALUE` and `all`. Without a kind, a URL with a path is a prefix, one without a
    /// server, an IP address an address, and a name a host.
    fn from_str(text: &str) -> Result<Self, BadTarget> {
        let bad = || BadTarget(text.to_owned());
        let text = text.trim();
        let (kind, value) = match text.split_once(':') {
            _ if text == "all" => return Ok(Self::All),
            _ if text.parse::<IpAddr>().is_ok() => ("address", text),
            Some((kind @ ("server" | "host" | "domain" | "address" | "prefix"), value)) => {
                (kind, value)
            }
            Some(("http" | "https", rest)) => match rest.trim_start_matches('/').split_once('/') {
                Some((_, path)) if !path.is_empty() => ("prefix", text),
                _ => ("server", text),
            },
            Some(_) => return Err(bad()),
            None => ("host", text),
        };
        let url = |text: &str| Url::parse(text).map_err(|_| bad());
        // The name of a host gets its canonical form from the parser of URLs.
        let host = |name: &str| {
            let url = url(&format!("http://{name}/"))?;
            let host = url.view().host();
            let has_more = name.contains('@') || name.contains(':') && !name.ends_with(']');
            let is_name = !has_more && url.as_str() == format!("http://{host}/");
            is_name.then(|| host.to_owned()).ok_or_else(bad)
        };
        Ok(match kind {
            "server" | "prefix" => {
                let url = url(value)?;
                match url.view().target() {
                    // All URLs of a server: then its robots.txt is not requested either.
                    "/" => Self::Server(url.view().origin().to_owned()),
                    _ if kind == "server" => return Err(bad()),
                    _ => Self::Prefix(url.as_str().to_owned()),
                }
            }
            "host" => Self::Host(host(value)?),
            "domain" => Self::Domain(host(value)?),
            _ => Self::Address(value.parse().map_err(|_| bad())?),
        })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("all"),
            Self::Server(origin) => write!(f, "server:{origin}"),
            Self::Host(name) => write!(f, "host:{name}"),
            Self::Domain(name) => write!(f, "domain:{name}"),
            Self::Address(ip) => write!(f, "address:{ip}"),
            Self::Prefix(url) => write!(f, "prefix:{url}"),
        }
    }
}

impl TryFrom<String> for Target {
    type Error = BadTarget;

    fn try_from(text: String) -> Result<Self, BadTarget> {
        text.parse()
    }
}

impl From<Target> for String {
    fn from(target: Target) -> Self {
        target.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_parsed_and_printed() {
        let cases = [
            ("all", "all"),
            ("a.test", "host:a.test"),
            ("A.TEST", "host:a.test"),
            ("host:b\u{fc}cher.test", "host:xn--bcher-kva.test"),
            ("domain:A.test", "domain:a.test"),
            ("https://a.test:8443", "server:https://a.test:8443"),
            ("server:https://a.test/", "server:https://a.test"),
            ("http://a.test/x y", "prefix:http://a.test/x%20y"),
            ("prefix:http://a.test/", "server:http://a.test"),
            ("192.0.2.1", "address:192.0.2.1"),
            ("2001:db8::1", "address:2001:db8::1"),
            ("address:::1", "address:::1"),
            ("host:[::1]", "host:[::1]"),
        ];
        for (text, expected) in cases {
            let target: Target = text.parse().expect(text);
            assert_eq!(target.to_string(), expected, "{text}");
            assert_eq!(expected.parse(), Ok(target), "{text}");
        }
        let bad = ["", "a.test/x", "host:a.test/x", "host:a.test:80", "server:http://a.test/x"];
        let others = ["ftp://a.test/", "address:a.test", "sort:x", "host:", "user@a.test"];
        for text in bad.into_iter().chain(others) {
            assert!(text.parse::<Target>().is_err(), "{text}");
        }
    }

    #[test]
    fn commands_have_one_form_in_json() {
        let order = |text: &str| serde_json::from_str::<Order>(text).expect(text);
        let texts = [
            r#"{"by":"root","verb":"pause","target":"host:a.test"}"#,
            r#"{"by":"root","verb":"slow","host":"a.test","delay_ms":5000}"#,
            r#"{"by":"root","verb":"add_seeds","seeds":["http://b.test/"]}"#,
            r#"{"by":"root","verb":"revive"}"#,
        ];
        for text in texts {
            assert_eq!(serde_json::to_string(&order(text)).expect("plain values"), text);
        }
        for text in
            [r#"{"verb":"paus"}"#, r#"{"verb":"pause"}"#, r#"{"verb":"pause","target":"a b"}"#]
        {
            assert!(serde_json::from_str::<Command>(text).is_err(), "{text}");
        }
    }
}
