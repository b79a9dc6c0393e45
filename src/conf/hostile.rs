//! Kinds of hostile hosts of a synthetic web, by their names in `web.hostile`.

/// Declares the enum `Hostile` from a list of its kinds, each with its name.
macro_rules! kinds {
    ($($kind:ident $name:literal)*) => {
        /// A kind of misbehaviour of a host.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[expect(missing_docs, reason = "each is its host's name; the study's table says more")]
        pub enum Hostile { $($kind,)* }

        impl Hostile {
            /// All kinds, in the order of their declaration.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$kind),*];

            /// Returns the name of the kind in a configuration. The kind's host is that name
            /// followed by `.test`.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$kind => $name,)* }
            }
        }
    };
}

kinds! {
    EndlessHead "endless-head"
    EndlessBody "endless-body"
    Drip "drip"
    EarlyClose "early-close"
    MidPipelineClose "mid-pipeline-close"
    Reset "reset"
    Swapped "swapped"
    SentTwice "sent-twice"
    Stale "stale"
    Dropped "dropped"
    Padded "padded"
    PaddedLines "padded-lines"
    WrongLength "wrong-length"
    BrokenChunk "broken-chunk"
    BombGzip "bomb-gzip"
    BombBrotli "bomb-br"
    BombZstd "bomb-zstd"
    BombDeflate "bomb-deflate"
    RedirectLoop "redirect-loop"
    EndlessLinks "endless-links"
    RetryAfter "retry-after"
    Mute "mute"
    StallHead "stall-head"
    StallBody "stall-body"
    CutBody "cut-body"
    MalformedHead "malformed-head"
    Informational "informational"
    RobotsError "robots-error"
    RobotsLoop "robots-loop"
    RobotsHuge "robots-huge"
    NoSuchName "nx"
    NoAddress "empty"
    NamesFail "servfail"
    NamesMute "slow-dns"
    NamesGarbled "garbled-dns"
    NamesOverTcp "tcp-dns"
    Forbidden "forbidden"
    Refused "refused"
    Full "full"
    Expired "expired"
    WrongName "wrong-name"
    UnknownIssuer "unknown-issuer"
    NotTls "not-tls"
    MuteTls "mute-tls"
    BombEmpty "bomb-empty"
    LongHosts "long-hosts"
    ManyRules "many-rules"
    WideCharset "wide-charset"
    ClosedLate "closed-late"
    SessionIds "session-ids"
    LastForAll "last-for-all"
    Challenges "challenges"
    Signatures "signatures"
    SignedRobots "signed-robots"
    SignedRedirect "signed-redirect"
    Calendar "calendar"
    Facets "facets"
    Maze "maze"
    Babble "babble"
}

impl Hostile {
    /// Returns the kind that has this name; `None` if there is none.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}
