//! Changes settings while the crawl runs: those whose keys are marked as live in the configuration.
//!
//! Laws: after a reload the engine works with the settings of a crawl that was opened with the new
//! configuration, as far as they are live; all others are as before. What is in progress (a visit,
//! a connection, a rest) ends by the old settings.
//! Cost: some comparisons, and one check of the scope for each URL that is queued now, when it
//! leaves its queue.

use super::Engine;
use super::command::{Command, Order, Reply};
use super::settings::{Connections, Robots, Settings};
use crate::ground::time::Now;
use crate::links;
use crate::url::scope::Scope;

impl Settings {
    /// Takes over from `new` all settings that may change while a crawl runs.
    pub fn adopt(&mut self, new: &Self) {
        self.limits = new.limits;
        let open_max = self.connections.open_max;
        self.connections = Connections { open_max, ..new.connections.clone() };
        self.retries = new.retries;
        self.robots = Robots { obey: self.robots.obey, ..new.robots };
        self.scope = new.scope.clone();
        let product = std::mem::take(&mut self.links.product);
        self.links = links::Settings { product, ..new.links.clone() };
        self.state.period = new.state.period;
        self.frontier.scheduler.adopt(&new.frontier.scheduler);
    }
}

/// The new settings of a running crawl.
#[derive(Clone, Debug)]
pub struct Reload {
    /// All settings; those that are live are adopted.
    pub settings: Settings,
    /// The scope, compiled from the settings and the seeds of the configuration.
    pub scope: Scope,
    /// The keys that have changed, each with its new value.
    pub changed: Vec<String>,
}

impl Engine {
    /// Changes the live settings and the scope. `by` is the operator who asks for it.
    pub fn reload(&mut self, now: Now, by: &str, reload: Reload) -> Reply {
        let Reload { settings: new, scope, changed } = reload;
        let (old, politeness) = (&self.settings.frontier.scheduler, &new.frontier.scheduler);
        if let Some(key) = old.fixed_difference(politeness) {
            return Reply::Refused(format!(
                "politeness.{key} can't change to or from 0 while the crawl runs; stop the crawl \
                 and start it again"
            ));
        }
        let order = Order::new(by, Command::Reload { changed });
        let reply = self.command(now, &order);
        if matches!(reply, Reply::Refused(_)) {
            return reply;
        }
        self.settings.adopt(&new);
        let settings = &self.settings;
        self.backlog.set_politeness(&settings.frontier.scheduler);
        let pace = settings.frontier.scheduler.clone();
        self.wire.set_timeouts(&settings.connections);
        self.visits.set_retries(&settings.retries);
        self.shutdown.set_limits(settings, self.turn.elapsed(), now);
        if let Some(checkpoints) = &mut self.checkpoints {
            checkpoints.set_period(settings.state.period, now.at);
        }
        self.archive.announce_settings(self.turn.steady(self.turn.at()));
        self.admission.quotas_mut().set_limits(&self.settings);
        self.set_pace(&pace);
        self.admission.set_scope(scope, self.visits.orders().seeds());
        self.reconsider_paused();
        reply
    }
}
