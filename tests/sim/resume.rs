//! Crawls that are killed and resumed: the archive is read back before any request is sent.

use super::stand::Plan;
use super::varied;
use std::sync::Arc;
use std::time::Duration;
use sted::engine::Engine;
use sted::engine::settings::Settings;
use sted::ground::stats::{Meter, still};
use sted::ground::time::Instant;
use sted::study::sim::disk::MemoryDisk;
use sted::study::sim::{Jump, View, World};

/// Whether queues are in memory or on disk: servers rest after a kill, and what they have answered
/// since the checkpoint is read back meanwhile.
#[test]
fn replies_are_read_back_before_anybody_is_asked() {
    for memory_bytes in [1 << 10, 64 << 20] {
        let plan = Plan::new(varied(5)).with(&[
            "connections.open_max = 4",
            "politeness.delay = \"500ms\"",
            "politeness.burst = 5",
            "store.format = \"warc\"",
            "state.keep = true",
            "state.checkpoint_period = \"5s\"",
            "store.sync_period = \"1s\"",
        ]);
        let (web, seeds, mut settings) = plan.parts();
        settings.frontier.memory_bytes = memory_bytes;
        settings.store.buffer_bytes = 1 << 10;
        let mut world = World::of_web(Arc::clone(&web), plan.world.clone());
        let disk = MemoryDisk::new();
        let open = |settings: &Settings, world: &World| {
            let disk = Box::new(disk.clone());
            Engine::open(settings.clone(), &seeds, disk, Meter::new(still), world.now())
                .unwrap_or_else(|error| panic!("{error}"))
        };
        let mut engine = open(&settings, &world);
        let mut until = u64::MAX;
        let goes_on = &mut |view: &View<'_>| {
            let counts = view.engine.counts();
            if until == u64::MAX && counts.checkpoints > 0 {
                until = counts.pages + 60;
            }
            counts.pages < until
        };
        world.run_until(&mut engine, Instant::FAR, goes_on).expect("it goes on");
        drop(engine);
        world.exit();
        world.restart(Duration::from_secs(60), Jump::None);
        let mut engine = open(&settings, &world);
        let counts = engine.counts();
        let (before, asked) = (counts.replayed, counts.requests);
        let (_, listed) = engine.reread().expect("there is something to read back");
        let goes_on = &mut |view: &View<'_>| view.engine.counts().requests == asked;
        world.run_until(&mut engine, Instant::FAR, goes_on).expect("it goes on");
        let read = engine.counts().replayed - before;
        assert!(listed > 40, "{listed}");
        assert_eq!(read, listed as u64, "{memory_bytes} bytes for queues");
    }
}
