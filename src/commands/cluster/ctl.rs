//! `sted cluster ctl`: gives a command to all nodes of a shared crawl.
//!
//! The command is appended to a list in the queue, which each node carries out: those that run now
//! within moments, the others when they come back or join.

use super::{failed, not_shared, queue_of};
use crate::commands::ctl::{Verb, commands};
use crate::commands::{ConfFile, Exit, Failure, print};
use crate::engine::command::{Command, Order, SharedOrder, SharedOrders};
use crate::os::{self, queue};

/// The version of the list.
const FORMAT: u32 = 1;
/// The maximum length of the list in bytes: a server takes a message of a mebibyte.
const LIST_BYTES_MAX: usize = 900 << 10;

/// Appends the command that a verb stands for to the list of the crawl that a configuration is a
/// node of.
///
/// # Errors
/// The configuration describes none, the queue can't be reached, or the verb is one of one node.
pub(in crate::commands) fn run(file: &ConfFile, verb: &Verb) -> Result<Exit, Failure> {
    let conf = file.load()?;
    let settings = queue_of(&conf).ok_or_else(|| not_shared(file))?;
    let by = std::env::var("USER").unwrap_or_else(|_| "an operator".to_owned());
    for command in commands(verb)? {
        if matches!(command, Command::Reload { .. }) {
            let text = "each node has a configuration of its own: use `sted ctl JOB reload` there";
            return Err(Failure::new(Exit::Usage, text));
        }
        let mut number = 0;
        queue::change_orders(&settings, |before| {
            let mut list = match before {
                Some(value) => serde_json::from_slice(value)
                    .map_err(|error| format!("the list of commands makes no sense: {error}"))?,
                None => SharedOrders { format: FORMAT, orders: Vec::new() },
            };
            number = list.orders.last().map_or(0, |last| last.number) + 1;
            let order = Order::new(by.as_str(), command.clone());
            let at = os::now().unix.civil().to_seconds();
            list.orders.push(SharedOrder { number, at, order });
            let value = serde_json::to_vec(&list).expect("plain values");
            match value.len() {
                0..=LIST_BYTES_MAX => Ok(value),
                _ => {
                    Err("the list of commands is full; give seeds to one node: sted ctl".to_owned())
                }
            }
        })
        .map_err(failed)?;
        print(&format!("command {number} is on its way to all nodes\n"))?;
    }
    Ok(Exit::Finished)
}
