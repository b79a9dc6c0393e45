//! What hosts say of the use of their pages: each in one of the ways that a crawler has to know.

use super::draw::Purpose;
use super::page::Reply;
use super::{Robots, Web};

/// A way in which a host speaks of the use of all its pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Voice {
    /// A Content-Signal line of its robots.txt.
    Signal,
    /// A Content-Usage line of its robots.txt.
    UsageLine,
    /// A Content-Usage field.
    UsageField,
    /// An X-Robots-Tag field.
    Tag,
    /// A TDM-Reservation field.
    Reservation,
    /// A robots `meta` element.
    Meta,
    /// A tdm-reservation `meta` element.
    MetaReservation,
}

impl Voice {
    /// All ways; the first two are those of a robots.txt.
    pub const ALL: [Self; 7] = [
        Self::Signal,
        Self::UsageLine,
        Self::UsageField,
        Self::Tag,
        Self::Reservation,
        Self::Meta,
        Self::MetaReservation,
    ];

    /// Returns what the host says: a line, a field or an element.
    pub fn text(self) -> &'static str {
        match self {
            Self::Signal => "Content-Signal: search=yes, ai-train=no",
            Self::UsageLine => "Content-Usage: / train-ai=n",
            Self::UsageField => "Content-Usage: bots=n, search=y",
            Self::Tag => "X-Robots-Tag: noai, max-snippet: 20",
            Self::Reservation => "TDM-Reservation: 1",
            Self::Meta => "<meta name=\"robots\" content=\"noarchive\">",
            Self::MetaReservation => "<meta name=\"tdm-reservation\" content=\"1\">",
        }
    }

    /// Returns the purposes for which it reserves the use of its pages, separated by spaces.
    pub fn reserves(self) -> &'static str {
        match self {
            Self::Signal | Self::UsageLine => "ai-train",
            Self::UsageField => "archive mining ai-train ai-input",
            Self::Tag => "ai-train ai-input",
            Self::Reservation | Self::MetaReservation => "mining ai-train ai-input",
            Self::Meta => "archive",
        }
    }
}

impl Voice {
    /// Returns whether it reserves the use of its pages for the purpose with this name.
    pub fn reserves_for(self, purpose: &str) -> bool {
        self.reserves().split(' ').any(|name| name == purpose)
    }
}

impl Web {
    /// Returns how a host speaks of the use of its pages; `None` if it doesn't.
    pub fn voice(&self, host: u32) -> Option<Voice> {
        // This is called for every reply, and most webs have no such host.
        if self.settings.voices == 0.0 || self.hostile_of(host).is_some() {
            return None;
        }
        let mut draw = self.draw(Purpose::Host, host, 6);
        let speaks = draw.chance(self.settings.voices);
        let first = if self.robots_of(host) == Robots::None { 2 } else { 0 };
        speaks.then(|| *draw.pick(&Voice::ALL[first..]))
    }

    /// Adds to the rules of a robots.txt what it says of the use of pages.
    pub(super) fn speak_in_robots(&self, host: u32, rules: &mut String) {
        if let Some(voice @ (Voice::Signal | Voice::UsageLine)) = self.voice(host) {
            rules.extend([voice.text(), "\n"]);
        }
    }

    /// Adds to a page what it says of its use.
    pub(super) fn speak(&self, host: u32, reply: &mut Reply) {
        match self.voice(host) {
            None | Some(Voice::Signal | Voice::UsageLine) => {}
            Some(voice @ (Voice::Meta | Voice::MetaReservation)) => {
                const FIRST: &[u8] = b"<!DOCTYPE html>";
                let at = if reply.body.starts_with(FIRST) { FIRST.len() } else { 0 };
                if reply.is_html() && reply.status == 200 {
                    reply.body.splice(at..at, voice.text().bytes());
                }
            }
            Some(voice) => reply.fields.extend([voice.text(), "\r\n"]),
        }
    }
}
