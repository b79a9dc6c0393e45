//! Registrable domains: how many others link to each, and the budget that follows from its rank.
//!
//! The *degree* of a domain is the number of distinct other domains with a page that links to it,
//! as a [`Sketch`] estimates it. The *rank* of a domain is the number of domains whose degree is at
//! least its own. Degrees are counted as they change; the budget of a degree follows from the
//! ranking that was made last ([`Domains::rank`]). A *source* is a domain of which a page was read.
//! The number of domains that have more than the lowest budget is at most a hundredth of that of
//! sources: a page may link to any number of domains that don't exist.
//!
//! Domains are named by keyed hashes. Past the maximum number, all others share one record with the
//! lowest budget.
//!
//! ```text
//! piece  for each domain: hash u64, sketch 32, is source u8, pass varint, used varint,
//!        waiting varint, last varint, split varint
//! ranks  ranked varint, few varint | for each step of degrees: domains varint
//! ```
//!
//! Laws: the better linked a domain, the larger its budget, which is within the settings' bounds.
//! Memory: 65 bytes a slot of the hash table: 74 to 149 a domain. Cost: a look-up for a link, three
//! for a URL; a ranking looks at all steps of degrees, not at domains. A checkpoint encodes all
//! domains at once.
//! Source: Lee, Leonard, Wang, Loguinov: IRLbot (WWW 2008), section 6 (STAR): a domain costs money,
//! so links from many of them are hard to fake.

use super::Settings;
use super::sketch::Sketch;
use crate::ground::codec::{Put, Take};
use crate::ground::frame::Flaw;
use crate::ground::map::Map;

/// The number of sources divided by this is the maximum number of domains that have more than the
/// lowest budget. While few domains are known, those of a farm are the best-linked ones.
const FEW: usize = 100;
/// The number of steps of degrees.
const STEPS: usize = 256;
/// Degrees below this have a step each. Above, an octave has as many steps as half of it.
const EXACT: u32 = 16;
/// The approximate length of a piece of [`Domains::encode`], in bytes.
const PIECE_BYTES: usize = 256 << 10;
/// The hash that names all domains past the maximum number.
const OTHERS: u64 = 0;

/// What is known of a domain.
#[derive(Clone, Copy, Debug, Default)]
pub struct Domain {
    sketch: Sketch,
    is_source: bool,
    /// The pass that its newest URL outside the last queue was assigned to.
    pub pass: u32,
    /// The number of its URLs that were assigned to that pass, admitted or waiting.
    pub used: u32,
    /// The number of its URLs that wait.
    pub waiting: u32,
    /// The number of those that wait behind all queues.
    pub last: u32,
    /// The value of `Budgets::end` when a split last put URLs of it back into the last queue; 0 if
    /// none did.
    pub split: u32,
}

/// All domains.
#[derive(Debug)]
pub struct Domains {
    all: Map<u64, Domain>,
    most: usize,
    /// For each step of degrees, the number of domains.
    degrees: Box<[u32; STEPS]>,
    /// For each step, the number of domains of that step or a higher one when they were ranked.
    ranks: Box<[u32; STEPS]>,
    /// The number of domains when they were ranked.
    ranked: usize,
    /// The number of sources.
    sources: usize,
    /// The maximum number of domains that have more than the lowest budget.
    few: u32,
}

impl Domains {
    /// Creates a table of at most `most` domains.
    pub fn new(most: usize) -> Self {
        let steps = || Box::new([0; STEPS]);
        let (degrees, ranks) = (steps(), steps());
        Self { all: Map::default(), most, degrees, ranks, ranked: 0, sources: 0, few: 0 }
    }

    /// Returns the number of domains that are known.
    pub fn count(&self) -> usize {
        self.all.len()
    }

    /// Notes that a page of a domain was read.
    pub fn read(&mut self, name: u64) {
        let (name, domain) = self.get_mut(name);
        if name != OTHERS && !std::mem::replace(&mut domain.is_source, true) {
            self.sources += 1;
        }
    }

    /// Notes that a page of domain `from` links to one of domain `to`.
    pub fn link(&mut self, from: u64, to: u64) {
        let (name, domain) = self.get_mut(to);
        let before = *domain;
        if name != OTHERS && from != to && domain.sketch.add(from) {
            let after = step_of(domain.degree());
            self.degrees[step_of(before.degree())] -= 1;
            self.degrees[after] += 1;
        }
    }

    /// Returns the name of a domain's record, and the record. Adds an unknown domain, or, if the
    /// table is full, returns the record of all others.
    pub fn get_mut(&mut self, name: u64) -> (u64, &mut Domain) {
        let is_known = self.all.contains_key(&name);
        let name = if is_known || self.all.len() < self.most { name } else { OTHERS };
        if !is_known && name != OTHERS {
            self.degrees[0] += 1;
        }
        (name, self.all.entry(name).or_default())
    }

    /// Returns a domain, if it is known, or the record that it shares with others.
    pub fn get(&self, name: u64) -> Option<&Domain> {
        self.all.get(&name).or_else(|| self.all.get(&OTHERS))
    }

    /// Returns whether so many domains became known since the last ranking that another is due.
    pub fn is_stale(&self) -> bool {
        self.all.len() >= 2 * self.ranked.max(1)
    }

    /// Ranks all domains by their present degrees.
    pub fn rank(&mut self) {
        let mut sum = 0;
        for (rank, domains) in self.ranks.iter_mut().zip(self.degrees.iter()).rev() {
            sum += domains;
            *rank = sum;
        }
        self.ranked = self.all.len();
        self.few = u32::try_from(self.sources / FEW).unwrap_or(u32::MAX);
    }

    /// Returns the budget of a domain: the number of its URLs that are admitted in a pass.
    pub fn budget(&self, domain: &Domain, settings: Settings) -> u32 {
        let settings = Settings { top: settings.top.min(self.few), ..settings };
        settings.budget(self.ranks[step_of(domain.degree())].max(1))
    }

    /// Encodes the domains in pieces for a checkpoint, and calls `push` with each.
    pub fn encode(&self, push: &mut dyn FnMut(&[u8])) {
        let mut piece = Vec::new();
        for (name, domain) in &self.all {
            piece.put_u64(*name);
            piece.extend_from_slice(domain.sketch.bytes());
            piece.push(u8::from(domain.is_source));
            [domain.pass, domain.used, domain.waiting, domain.last, domain.split]
                .iter()
                .for_each(|value| piece.put_varint(u64::from(*value)));
            if piece.len() >= PIECE_BYTES {
                push(&piece);
                piece.clear();
            }
        }
        if !piece.is_empty() {
            push(&piece);
        }
    }

    /// Decodes a piece that [`Self::encode`] wrote.
    ///
    /// # Errors
    /// The bytes make no sense.
    pub fn decode(&mut self, piece: &[u8]) -> Result<(), Flaw> {
        let mut take = Take::new(piece);
        while !take.is_empty() {
            let name = take.u64()?;
            let (sketch, is_source) = (Sketch::of_bytes(take.array()?), take.u8()? != 0);
            let (pass, used, waiting) = (take.number()?, take.number()?, take.number()?);
            let (last, split) = (take.number()?, take.number()?);
            let domain = Domain { sketch, is_source, pass, used, waiting, last, split };
            if self.all.insert(name, domain).is_some() {
                return Err(Flaw::Senseless);
            }
            if name != OTHERS {
                self.degrees[step_of(domain.degree())] += 1;
                self.sources += usize::from(is_source);
            }
        }
        Ok(())
    }

    /// Appends the ranking.
    pub fn encode_ranks(&self, out: &mut Vec<u8>) {
        out.put_varint(self.ranked as u64);
        out.put_varint(u64::from(self.few));
        self.ranks.iter().for_each(|rank| out.put_varint(u64::from(*rank)));
    }

    /// Restores the ranking that [`Self::encode_ranks`] saved.
    ///
    /// # Errors
    /// The bytes make no sense.
    pub fn decode_ranks(&mut self, take: &mut Take<'_>) -> Result<(), Flaw> {
        (self.ranked, self.few) = (take.number()?, take.number()?);
        for rank in self.ranks.iter_mut() {
            *rank = take.number()?;
        }
        Ok(())
    }
}

impl Domain {
    /// Returns about how many other domains link to it.
    pub fn degree(&self) -> u32 {
        self.sketch.estimate()
    }
}

/// Returns the step of a degree.
fn step_of(degree: u32) -> usize {
    if degree < EXACT {
        return degree as usize;
    }
    let octave = degree.ilog2() - EXACT.ilog2();
    let half = EXACT / 2;
    let within = (degree >> (octave + 1)) - half;
    (EXACT + octave * half + within) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Law: steps follow the order of degrees, and there are enough of them.
    #[test]
    fn steps_are_in_order() {
        let mut before = 0;
        for degree in (0..100_000).chain([1 << 20, 1 << 31, u32::MAX]) {
            let step = step_of(degree);
            assert!(step >= before && step < STEPS, "{degree}: {step}");
            assert!(degree > 16 || step == degree as usize);
            before = step;
        }
    }
}
