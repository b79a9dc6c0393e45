//! Several simulated crawlers that share one crawl: a world for each node, and the queue between
//! them.
//!
//! The worlds run one after the other for the same slice of time, which is no longer than the
//! shortest way to the queue. Between two slices the queue takes what was asked and answers.
//!
//! Law: equal settings give equal histories.

use super::queue::{self, Queue};
use super::{Ran, World};
use crate::engine::Engine;
use crate::ground::time::Instant;
use std::time::Duration;

/// The nodes of a cluster and their queue.
#[derive(Debug)]
pub struct Cluster {
    nodes: Vec<Node>,
    queue: Queue,
    slice: Duration,
    now: Instant,
}

/// A node: its world, and its engine while its process lives.
#[derive(Debug)]
pub struct Node {
    /// The world that the node sees.
    pub world: World,
    /// The crawl of the process that runs now.
    pub engine: Option<Engine>,
}

impl Cluster {
    /// Creates a cluster of nodes whose worlds begin at the same time.
    pub fn new(nodes: Vec<(World, Engine)>, settings: queue::Settings) -> Self {
        let slice = settings.delay_min;
        let mut queue = Queue::new(settings, nodes.len());
        (0..nodes.len()).for_each(|node| queue.begin(node, Instant::ZERO));
        let node = |(world, engine)| Node { world, engine: Some(engine) };
        Self { nodes: nodes.into_iter().map(node).collect(), queue, slice, now: Instant::ZERO }
    }

    /// Returns the time of all worlds.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Returns the queue.
    pub fn queue(&self) -> &Queue {
        &self.queue
    }

    /// Returns the nodes.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Returns the nodes, to change what happens to them.
    pub fn nodes_mut(&mut self) -> &mut [Node] {
        &mut self.nodes
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
            for (number, node) in self.nodes.iter_mut().enumerate() {
                let Some(engine) = &mut node.engine else { continue };
                let ran = node.world.run_until(engine, self.now, &mut |_| true);
                let ran = ran.map_err(|how| format!("node {number}: {how}"))?;
                for (at, request) in node.world.take_requests() {
                    self.queue.ask(number, at, request);
                }
                if ran != Ran::AsFar {
                    node.engine = None;
                    self.queue.end(number);
                }
            }
            for arrival in self.queue.advance(self.now) {
                self.nodes[arrival.node].world.bring(arrival);
            }
        }
        Ok(())
    }
}
