//! Rules in the order in which they are looked up, and the one that decides.
//!
//! Plain rules (no star inside; an end is but one more octet) are sorted by their octets. Those
//! that match a target are prefixes of it, hence prefixes of one another: a chain, which starts at
//! the rule sorted nearest below the target. Each rule knows the next shorter one of its chain and
//! the highest in rank of the chain from itself on. Rules with a star inside are sorted by rank;
//! the first that matches ends the search, and so does the rank of the plain rule found. Rules
//! with marked escapes, all of which allow, are sorted likewise, and looked at only for a target
//! that has such escapes.
//!
//! Laws: agrees with trying every rule (`tests.rs`); of rules that say the same of the same octets
//! the one of highest rank is kept.
//! Cost: 24 bytes a rule and its octets once. A check of n plain rules takes log n comparisons and
//! at most as many steps down the chain as the target has octets. A starred rule costs a word of
//! filter, and if it passes one search of the target for each piece, always forward.

use super::Verdict;
use super::octets::{self, ANY, END, Target};
use crate::codec::{Put, Short, Take};
use memchr::memmem;
use std::cmp::Reverse;

/// Where a rule came from and what it says.
#[derive(Clone, Copy, Debug)]
struct Rule {
    /// Its octets in the arena.
    start: u32,
    len: u32,
    /// Octets it counts when rules compete.
    count: u32,
    /// Twice the line, and one more if it allows.
    line_allow: u32,
}

impl Rule {
    fn new(octets: std::ops::Range<usize>, count: u32, verdict: Verdict) -> Self {
        let narrow = |value: usize| u32::try_from(value).expect("the arena is a few file sizes");
        Self {
            start: narrow(octets.start),
            len: narrow(octets.len()),
            count,
            line_allow: verdict.line << 1 | u32::from(verdict.allowed),
        }
    }

    fn verdict(self) -> Verdict {
        Verdict { allowed: self.line_allow & 1 == 1, line: self.line_allow >> 1 }
    }

    /// The highest decides: most octets, then Allow (2.2.2), then the earlier line.
    fn rank(self) -> (u32, bool, Reverse<u32>) {
        let Verdict { allowed, line } = self.verdict();
        (self.count, allowed, Reverse(line))
    }

    fn octets(self, arena: &[u8]) -> &[u8] {
        &arena[self.start as usize..][..self.len as usize]
    }
}

/// Rules as they are read.
#[derive(Default)]
pub(super) struct Draft {
    arena: Vec<u8>,
    rules: Vec<Rule>,
}

impl Draft {
    /// Adds the rule whose path is `value`; an empty one, or one that no path matches, is none.
    pub(super) fn add(&mut self, value: &[u8], allowed: bool, line: u32) {
        let Some((octets, count)) = octets::rule(value, allowed) else { return };
        let start = self.arena.len();
        self.arena.extend_from_slice(&octets);
        let verdict = Verdict { allowed, line };
        self.rules.push(Rule::new(start..self.arena.len(), count, verdict));
    }

    /// The rules that [`Table::encode`] wrote.
    fn decode(take: &mut Take<'_>) -> Result<Self, Short> {
        let mut draft = Self::default();
        for _ in 0..take.varint()? {
            let (count, line_allow) = (take.number()?, take.number()?);
            let octets = take.bytes()?;
            let start = draft.arena.len();
            draft.arena.extend_from_slice(octets);
            if draft.arena.len() > u32::MAX as usize {
                return Err(Short);
            }
            let rule = Rule::new(start..draft.arena.len(), count, Verdict::NO_RULE);
            draft.rules.push(Rule { line_allow, ..rule });
        }
        Ok(draft)
    }

    /// Sorts, drops repetitions, and links. A rule that allows and one that forbids the same octets
    /// are neighbours in a chain: a target may be held to the second only.
    pub(super) fn finish(mut self) -> Table {
        let old = &self.arena;
        self.rules.sort_unstable_by(|one, other| {
            let by_octets = one.octets(old).cmp(other.octets(old));
            by_octets.then(other.rank().cmp(&one.rank()))
        });
        self.rules.dedup_by(|later, first| {
            let same = later.verdict().allowed == first.verdict().allowed;
            same && later.octets(old) == first.octets(old)
        });

        let mut arena = Vec::with_capacity(self.rules.iter().map(|rule| rule.len as usize).sum());
        let (mut plain, mut starred, mut marked) = (Vec::new(), Vec::new(), Vec::new());
        for rule in self.rules {
            let start = arena.len();
            arena.extend_from_slice(rule.octets(old));
            let rule = Rule::new(start..arena.len(), rule.count, rule.verdict());
            let octets = rule.octets(&arena);
            let needs = pairs_of_pieces(octets);
            if octets::has_marks(octets) {
                marked.push(Searched { rule, needs });
            } else if memchr::memchr(ANY, octets).is_some() {
                starred.push(Searched { rule, needs });
            } else {
                plain.push(rule);
            }
        }
        let plain = chained(&plain, &arena).into();
        let [starred, marked] = [starred, marked].map(|mut rules: Vec<Searched>| {
            rules.sort_unstable_by_key(|searched| Reverse(searched.rule.rank()));
            rules.into_boxed_slice()
        });
        Table { arena: arena.into(), plain, starred, marked }
    }
}

/// Links sorted plain rules into their chains.
fn chained(rules: &[Rule], arena: &[u8]) -> Vec<Plain> {
    let mut plain: Vec<Plain> = Vec::with_capacity(rules.len());
    let mut chain: Vec<u32> = Vec::new();
    for (place, rule) in (0_u32..).zip(rules) {
        let octets = rule.octets(arena);
        let is_prefix = |&above: &u32| octets.starts_with(rules[above as usize].octets(arena));
        while chain.last().is_some_and(|above| !is_prefix(above)) {
            chain.pop();
        }
        let above = chain.last().copied();
        let highest = above.map(|above| plain[above as usize].highest);
        let highest = highest.filter(|&highest| rules[highest as usize].rank() > rule.rank());
        plain.push(Plain {
            rule: *rule,
            shorter: above.unwrap_or(NONE),
            highest: highest.unwrap_or(place),
        });
        chain.push(place);
    }
    plain
}

const NONE: u32 = u32::MAX;

#[derive(Clone, Debug)]
struct Plain {
    rule: Rule,
    /// The longest other rule that is a prefix of this one, or [`NONE`].
    shorter: u32,
    /// The highest in rank of this rule and all shorter ones of its chain.
    highest: u32,
}

/// A rule that is tried in its turn.
#[derive(Clone, Debug)]
struct Searched {
    rule: Rule,
    /// A bit for each pair of neighbouring octets in its pieces.
    needs: u64,
}

/// Rules ready for use.
#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    arena: Box<[u8]>,
    plain: Box<[Plain]>,
    starred: Box<[Searched]>,
    marked: Box<[Searched]>,
}

impl Table {
    /// The one rule that forbids everything, from no line.
    pub(super) fn deny_all() -> Self {
        let mut draft = Draft::default();
        draft.add(b"/", false, 0);
        draft.finish()
    }

    /// Writes all rules down; their order counts for nothing.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        let searched = self.starred.iter().chain(&self.marked).map(|searched| searched.rule);
        let rules = self.plain.iter().map(|plain| plain.rule).chain(searched);
        out.put_varint((self.plain.len() + self.starred.len() + self.marked.len()) as u64);
        for rule in rules {
            out.put_varint(u64::from(rule.count));
            out.put_varint(u64::from(rule.line_allow));
            out.put_bytes(rule.octets(&self.arena));
        }
    }

    /// The rules that were written down.
    pub(super) fn decode(take: &mut Take<'_>) -> Result<Self, Short> {
        Draft::decode(take).map(Draft::finish)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.plain.is_empty() && self.starred.is_empty() && self.marked.is_empty()
    }

    pub(super) fn heap_bytes(&self) -> usize {
        let searched = size_of_val(&*self.starred) + size_of_val(&*self.marked);
        self.arena.len() + size_of_val(&*self.plain) + searched
    }

    /// What the highest rule that matches `target` says.
    pub(super) fn decide(&self, target: &Target) -> Option<Verdict> {
        let mut best = match &target.raw {
            None => self.highest_plain(&target.standard),
            Some(raw) => {
                self.plain_that_match(&target.standard, raw).max_by_key(|rule| rule.rank())
            }
        };
        let admits = |rule: Rule| match &target.raw {
            Some(raw) if rule.verdict().allowed => matches(rule.octets(&self.arena), raw),
            _ => true,
        };
        best = self.first(&self.starred, &target.standard, best, admits).or(best);
        if let Some(marked) = &target.marked {
            best = self.first(&self.marked, marked, best, |_| true).or(best);
        }
        best.map(Rule::verdict)
    }

    fn highest_plain(&self, target: &[u8]) -> Option<Rule> {
        let longest = self.longest_plain(target)?;
        Some(self.plain[longest.highest as usize].rule)
    }

    /// The last rule of the chain that matches `target`.
    fn longest_plain(&self, target: &[u8]) -> Option<&Plain> {
        let after = self.plain.partition_point(|plain| plain.rule.octets(&self.arena) <= target);
        let mut plain = &self.plain[after.checked_sub(1)?];
        let shared = shared_prefix(plain.rule.octets(&self.arena), target);
        while plain.rule.len as usize > shared {
            plain = self.plain.get(plain.shorter as usize)?;
        }
        Some(plain)
    }

    /// All plain rules that match: those that allow must match `raw`, too.
    fn plain_that_match(&self, target: &[u8], raw: &[u8]) -> impl Iterator<Item = Rule> {
        let next = |plain: &&Plain| self.plain.get(plain.shorter as usize);
        std::iter::successors(self.longest_plain(target), next)
            .map(|plain| plain.rule)
            .filter(|rule| !rule.verdict().allowed || raw.starts_with(rule.octets(&self.arena)))
    }

    /// The highest of `rules` that matches and is admitted, if it outranks `best`.
    fn first(
        &self,
        rules: &[Searched],
        target: &[u8],
        best: Option<Rule>,
        admits: impl Fn(Rule) -> bool,
    ) -> Option<Rule> {
        if rules.is_empty() {
            return None;
        }
        let lacks = !pairs(target);
        rules
            .iter()
            .take_while(|searched| best.is_none_or(|best| searched.rule.rank() > best.rank()))
            .filter(|searched| searched.needs & lacks == 0)
            .map(|searched| searched.rule)
            .find(|rule| matches(rule.octets(&self.arena), target) && admits(*rule))
    }
}

fn shared_prefix(one: &[u8], other: &[u8]) -> usize {
    one.iter().zip(other).take_while(|(one, other)| one == other).count()
}

/// Whether a rule with stars matches. Each piece is taken where it first occurs: what a later
/// place could match, the rest of the pattern can match from the earlier one too. An end is found
/// at the end only.
fn matches(octets: &[u8], target: &[u8]) -> bool {
    let mut pieces = octets.split(|&octet| octet == ANY);
    let Some(mut rest) = pieces.next().and_then(|first| target.strip_prefix(first)) else {
        return false;
    };
    pieces.all(|piece| match memmem::find(rest, piece) {
        Some(place) => {
            rest = &rest[place + piece.len()..];
            true
        }
        None => false,
    })
}

/// The filter: one bit of 64 for each pair of neighbours. A target that lacks a pair of a rule
/// can't match it.
fn pairs(octets: &[u8]) -> u64 {
    octets.windows(2).fold(0, |bits, pair| bits | bit_of(pair[0], pair[1]))
}

fn pairs_of_pieces(octets: &[u8]) -> u64 {
    octets.split(|&octet| octet == ANY).fold(0, |bits, piece| bits | pairs(piece))
}

fn bit_of(first: u8, second: u8) -> u64 {
    let pair = u32::from(first) << 8 | u32::from(second);
    1 << (pair.wrapping_mul(0x9E37_79B1) >> 26)
}

// An end in a rule must compare as an octet no path has.
const _: () = assert!(END > 0x7F && ANY > 0x7F && END != ANY);
