//! Members in a simulated world, under a judge who knows everything.

mod judge;
mod queue;
pub(super) mod sabotage;
mod steps;
mod story;
mod values;
mod world;

use sabotage::Sabotage;

/// The seeds of the ordinary test.
const SEEDS: u64 = 200;

/// Tells the stories of some seeds. Returns the longest time until everything was settled, and
/// fails at the first law that is broken.
fn tell(seeds: impl Iterator<Item = u64>) -> u64 {
    let settled = seeds.map(|seed| match story::tell(seed) {
        Ok(ending) => ending.settled_after,
        Err(law) => panic!("STED_SEED={seed}: {law}"),
    });
    settled.max().expect("some seeds")
}

#[test]
fn laws_hold_whatever_happens() {
    let longest = tell(0..SEEDS);
    println!("all settled after at most {longest} us");
}

#[test]
#[ignore = "takes minutes"]
fn laws_hold_for_many_seeds() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse().expect("a number"));
    let one = number("STED_SEED");
    let (first, end) =
        one.map_or((0, number("STED_SEEDS").unwrap_or(10_000)), |one| (one, one + 1));
    println!("all settled after at most {} us", tell(first..end));
}

#[test]
fn many_nodes_begin_at_once() {
    let (writes, conflicts) = story::begin_at_once(24).unwrap_or_else(|law| panic!("{law}"));
    println!("{writes} writes, {conflicts} conflicts");
    // Three for each node until it is active, one for each partition; the rest is news of the roll.
    assert!(
        writes <= 24 * 24 + 64 && conflicts <= 8 * 24,
        "{writes} writes, {conflicts} conflicts"
    );
}

/// Each fault of the protocol breaks a law.
#[test]
fn faults_are_noticed() {
    for fault in Sabotage::OF_STORIES {
        sabotage::commit(Some(fault));
        let caught = (0..SEEDS).find_map(|seed| Some((seed, story::tell(seed).err()?)));
        sabotage::commit(None);
        let (seed, law) = caught.unwrap_or_else(|| panic!("{fault:?} isn't noticed"));
        println!("{fault:?}: after {} seeds: {law}", seed + 1);
    }
}
