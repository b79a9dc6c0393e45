//! The purposes of a crawl, and which words of each kind of signal speak of them.
//!
//! The table of what each signal means is that of these functions; `tests.rs` has it cell by cell.

/// What the pages of a crawl are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A search engine that leads to the pages.
    Search,
    /// An archive that shows copies of the pages.
    Archive,
    /// Text and data mining other than the training of models that generate.
    Mining,
    /// The training of models that generate text or images.
    AiTrain,
    /// The input of such models, as to answer questions.
    AiInput,
}

/// What is said of a use. The greater is the stricter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// Nothing.
    #[default]
    Silent,
    /// The site allows it.
    Allowed,
    /// The site reserves it.
    Reserved,
}

impl Standing {
    /// Returns what is said by a signal that allows, or doesn't.
    pub(super) fn of(allows: bool) -> Self {
        if allows { Self::Allowed } else { Self::Reserved }
    }
}

impl Purpose {
    /// All purposes, in the order of the table.
    pub const ALL: [Self; 5] =
        [Self::Search, Self::Archive, Self::Mining, Self::AiTrain, Self::AiInput];

    /// Returns the name of the purpose in a configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::Search => "search",
            Self::Archive => "archive",
            Self::Mining => "mining",
            Self::AiTrain => "ai-train",
            Self::AiInput => "ai-input",
        }
    }

    /// Returns the word of Content-Signal that speaks of the purpose.
    pub(super) fn content_signal(self) -> Option<&'static str> {
        match self {
            Self::Search => Some("search"),
            Self::AiTrain => Some("ai-train"),
            Self::AiInput => Some("ai-input"),
            Self::Archive | Self::Mining => None,
        }
    }

    /// Returns the categories of Content-Usage that speak of the purpose itself: of several that
    /// are named, the strictest counts. `train-genai` is of earlier versions of the draft.
    pub(super) fn content_usage(self) -> &'static [&'static str] {
        match self {
            Self::Search => &["search"],
            Self::Archive | Self::Mining => &[],
            Self::AiTrain => &["train-ai", "train-genai"],
            Self::AiInput => &["ai-use"],
        }
    }

    /// Returns the directives of robots `meta` elements that reserve the use.
    pub(super) fn directives(self) -> &'static [&'static str] {
        match self {
            Self::Search => &["noindex", "none"],
            Self::Archive => &["noarchive"],
            Self::Mining => &[],
            Self::AiTrain | Self::AiInput => &["noai"],
        }
    }

    /// Returns those that reserve the use of images only.
    pub(super) fn image_directives(self) -> &'static [&'static str] {
        match self {
            Self::AiTrain | Self::AiInput => &["noimageai"],
            Self::Search | Self::Archive | Self::Mining => &[],
        }
    }

    /// Returns whether a reservation of text and data mining (TDM-Reservation) is one of the
    /// purpose.
    pub(super) fn is_mining(self) -> bool {
        matches!(self, Self::Mining | Self::AiTrain | Self::AiInput)
    }
}
