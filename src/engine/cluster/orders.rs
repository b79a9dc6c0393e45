//! Commands to all nodes: a list in an entry of the queue, to which `sted cluster ctl` appends.
//!
//! ```text
//! {"format":1,"orders":[{"number":1,"at":"...","by":"root","verb":"pause","target":"all"}]}
//! ```
//!
//! Each node carries out those that it hasn't yet, in order, as if they came from its own control
//! socket; its log of commands says which it has (`shared`). A node that joins later carries out
//! all of them, except those of the moment (stop, checkpoint, rotate) that were given before it
//! began.

use crate::engine::Engine;
use crate::engine::command::{Command, Reply, SharedOrders};
use crate::ground::time::Now;

impl Engine {
    /// Carries out the commands of the list that this node hasn't. `is_first` says whether it is
    /// the first one that this process sees.
    pub(super) fn take_shared_orders(&mut self, value: &[u8], is_first: bool, now: Now) {
        let list: SharedOrders = match serde_json::from_slice(value) {
            Ok(list) => list,
            Err(error) => {
                log::warn!("cluster: the commands to all nodes make no sense: {error}");
                return self.counts.cut(super::DAMAGED, 1);
            }
        };
        let done = self.visits.orders().last_shared();
        for shared in list.orders {
            let mut order = shared.order;
            if Some(shared.number) <= done {
                continue;
            }
            let is_of_the_moment =
                matches!(order.command, Command::Stop | Command::Checkpoint | Command::Rotate);
            if is_of_the_moment && is_first {
                continue;
            }
            order.shared = Some(shared.number);
            if let Reply::Refused(why) = self.command(now, &order) {
                log::warn!("cluster: command {} to all nodes is refused: {why}", shared.number);
            }
        }
    }
}
