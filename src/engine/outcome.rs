//! The outcomes of fetches, and the table of what follows from each.
//!
//! An outcome is what a fetch ended with: a reply, or a failure of the server or the network.
//! Outcomes are expected, counted and logged; they are never errors of the crawler. The table gives
//! the consequence for the URL, the consequence for its server, and the code in the crawl log.
//! Negative codes are Heritrix's, so that tools for its log can read ours.

use super::contract::{CertificateFault, CloseReason, NameFailure, TlsFault};
use super::settings::Retries;
use crate::frontier::Retirement;
use crate::url::scope::Rejection;
use serde::{Deserialize, Serialize};

/// What a fetch ended with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Outcome {
    /// A complete reply with this HTTP status.
    Status(u16),
    /// A reply with this HTTP status whose body ended early; the [`Shortfall`] says how. What was
    /// received is kept, marked as truncated.
    Short(u16, Shortfall),
    /// A reply with this HTTP status, complete or not, of which nothing is kept: the use of the
    /// page is reserved for the purpose of the crawl.
    Reserved(u16),
    /// A reply with this HTTP status that isn't the page, but a challenge that keeps crawlers out.
    Challenged(u16),
    /// A reply with this HTTP status that asks for a signature. The request had none; the next one
    /// has.
    SignatureAsked(u16),
    /// robots.txt forbids the URL.
    RobotsDenied,
    /// robots.txt can't be fetched, which forbids all URLs (RFC 9309 2.3.1.4).
    RobotsUnreachable,
    /// The host name could not be resolved.
    Name(NameFailure),
    /// The host has only addresses that may not be connected to.
    ForbiddenAddress,
    /// The connection was refused.
    ConnectRefused,
    /// The connection was not established in time.
    ConnectTimedOut,
    /// There is no route to the host.
    Unreachable,
    /// TLS failed for a reason other than the certificate.
    Tls(TlsFault),
    /// The TLS handshake took too long.
    TlsTimedOut,
    /// The certificate was not accepted.
    Certificate(CertificateFault),
    /// The connection was reset before the end of the reply.
    Reset,
    /// The connection ended before a byte of the reply.
    ClosedEarly,
    /// The head was not received in time.
    HeadTimedOut,
    /// No byte of the body was received for too long.
    BodyTimedOut,
    /// The whole fetch took too long.
    FetchTimedOut,
    /// The head exceeds its size limit, or has too many fields.
    HeadTooLarge,
    /// The body exceeds its size limit. The bytes up to the limit are kept, marked as truncated.
    BodyTooLarge,
    /// The head is malformed.
    MalformedHead,
    /// The length or the chunk framing is malformed.
    MalformedFraming,
    /// The reply ended before its announced end.
    CutShort,
    /// Too many redirects in a row.
    RedirectLimit,
    /// A redirect to a URL of its chain that was requested with the same cookies before.
    RedirectLoop,
    /// A redirect to a page that was fetched or queued already.
    RedirectToKnown,
    /// A page that prefers the URL to its own was fetched, and counts as its page, too.
    CanonicalKnown,
    /// The URL is out of scope.
    OutOfScope(Rejection),
    /// The limit on queued URLs was reached, so the URL was not queued.
    QueueFull,
    /// The URL would add a server beyond a limit on servers.
    TooMany(ServerLimit),
    /// The URL would exceed a limit on pages.
    PagesMax(PagesLimit),
    /// The scope has changed since the URL was queued, and excludes it.
    Excluded,
    /// The pages of the URL's pattern repeat, so it wasn't requested.
    Repeats,
    /// The operator has blocked the URL, or its server.
    Blocked,
    /// The URL's server had been given up.
    ServerRetired(Retirement),
    /// This machine had no descriptor or port left.
    Local,
}

/// A limit on the number of servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ServerLimit {
    /// The limit on all servers of the crawl.
    All,
    /// The limit on the servers of one registrable domain.
    OfDomain,
}

impl ServerLimit {
    /// Returns the name of the limit in logs and counts.
    pub fn cause(self) -> &'static str {
        match self {
            Self::All => "servers-max",
            Self::OfDomain => "servers-per-domain-max",
        }
    }
}

/// A limit on the number of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum PagesLimit {
    /// The limit on the pages of one server.
    Server,
    /// The limit on the pages of one registrable domain.
    Domain,
    /// The limit of a site with a table of its own.
    Site,
}

impl PagesLimit {
    /// Returns the name of the limit in logs and counts.
    pub fn cause(self) -> &'static str {
        match self {
            Self::Server => "pages-per-server-max",
            Self::Domain => "pages-per-domain-max",
            Self::Site => "site-pages-max",
        }
    }
}

/// How the body of a reply ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Shortfall {
    /// The connection was closed.
    Closed,
    /// The connection was reset, or its TLS session failed.
    Reset,
    /// No byte was received for longer than the time-out allows.
    Stalled,
    /// The whole fetch took longer than the time-out allows.
    Overdue,
    /// The chunk framing is malformed.
    Framing,
}

impl Shortfall {
    /// Returns the outcome of the fetch if nothing of the body was received, or if another try
    /// follows.
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

/// The consequence of an outcome for the URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UrlFate {
    /// The outcome is final.
    Done,
    /// The URL is queued again, if it has tries left.
    Retry,
}

/// The consequence of an outcome for the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerFate {
    /// The server works.
    Fine,
    /// The server is not to blame for the outcome, but rests before the next try.
    Spared,
    /// The server is under strain: it rests longer each time, and its `Retry-After` is obeyed.
    Strained,
    /// The server failed: it rests longer each time, and is given up after too many failures in a
    /// row.
    Failed,
    /// The server failed in a lasting way: after the longest rest it is tried once more, then given
    /// up.
    Barred,
    /// The server is given up at once.
    Retire(Retirement),
}

/// The consequences of an outcome, one row of the table of outcomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The consequence of the outcome for the URL.
    pub url: UrlFate,
    /// The consequence of the outcome for the server.
    pub server: ServerFate,
    /// The code of the outcome in the crawl log.
    pub code: i32,
}

/// The kinds of failure that rarely pass: after a few failures of one such kind in a row, a server
/// is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lasting {
    /// The host name has no address, or only forbidden ones, and the server has never answered.
    Denied,
    /// TLS fails in a way that is the server's fault.
    Barred,
    /// The server keeps crawlers out.
    Challenged,
}

impl Lasting {
    /// Returns the number of failures in a row after which the server is given up.
    pub(super) fn failures_max(self, settings: &Retries) -> u8 {
        match self {
            Self::Denied => 3,
            Self::Barred => 2,
            Self::Challenged => settings.challenges_max,
        }
    }
}

impl Outcome {
    /// Returns the row of the table for this outcome.
    pub fn verdict(self) -> Verdict {
        use ServerFate::{Barred, Failed, Fine, Retire, Spared, Strained};
        use UrlFate::{Done, Retry};
        let (url, server, code) = match self {
            Self::Status(status @ (429 | 503)) => (Retry, Strained, i32::from(status)),
            // Cloudflare sends 520 to 527 and 530 where other gateways send 502 and 504.
            Self::Status(status @ (408 | 425 | 502 | 504 | 520..=527 | 530)) => {
                (Retry, Fine, i32::from(status))
            }
            Self::Status(status) => (Done, Fine, i32::from(status)),
            Self::Short(status, _) => return Self::Status(status).verdict(),
            Self::Reserved(status) => {
                return Verdict { url: Done, ..Self::Status(status).verdict() };
            }
            // Who shows a challenge may let the crawler pass later, or when it is slower.
            Self::Challenged(_) => (Retry, Strained, -9997),
            Self::SignatureAsked(status) => (Retry, Fine, i32::from(status)),
            Self::RobotsDenied => (Done, Fine, -9998),
            Self::RobotsUnreachable => (Done, Fine, -61),
            // A resolver may give wrong answers for some time, and a zone may be broken for a
            // minute. So the name is resolved again before the answer is believed.
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
            Self::RedirectToKnown | Self::CanonicalKnown => (Done, Fine, -4003),
            Self::OutOfScope(_) => (Done, Fine, -5000),
            Self::QueueFull | Self::TooMany(_) | Self::PagesMax(_) => (Done, Fine, -5003),
            // Heritrix's code for URLs that are out of scope when they are checked again.
            Self::Excluded => (Done, Fine, -5000),
            Self::Repeats => (Done, Fine, -5000),
            // Heritrix's code for URLs that its operator has blocked.
            Self::Blocked => (Done, Fine, -5001),
            Self::ServerRetired(_) => (Done, Fine, -5002),
            Self::Local => (Retry, Spared, -5),
        };
        Verdict { url, server, code }
    }

    /// Returns why a server is given up after too many failures with this outcome.
    pub(super) fn retirement(self) -> Retirement {
        match self {
            Self::Name(_) => Retirement::Name,
            Self::ForbiddenAddress => Retirement::ForbiddenAddress,
            Self::Challenged(_) => Retirement::Challenges,
            _ => Retirement::Failures,
        }
    }

    /// Returns the name in logs of the reason for which a server with this outcome is given up.
    pub(super) fn cause(self) -> &'static str {
        match self {
            Self::ServerRetired(why) => why.name(),
            outcome => outcome.name(),
        }
    }

    /// Returns whether the server could not be reached: its name has no address, or the connection
    /// failed.
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

    /// Returns whether a fetch was tried and brought no reply that could be used: by the codes of
    /// the table, from a name that can't be resolved to a time-out. What the operator has blocked
    /// was not tried.
    pub fn is_failed_fetch(self) -> bool {
        let is_failure = matches!(self.verdict().code, -5..=-1) && self != Self::BodyTooLarge;
        is_failure || matches!(self, Self::ForbiddenAddress | Self::Challenged(_))
    }

    /// Returns whether the reply timed out.
    pub(super) fn is_timeout(self) -> bool {
        let outcome = match self {
            Self::Short(_, shortfall) => shortfall.outcome(),
            outcome => outcome,
        };
        matches!(outcome, Self::HeadTimedOut | Self::BodyTimedOut | Self::FetchTimedOut)
    }

    /// Returns whether a resolver answered that the name has no address that may be connected to.
    pub(super) fn is_denial(self) -> bool {
        match self {
            Self::Name(NameFailure::TimedOut | NameFailure::ServerFailed) => false,
            Self::Name(_) | Self::ForbiddenAddress => true,
            _ => false,
        }
    }

    /// Returns the kind of lasting failure that the outcome is a case of, or `None`. `is_known`
    /// says whether the server has answered before.
    pub(super) fn lasting(self, is_known: bool) -> Option<Lasting> {
        if matches!(self, Self::Challenged(_)) {
            return Some(Lasting::Challenged);
        }
        let is_barred = self.verdict().server == ServerFate::Barred;
        let is_denied = !is_known && self.is_denial();
        is_barred.then_some(Lasting::Barred).or(is_denied.then_some(Lasting::Denied))
    }

    /// Returns the name of the outcome in logs and counts.
    pub fn name(self) -> &'static str {
        match self {
            Self::Status(200..=299) | Self::Short(200..=299, _) => "ok",
            Self::Status(300..=399) | Self::Short(300..=399, _) => "redirect",
            Self::Status(_) | Self::Short(..) => "http-error",
            Self::Reserved(_) => "reserved",
            Self::Challenged(_) => "challenged",
            Self::SignatureAsked(_) => "signature-asked",
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
            Self::CanonicalKnown => "canonical-known",
            Self::OutOfScope(why) => why.name(),
            Self::QueueFull => "queue-full",
            Self::TooMany(servers) => servers.cause(),
            Self::PagesMax(pages) => pages.cause(),
            Self::Excluded => "excluded",
            Self::Repeats => "repeats",
            Self::Blocked => "blocked",
            Self::ServerRetired(_) => "server-retired",
            Self::Local => "local",
        }
    }

    /// Returns the status of the reply, whether its body is complete, short or not kept; `None`
    /// without a reply.
    pub fn status(self) -> Option<u16> {
        match self {
            Self::Status(status) | Self::Short(status, _) | Self::Reserved(status) => Some(status),
            _ => None,
        }
    }

    /// Returns the outcome of a fetch whose reply head was received with this status, and which
    /// then ended with the failure `self`. `has_body` says whether a byte of the body was received.
    /// For a redirect or an error status the head is enough.
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

    /// Returns the outcome of a fetch whose connection ended. `reply_begun` says whether a byte of
    /// its reply had been received.
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
