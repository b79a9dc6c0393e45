//! Servers that mix up replies: each reply is right by itself, and lies under another request.
//!
//! Most do it only to requests that come together, as pipelined ones do; bytes behind a body come
//! always. What is mixed is a list of whatever a server has for each request, so that the
//! simulated server and the lab do the same.

use super::Web;
use super::draw::Purpose;

/// How a server mixes replies up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Muddle {
    /// Requests that come together are answered in reversed order.
    Swap,
    /// The first of them is answered twice.
    Twice,
    /// The second of them gets the reply to the first.
    Stale,
    /// Each of them gets the reply to the last.
    Last,
    /// The last of them gets no reply.
    Drop,
    /// Bytes that belong to no reply lie behind each body.
    Pad,
    /// Line ends do.
    PadLines,
}

impl Muddle {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Swap, Self::Twice, Self::Stale, Self::Last, Self::Drop, Self::Pad, Self::PadLines];

    /// Mixes up what is sent for requests that came together.
    pub fn mix<T: Clone>(self, together: &mut Vec<T>) {
        if together.len() < 2 {
            return;
        }
        match self {
            Self::Swap => together.reverse(),
            Self::Twice => together.insert(0, together[0].clone()),
            Self::Stale => together[1] = together[0].clone(),
            Self::Last => {
                let last = together[together.len() - 1].clone();
                together.fill(last);
            }
            Self::Drop => drop(together.pop()),
            Self::Pad | Self::PadLines => {}
        }
    }

    /// What lies behind each body.
    pub fn padding(self) -> &'static [u8] {
        match self {
            Self::Pad => b"0123456789abc",
            Self::PadLines => b"\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n",
            _ => b"",
        }
    }
}

impl Web {
    /// How a host mixes replies up, if it does.
    pub(super) fn muddle_of(&self, number: u32) -> Option<Muddle> {
        if let Some(kind) = self.hostile_of(number) {
            return kind.muddle();
        }
        if self.settings.muddled == 0.0 {
            return None;
        }
        let mut draw = self.draw(Purpose::Host, number, 4);
        let kind = Muddle::ALL[draw.below(Muddle::ALL.len() as u32) as usize];
        draw.chance(self.settings.muddled).then_some(kind)
    }
}
