//! The webs that `[web]` starts from, as values of its keys. What they are and why is said where
//! webs are made ([`crate::study::web::Settings`]); a test holds the two equal.

use super::{Allowance, Preset, Web};
use crate::conf::units::Decimal;
use std::time::Duration;

impl Web {
    /// The web of a preset.
    pub fn of(preset: Preset) -> Self {
        match preset {
            Preset::Plain => Self::plain(),
            Preset::Quickstart => Self::quickstart(),
            Preset::Bench => Self { preset, seeds: 64, pages: 64 * 300, ..Self::plain() },
            Preset::Hostile => Self::hostile(),
            Preset::Of2003 => Self::of_2003(),
            Preset::Of2025 => Self::of_2025(),
        }
    }

    fn plain() -> Self {
        let none = decimal(0);
        Self {
            preset: Preset::Plain,
            graph: None,
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
            locality: decimal(750),
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
            coded_ratio: decimal(5_000),
            requests_per_connection: Vec::new(),
            silent_close_share: none,
            muddled_share: none,
            idle_time: Duration::from_secs(15),
            http10_share: none,
            tls_share: none,
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
        }
    }

    fn quickstart() -> Self {
        Self {
            preset: Preset::Quickstart,
            hosts: 60,
            seeds: 3,
            pages: 3_000,
            pages_sigma: decimal(800),
            links_per_page: 18,
            links_sigma: decimal(500),
            odd_links_share: decimal(200),
            noise_share: decimal(200),
            page_bytes: 9_000,
            page_bytes_sigma: decimal(900),
            not_found_share: decimal(30),
            server_error_share: decimal(10),
            redirect_share: decimal(50),
            duplicate_share: decimal(40),
            binary_share: decimal(30),
            think_time: Duration::from_millis(5),
            think_time_sigma: decimal(1_000),
            think_jitter: decimal(400),
            requests_per_connection: vec![allow(1, 240), allow(10, 100), allow(100, 460)],
            silent_close_share: decimal(200),
            http10_share: decimal(100),
            tls_share: decimal(150),
            chunked_share: decimal(300),
            gzip_share: decimal(400),
            brotli_share: decimal(150),
            zstd_share: decimal(100),
            deflate_share: decimal(50),
            robots_allow_share: decimal(300),
            robots_part_share: decimal(250),
            robots_delay_share: decimal(30),
            robots_deny_share: decimal(40),
            crawl_delay: Duration::from_secs(1),
            hostile: vec!["quick".to_owned()],
            ..Self::plain()
        }
    }

    fn hostile() -> Self {
        Self {
            preset: Preset::Hostile,
            hosts: 10,
            pages: 200,
            page_bytes: 4_000,
            page_bytes_sigma: decimal(500),
            odd_links_share: decimal(500),
            noise_share: decimal(500),
            hostile: vec!["all".to_owned()],
            ..Self::plain()
        }
    }

    fn of_2003() -> Self {
        Self {
            preset: Preset::Of2003,
            hosts: 500,
            pages: 30_000,
            pages_sigma: decimal(1_200),
            host_fanout: 20,
            links_per_page: 20,
            links_sigma: decimal(600),
            locality: decimal(800),
            link_skew: 4,
            page_bytes: 6_000,
            page_bytes_sigma: decimal(1_000),
            think_time: Duration::from_millis(400),
            think_time_sigma: decimal(1_100),
            think_jitter: decimal(300),
            round_trip: Duration::from_millis(80),
            round_trip_sigma: decimal(200),
            round_trip_jitter: decimal(100),
            accept_time: Duration::from_millis(800),
            accept_time_sigma: decimal(1_000),
            name_time: Duration::from_millis(60),
            name_time_sigma: decimal(800),
            rate: Some(400_000),
            rate_sigma: decimal(800),
            requests_per_connection: vec![allow(100, 868), allow(10, 66), allow(50, 66)],
            http10_share: decimal(240),
            ..Self::plain()
        }
    }

    fn of_2025() -> Self {
        Self {
            preset: Preset::Of2025,
            hosts: 2_000,
            pages: 60_000,
            pages_sigma: decimal(1_500),
            links_per_page: 60,
            links_sigma: decimal(700),
            locality: decimal(800),
            link_skew: 4,
            page_bytes: 138_000,
            page_bytes_sigma: decimal(1_060),
            not_found_share: decimal(20),
            redirect_share: decimal(30),
            think_time: Duration::from_millis(120),
            think_time_sigma: decimal(1_000),
            think_jitter: decimal(400),
            round_trip: Duration::from_millis(60),
            round_trip_sigma: decimal(800),
            name_time: Duration::from_millis(30),
            name_time_sigma: decimal(800),
            rate: Some(5_000_000),
            rate_sigma: decimal(1_000),
            requests_per_connection: vec![allow(100, 250), allow(1_000, 600)],
            tls_share: decimal(950),
            gzip_share: decimal(500),
            brotli_share: decimal(400),
            ..Self::plain()
        }
    }
}

const fn decimal(thousandths: u32) -> Decimal {
    Decimal::from_thousandths(thousandths)
}

const fn allow(requests: u32, thousandths: u32) -> Allowance {
    Allowance { requests, share: decimal(thousandths) }
}
