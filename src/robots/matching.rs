//! The rules of a robots.txt, indexed so that the deciding rule for a target is found quickly.
//!
//! Plain rules (without a star inside; an end is just one more octet) are sorted by their octets.
//! The plain rules that match a target are prefixes of it, so each is a prefix of the next: they
//! form a chain, which is reached from the rule that sorts directly before the target. Each rule
//! links to the next shorter one of its chain, and to the highest-ranked one among itself and the
//! shorter ones. Rules with a star inside are sorted by rank; the search ends at the first one that
//! matches, or at one that ranks below the plain rule found. Rules with marked escapes (see
//! [`super::octets`]), all of which allow, are sorted by rank too, and are only tried for a target
//! that has such escapes.
//!
//! Laws: the result is that of trying every rule (`tests.rs`, `worst.rs`). Of plain rules with the
//! same octets and the same verdict the highest-ranked one is kept.
//! Cost: 24 bytes a rule, and its octets once. A check of n plain rules takes log n comparisons and
//! at most as many steps down the chain as the target has octets. A rule with stars costs the test
//! of a one-word filter, and if it passes a search for each of its pieces ([`Search`]). The worst
//! 500 KiB take 1 to 2 ms on a path of 2,048 octets, and 2 to 6 ms to sort.

use super::Verdict;
use super::octets::{self, ANY, END, Target};
use super::search::Search;
use crate::ground::codec::{Put, Short, Take};
use std::cmp::Reverse;

/// A rule: the position of its octets, its line in the file, and its verdict.
#[derive(Clone, Copy, Debug)]
struct Rule {
    /// The position in the arena at which the octets of the rule begin.
    start: u32,
    len: u32,
    /// The number of octets that decide which of several matching rules wins.
    count: u32,
    /// Twice the number of the rule's line, plus one if the rule allows.
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

    /// Returns the rank of the rule. Of the rules that match, the one with the highest rank
    /// decides: most octets, then Allow (2.2.2), then the earlier line.
    fn rank(self) -> u64 {
        let (line, allow) = (self.line_allow >> 1, self.line_allow & 1);
        u64::from(self.count) << 32 | u64::from(allow << 31 | ((u32::MAX >> 1) - line))
    }

    fn octets(self, arena: &[u8]) -> &[u8] {
        &arena[self.start as usize..][..self.len as usize]
    }
}

/// Returns the key of a rule's line, as it is written.
fn key_of(rule: Rule) -> &'static str {
    if rule.verdict().allowed { "Allow: " } else { "Disallow: " }
}

/// The rules in the order of the file, before they are indexed.
#[derive(Default)]
pub(super) struct Builder {
    arena: Vec<u8>,
    plain: Vec<Rule>,
    starred: Vec<Rule>,
    marked: Vec<Rule>,
}

impl Builder {
    /// Adds a rule with the path `value`. Does nothing if the path is empty or matches no target.
    pub(super) fn add(&mut self, value: &[u8], allowed: bool, line: u32) {
        let start = self.arena.len();
        if let Some(count) = octets::rule(value, allowed, &mut self.arena) {
            self.insert(start, count, Verdict { allowed, line });
        }
    }

    /// Adds the rule whose octets are in the arena from `start` on.
    fn insert(&mut self, start: usize, count: u32, verdict: Verdict) {
        let octets = &self.arena[start..];
        let rule = Rule::new(start..self.arena.len(), count, verdict);
        if octets::has_marks(octets) {
            self.marked.push(rule);
        } else if memchr::memchr(ANY, octets).is_some() {
            self.starred.push(rule);
        } else {
            self.plain.push(rule);
        }
    }

    /// Decodes the rules that [`Table::encode`] wrote.
    fn decode(take: &mut Take<'_>) -> Result<Self, Short> {
        let mut builder = Self::default();
        for _ in 0..take.varint()? {
            let (count, line_allow): (u32, u32) = (take.number()?, take.number()?);
            let octets = take.bytes()?;
            if builder.arena.len() + octets.len() > u32::MAX as usize {
                return Err(Short);
            }
            let verdict = Verdict { allowed: line_allow & 1 == 1, line: line_allow >> 1 };
            let start = builder.arena.len();
            builder.arena.extend_from_slice(octets);
            builder.insert(start, count, verdict);
        }
        Ok(builder)
    }

    /// Sorts the rules, removes duplicate plain rules, and links the chains. A rule that allows and
    /// one that forbids the same octets are both kept, as neighbours in a chain, because a target
    /// may match only the second (see [`Table::plain_that_match`]).
    pub(super) fn finish(self) -> Table {
        let Self { arena: old, mut plain, mut starred, mut marked } = self;
        sort_by_octets(&mut plain, &old);
        plain.dedup_by(|later, first| {
            let same = later.verdict().allowed == first.verdict().allowed;
            same && later.octets(&old) == first.octets(&old)
        });
        for rules in [&mut starred, &mut marked] {
            rules.sort_unstable_by_key(|rule| Reverse(rule.rank()));
        }

        // The rules are copied in the order in which they are tried.
        let all = [&plain, &starred, &marked].into_iter().flatten();
        let mut arena = Vec::with_capacity(all.map(|rule| rule.len as usize).sum());
        for rule in plain.iter_mut().chain(&mut starred).chain(&mut marked) {
            let start = arena.len();
            arena.extend_from_slice(rule.octets(&old));
            rule.start = u32::try_from(start).expect("no longer than the arena before");
        }
        let [starred, marked] = [starred, marked].map(|rules| {
            let pattern =
                |&rule: &Rule| Pattern { rule, needs: pairs_of_pieces(rule.octets(&arena)) };
            rules.iter().map(pattern).collect()
        });
        Table { plain: link_chains(&plain, &arena).into(), starred, marked, arena: arena.into() }
    }
}

/// Sorts rules by their octets. Rules with equal octets are sorted by rank, the highest first.
fn sort_by_octets(rules: &mut [Rule], arena: &[u8]) {
    let by_octets = |one: &Rule, other: &Rule| {
        let by_octets = one.octets(arena).cmp(other.octets(arena));
        by_octets.then(other.rank().cmp(&one.rank()))
    };
    if rules.is_sorted_by(|one, other| by_octets(one, other).is_lt()) {
        return; // decoded rules are sorted already
    }
    // A radix sort by eight octets at a time: rules with equal words are then sorted by their next
    // eight octets.
    let mut keyed: Vec<(u64, Rule)> = rules.iter().map(|rule| (0, *rule)).collect();
    let mut alike = vec![(0..keyed.len(), 0)];
    while let Some((range, depth)) = alike.pop() {
        let first = range.start;
        let group = &mut keyed[range];
        if group.len() <= SMALL_GROUP {
            group.sort_unstable_by(|(_, one), (_, other)| by_octets(one, other));
            continue;
        }
        for (key, rule) in &mut *group {
            *key = word(rule.octets(arena), depth);
        }
        group.sort_unstable_by_key(|(key, _)| *key);
        let mut start = first;
        for equal in group.chunk_by_mut(|(one, _), (other, _)| one == other) {
            match equal {
                [_] => {}
                // All of these rules have ended, because no octet is 0.
                [(0, _), ..] => equal.sort_unstable_by_key(|(_, rule)| Reverse(rule.rank())),
                _ => alike.push((start..start + equal.len(), depth + 8)),
            }
            start += equal.len();
        }
    }
    rules.iter_mut().zip(keyed).for_each(|(rule, (_, sorted))| *rule = sorted);
}

/// Returns the eight octets of a rule from position `depth` on as a number that sorts like them;
/// missing octets are zeros.
fn word(octets: &[u8], depth: usize) -> u64 {
    let rest = &octets[depth.min(octets.len())..];
    let mut word = [0; 8];
    let len = rest.len().min(word.len());
    word[..len].copy_from_slice(&rest[..len]);
    u64::from_be_bytes(word)
}

/// The maximum number of rules in a group that is sorted by comparison. Larger groups are sorted by
/// radix.
const SMALL_GROUP: usize = 8;

/// Links plain rules, which must be sorted, into their chains.
fn link_chains(rules: &[Rule], arena: &[u8]) -> Vec<Plain> {
    let mut plain: Vec<Plain> = Vec::with_capacity(rules.len());
    let mut chain: Vec<u32> = Vec::new();
    for (index, rule) in (0_u32..).zip(rules) {
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
            highest: highest.unwrap_or(index),
        });
        chain.push(index);
    }
    plain
}

const NONE: u32 = u32::MAX;

#[derive(Clone, Debug)]
struct Plain {
    rule: Rule,
    /// The index of the longest other rule that is a prefix of this one; [`NONE`] if there is none.
    shorter: u32,
    /// The index of the highest-ranked rule among this one and the shorter ones of its chain.
    highest: u32,
}

/// A rule with stars or with marked escapes, which is matched by search.
#[derive(Clone, Debug)]
struct Pattern {
    rule: Rule,
    /// The filter of this rule: the bits of all pairs of neighbouring octets in its pieces, which a
    /// target must have as well.
    needs: u64,
}

/// The rules of a robots.txt, indexed for look-ups.
#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    arena: Box<[u8]>,
    plain: Box<[Plain]>,
    starred: Box<[Pattern]>,
    marked: Box<[Pattern]>,
}

impl Table {
    /// Returns a table with one rule that forbids everything; its line number is 0.
    pub(super) fn deny_all() -> Self {
        let mut builder = Builder::default();
        builder.add(b"/", false, 0);
        builder.finish()
    }

    /// Appends all rules in binary form, in any order.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        let pattern = self.starred.iter().chain(&self.marked).map(|pattern| pattern.rule);
        let rules = self.plain.iter().map(|plain| plain.rule).chain(pattern);
        out.put_varint((self.plain.len() + self.starred.len() + self.marked.len()) as u64);
        for rule in rules {
            out.put_varint(u64::from(rule.count));
            out.put_varint(u64::from(rule.line_allow));
            out.put_bytes(rule.octets(&self.arena));
        }
    }

    /// Decodes the rules that [`Table::encode`] wrote.
    pub(super) fn decode(take: &mut Take<'_>) -> Result<Self, Short> {
        Builder::decode(take).map(Builder::finish)
    }

    /// Appends the rules as lines of a robots.txt, until `text` has `bytes_max` bytes. Returns
    /// whether any is left out.
    pub(super) fn push_text(&self, bytes_max: usize, text: &mut String) -> bool {
        let patterns = self.starred.iter().chain(&self.marked).map(|pattern| pattern.rule);
        for rule in self.plain.iter().map(|plain| plain.rule).chain(patterns) {
            let before = text.len();
            text.push_str(key_of(rule));
            octets::push_text(rule.octets(&self.arena), rule.count, text);
            text.push('\n');
            if text.len() > bytes_max {
                text.truncate(before);
                return true;
            }
        }
        false
    }

    /// Returns the rule on a line of the file, in its normalized spelling; `None` if no rule of the
    /// table is from that line.
    pub(super) fn text_of(&self, verdict: Verdict) -> Option<String> {
        let patterns = self.starred.iter().chain(&self.marked).map(|pattern| pattern.rule);
        let mut rules = self.plain.iter().map(|plain| plain.rule).chain(patterns);
        let rule = rules.find(|rule| rule.verdict() == verdict)?;
        let mut text = String::from(key_of(rule));
        octets::push_text(rule.octets(&self.arena), rule.count, &mut text);
        Some(text)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.plain.is_empty() && self.starred.is_empty() && self.marked.is_empty()
    }

    pub(super) fn heap_bytes(&self) -> usize {
        let pattern = size_of_val(&*self.starred) + size_of_val(&*self.marked);
        self.arena.len() + size_of_val(&*self.plain) + pattern
    }

    /// Returns the verdict of the highest-ranked rule that matches `target` (`None` if no rule
    /// does), and the units of work it took.
    pub(super) fn decide(&self, target: &Target) -> (Option<Verdict>, usize) {
        let mut search = Search::new(&target.standard);
        search.charge(target.standard.len());
        let mut best = match &target.raw {
            None => self.highest_plain(&target.standard),
            Some(raw) => {
                self.plain_that_match(&target.standard, raw).max_by_key(|rule| rule.rank())
            }
        };
        let mut narrow = target.raw.as_ref().map(|raw| Search::new(raw));
        let admits = |rule: Rule| match &mut narrow {
            Some(narrow) if rule.verdict().allowed => narrow.matches(rule.octets(&self.arena)),
            _ => true,
        };
        best = self.first(&self.starred, &mut search, best, admits).or(best);
        let mut units = search.units() + narrow.map_or(0, |narrow| narrow.units());
        if let Some(marked) = &target.marked {
            let mut search = Search::new(marked);
            best = self.first(&self.marked, &mut search, best, |_| true).or(best);
            units += search.units();
        }
        (best.map(Rule::verdict), units)
    }

    fn highest_plain(&self, target: &[u8]) -> Option<Rule> {
        let longest = self.longest_plain(target)?;
        Some(self.plain[longest.highest as usize].rule)
    }

    /// Returns the longest plain rule that matches `target`, which is where its chain of matching
    /// rules begins.
    fn longest_plain(&self, target: &[u8]) -> Option<&Plain> {
        let after = self.plain.partition_point(|plain| plain.rule.octets(&self.arena) <= target);
        let mut plain = &self.plain[after.checked_sub(1)?];
        let shared = shared_prefix(plain.rule.octets(&self.arena), target);
        while plain.rule.len as usize > shared {
            plain = self.plain.get(plain.shorter as usize)?;
        }
        Some(plain)
    }

    /// Returns all plain rules that match `target`. Rules that allow must also match `raw`, the
    /// narrower spelling of the target.
    fn plain_that_match(&self, target: &[u8], raw: &[u8]) -> impl Iterator<Item = Rule> {
        let next = |plain: &&Plain| self.plain.get(plain.shorter as usize);
        std::iter::successors(self.longest_plain(target), next)
            .map(|plain| plain.rule)
            .filter(|rule| !rule.verdict().allowed || raw.starts_with(rule.octets(&self.arena)))
    }

    /// Returns the highest-ranked of `rules` that matches and passes the test of the caller, if it
    /// ranks above `best`; otherwise `None`.
    fn first(
        &self,
        rules: &[Pattern],
        search: &mut Search<'_>,
        best: Option<Rule>,
        mut admits: impl FnMut(Rule) -> bool,
    ) -> Option<Rule> {
        if rules.is_empty() {
            return None;
        }
        let lacks = !pairs(search.target());
        let higher = |pattern: &&Pattern| best.is_none_or(|best| pattern.rule.rank() > best.rank());
        let mut tried = 0;
        let first = rules.iter().take_while(higher).inspect(|_| tried += 1);
        let first = first
            .filter(|pattern| pattern.needs & lacks == 0)
            .map(|pattern| pattern.rule)
            .find(|rule| search.matches(rule.octets(&self.arena)) && admits(*rule));
        search.charge(tried * 4);
        first
    }
}

fn shared_prefix(one: &[u8], other: &[u8]) -> usize {
    one.iter().zip(other).take_while(|(one, other)| one == other).count()
}

/// Returns the bits of all pairs of neighbouring octets, one of 64 for each pair. A target that
/// lacks a bit of a rule can't match that rule.
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

// The octets of stars and ends must not occur in paths.
const _: () = assert!(END > 0x7F && ANY > 0x7F && END != ANY);
