//! The laws `order` and `wait`: which ready server goes first.
//!
//! The judge sees servers at work, not servers that wait, so the frontier's own audits check both:
//! they read the state of all servers. `order`: the server that is taken as the best is the best,
//! by the policies' formulas. `wait`: of a share of the visits, each takes the oldest server of a
//! list, and each list gets its turns, which bounds the wait of every server in the ready queue.
//! The share is the one that the crawl has promised ([`Laws`](super::Laws)), not its setting.

use super::Judge;
use crate::engine::Engine;
use crate::ground::time::Instant;

impl Judge {
    /// Checks the ready queue. Reads every waiting URL.
    pub(super) fn judge_order(&mut self, engine: &Engine, at: Instant) {
        let frontier = engine.frontier();
        if let Err(how) = frontier.audit() {
            self.report("order", at, how);
        }
        if let Err(how) = frontier.audit_waits(self.laws.random_share_milli) {
            self.report("wait", at, how);
        }
    }
}
