//! Carries out the operator's commands: logs them, puts them in force, and starts what they demand
//! of other parts of the engine.

use super::Logged;
use crate::engine::Engine;
use crate::engine::command::{Command, Order, Reply, SEEDS_MAX, Target};
use crate::engine::contract::StopReason;
use crate::ground::time::Now;
use crate::seeds::Seed;
use crate::url::Url;

impl Engine {
    /// Carries out a command of the operator. It takes effect at once; what it means for URLs that
    /// wait is done in the following turns.
    pub fn command(&mut self, now: Now, order: &Order) -> Reply {
        self.turn.set_time(now);
        if let Some(why) = self.objection(order) {
            return Reply::Refused(why);
        }
        let logged = self.visits.orders.log_mut().add(order, now.unix, self.storage.disk());
        let number = match logged {
            Ok(number) => number,
            Err(error) => {
                let text = error.to_string();
                self.on_disk_error(error);
                return Reply::Refused(text);
            }
        };
        self.counts.commands = number;
        self.visits.orders.apply(order, now.at);
        let text = self.obey(now, &order.command);
        log::info!("command {number} of {}: {text}", order.by);
        Reply::Done { number, text }
    }

    /// Returns the number of the last command whose line in `commands.log` is durable.
    pub fn durable_commands(&self) -> u64 {
        self.visits.orders.log().durable()
    }

    /// Returns why a command can't be carried out, or `None` if it can.
    fn objection(&self, order: &Order) -> Option<String> {
        let keeps_state = self.checkpoints.is_some();
        match &order.command {
            _ if self.is_stopping() && order.command != Command::Stop => {
                Some("the crawl is ending; start it again first".to_owned())
            }
            Command::Checkpoint | Command::Revive if !keeps_state => {
                Some("the crawl keeps no state; set state.keep to true".to_owned())
            }
            Command::Pause { target: Target::Prefix(_) } if !keeps_state => Some(
                "the URLs of a paused prefix are kept on disk; set state.keep to true, or pause \
                 the host"
                    .to_owned(),
            ),
            Command::AddSeeds { seeds } if seeds.len() > SEEDS_MAX => {
                Some(format!("a command adds at most {SEEDS_MAX} seeds; send several"))
            }
            Command::AddSeeds { seeds } => {
                let bad = seeds.iter().find_map(|text| Some((text, Url::parse(text).err()?)));
                bad.map(|(text, why)| {
                    format!(
                        "\"{}\" is no seed: {}; none was added",
                        text.escape_debug(),
                        why.name()
                    )
                })
            }
            _ => self.visits.orders.objection(order),
        }
    }

    /// Does what a command demands of the other parts of the engine. Returns what happened, for
    /// people.
    fn obey(&mut self, now: Now, command: &Command) -> String {
        match command {
            Command::Pause { target } => format!("{target} is paused"),
            Command::Resume { target } => {
                if *target == Target::All {
                    self.visits.resume_clock(now.at);
                }
                self.reconsider_paused();
                format!("{target} is resumed")
            }
            Command::Block { target } => {
                // Paused URLs may be blocked now.
                self.reconsider_paused();
                format!("{target} is blocked: its URLs get the outcome \"blocked\" in their turn")
            }
            Command::Unblock { target } => format!("{target} is no longer blocked"),
            Command::Slow { host, delay_ms: 0 } => format!("{host} is no longer slowed"),
            Command::Slow { host, delay_ms } => {
                format!("{host} rests at least {delay_ms} ms after each request")
            }
            Command::AddSeeds { seeds } => {
                self.add_seeds(seeds);
                format!("{} seeds: those that are new to the crawl are queued", seeds.len())
            }
            Command::Revive => {
                let servers = self.counts.servers_given_up();
                self.revive();
                format!("{servers} servers that were given up are tried again")
            }
            Command::Reload { changed } => format!("reloaded: {}", changed.join(", ")),
            Command::Checkpoint => {
                self.want_checkpoint_soon();
                "a checkpoint is being written".to_owned()
            }
            Command::Rotate => {
                let rotated = self.archive.store_mut().rotate(self.storage.disk());
                if self.checked(rotated).is_none() {
                    return "the files could not be written: nothing was rotated".to_owned();
                }
                self.sync_store();
                self.want_checkpoint_soon();
                "crawl.log begins a new file, and so does the archive with its next page".to_owned()
            }
            Command::Stop => {
                self.begin_stop(StopReason::Interrupted);
                "the crawl ends; it can be resumed".to_owned()
            }
        }
    }

    /// Queues paused URLs again, so that each of them is examined under the present orders and
    /// scope.
    pub(in crate::engine) fn reconsider_paused(&mut self) {
        if self.counts.shelved > 0 {
            self.backlog.shelf_mut().begin();
        }
    }

    /// Offers URLs as seeds, and extends the scope to them. They are known to be valid. Those that
    /// are new are queued within the budgets of the following turns.
    fn add_seeds(&mut self, seeds: &[String]) {
        for url in seeds.iter().filter_map(|text| Url::parse(text).ok()) {
            self.admission.add_seed(url.view());
            self.offer_seed(url.view());
            self.visits.orders.seeds.insert(url);
        }
    }

    /// Does again at the start of a run what commands of earlier runs demand, as far as the
    /// checkpoint doesn't include it.
    pub(in crate::engine) fn obey_again(&mut self, now: Now) {
        let included = self.counts.commands;
        self.counts.commands = self.visits.orders.log.number();
        // The scope knows these seeds already.
        for url in self.visits.orders.seeds.clone() {
            self.seed(now, &Seed { url, line: 0 });
        }
        for Logged { number, order, .. } in self.visits.orders.take_restored() {
            if order.command == Command::Revive && number > included {
                self.revive();
            }
        }
        // Orders or the scope may have changed since these URLs were paused.
        self.reconsider_paused();
    }
}
