//! Runs a crawl by several nodes, from its first process to its end: one web, a disk for each node,
//! one judge.

use super::plan::{Event, KEY, Plan, name_of};
use std::cell::RefCell;
use std::fs;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use sted::cluster::queue::{Key, Name};
use sted::cluster::record::{Reader, Record};
use sted::cluster::report::Report;
use sted::cluster::{Partition, Partitioner, member};
use sted::engine::Engine;
use sted::engine::contract::StopReason;
use sted::engine::node::Broken;
use sted::ground::stats::{Meter, still};
use sted::ground::time::Instant;
use sted::seeds::Seed;
use sted::study::sim::World;
use sted::study::sim::cluster::Cluster;
use sted::study::sim::cluster::judge::{Judge, Owner, Tally, Words};
use sted::study::sim::disk::MemoryDisk;
use sted::study::web::Web;
use sted::url::key::KeyRules;
use sted::url::{Fingerprinter, UrlRef};

/// How long a crawl may take to be complete after its last fault.
const PATIENCE: Duration = Duration::from_secs(180);
/// How long the nodes may take to find that a complete crawl is over.
const ENDING: Duration = Duration::from_secs(180);

/// Reads what the nodes write.
struct Reading {
    partitioner: Partitioner,
    hasher: Fingerprinter,
    rules: KeyRules,
}

impl Words for Reading {
    fn partition_of(&self, host: &str) -> Partition {
        self.partitioner.of(host)
    }

    fn owner_in(&self, value: &[u8]) -> Option<Owner> {
        let member::Owner { name, session, since } = member::owner_in(value)?;
        Some(Owner { node: number_of(name.as_str()), session, since: since.0 })
    }

    fn should_have(&self, partition: Partition, live: &[usize]) -> Option<usize> {
        let names: Vec<String> = live.iter().map(|node| name_of(*node)).collect();
        self.partitioner.node_for(partition, names.iter().map(String::as_str)).map(number_of)
    }

    fn settles(&self, payload: &[u8], url: &str) -> Option<usize> {
        let url = UrlRef::from_canonical(url.as_bytes()).expect("a web's URLs are canonical");
        let fingerprint = self.hasher.of(self.rules.key(url, &mut Vec::new()));
        let (head, records) = Reader::open(payload).expect("a message");
        if head.part.is_some() {
            return None; // It says what other messages have said, whoever wrote them.
        }
        let mut settled = records.filter_map(|record| match record.expect("a record") {
            Record::Settled(all) => Some(all),
            _ => None,
        });
        let is_settled = settled.any(|mut all| all.any(|one| one == fingerprint));
        is_settled.then(|| number_of(head.sender.name.as_str()))
    }
}

fn number_of(name: &str) -> usize {
    name.rsplit('-').next().and_then(|number| number.parse().ok()).expect("the name of a node")
}

/// Whether any node has a process.
fn is_running(cluster: &Cluster) -> bool {
    cluster.nodes().iter().any(|node| node.engine.is_some())
}

/// The state of a running plan.
struct Stand<'a> {
    plan: &'a Plan,
    sabotage: Option<Broken>,
    seeds: Vec<Seed>,
    disks: Vec<MemoryDisk>,
    lives: Vec<u64>,
    cluster: Cluster,
    judge: Rc<RefCell<Judge>>,
}

/// Runs a plan.
///
/// # Errors
/// The laws that were broken.
pub fn run(plan: &Plan, sabotage: Option<Broken>) -> Result<Tally, String> {
    let folder = std::env::var("STED_CLUSTER_FOLDER").ok();
    run_into(folder.as_ref().map(Path::new), plan, sabotage)
}

/// Runs a plan, and writes the job directories of all nodes to a folder.
///
/// # Errors
/// The laws that were broken.
pub fn run_into(
    folder: Option<&Path>,
    plan: &Plan,
    sabotage: Option<Broken>,
) -> Result<Tally, String> {
    run_and_count(folder, plan, sabotage).map(|(tally, _)| tally)
}

/// Runs a plan as [`run_into`] does. Returns also how many pages the nodes have lost to each other,
/// as their last reports say.
///
/// # Errors
/// The laws that were broken.
pub fn run_and_count(
    folder: Option<&Path>,
    plan: &Plan,
    sabotage: Option<Broken>,
) -> Result<(Tally, u64), String> {
    let (web, seeds, _) = plan.crawl.parts();
    let worlds = plan.nodes.iter().map(|node| {
        let mut world = World::of_web(Arc::clone(&web), plan.crawl.world.clone());
        world.drift_by(node.drift);
        world
    });
    let mut cluster = Cluster::of_worlds(worlds.collect(), plan.queue.clone());
    let judge = Rc::new(RefCell::new(judge(plan, web)));
    let observer = Rc::clone(&judge);
    cluster.watch(Box::new(move |node, at, seen| observer.borrow_mut().observe(node, at, seen)));
    let disks = plan.nodes.iter().map(|_| MemoryDisk::new()).collect();
    let lives = vec![0; plan.nodes.len()];
    let mut stand = Stand { plan, sabotage, seeds, disks, lives, cluster, judge };
    stand.run()?;
    if let Some(folder) = folder {
        stand.leave(folder);
    }
    let Stand { mut cluster, judge, .. } = stand;
    let lost = (0..plan.nodes.len()).map(|node| {
        let name = Name::new(&name_of(node)).expect("a name");
        let entry = cluster.queue().entry(&Key::Report(name));
        entry.map_or(0, |(_, value)| Report::decode(value).expect("a report").lost)
    });
    let lost = lost.sum();
    cluster.watch(Box::new(|_, _, _| {}));
    let judge = Rc::into_inner(judge).expect("nobody else has it").into_inner();
    let tally = judge.conclude(&cluster);
    let tally = tally
        .map_err(|broken| broken.iter().map(|one| format!("\n  {one}")).collect::<String>())?;
    Ok((tally, lost))
}

fn judge(plan: &Plan, web: Arc<Web>) -> Judge {
    let (.., settings) = plan.crawl.parts();
    let words = Reading {
        partitioner: Partitioner::new(KEY),
        hasher: Fingerprinter::new(KEY),
        rules: KeyRules::new(settings.key),
    };
    Judge::new(web, plan.nodes.len(), plan.laws.clone(), Box::new(words))
}

impl Stand<'_> {
    fn run(&mut self) -> Result<(), String> {
        let nodes = self.plan.nodes.iter().enumerate();
        let mut events: Vec<(Duration, usize, Event)> = nodes
            .flat_map(|(number, node)| {
                let begin = (node.begins, number, Event::Return);
                let events = node.events.iter().map(move |(at, event)| (*at, number, *event));
                std::iter::once(begin).chain(events)
            })
            .collect();
        events.sort_by_key(|(at, ..)| *at);
        for (at, node, event) in events {
            self.advance(at, &mut |_, _| true)?;
            self.happen(node, event)?;
        }
        self.advance(self.plan.calm, &mut |_, _| true)?;
        let mut next = self.cluster.now();
        let goes_on = &mut |judge: &mut Judge, cluster: &Cluster| {
            if cluster.now() < next {
                return true;
            }
            next = next + Duration::from_secs(1);
            judge.inspect(cluster);
            !judge.has_found() && !judge.is_done(cluster)
        };
        self.advance(self.plan.calm + PATIENCE, goes_on)?;
        if self.judge.borrow().has_found() {
            return Ok(());
        }
        let end = self.cluster.now().since(Instant::ZERO) + ENDING;
        self.advance(end, &mut |judge, cluster| !judge.has_found() && is_running(cluster))?;
        match is_running(&self.cluster) && !self.judge.borrow().has_found() {
            true => Err(format!("`end`: not all nodes have ended {ENDING:?} after the last page")),
            false => Ok(()),
        }
    }

    /// Runs all nodes until `until`, or until `goes_on` returns false, which is called after each
    /// slice.
    fn advance(
        &mut self,
        until: Duration,
        goes_on: &mut dyn FnMut(&mut Judge, &Cluster) -> bool,
    ) -> Result<(), String> {
        let judge = &self.judge;
        self.cluster.run_until(Instant::ZERO + until, &mut |cluster| {
            let judge = &mut judge.borrow_mut();
            for (number, node) in cluster.nodes().iter().enumerate() {
                if let Some((at, until)) = node.world.stopped_amidst() {
                    judge.stopped_amidst(number, at, until);
                }
            }
            judge.look(cluster);
            goes_on(judge, cluster)
        })
    }

    fn happen(&mut self, node: usize, event: Event) -> Result<(), String> {
        let now = self.cluster.now();
        match event {
            Event::Return => self.begin(node),
            Event::Leave => {
                let node = &mut self.cluster.nodes_mut()[node];
                let now = node.world.now();
                node.engine.iter_mut().for_each(|engine| engine.stop(now, StopReason::Interrupted));
                Ok(())
            }
            Event::StopAmidst(time) => {
                self.cluster.nodes_mut()[node].world.stop_at_send(time);
                Ok(())
            }
            Event::Stop(time) => {
                self.cluster.nodes_mut()[node].world.stop_for(time);
                self.judge.borrow_mut().stopped(node, now, now + time);
                Ok(())
            }
            Event::Kill { power, job_verbs, seed } => {
                let jobs = self.cluster.kill(node);
                self.judge.borrow_mut().killed(node);
                let disk = &self.disks[node];
                disk.die_after(job_verbs, seed);
                jobs.into_iter().for_each(|job| drop(job.run()));
                disk.revive();
                if power {
                    disk.lose_power(seed);
                }
                Ok(())
            }
        }
    }

    /// Writes the disks of all nodes and their configuration to `folder`, for inspection.
    fn leave(&self, folder: &Path) {
        for (node, disk) in self.disks.iter().enumerate() {
            let job = folder.join(name_of(node));
            fs::create_dir_all(&job).expect("writable");
            fs::write(job.join("conf.toml"), self.plan.crawl.conf_text()).expect("writable");
            for name in disk.names() {
                let file = job.join(&name);
                fs::create_dir_all(file.parent().expect("it has a folder")).expect("writable");
                fs::write(file, disk.read(&name).expect("it is there")).expect("writable");
            }
        }
    }

    fn begin(&mut self, node: usize) -> Result<(), String> {
        let (.., mut settings) = self.plan.crawl.parts();
        let mut cluster = self.plan.settings_of(node, self.lives[node]);
        cluster.broken = self.sabotage;
        self.lives[node] += 1;
        (settings.cluster, settings.fingerprint_key) = (Some(cluster), KEY);
        let (disk, meter) = (Box::new(self.disks[node].clone()), Meter::new(still));
        let seeds = &self.seeds;
        self.cluster.begin(node, |now| {
            Engine::open(settings, seeds, disk, meter, now).map_err(|error| error.to_string())
        })
    }
}
