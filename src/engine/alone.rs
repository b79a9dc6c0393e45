//! In place of `engine::cluster` in a crawler that is built without the feature `cluster`: no crawl
//! is shared.

use super::Engine;
use super::admission::Discovery;
use super::node::Settings;
use crate::frontier::{ServerId, scheduler};
use crate::ground::time::Instant;
use crate::url::{Fingerprint, UrlRef};

/// A node of a cluster: there is none.
#[derive(Debug)]
pub(super) enum Cluster {}

/// The masks of a shared crawl: there are none.
#[derive(Debug)]
pub(super) enum Masks {}

impl Masks {
    pub(super) fn of(&self, _host: &str) -> u64 {
        match *self {}
    }
}

impl Cluster {
    pub(super) fn new(own: &Settings, _: &scheduler::Settings, _crawl: u64, _first: u64) -> Self {
        match *own {}
    }

    pub(super) fn masks(&self) -> Masks {
        match *self {}
    }

    pub(super) fn share(
        &mut self,
        _: (Fingerprint, Discovery),
        _url: UrlRef<'_>,
        _via: &str,
        _now: Instant,
    ) -> bool {
        match *self {}
    }

    pub(super) fn note_new(
        &mut self,
        _: (Fingerprint, Discovery),
        _url: UrlRef<'_>,
        _via: &str,
        _now: Instant,
    ) {
        match *self {}
    }

    pub(super) fn checkpoint_begins(&mut self) {
        match *self {}
    }

    pub(super) fn checkpoint_is_durable(&mut self, _now: Instant) {
        match *self {}
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        match *self {}
    }
}

impl Engine {
    pub(super) fn expire_cluster(&mut self) {}

    pub(super) fn work_cluster(&mut self) {}

    pub(super) fn set_pace(&mut self, _pace: &scheduler::Settings) {}

    pub(super) fn is_elsewhere(&self, _id: ServerId) -> Option<Instant> {
        None
    }

    pub(super) fn is_stale(&mut self, _id: ServerId) -> bool {
        false
    }

    pub(super) fn is_foreign(&self, _url: UrlRef<'_>) -> bool {
        false
    }

    pub(super) fn share_seed(&mut self, _key: Fingerprint, _url: UrlRef<'_>) {}

    pub(super) fn note_settled(&mut self, _url: &str) {}
}
