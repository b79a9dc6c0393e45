//! The table of hostile hosts: their kinds, resources, and acceptable outcomes.

use super::sessions::PAGES;
use super::walls::WALLS;
use super::{Asked, Certificate, ENDLESS, Heavy, Hostile, Manner, Naming, Play, Row, Spec};
use crate::study::web::host::Coding;
use crate::study::web::manifest::Outcome::{self, *};
use crate::study::web::muddle::Muddle;

const PLAIN: Spec = Spec {
    naming: Naming::Address,
    manner: Manner::Serve,
    certificate: None,
    quick: true,
    rows: &[],
};

const fn row(path: &'static str, play: Play, outcomes: &'static [Outcome]) -> Row {
    Row { path, count: 1, play, outcomes, asked: Asked::Tries }
}

const fn once(path: &'static str, play: Play, outcomes: &'static [Outcome]) -> Row {
    Row { path, count: 1, play, outcomes, asked: Asked::Once }
}

/// Defines a resource whose body is truncated, so that the page is requested twice.
const fn twice(path: &'static str, play: Play, outcomes: &'static [Outcome]) -> Row {
    Row { path, count: 1, play, outcomes, asked: Asked::Twice }
}

const fn never(outcomes: &'static [Outcome]) -> Row {
    Row { path: "/", count: 1, play: Play::Plain, outcomes, asked: Asked::Never }
}

const INDEX: Row = once("/", Play::Index, &[Ok]);

impl Hostile {
    /// Returns the complete definition of a kind.
    pub fn spec(self) -> Spec {
        match self {
            Self::EndlessHead | Self::EndlessBody | Self::Drip => self.spec_of_endless(),
            Self::EarlyClose | Self::MidPipelineClose | Self::Reset => self.spec_of_closing(),
            Self::Swapped
            | Self::SentTwice
            | Self::Stale
            | Self::LastForAll
            | Self::Dropped
            | Self::Padded
            | Self::PaddedLines => self.spec_of_muddled(),
            Self::WrongLength | Self::BrokenChunk | Self::MalformedHead => self.spec_of_malformed(),
            Self::BombGzip | Self::BombBrotli | Self::BombZstd | Self::BombDeflate => {
                self.spec_of_bombs()
            }
            Self::RedirectLoop
            | Self::EndlessLinks
            | Self::RetryAfter
            | Self::Informational
            | Self::SessionIds => self.spec_of_turning(),
            Self::Mute | Self::StallHead | Self::StallBody | Self::CutBody => self.spec_of_stalls(),
            Self::RobotsError | Self::RobotsLoop | Self::RobotsHuge => self.spec_of_robots(),
            Self::SignedRobots | Self::SignedRedirect => self.spec_of_signed_robots(),
            Self::BombEmpty
            | Self::LongHosts
            | Self::ManyRules
            | Self::WideCharset
            | Self::ClosedLate => self.spec_of_heavy(),
            Self::NoSuchName
            | Self::NoAddress
            | Self::NamesFail
            | Self::NamesMute
            | Self::NamesGarbled
            | Self::NamesOverTcp
            | Self::Forbidden => self.spec_of_names(),
            Self::Refused | Self::Full => self.spec_of_unreachable(),
            Self::Challenges => {
                const COUNT: u32 = WALLS.len() as u32;
                const WALL: Row = row("/wall", Play::Wall, &[Challenged]);
                const ROWS: &[Row] = &[INDEX, Row { count: COUNT, asked: Asked::Perhaps, ..WALL }];
                Spec { quick: false, rows: ROWS, ..PLAIN }
            }
            Self::Calendar | Self::Facets | Self::Maze | Self::Babble => self.spec_of_alike(),
            Self::Signatures => {
                // A crawler that doesn't sign is refused.
                const PAGE: Row = row("/signed", Play::Signed, &[Ok, HttpError]);
                const ROWS: &[Row] = &[INDEX, Row { count: 12, asked: Asked::Perhaps, ..PAGE }];
                Spec { quick: false, rows: ROWS, ..PLAIN }
            }
            _ => self.spec_of_tls(),
        }
    }

    fn spec_of_endless(self) -> Spec {
        let (quick, rows): (_, &'static [Row]) = match self {
            Self::EndlessHead => {
                const ROWS: &[Row] = &[row("/", Play::EndlessHead, &[HeadTooLarge])];
                (true, ROWS)
            }
            Self::EndlessBody => {
                const ROWS: &[Row] = &[row("/", Play::EndlessBody, &[BodyTooLarge])];
                (true, ROWS)
            }
            _ => {
                const ROWS: &[Row] = &[
                    INDEX,
                    row("/head", Play::DripHead, &[HeadTimedOut]),
                    twice("/body", Play::DripBody, &[Ok]),
                ];
                (false, ROWS)
            }
        };
        Spec { quick, rows, ..PLAIN }
    }

    fn spec_of_closing(self) -> Spec {
        const PAGES: &[Row] = &[
            INDEX,
            Row { path: "/p", count: 24, play: Play::Plain, outcomes: &[Ok], asked: Asked::Once },
        ];
        match self {
            Self::EarlyClose => {
                const ROWS: &[Row] = &[row("/", Play::CloseAtOnce, &[ClosedEarly])];
                Spec { rows: ROWS, ..PLAIN }
            }
            Self::MidPipelineClose => Spec { manner: Manner::Limit(3), rows: PAGES, ..PLAIN },
            _ => {
                const ROWS: &[Row] = &[
                    INDEX,
                    row("/at-once", Play::ResetAtOnce, &[Reset]),
                    twice("/later", Play::ResetLater, &[Ok]),
                ];
                Spec { rows: ROWS, ..PLAIN }
            }
        }
    }

    fn spec_of_muddled(self) -> Spec {
        // A reply that can't be proven to belong to its request is not used: the page is requested
        // again, so it may be asked for as often as the crawler retries.
        const ROWS: &[Row] = &[
            row("/", Play::Index, &[Ok]),
            Row { path: "/p", count: 24, play: Play::Plain, outcomes: &[Ok], asked: Asked::Tries },
        ];
        let muddle = match self {
            Self::Swapped => Muddle::Swap,
            Self::SentTwice => Muddle::Twice,
            Self::Stale => Muddle::Stale,
            Self::LastForAll => Muddle::Last,
            Self::Dropped => Muddle::Drop,
            Self::Padded => Muddle::Pad,
            _ => Muddle::PadLines,
        };
        let quick = self != Self::Dropped;
        Spec { manner: Manner::Muddle(muddle), quick, rows: ROWS, ..PLAIN }
    }

    fn spec_of_malformed(self) -> Spec {
        let rows: &'static [Row] = match self {
            Self::WrongLength => {
                const ROWS: &[Row] = &[
                    INDEX,
                    twice("/more", Play::Framing("Content-Length: 4000\r\n"), &[Ok]),
                    row("/fewer", Play::TooLong, &[Ok]),
                    row(
                        "/two",
                        Play::Framing("Content-Length: 10\r\nContent-Length: 20\r\n"),
                        &[MalformedFraming],
                    ),
                    // As browsers do: a length that is not a number is ignored.
                    once("/below-zero", Play::Framing("Content-Length: -5\r\n"), &[Ok]),
                    once(
                        "/overflow",
                        Play::Framing("Content-Length: 18446744073709551620\r\n"),
                        &[Ok],
                    ),
                    once("/word", Play::Framing("Content-Length: ten\r\n"), &[Ok]),
                    once("/void", Play::Framing("Content-Length:\r\n"), &[Ok]),
                    once("/coded", Play::Framing("Transfer-Encoding: gzip\r\n"), &[Ok]),
                ];
                ROWS
            }
            Self::BrokenChunk => {
                const ROWS: &[Row] = &[
                    INDEX,
                    twice("/size", Play::Chunks("5\r\nabcde\r\nxyz\r\n"), &[Ok]),
                    row(
                        "/huge",
                        Play::Chunks("fffffffffffffffff\r\nabc"),
                        &[MalformedFraming, BodyTooLarge],
                    ),
                    twice("/cut", Play::Chunks("1000\r\nabcde"), &[Ok]),
                    twice("/no-end", Play::Chunks("5\r\nabcde\r\n"), &[Ok]),
                    row("/nothing", Play::Chunks("5\r\n"), &[CutShort]),
                    twice("/joined", Play::Chunks("5\r\nabcde5\r\nabcde\r\n0\r\n\r\n"), &[Ok]),
                ];
                ROWS
            }
            _ => {
                const ROWS: &[Row] = &[
                    INDEX,
                    row("/words", Play::Head("this is not http\r\n\r\n"), &[MalformedHead]),
                    row("/status", Play::Head("HTTP/1.1 2x0 OK\r\n\r\n"), &[MalformedHead]),
                    once("/name", Play::Head("HTTP/1.1 200 OK\r\nna me: value\r\n\r\n"), &[Ok]),
                    once("/line", Play::Head("HTTP/1.1 200 OK\r\nno colon\r\n\r\n"), &[Ok]),
                    row("/zeros", Play::Head("\0\0\0\0\0\0\0\0\r\n\r\n"), &[MalformedHead]),
                    row("/zero", Play::Head("HTTP/1.1 200 OK\r\na: \0\r\n\r\n"), &[MalformedHead]),
                    row("/radio", Play::Head("ICY 200 OK\r\n\r\n"), &[MalformedHead]),
                    row("/version", Play::Head("HTTP/17.3 200 OK\r\n\r\n"), &[MalformedHead]),
                    once("/later", Play::Head("HTTP/2 200\r\n\r\n"), &[Ok]),
                ];
                ROWS
            }
        };
        Spec { rows, ..PLAIN }
    }

    /// Returns the definition of a kind that sends bombs. A bomb is a complete reply; how much of
    /// it is decoded is the crawler's choice.
    fn spec_of_bombs(self) -> Spec {
        let rows: &'static [Row] = match self {
            Self::BombGzip => {
                const ROWS: &[Row] = &[
                    INDEX,
                    row("/once", Play::Bomb(Coding::Gzip), &[Ok, DecodedTooLarge]),
                    row("/twice", Play::BombTwice, &[Ok, DecodedTooLarge]),
                ];
                ROWS
            }
            Self::BombBrotli => {
                const ROWS: &[Row] =
                    &[row("/", Play::Bomb(Coding::Brotli), &[Ok, DecodedTooLarge])];
                ROWS
            }
            Self::BombZstd => {
                const ROWS: &[Row] = &[row("/", Play::Bomb(Coding::Zstd), &[Ok, DecodedTooLarge])];
                ROWS
            }
            _ => {
                const ROWS: &[Row] = &[
                    INDEX,
                    row("/zlib", Play::Bomb(Coding::Deflate), &[Ok, DecodedTooLarge]),
                    row("/raw", Play::Bomb(Coding::RawDeflate), &[Ok, DecodedTooLarge]),
                ];
                ROWS
            }
        };
        Spec { rows, ..PLAIN }
    }

    fn spec_of_alike(self) -> Spec {
        const fn rows(path: &'static str) -> [Row; 2] {
            let page = once(path, Play::Alike, &[Ok, Repeats]);
            [INDEX, Row { count: ENDLESS, asked: Asked::Perhaps, ..page }]
        }
        const CALENDAR: &[Row] = &rows("/calendar/2026/day/");
        const FACETS: &[Row] = &rows("/goods?sort=price&filter=");
        const MAZE: &[Row] = &rows("/maze/x");
        const BABBLE: &[Row] = &rows("/babble/x");
        let rows = match self {
            Self::Calendar => CALENDAR,
            Self::Facets => FACETS,
            Self::Babble => BABBLE,
            _ => MAZE,
        };
        Spec { quick: false, rows, ..PLAIN }
    }

    fn spec_of_turning(self) -> Spec {
        let rows: &'static [Row] = match self {
            Self::RedirectLoop => {
                const ROWS: &[Row] = &[
                    INDEX,
                    once("/here", Play::RedirectTo("/there"), &[Redirect]),
                    once("/there", Play::RedirectTo("/here"), &[Redirect]),
                    once(
                        "/itself",
                        Play::RedirectTo("/itself"),
                        &[Redirect, RedirectLimit, RedirectLoop],
                    ),
                    Row {
                        path: "/on/",
                        count: ENDLESS,
                        play: Play::RedirectOn,
                        outcomes: &[Redirect],
                        asked: Asked::Once,
                    },
                ];
                ROWS
            }
            Self::EndlessLinks => {
                const ROWS: &[Row] = &[
                    INDEX,
                    Row {
                        path: "/more/",
                        count: ENDLESS,
                        play: Play::TwoMore,
                        outcomes: &[Ok],
                        asked: Asked::Once,
                    },
                ];
                ROWS
            }
            Self::RetryAfter => {
                const TWICE: Play = Play::RetryAfter { seconds: 1, times: 2 };
                const ALWAYS: Play = Play::RetryAfter { seconds: 1, times: u32::MAX };
                const ROWS: &[Row] = &[
                    INDEX,
                    Row { asked: Asked::Past(2), ..once("/twice", TWICE, &[Ok]) },
                    row("/always", ALWAYS, &[HttpError]),
                ];
                ROWS
            }
            Self::SessionIds => {
                const ROWS: &[Row] =
                    &[INDEX, Row { count: PAGES, ..once("/p", Play::Sessions, &[Ok]) }];
                ROWS
            }
            _ => {
                const ROWS: &[Row] = &[once("/", Play::Informational, &[Ok])];
                ROWS
            }
        };
        Spec { quick: self != Self::EndlessLinks, rows, ..PLAIN }
    }

    fn spec_of_stalls(self) -> Spec {
        match self {
            Self::Mute => {
                const ROWS: &[Row] =
                    &[Row { play: Play::StallHead, ..never(&[RobotsUnreachable]) }];
                Spec { quick: false, manner: Manner::Mute, rows: ROWS, ..PLAIN }
            }
            Self::StallHead => {
                const ROWS: &[Row] = &[row("/", Play::StallHead, &[HeadTimedOut])];
                Spec { quick: false, rows: ROWS, ..PLAIN }
            }
            Self::StallBody => {
                const ROWS: &[Row] = &[twice("/", Play::StallBody, &[Ok])];
                Spec { quick: false, rows: ROWS, ..PLAIN }
            }
            _ => {
                const ROWS: &[Row] = &[twice("/", Play::CutBody, &[Ok])];
                Spec { rows: ROWS, ..PLAIN }
            }
        }
    }

    fn spec_of_robots(self) -> Spec {
        const ROBOTS: &str = "/robots.txt";
        match self {
            Self::RobotsError => {
                const ROWS: &[Row] =
                    &[row(ROBOTS, Play::Error, &[HttpError]), never(&[RobotsUnreachable])];
                Spec { rows: ROWS, ..PLAIN }
            }
            Self::RobotsLoop => {
                // A crawler limits how many redirects it follows. At its limit it may treat
                // robots.txt as unavailable (RFC 9309, section 2.3.1.2), and so everything on the
                // host as allowed.
                const ROWS: &[Row] = &[
                    row(ROBOTS, Play::RedirectTo("/robots.txt"), &[Redirect, RedirectLimit]),
                    row("/", Play::Plain, &[Ok, RobotsUnreachable]),
                ];
                Spec { rows: ROWS, ..PLAIN }
            }
            _ => {
                const ROWS: &[Row] = &[
                    row(ROBOTS, Play::HugeRobots, &[Ok, BodyTooLarge]),
                    INDEX,
                    Row { asked: Asked::Never, ..once("/closed", Play::Plain, &[RobotsDenied]) },
                    once("/open", Play::Plain, &[Ok]),
                ];
                Spec { rows: ROWS, ..PLAIN }
            }
        }
    }

    /// A crawler that doesn't sign gets no rules, so everything is allowed.
    fn spec_of_signed_robots(self) -> Spec {
        const RULES: Row = Row {
            asked: Asked::Perhaps,
            ..row("/robots.txt", Play::SignedRules, &[Ok, HttpError])
        };
        const CLOSED: Row =
            Row { asked: Asked::Perhaps, ..once("/closed", Play::Plain, &[RobotsDenied, Ok]) };
        const OPEN: Row = Row { count: 6, ..once("/open", Play::Plain, &[Ok]) };
        const DIRECT: &[Row] = &[RULES, INDEX, CLOSED, OPEN];
        const TO: Play = Play::RedirectTo("/rules");
        const REDIRECTED: &[Row] = &[
            Row { play: TO, outcomes: &[Redirect], ..RULES },
            Row { path: "/rules", ..RULES },
            INDEX,
            CLOSED,
            OPEN,
        ];
        let rows = if self == Self::SignedRobots { DIRECT } else { REDIRECTED };
        Spec { quick: false, rows, ..PLAIN }
    }

    fn spec_of_heavy(self) -> Spec {
        const fn heavy(path: &'static str, heavy: Heavy) -> Row {
            once(path, Play::Heavy(heavy), &[Ok])
        }
        /// Defines resources that robots.txt disallows, so that they are never requested.
        const fn closed(path: &'static str, count: u32) -> Row {
            Row { count, asked: Asked::Never, ..once(path, Play::Plain, &[RobotsDenied]) }
        }
        let rows: &'static [Row] = match self {
            Self::BombEmpty => {
                const ROWS: &[Row] = &[
                    INDEX,
                    heavy("/blocks", Heavy::EmptyBlocks),
                    heavy("/members", Heavy::EmptyMembers),
                ];
                ROWS
            }
            Self::LongHosts => {
                const ROWS: &[Row] = &[INDEX, heavy("/names", Heavy::LongHosts)];
                ROWS
            }
            Self::ManyRules => {
                const ROWS: &[Row] = &[
                    heavy("/robots.txt", Heavy::ManyRules),
                    INDEX,
                    closed("/p", 300),
                    once("/open", Play::Plain, &[Ok]),
                ];
                ROWS
            }
            Self::WideCharset => {
                const ROWS: &[Row] = &[
                    INDEX,
                    heavy("/utf-16", Heavy::Utf16),
                    heavy("/iso-2022-jp", Heavy::Iso2022Jp),
                ];
                ROWS
            }
            _ => {
                const ROWS: &[Row] = &[
                    heavy("/robots.txt", Heavy::ClosedRules),
                    INDEX,
                    closed("/late/", 900),
                    once("/open", Play::Plain, &[Ok]),
                ];
                ROWS
            }
        };
        Spec { rows, ..PLAIN }
    }

    fn spec_of_names(self) -> Spec {
        let (naming, rows): (_, &'static [Row]) = match self {
            Self::NoSuchName => {
                const ROWS: &[Row] = &[never(&[DnsNoSuchName])];
                (Naming::NoSuchName, ROWS)
            }
            Self::NoAddress => {
                const ROWS: &[Row] = &[never(&[DnsNoAddress])];
                (Naming::NoAddress, ROWS)
            }
            Self::NamesFail => {
                const ROWS: &[Row] = &[never(&[DnsFailed])];
                (Naming::Fails, ROWS)
            }
            Self::NamesMute => {
                const ROWS: &[Row] = &[never(&[DnsTimedOut])];
                (Naming::Mute, ROWS)
            }
            Self::NamesGarbled => {
                // A resolver may wait for a better packet until its timeout.
                const ROWS: &[Row] = &[never(&[DnsFailed, DnsTimedOut])];
                (Naming::Garbled, ROWS)
            }
            Self::NamesOverTcp => {
                const ROWS: &[Row] = &[once("/", Play::Plain, &[Ok])];
                (Naming::OverTcp, ROWS)
            }
            _ => {
                const ROWS: &[Row] = &[never(&[ForbiddenAddress])];
                (Naming::Forbidden, ROWS)
            }
        };
        let quick = !matches!(naming, Naming::Mute | Naming::Garbled);
        Spec { naming, quick, rows, ..PLAIN }
    }

    fn spec_of_unreachable(self) -> Spec {
        if self == Self::Refused {
            const ROWS: &[Row] = &[never(&[ConnectRefused])];
            return Spec { manner: Manner::Refuse, rows: ROWS, ..PLAIN };
        }
        const ROWS: &[Row] = &[never(&[ConnectTimedOut])];
        Spec { quick: false, manner: Manner::Full, rows: ROWS, ..PLAIN }
    }

    fn spec_of_tls(self) -> Spec {
        const EXPIRED: &[Row] = &[never(&[CertificateExpired])];
        const WRONG_HOST: &[Row] = &[never(&[CertificateWrongHost])];
        const UNKNOWN_ISSUER: &[Row] = &[never(&[CertificateUnknownIssuer])];
        const NOT_TLS: &[Row] = &[never(&[TlsNotTls])];
        const STALLED: &[Row] = &[never(&[TlsTimedOut])];
        let (certificate, rows) = match self {
            Self::Expired => (Certificate::Expired, EXPIRED),
            Self::WrongName => (Certificate::WrongName, WRONG_HOST),
            Self::UnknownIssuer => (Certificate::UnknownIssuer, UNKNOWN_ISSUER),
            Self::NotTls => (Certificate::Good, NOT_TLS),
            _ => (Certificate::Good, STALLED),
        };
        let manner = match self {
            Self::NotTls => Manner::NotTls,
            Self::MuteTls => Manner::Mute,
            _ => Manner::Serve,
        };
        let quick = self != Self::MuteTls;
        Spec { manner, certificate: Some(certificate), quick, rows, ..PLAIN }
    }
}
