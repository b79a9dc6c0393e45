//! Servers that mix up replies: each reply is correct, but answers another request.
//!
//! Most kinds affect only requests that arrive together, as pipelined ones do; only the bytes
//! behind a body ([`Muddle::padding`]) are sent in any case. What is mixed is a list of whatever
//! represents a server's answer to each request, so that the simulated server and the lab behave
//! alike.

use super::Web;
use super::draw::Purpose;

/// How a server mixes up replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Muddle {
    /// Requests that arrive together are answered in reversed order.
    Swap,
    /// Of requests that arrive together, the first is answered twice.
    Twice,
    /// Of requests that arrive together, the second gets the reply to the first.
    Stale,
    /// Of requests that arrive together, each gets the reply to the last.
    Last,
    /// Of requests that arrive together, the last gets no reply.
    Drop,
    /// Bytes that belong to no reply follow each body, also that of a single request.
    Pad,
    /// Extra line ends follow each body, also that of a single request.
    PadLines,
}

impl Muddle {
    /// All kinds of mixing up replies.
    pub const ALL: [Self; 7] =
        [Self::Swap, Self::Twice, Self::Stale, Self::Last, Self::Drop, Self::Pad, Self::PadLines];

    /// Mixes up the answers to requests that arrived together. `together` has the answer to each,
    /// in the order of the requests.
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

    /// Returns the bytes that the server sends behind each body; empty for kinds that send none.
    pub fn padding(self) -> &'static [u8] {
        match self {
            Self::Pad => b"0123456789abc",
            Self::PadLines => b"\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n",
            _ => b"",
        }
    }
}

impl Web {
    /// Returns how the host with this number mixes up replies; `None` if it doesn't.
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
