//! Free space: the crawl pauses before the disk is full, and loses nothing.

use super::stand::{Plan, outcomes_of};
use super::varied;
use std::sync::Arc;
use std::time::Duration;
use sted::engine::Engine;
use sted::engine::contract::StopReason;
use sted::ground::stats::{Meter, still};
use sted::ground::time::Instant;
use sted::study::sim::disk::MemoryDisk;
use sted::study::sim::settings::DiskFaults;
use sted::study::sim::{View, World};

const ROOM_BYTES: u64 = 4_000_000;
const FREE_MIN: u64 = 3_600_000;

#[test]
fn a_crawl_pauses_before_the_disk_is_full() {
    let lines = ["store.format = \"warc\"", "disk.free_min = \"3600KB\""];
    let plan = Plan::new(varied(12)).with(&lines);
    let undisturbed = plan.run().outcomes();
    let (web, seeds, settings) = plan.parts();
    let mut world = World::of_web(Arc::clone(&web), plan.world.clone());
    let disk = MemoryDisk::with(DiskFaults { room_bytes: Some(ROOM_BYTES), ..Default::default() });
    let (own, meter) = (Box::new(disk.clone()), Meter::new(still));
    let mut engine = Engine::open(settings, &seeds, own, meter, world.now())
        .unwrap_or_else(|error| panic!("{error}"));
    let goes_on = &mut |view: &View<'_>| !view.engine.is_paused();
    world.run_until(&mut engine, Instant::FAR, goes_on).expect("it goes on");
    assert!(engine.is_paused() && engine.fatal_error().is_none());
    let paused = world.at();
    let wait = |world: &mut World, engine: &mut Engine, seconds| {
        let until = world.at() + Duration::from_secs(seconds);
        world.run_until(engine, until, &mut |_| true).expect("it goes on");
    };
    wait(&mut world, &mut engine, 30);
    let requests = engine.counts().requests;
    wait(&mut world, &mut engine, 3_600);
    assert_eq!(engine.counts().requests, requests, "nothing is requested during the pause");
    let used = disk.used();
    assert!(used > ROOM_BYTES - FREE_MIN && used < ROOM_BYTES - FREE_MIN / 2, "{used} at {paused}");
    disk.set_faults(DiskFaults::default());
    world.run(&mut engine).expect("it ends");
    assert_eq!(engine.stop_reason(), Some(StopReason::Finished));
    assert_eq!(engine.counts().disk_full, 1);
    assert_eq!(outcomes_of(&disk.read("crawl.log").expect("there is one")), undisturbed);
}

/// A crawl that is stopped while it leaves space to others ends in order, with its checkpoint.
#[test]
fn a_stop_during_the_pause_is_in_order() {
    for full in ["wait", "stop"] {
        let full = format!("disk.full = \"{full}\"");
        let lines = ["store.format = \"warc\"", "disk.free_min = \"3600KB\"", full.as_str()];
        let plan = Plan::new(varied(12)).with(&lines);
        let (web, seeds, settings) = plan.parts();
        let mut world = World::of_web(Arc::clone(&web), plan.world.clone());
        let faults = DiskFaults { room_bytes: Some(ROOM_BYTES), ..Default::default() };
        let disk = MemoryDisk::with(faults);
        let (own, meter) = (Box::new(disk.clone()), Meter::new(still));
        let mut engine = Engine::open(settings, &seeds, own, meter, world.now())
            .unwrap_or_else(|error| panic!("{error}"));
        let goes_on =
            &mut |view: &View<'_>| !view.engine.is_paused() && view.engine.stop_reason().is_none();
        world.run_until(&mut engine, Instant::FAR, goes_on).expect("it goes on");
        engine.stop(world.now(), StopReason::Interrupted);
        world.run(&mut engine).expect("it ends");
        let reason = engine.stop_reason().expect("it has ended");
        let expected =
            if full.contains("wait") { StopReason::Interrupted } else { StopReason::LowDisk };
        assert_eq!(reason, expected);
        assert!(engine.fatal_error().is_none());
        let checkpoint = disk.read("state/checkpoint").expect("there is one");
        assert!(String::from_utf8_lossy(&checkpoint).contains("\"clean\":true"), "{full}");
    }
}
