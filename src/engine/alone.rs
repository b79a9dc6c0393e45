//! In place of `engine::cluster` in a crawler that is built without the feature `cluster`: no crawl
//! is shared.

use super::Engine;
use super::admission::Discovery;
use super::backlog::Item;
use super::node::Settings;
use super::outcome::Outcome;
use super::status::Sharing;
use super::turn::Turn;
use crate::frontier::{ServerId, scheduler};
use crate::ground::disk::{self, Disk};
use crate::ground::frame::{self, Flaw, Mark};
use crate::ground::time::Instant;
use crate::url::{Fingerprint, UrlRef};

/// The folder of a node's outbox.
pub(super) const OUTBOX_FOLDER: &str = "state/outbox";

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
    pub(super) fn new(
        own: &Settings,
        _: &scheduler::Settings,
        _crawl: u64,
        _counts_domains: bool,
    ) -> Self {
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

    pub(super) fn counts_domains(&self) -> bool {
        match *self {}
    }

    pub(super) fn share_facts<'a>(
        &mut self,
        _page: UrlRef<'_>,
        _start: usize,
        _links: &mut dyn Iterator<Item = UrlRef<'a>>,
        _: &mut Turn,
    ) -> usize {
        match *self {}
    }

    pub(super) fn share_redirect(
        &mut self,
        _page: UrlRef<'_>,
        _target: UrlRef<'_>,
        _now: Instant,
    ) -> usize {
        match *self {}
    }

    pub(super) fn write(&mut self, _all: bool, _: &mut dyn Disk) -> Result<(), disk::Error> {
        match *self {}
    }

    pub(super) fn mark(&mut self, _: &mut dyn Disk) -> Result<Mark, disk::Error> {
        match *self {}
    }

    pub(super) fn encode(&self, _out: &mut Vec<u8>) {
        match *self {}
    }

    pub(super) fn checkpoint_is_durable(&mut self, _now: Instant) -> Vec<String> {
        match *self {}
    }

    pub(super) fn restore_files(
        &mut self,
        _files: &[(String, u64)],
        _: &mut dyn Disk,
    ) -> Result<(), frame::Error> {
        match *self {}
    }

    pub(super) fn restore_outbox(&mut self, _bytes: &[u8]) -> Result<(), Flaw> {
        match *self {}
    }

    pub(super) fn decode(&mut self, _bytes: &[u8], _: &mut Masks) -> Result<(), Flaw> {
        match *self {}
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        match *self {}
    }
}

impl Engine {
    pub(super) fn expire_cluster(&mut self) {}

    pub(super) fn work_cluster(&mut self) {}

    pub(super) fn leave_cluster(&mut self) {}

    pub(super) fn has_left_cluster(&self) -> bool {
        true
    }

    pub(super) fn can_leave_cluster(&self) -> bool {
        false
    }

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

    pub(super) fn is_foreign_server(&self, _id: ServerId) -> bool {
        false
    }

    pub(super) fn is_nothing_left(&mut self, is_idle: bool) -> bool {
        is_idle
    }

    pub(super) fn fetched_by_others(&self) -> (u64, u64) {
        (0, 0)
    }

    pub(super) fn urls_elsewhere(&self) -> Option<u64> {
        None
    }

    pub(super) fn sharing(&self) -> Option<Sharing> {
        None
    }

    pub(super) fn stamp(&self) -> Option<u64> {
        None
    }

    pub(super) fn share_seed(&mut self, _key: Fingerprint, _url: UrlRef<'_>) {}

    pub(super) fn note_settled(&mut self, _url: &str) {}

    pub(super) fn note_wait(&mut self, _id: ServerId, _due: Instant) {}

    pub(super) fn note_retired(&mut self, _id: ServerId, _outcome: Outcome) {}

    pub(super) fn note_tries(&mut self, _id: ServerId, _item: &Item) {}

    pub(super) fn is_given_up_before(&mut self, _id: ServerId) -> bool {
        false
    }
}
