//! What a fetch came to, and the one table that says what follows from it.
//!
//! An outcome is what the web did to us: expected, counted, logged, never an error of ours. The
//! table maps it to the fate of the URL, the fate of its server, and the code in the crawl log
//! (the negative ones are Heritrix's, so that tools for its log read ours).

use super::contract::{CertificateFault, CloseReason, NameFailure, TlsFault};
use crate::frontier::Retirement;
use crate::url::scope::Rejection;
use serde::{Deserialize, Serialize};

/// What a fetch came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Outcome {
    /// A whole reply with this status.
    Status(u16),
    /// A reply with this status whose body ended early: how. What came is kept, truncated.
    Short(u16, Shortfall),
    /// robots.txt forbids it.
    RobotsDenied,
    /// robots.txt can't be had, which forbids all (RFC 9309 2.3.1.4).
    RobotsUnreachable,
    /// The name has no address: why.
    Name(NameFailure),
    /// Its address is not one that may be connected to.
    ForbiddenAddress,
    /// Nothing listens there.
    ConnectRefused,
    /// No answer to the connection attempt in time.
    ConnectTimedOut,
    /// No route to it.
    Unreachable,
    /// TLS failed for another reason than the certificate: which.
    Tls(TlsFault),
    /// The TLS handshake took too long.
    TlsTimedOut,
    /// The certificate was not accepted: why.
    Certificate(CertificateFault),
    /// The connection was reset before or within the reply.
    Reset,
    /// The connection ended before a byte of the reply.
    ClosedEarly,
    /// No whole head in time.
    HeadTimedOut,
    /// No byte of the body for too long.
    BodyTimedOut,
    /// The whole fetch took too long.
    FetchTimedOut,
    /// The head is longer than the cap, or has too many fields.
    HeadTooLarge,
    /// The body is longer than the cap; what came is kept, truncated.
    BodyTooLarge,
    /// The head makes no sense.
    MalformedHead,
    /// Length or chunks make no sense.
    MalformedFraming,
    /// The reply ended before its announced end; what came is kept, truncated.
    CutShort,
    /// Too many redirects in a row.
    RedirectLimit,
    /// A redirect back to a URL of its chain, which would be asked with the same cookies.
    RedirectLoop,
    /// A redirect to a page that was fetched or queued by another way.
    RedirectToKnown,
    /// It is not one of the URLs that the crawl wants: why.
    OutOfScope(Rejection),
    /// A cap on queued URLs was reached.
    QueueFull,
    /// Its server would be one too many: of which.
    TooMany(Servers),
    /// The scope has changed since it was queued, and doesn't want it.
    Excluded,
    /// Its server had been given up: why.
    ServerRetired(Retirement),
    /// We had no descriptor or port left.
    Local,
}

/// Servers whose number has a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Servers {
    /// All servers of the crawl.
    All,
    /// Those of one registrable domain.
    OfDomain,
}

impl Servers {
    /// The cause of what the bound cuts, in logs and counts.
    pub fn cause(self) -> &'static str {
        match self {
            Self::All => "servers-max",
            Self::OfDomain => "servers-per-domain-max",
        }
    }
}

/// How the body of a reply ended before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Shortfall {
    /// The connection was closed.
    Closed,
    /// The connection was reset, or its TLS session broke.
    Reset,
    /// No byte for too long.
    Stalled,
    /// The whole fetch took too long.
    Overdue,
    /// Its chunk framing makes no sense.
    Framing,
}

impl Shortfall {
    /// What it is where nothing of the body came, or another try follows.
    pub fn outcome(self) -> Outcome {
        match self {
            Self::Closed => Outcome::CutShort,
            Self::Reset => Outcome::Reset,
            Self::Stalled => Outcome::BodyTimedOut,
            Self::Overdue => Outcome::FetchTimedOut,
            Self::Framing => Outcome::MalformedFraming,
        }
    }
}

/// What becomes of the URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UrlFate {
    /// It is done.
    Done,
    /// It goes back to its queue, if it has tries left.
    Retry,
}

/// What becomes of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerFate {
    /// It works.
    Fine,
    /// It is not to blame, and not to be tried again at once.
    Spared,
    /// It asks for mercy: longer rest, doubling; its `Retry-After` is honoured.
    Strained,
    /// It failed: longer rest, doubling; given up after too many in a row.
    Failed,
    /// It failed in a way that lasts: the longest rest, then one more try, then it is given up.
    Barred,
    /// It is given up at once.
    Retire(Retirement),
}

/// One row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// What becomes of the URL.
    pub url: UrlFate,
    /// What becomes of the server.
    pub server: ServerFate,
    /// The code in the crawl log.
    pub code: i32,
}

/// Ways to fail that give a server up sooner than others, if they come in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lasting {
    /// A server that has never answered has no name, or none but an address that may not be
    /// connected to.
    Denied,
    /// TLS fails in a way that is the server's.
    Barred,
}

impl Lasting {
    /// After so many in a row the server is given up.
    pub(super) fn failures_max(self) -> u8 {
        match self {
            Self::Denied => 3,
            Self::Barred => 2,
        }
    }
}

impl Outcome {
    /// The row of this outcome.
    pub fn verdict(self) -> Verdict {
        use ServerFate::{Barred, Failed, Fine, Retire, Spared, Strained};
        use UrlFate::{Done, Retry};
        let (url, server, code) = match self {
            Self::Status(status @ (429 | 503)) => (Retry, Strained, i32::from(status)),
            // 520 to 527 and 530 are what Cloudflare says where others say 502 and 504.
            Self::Status(status @ (408 | 425 | 502 | 504 | 520..=527 | 530)) => {
                (Retry, Fine, i32::from(status))
            }
            Self::Status(status) => (Done, Fine, i32::from(status)),
            Self::Short(status, _) => return Self::Status(status).verdict(),
            Self::RobotsDenied => (Done, Fine, -9998),
            Self::RobotsUnreachable => (Done, Fine, -61),
            // A resolver may lie for a while, and a zone be broken for a minute: what it says is
            // asked for again before it is believed.
            Self::Name(_) => (Retry, Failed, -1),
            Self::ForbiddenAddress => (Retry, Failed, -5001),
            Self::ConnectRefused | Self::ConnectTimedOut | Self::Unreachable => (Retry, Failed, -2),
            Self::Tls(TlsFault::Closed | TlsFault::Broken) | Self::TlsTimedOut => {
                (Retry, Failed, -2)
            }
            Self::Tls(_) => (Retry, Barred, -2),
            Self::Certificate(_) => (Done, Retire(Retirement::Certificate), -2),
            Self::Reset | Self::ClosedEarly | Self::CutShort => (Retry, Failed, -3),
            Self::HeadTimedOut | Self::BodyTimedOut | Self::FetchTimedOut => (Retry, Failed, -4),
            Self::HeadTooLarge | Self::MalformedHead | Self::MalformedFraming => (Done, Fine, -3),
            Self::BodyTooLarge => (Done, Fine, -3),
            Self::RedirectLimit => (Done, Fine, -4001),
            Self::RedirectLoop => (Done, Fine, -4002),
            Self::RedirectToKnown => (Done, Fine, -4003),
            Self::OutOfScope(_) => (Done, Fine, -5000),
            Self::QueueFull | Self::TooMany(_) => (Done, Fine, -5003),
            // Heritrix: out of scope upon re-examination.
            Self::Excluded => (Done, Fine, -5000),
            Self::ServerRetired(_) => (Done, Fine, -5002),
            Self::Local => (Retry, Spared, -5),
        };
        Verdict { url, server, code }
    }

    /// Why a server is given up that has come to this too often.
    pub(super) fn retirement(self) -> Retirement {
        match self {
            Self::Name(_) => Retirement::Name,
            Self::ForbiddenAddress => Retirement::ForbiddenAddress,
            _ => Retirement::Failures,
        }
    }

    /// Why a server is given up that has come to this, in a word.
    pub(super) fn cause(self) -> &'static str {
        match self {
            Self::ServerRetired(why) => why.name(),
            outcome => outcome.name(),
        }
    }

    /// Whether the server could not be reached, for want of an address or of a connection.
    pub(super) fn is_unreached(self) -> bool {
        matches!(
            self,
            Self::Name(_)
                | Self::ForbiddenAddress
                | Self::ConnectRefused
                | Self::ConnectTimedOut
                | Self::Unreachable
        )
    }

    /// Whether the time of a request was up.
    pub(super) fn is_timeout(self) -> bool {
        let outcome = match self {
            Self::Short(_, shortfall) => shortfall.outcome(),
            outcome => outcome,
        };
        matches!(outcome, Self::HeadTimedOut | Self::BodyTimedOut | Self::FetchTimedOut)
    }

    /// Whether a resolver said that there is nothing to connect to.
    pub(super) fn is_denial(self) -> bool {
        match self {
            Self::Name(NameFailure::TimedOut | NameFailure::ServerFailed) => false,
            Self::Name(_) | Self::ForbiddenAddress => true,
            _ => false,
        }
    }

    /// The way in which it lasts, if it does. `is_known`: its server has answered before.
    pub(super) fn lasting(self, is_known: bool) -> Option<Lasting> {
        let is_barred = self.verdict().server == ServerFate::Barred;
        let is_denied = !is_known && self.is_denial();
        is_barred.then_some(Lasting::Barred).or(is_denied.then_some(Lasting::Denied))
    }

    /// Its name in logs and counts.
    pub fn name(self) -> &'static str {
        match self {
            Self::Status(200..=299) | Self::Short(200..=299, _) => "ok",
            Self::Status(300..=399) | Self::Short(300..=399, _) => "redirect",
            Self::Status(_) | Self::Short(..) => "http-error",
            Self::RobotsDenied => "robots-denied",
            Self::RobotsUnreachable => "robots-unreachable",
            Self::Name(NameFailure::NoSuchName) => "dns-no-such-name",
            Self::Name(NameFailure::NoAddress) => "dns-no-address",
            Self::Name(NameFailure::TimedOut) => "dns-timed-out",
            Self::Name(NameFailure::ServerFailed | NameFailure::Malformed) => "dns-failed",
            Self::ForbiddenAddress => "forbidden-address",
            Self::ConnectRefused => "connect-refused",
            Self::ConnectTimedOut => "connect-timed-out",
            Self::Unreachable => "unreachable",
            Self::Tls(fault) => fault.name(),
            Self::TlsTimedOut => "tls-timed-out",
            Self::Certificate(fault) => fault.name(),
            Self::Reset => "reset",
            Self::ClosedEarly => "closed-early",
            Self::HeadTimedOut => "head-timed-out",
            Self::BodyTimedOut => "body-timed-out",
            Self::FetchTimedOut => "fetch-timed-out",
            Self::HeadTooLarge => "head-too-large",
            Self::BodyTooLarge => "body-too-large",
            Self::MalformedHead => "malformed-head",
            Self::MalformedFraming => "malformed-framing",
            Self::CutShort => "cut-short",
            Self::RedirectLimit => "redirect-limit",
            Self::RedirectLoop => "redirect-loop",
            Self::RedirectToKnown => "redirect-to-known",
            Self::OutOfScope(why) => why.name(),
            Self::QueueFull => "queue-full",
            Self::TooMany(servers) => servers.cause(),
            Self::Excluded => "excluded",
            Self::ServerRetired(_) => "server-retired",
            Self::Local => "local",
        }
    }

    /// The status of the reply, whole or short.
    pub fn status(self) -> Option<u16> {
        match self {
            Self::Status(status) | Self::Short(status, _) => Some(status),
            _ => None,
        }
    }

    /// The outcome of a reply with this status whose head came whole, and of whose body `has_body`
    /// bytes came; `self` is how it ended. A redirect or an error says by its head all that counts.
    pub fn with_head(self, status: u16, has_body: bool) -> Self {
        let shortfall = match self {
            Self::CutShort | Self::ClosedEarly => Shortfall::Closed,
            Self::Reset | Self::Tls(_) => Shortfall::Reset,
            Self::BodyTimedOut => Shortfall::Stalled,
            Self::FetchTimedOut => Shortfall::Overdue,
            Self::MalformedFraming => Shortfall::Framing,
            _ => return self,
        };
        if has_body || status >= 300 { Self::Short(status, shortfall) } else { self }
    }

    /// What a close means for a connection that did not stand yet, or for the reply under way.
    pub fn of_close(reason: &CloseReason, reply_begun: bool) -> Self {
        match reason {
            CloseReason::End | CloseReason::TlsCut if reply_begun => Self::CutShort,
            CloseReason::End | CloseReason::TlsCut => Self::ClosedEarly,
            CloseReason::Reset => Self::Reset,
            CloseReason::Refused => Self::ConnectRefused,
            CloseReason::Unreachable => Self::Unreachable,
            CloseReason::Certificate(fault) => Self::Certificate(*fault),
            CloseReason::Tls(fault, _) => Self::Tls(*fault),
            CloseReason::Local(_) => Self::Local,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_gives_up_only_what_is_hopeless() {
        use ServerFate::{Barred, Failed, Fine, Retire, Strained};
        use UrlFate::{Done, Retry};
        let cases = [
            (Outcome::Status(200), Done, Fine, "a page"),
            (Outcome::Status(404), Done, Fine, "gone is an answer"),
            (Outcome::Status(500), Done, Fine, "a broken page stays broken"),
            (Outcome::Status(503), Retry, Strained, "RFC 9110 15.6.4: a delay is asked for"),
            (Outcome::Status(429), Retry, Strained, "RFC 6585 4: too many requests"),
            (Outcome::Status(502), Retry, Fine, "a gateway may recover"),
            (Outcome::Status(504), Retry, Fine, "a gateway may recover"),
            (Outcome::Status(520), Retry, Fine, "Cloudflare: an unknown error of the origin"),
            (Outcome::Status(522), Retry, Fine, "Cloudflare: the origin didn't answer"),
            (Outcome::Status(524), Retry, Fine, "Cloudflare: the origin took too long"),
            (Outcome::Status(527), Retry, Fine, "Cloudflare: the tunnel to the origin broke"),
            (Outcome::Status(530), Retry, Fine, "Cloudflare: the origin's name has no address"),
            (Outcome::Status(501), Done, Fine, "not a gateway's"),
            (Outcome::Status(529), Done, Fine, "nobody's standard"),
            (
                Outcome::Name(NameFailure::NoSuchName),
                Retry,
                Failed,
                "a resolver may say NXDOMAIN of any name while it is in trouble",
            ),
            (Outcome::ForbiddenAddress, Retry, Failed, "so may it say any address"),
            (Outcome::Name(NameFailure::TimedOut), Retry, Failed, "name servers come back"),
            (
                Outcome::Certificate(CertificateFault::Expired),
                Done,
                Retire(Retirement::Certificate),
                "won't change soon",
            ),
            (Outcome::Tls(TlsFault::NotTls), Retry, Barred, "won't change soon, and may"),
            (Outcome::Tls(TlsFault::Closed), Retry, Failed, "may be load"),
            (Outcome::Short(200, Shortfall::Closed), Done, Fine, "what came is a page"),
            (Outcome::Short(503, Shortfall::Reset), Retry, Strained, "as a whole 503"),
            (Outcome::Reset, Retry, Failed, "a reset may be load"),
            (Outcome::MalformedFraming, Done, Fine, "the page is at fault, not the server"),
        ];
        for (outcome, url, server, why) in cases {
            let verdict = outcome.verdict();
            assert_eq!((verdict.url, verdict.server), (url, server), "{outcome:?}: {why}");
        }
    }
}
