//! `[sim]`: the simulated world beside the web in it. As all sections, plain values.

use super::units::{Cost, Decimal};
use std::time::Duration;

/// `[sim]`: the crawler's line, what comes in the way, and a model of the core that crawls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sim {
    /// Decides every draw that the web doesn't.
    pub seed: u64,
    /// Bytes per second of the crawler's own line; `None` is unlimited.
    pub gateway: Option<u64>,
    /// Bytes a server sends before it waits for the first acknowledgement.
    pub window_first: u32,
    /// Most bytes under way on one connection.
    pub window_max: u32,
    /// How long a job takes on the side thread.
    pub job_time: Duration,
    /// A crawl that needs more virtual time than this will never end.
    pub time_max: Duration,
    /// Share of windows of which a segment is lost.
    pub loss_share: Decimal,
    /// Share of replies that end in a reset.
    pub reset_share: Decimal,
    /// Share of connections that are refused.
    pub refusal_share: Decimal,
    /// Share of look-ups that fail.
    pub dns_failure_share: Decimal,
    /// Share of replies that never come.
    pub silence_share: Decimal,
    /// From then on nothing comes in the way; `None`: never.
    pub faults_until: Option<Duration>,
    /// What the core takes for each turn of the loop.
    pub core_turn: Cost,
    /// For each connection that is open in a turn.
    pub core_watch: Cost,
    /// For each connection asked for.
    pub core_connect: Cost,
    /// For each TLS handshake.
    pub core_handshake: Cost,
    /// For each reply, its request included.
    pub core_reply: Cost,
    /// For each link found.
    pub core_link: Cost,
    /// For each byte received.
    pub core_byte: Cost,
    /// For each byte of text decoded, on top.
    pub core_text_byte: Cost,
}

impl Default for Sim {
    fn default() -> Self {
        let (none, free) = (Decimal::from_thousandths(0), Cost::default());
        Self {
            seed: 1,
            gateway: None,
            window_first: 14_600,
            window_max: 1 << 20,
            job_time: Duration::from_millis(10),
            time_max: Duration::from_secs(30 * 24 * 3_600),
            loss_share: none,
            reset_share: none,
            refusal_share: none,
            dns_failure_share: none,
            silence_share: none,
            faults_until: None,
            core_turn: free,
            core_watch: free,
            core_connect: free,
            core_handshake: free,
            core_reply: free,
            core_link: free,
            core_byte: free,
            core_text_byte: free,
        }
    }
}
