//! Several simulated crawlers that share one crawl: a world for each node, and the queue between
//! them.
//!
//! The worlds run one after the other for the same slice of time, which is no longer than the
//! shortest way to the queue. Between two slices the queue takes what was asked and answers. An
//! observer sees what all worlds show of a slice after it, in order of time.
//!
//! A node's process may begin late, be stopped for a while, be killed, and begin again later or
//! never. Its world waits while there is no process.
//!
//! Law: equal settings give equal histories.

pub mod judge;

use super::queue::{self, Queue};
use super::{Jump, Observation, Ran, World};
use crate::engine::Engine;
use crate::engine::contract::queue::Key;
use crate::engine::contract::{Job, StopReason};
use crate::ground::time::{Instant, Now};
use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;
use std::time::Duration;

/// An observer of all nodes, called with the number of the node, the time, and the observation.
pub type Observer = Box<dyn FnMut(usize, Instant, &Observation)>;

/// The nodes of a cluster and their queue.
pub struct Cluster {
    nodes: Vec<Node>,
    queue: Queue,
    slice: Duration,
    now: Instant,
    observer: Option<Observer>,
}

/// A node: its world, and its engine while its process lives.
#[derive(Debug)]
pub struct Node {
    /// The world that the node sees.
    pub world: World,
    /// The crawl of the process that runs now.
    pub engine: Option<Engine>,
    /// Why the crawl of its last process ended; `None` while it runs, or if it was killed.
    pub ended: Option<StopReason>,
    /// What was observed in the world and not yet handed on.
    seen: Rc<RefCell<Vec<(Instant, Observation)>>>,
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { nodes, queue, slice, now, .. } = self;
        let mut out = f.debug_struct("Cluster");
        out.field("nodes", nodes).field("queue", queue).field("slice", slice).field("now", now);
        out.finish_non_exhaustive()
    }
}

impl Cluster {
    /// Creates a cluster of nodes whose processes begin at the same time.
    pub fn new(nodes: Vec<(World, Engine)>, settings: queue::Settings) -> Self {
        let (worlds, engines): (Vec<World>, Vec<Engine>) = nodes.into_iter().unzip();
        let mut cluster = Self::of_worlds(worlds, settings);
        for (number, engine) in engines.into_iter().enumerate() {
            cluster.queue.begin(number, Instant::ZERO);
            cluster.nodes[number].engine = Some(engine);
        }
        cluster
    }

    /// Creates a cluster of nodes without processes: see [`Cluster::begin`].
    pub fn of_worlds(worlds: Vec<World>, settings: queue::Settings) -> Self {
        let slice = settings.delay_min;
        let queue = Queue::new(settings, worlds.len());
        let node = |world| Node { world, engine: None, ended: None, seen: Rc::default() };
        let nodes = worlds.into_iter().map(node).collect();
        Self { nodes, queue, slice, now: Instant::ZERO, observer: None }
    }

    /// Reports all further observations at the servers of all worlds to `observer`, after each
    /// slice, in order of time. Replaces the observers of the worlds.
    pub fn watch(&mut self, observer: Observer) {
        self.observer = Some(observer);
        for node in &mut self.nodes {
            let seen = Rc::clone(&node.seen);
            let note = move |at, what: &Observation| seen.borrow_mut().push((at, what.clone()));
            node.world.watch_servers(Box::new(note));
        }
    }

    /// Returns the time of all worlds.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Returns the queue.
    pub fn queue(&self) -> &Queue {
        &self.queue
    }

    /// Changes an entry of the queue, as an operator does who is no node.
    pub fn put(&mut self, key: Key, value: Box<[u8]>) {
        self.queue.put(self.now, key, value);
    }

    /// Returns the nodes.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Returns the nodes, to change what happens to them.
    pub fn nodes_mut(&mut self) -> &mut [Node] {
        &mut self.nodes
    }

    /// Begins a process of a node that has none. `open` returns its crawl; it gets what the clocks
    /// of the process show.
    ///
    /// # Errors
    /// Those of `open`. The node stays without a process.
    pub fn begin(
        &mut self,
        number: usize,
        open: impl FnOnce(Now) -> Result<Engine, String>,
    ) -> Result<(), String> {
        let node = &mut self.nodes[number];
        assert!(node.engine.is_none(), "node {number} has a process");
        let pause = self.now.since(node.world.at());
        let now = node.world.restart(pause, Jump::None);
        (node.engine, node.ended) = (Some(open(now)?), None);
        self.queue.begin(number, self.now);
        Ok(())
    }

    /// Kills the process of a node, if it has one. Returns the jobs of its side thread that were
    /// not done, in order; the first of them may have been done in part.
    pub fn kill(&mut self, number: usize) -> Vec<Job> {
        let node = &mut self.nodes[number];
        if node.engine.take().is_none() {
            return Vec::new();
        }
        let jobs = node.world.exit();
        // What it has asked for in this turn is lost with it.
        node.world.take_requests();
        self.queue.end(number);
        self.hand_on();
        jobs
    }

    /// Runs all nodes until `until`, or until `goes_on`, which is called after each slice, returns
    /// false.
    ///
    /// # Errors
    /// A crawl stopped making progress; the text says which, and when.
    pub fn run_until(
        &mut self,
        until: Instant,
        goes_on: &mut dyn FnMut(&mut Self) -> bool,
    ) -> Result<(), String> {
        while self.now < until && goes_on(self) {
            self.now = self.now + self.slice;
            for number in 0..self.nodes.len() {
                self.run(number).map_err(|how| format!("node {number}: {how}"))?;
            }
            self.hand_on();
            for arrival in self.queue.advance(self.now) {
                let node = &mut self.nodes[arrival.node];
                if node.engine.is_some() {
                    node.world.bring(arrival);
                }
            }
        }
        Ok(())
    }

    /// Runs a node up to the present.
    fn run(&mut self, number: usize) -> Result<(), String> {
        let node = &mut self.nodes[number];
        let Some(engine) = &mut node.engine else { return Ok(()) };
        let ran = node.world.run_until(engine, self.now, &mut |_| true)?;
        for (at, request) in node.world.take_requests() {
            self.queue.ask(number, at, request);
        }
        if ran != Ran::AsFar {
            let ended = engine.stop_reason();
            self.kill(number);
            self.nodes[number].ended = ended;
        }
        Ok(())
    }

    /// Hands on what was observed in all worlds, in order of time.
    fn hand_on(&mut self) {
        let Some(observer) = &mut self.observer else { return };
        let mut all = Vec::new();
        for (number, node) in self.nodes.iter().enumerate() {
            all.extend(node.seen.borrow_mut().drain(..).map(|(at, seen)| (at, number, seen)));
        }
        // Stable: what one world shows at an instant stays in its order.
        all.sort_by_key(|(at, ..)| *at);
        all.iter().for_each(|(at, number, seen)| observer(*number, *at, seen));
    }
}
