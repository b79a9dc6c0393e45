//! The webs that `[web]` starts from, as values of its keys.
//!
//! The settings of the study's web have the source of each value; a test of the study compares the
//! two.

use super::{Allowance, Preset, Web};
use crate::conf::units::thousandths;
use std::time::Duration;

impl Web {
    /// Returns the web of a preset.
    pub fn of(preset: Preset) -> Self {
        match preset {
            Preset::Plain => Self::plain(),
            Preset::Quickstart => Self::default(),
            Preset::Bench => Self { preset, seeds: 64, pages: 64 * 300, ..Self::plain() },
            Preset::Hostile => Self::hostile(),
            Preset::Of2003 => Self::of_2003(),
            Preset::Of2025 => Self::of_2025(),
        }
    }

    fn plain() -> Self {
        let none = thousandths(0);
        Self {
            preset: Preset::Plain,
            graph: None,
            hosts_file: None,
            seed: 1,
            hosts: 64,
            seeds: 1,
            pages: 6_400,
            pages_sigma: none,
            hosts_per_domain: 1,
            hosts_per_address: 1,
            fanout: 8,
            host_fanout: 8,
            links_per_page: 25,
            links_sigma: none,
            locality: thousandths(750),
            link_skew: 2,
            easy: false,
            odd_links_share: none,
            noise_share: none,
            page_bytes: 16_700,
            page_bytes_sigma: none,
            not_found_share: none,
            server_error_share: none,
            redirect_share: none,
            duplicate_share: none,
            binary_share: none,
            think_time: Duration::ZERO,
            think_time_sigma: none,
            think_jitter: none,
            round_trip: Duration::ZERO,
            round_trip_sigma: none,
            round_trip_jitter: none,
            accept_time: Duration::ZERO,
            accept_time_sigma: none,
            name_time: Duration::ZERO,
            name_time_sigma: none,
            rate: None,
            rate_sigma: none,
            coded_ratio: thousandths(5_000),
            requests_per_connection: Vec::new(),
            silent_close_share: none,
            muddled_share: none,
            idle_time: Duration::from_secs(15),
            http10_share: none,
            tls_share: none,
            resume_share: thousandths(1_000),
            chunked_share: none,
            gzip_share: none,
            brotli_share: none,
            zstd_share: none,
            deflate_share: none,
            robots_allow_share: none,
            robots_part_share: none,
            robots_delay_share: none,
            robots_deny_share: none,
            crawl_delay: Duration::from_secs(2),
            hostile: Vec::new(),
            ..Self::default()
        }
    }

    fn hostile() -> Self {
        Self {
            preset: Preset::Hostile,
            hosts: 10,
            pages: 200,
            page_bytes: 4_000,
            page_bytes_sigma: thousandths(500),
            odd_links_share: thousandths(500),
            noise_share: thousandths(500),
            hostile: vec!["all".to_owned()],
            ..Self::plain()
        }
    }

    fn of_2003() -> Self {
        Self {
            preset: Preset::Of2003,
            hosts: 500,
            pages: 30_000,
            pages_sigma: thousandths(1_200),
            host_fanout: 20,
            links_per_page: 20,
            links_sigma: thousandths(600),
            locality: thousandths(800),
            link_skew: 4,
            page_bytes: 6_000,
            page_bytes_sigma: thousandths(1_000),
            think_time: Duration::from_millis(400),
            think_time_sigma: thousandths(1_100),
            think_jitter: thousandths(300),
            round_trip: Duration::from_millis(80),
            round_trip_sigma: thousandths(200),
            round_trip_jitter: thousandths(100),
            accept_time: Duration::from_millis(800),
            accept_time_sigma: thousandths(1_000),
            name_time: Duration::from_millis(60),
            name_time_sigma: thousandths(800),
            rate: Some(400_000),
            rate_sigma: thousandths(800),
            requests_per_connection: allow(&[(100, 868), (10, 66), (50, 66)]),
            http10_share: thousandths(240),
            ..Self::plain()
        }
    }

    fn of_2025() -> Self {
        Self {
            preset: Preset::Of2025,
            hosts: 2_000,
            pages: 60_000,
            pages_sigma: thousandths(1_500),
            links_per_page: 60,
            links_sigma: thousandths(700),
            locality: thousandths(800),
            link_skew: 4,
            page_bytes: 138_000,
            page_bytes_sigma: thousandths(1_060),
            not_found_share: thousandths(20),
            redirect_share: thousandths(30),
            think_time: Duration::from_millis(120),
            think_time_sigma: thousandths(1_000),
            think_jitter: thousandths(400),
            round_trip: Duration::from_millis(60),
            round_trip_sigma: thousandths(800),
            name_time: Duration::from_millis(30),
            name_time_sigma: thousandths(800),
            rate: Some(5_000_000),
            rate_sigma: thousandths(1_000),
            requests_per_connection: allow(&[(100, 250), (1_000, 600)]),
            tls_share: thousandths(950),
            gzip_share: thousandths(500),
            brotli_share: thousandths(400),
            ..Self::plain()
        }
    }
}

/// Creates allowances of requests, each with its share of hosts in thousandths.
pub(super) fn allow(shares: &[(u32, u32)]) -> Vec<Allowance> {
    let allowance = |&(requests, share)| Allowance { requests, share: thousandths(share) };
    shares.iter().map(allowance).collect()
}
