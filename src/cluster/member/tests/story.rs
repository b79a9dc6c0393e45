//! Stories of nodes that join, fail, return and leave, chosen by a seed; each ends in a calm time.

use super::world::{Rule, SECOND, World};
use crate::ground::random::Random;

/// The names of the nodes.
pub(super) const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];
/// The lease.
pub(super) const TTL: u64 = 10 * SECOND;

/// What became of a story.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ending {
    /// How long after the last fault everything was held by whom it should be, in microseconds.
    pub(super) settled_after: u64,
}

/// A job directory whose process is dead, or leaves.
struct Dead {
    id: u32,
    name: &'static str,
    job: u32,
    incarnation: u64,
}

/// The storyteller.
struct Teller {
    world: World,
    random: Random,
    dead: Vec<Dead>,
    jobs: u32,
    /// The faults that this story has.
    faults: Vec<Fault>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Kill,
    Sleep,
    Cut,
    Leave,
    Twin,
}

/// Tells the story of a seed. Returns the law that was broken, if one was.
pub(super) fn tell(seed: u64) -> Result<Ending, String> {
    let mut random = Random(seed ^ 0x5eed);
    let rule = draw_rule(&mut random);
    let all = [Fault::Kill, Fault::Sleep, Fault::Cut, Fault::Leave, Fault::Twin];
    let faults = all.into_iter().filter(|_| random.one_in(2)).collect();
    let world = World::new(seed, rule);
    let mut teller = Teller { world, random, dead: Vec::new(), jobs: 0, faults };
    teller.tell()
}

/// Returns how many writes are handed out, and how many of them conflict, until so many nodes that
/// begin at once have settled.
pub(super) fn begin_at_once(nodes: u32) -> Result<(u64, u64), String> {
    let rule = Rule {
        partitions: 64,
        ttl_us: TTL,
        settle_us: SECOND,
        drift_ppm: 500,
        is_drift_extreme: false,
        delayed: 0,
        slow: 0,
        lost: 0,
        twice: 0,
    };
    let mut world = World::new(1, rule);
    for node in 0..nodes {
        world.start(0, &format!("n{node}"), node, None);
    }
    world.run(TTL)?;
    world.is_settled()?;
    Ok((world.writes, world.conflicts))
}

fn draw_rule(random: &mut Random) -> Rule {
    let mut rarely = || if random.one_in(2) { 0 } else { 5 + random.below(40) };
    let [delayed, lost, twice] = [rarely(), rarely(), rarely()];
    let slow = random.pick(&[0, 2]);
    Rule {
        partitions: 12,
        ttl_us: TTL,
        settle_us: (2 + random.below(8)) * SECOND,
        drift_ppm: random.pick(&[0, 500, 20_000, 100_000]),
        is_drift_extreme: random.one_in(2),
        delayed,
        slow,
        lost,
        twice,
    }
}

impl Teller {
    fn tell(&mut self) -> Result<Ending, String> {
        let nodes = 2 + self.random.below(5_usize);
        for name in &NAMES[..nodes] {
            let after = if self.random.one_in(2) { 2 } else { 60 } * SECOND;
            let after = self.random.below(after);
            self.begin(after, name);
        }
        let end = (40 + self.random.below(60)) * SECOND;
        while self.world.now < end {
            let pause = self.random.below(4 * SECOND);
            self.world.run(self.world.now + pause)?;
            self.happen();
        }
        self.end()
    }

    fn begin(&mut self, after: u64, name: &'static str) {
        self.jobs += 1;
        self.world.start(after, name, self.jobs, None);
    }

    /// Something happens to one of the processes, or to a dead one.
    fn happen(&mut self) {
        let is_gone = |dead: &Dead| !self.world.processes.contains_key(&dead.id);
        if let Some(dead) = self.dead.iter().position(is_gone)
            && self.random.one_in(2)
        {
            let dead = self.dead.swap_remove(dead);
            let after = self.random.below(SECOND);
            if self.random.one_in(4) {
                self.begin(after, dead.name);
            } else {
                self.world.start(after, dead.name, dead.job, Some(dead.incarnation));
            }
            return;
        }
        let ids: Vec<u32> = self.world.processes.keys().copied().collect();
        if ids.is_empty() || self.faults.is_empty() {
            return;
        }
        let id = self.victim(&ids);
        let longest = if self.random.one_in(3) { SECOND } else { 2 * TTL };
        let long = self.random.below(longest);
        let process = &self.world.processes[&id];
        let name = NAMES.into_iter().find(|name| *name == process.name.as_str());
        let name = name.expect("one of the names");
        let dead = Dead { id, name, job: process.job, incarnation: process.incarnation };
        match self.random.pick(&self.faults) {
            Fault::Kill => {
                self.world.kill(0, id);
                if self.random.one_in(2) {
                    // A supervisor restarts it.
                    let after = 1 + self.random.below(SECOND);
                    self.world.start(after, name, dead.job, Some(dead.incarnation));
                } else {
                    self.dead.push(dead);
                }
            }
            Fault::Sleep => self.world.sleep(0, id, long),
            Fault::Cut => self.world.cut(0, id, long),
            Fault::Leave => {
                self.dead.push(dead);
                self.world.leave(0, id);
            }
            Fault::Twin if self.random.one_in(4) => {
                let after = self.random.below(SECOND);
                self.begin(after, name);
            }
            Fault::Twin => {}
        }
    }

    /// Chooses the process to which something happens: often the one that reported something last,
    /// which is in the midst of something.
    fn victim(&mut self, ids: &[u32]) -> u32 {
        let last = self.world.changes.last().map(|(_, id, _)| *id);
        let last = last.filter(|id| ids.contains(id) && self.random.one_in(2));
        last.unwrap_or_else(|| self.random.pick(ids))
    }

    /// The faults stop; everything settles within a bound, and stays so.
    fn end(&mut self) -> Result<Ending, String> {
        self.world.run(self.world.now + 1)?;
        self.world.calm();
        let rule = self.world.rule;
        let began = self.world.now;
        let longer = |time: u64| time + time / 1_000_000 * u64::from(rule.drift_ppm);
        // Two leases until the last message has arrived; one until a name is free, one until the
        // sessions that the joiner waits for are over.
        let bound = 4 * longer(TTL) + longer(rule.settle_us);
        let mut settled_after = 0;
        while let Err(trouble) = self.world.is_settled() {
            settled_after = self.world.now - began;
            if settled_after > bound {
                return Err(format!("unsettled after {settled_after}: {trouble}"));
            }
            self.world.run(self.world.now + SECOND / 2)?;
        }
        self.world.run(began + bound)?;
        self.world.is_settled().map_err(|trouble| format!("settled, but {trouble}"))?;
        self.rest(3 * TTL)?;
        Ok(Ending { settled_after })
    }

    /// While nothing happens, each node writes thrice a lease.
    fn rest(&mut self, long: u64) -> Result<(), String> {
        let (writes, changes) = (self.world.writes, self.world.changes.len());
        self.world.run(self.world.now + long)?;
        self.world.is_settled().map_err(|trouble| format!("at rest, {trouble}"))?;
        if let Some(change) = self.world.changes.get(changes) {
            return Err(format!("a change at rest: {change:?}"));
        }
        let nodes = self.world.processes.len() as u64;
        let writes = self.world.writes - writes;
        let drift = u64::from(self.world.rule.drift_ppm);
        let most = nodes * (2 + long * 3 / TTL * (1_000_000 + drift) / 1_000_000);
        if writes > most {
            return Err(format!("{writes} writes of {nodes} nodes in {long}, at most {most}"));
        }
        Ok(())
    }
}
