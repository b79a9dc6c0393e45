//! What makes a crawl one of several nodes that share it: the settings of the node, and the
//! agreement with the others before anything begins.

pub(super) mod check;
#[cfg(feature = "control")]
pub(super) mod ctl;
pub(super) mod status;

use super::{ConfFile, Exit, Failure};
use crate::cluster::partition::PARTITIONS;
use crate::cluster::queue::Name;
use crate::cluster::{member, outbox};
use crate::conf::Conf;
use crate::engine::command::SharedOrders;
use crate::engine::node;
use crate::engine::settings::Settings;
use crate::os::{self, queue, signal};
use std::path::Path;
use std::time::Duration;

/// The file in the job directory with the number of the last process of this node.
const NODE_FILE: &str = "state/node";
/// The most bytes of a log that are read at once.
const PORTION: usize = 256 << 10;
/// The length of the messages in a log that are worth a snapshot, in bytes.
const SNAPSHOT_MIN: u64 = 1 << 20;
/// How long the queue is asked to wait for messages in a log that has nothing new.
const READING_WAIT: Duration = Duration::from_secs(30);

/// A node that has agreed with its crawl.
pub(super) struct Joined {
    node: node::Settings,
    queue: queue::Settings,
}

impl Joined {
    /// Returns the key of the crawl, with which all nodes make fingerprints.
    pub(super) fn key(&self) -> [u8; 16] {
        self.node.member.key
    }

    /// Makes these settings those of the node.
    pub(super) fn apply(self, engine: &mut Settings, world: &mut os::Settings) {
        (engine.cluster, world.queue) = (Some(self.node), Some(self.queue));
    }
}

/// Agrees with the other nodes of the crawl that a configuration describes; `None` if it describes
/// none. `key` is that of the job if it is an earlier one's, else one for the crawl that begins.
///
/// # Errors
/// The servers can't be used, or this node differs from the crawl.
pub(super) fn join(
    conf: &Conf,
    key: [u8; 16],
    is_earlier: bool,
) -> Result<Option<Joined>, Failure> {
    let Some(queue) = queue_of(conf) else { return Ok(None) };
    let mut own = member_of(conf, key);
    let value = queue::agree(&queue, member::value_of_crawl(&own)).map_err(failed)?;
    let refuse = |text: String| Failure::new(Exit::Usage, format!("[cluster]: {text}"));
    let Some((crawl, nodes)) = member::crawl_in(&value) else {
        return Err(refuse("the crawl was begun by another version of sted".to_owned()));
    };
    if let Some(difference) = own.difference(&crawl) {
        return Err(refuse(difference.to_string()));
    }
    if is_earlier && crawl.key != key {
        let text = format!(
            "{}: the job is of another crawl than {}, which was begun anew since; choose another \
             job.directory, or another cluster.name",
            conf.job.directory.display(),
            queue.crawl
        );
        return Err(Failure::new(Exit::Job, text));
    }
    let others = nodes.iter().filter(|name| name.as_str() != queue.node).count();
    if others >= conf.cluster.nodes_max as usize {
        return Err(refuse(format!(
            "the crawl has {others} nodes, and cluster.nodes_max allows no more"
        )));
    }
    own.key = crawl.key;
    let incarnation = u64::from_le_bytes(*signal::entropy().first_chunk().expect("16 bytes"));
    let previous = replace_incarnation(&conf.job.directory, incarnation)?;
    let node = node::Settings {
        node: Name::new(&queue.node).expect("the configuration was checked"),
        incarnation,
        previous,
        member: own,
        outbox: outbox::Settings {
            wait_max: conf.cluster.batch_wait,
            memory_max: conf.cluster.outbox,
            ..outbox::Settings::default()
        },
        sent_log2: conf.cluster.links_cached.next_power_of_two().trailing_zeros(),
        facts_log2: conf.cluster.links_cached.next_power_of_two().trailing_zeros(),
        portion_bytes: PORTION,
        snapshot_bytes_min: SNAPSHOT_MIN,
        reading_wait: READING_WAIT,
        broken: None,
    };
    Ok(Some(Joined { node, queue }))
}

/// Returns the failure of the queue with its exit code.
fn failed(failure: queue::Failure) -> Failure {
    Failure::new(if failure.is_mistake { Exit::Usage } else { Exit::System }, failure)
}

/// Returns the failure of a configuration that describes no shared crawl.
fn not_shared(file: &ConfFile) -> Failure {
    let text = format!("{}: has no [cluster] with a name", file.path.display());
    Failure::new(Exit::Usage, text)
}

/// Returns the number of commands in the list of commands to all nodes.
fn orders_in(value: &[u8]) -> usize {
    serde_json::from_slice::<SharedOrders>(value).map_or(0, |list| list.orders.len())
}

/// Returns how the queue of a shared crawl is reached; `None` if the crawl is this machine's alone.
pub(super) fn queue_of(conf: &Conf) -> Option<queue::Settings> {
    let cluster = &conf.cluster;
    let user = cluster.user.clone().zip(cluster.password_file.clone());
    Some(queue::Settings {
        crawl: cluster.name.clone()?,
        node: cluster.node.clone().expect("the configuration was checked"),
        servers: cluster.servers.clone(),
        credentials: cluster.credentials_file.clone(),
        user,
        roots: cluster.roots_file.clone(),
        certificate: cluster.certificate_file.clone().zip(cluster.key_file.clone()),
        replicas: cluster.replicas as usize,
    })
}

/// Returns what all nodes must have in common.
fn member_of(conf: &Conf, key: [u8; 16]) -> member::Settings {
    // Fingerprints are made of a URL's key, which these settings shape.
    let keys = conf.keys().into_iter().filter(|key| key.section == "url");
    let mut equal: Vec<(Box<str>, Box<str>)> =
        keys.map(|key| (format!("url.{}", key.name).into(), key.value.into())).collect();
    equal.push(("cluster.nodes_max".into(), conf.cluster.nodes_max.to_string().into()));
    member::Settings {
        key,
        partitions: PARTITIONS,
        ttl: conf.cluster.lease,
        drift_ppm: conf.cluster.drift_ppm,
        settle: conf.politeness.delay_max,
        equal,
    }
}

/// Writes the number of this process to the job directory. Returns that of the process before.
fn replace_incarnation(directory: &Path, incarnation: u64) -> Result<Option<u64>, Failure> {
    let path = directory.join(NODE_FILE);
    let before = std::fs::read_to_string(&path).ok();
    let before = before.and_then(|text| u64::from_str_radix(text.trim(), 16).ok());
    let written = std::fs::create_dir_all(directory.join("state")).and_then(|()| {
        os::disk::replace(directory, NODE_FILE, format!("{incarnation:x}\n").as_bytes())
    });
    written.map_err(|error| Failure::of_file(&path, &error))?;
    Ok(before)
}
