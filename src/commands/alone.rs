//! In place of `commands::cluster` in a program that is built without the feature `cluster`: a
//! shared crawl is refused.

use super::{Exit, Failure};
use crate::conf::Conf;
use crate::engine::settings::Settings;
use crate::os;

pub(super) mod check {
    //! What `sted check` says of a shared crawl: nothing.

    /// Returns no remarks.
    pub(in crate::commands) fn remarks(_: &crate::conf::Conf) -> String {
        String::new()
    }
}

/// A node that has agreed with its crawl: there is none.
pub(super) enum Joined {}

impl Joined {
    pub(super) fn key(&self) -> [u8; 16] {
        match *self {}
    }

    pub(super) fn apply(self, _: &mut Settings, _: &mut os::Settings) {
        match self {}
    }
}

/// Refuses a configuration of a shared crawl.
///
/// # Errors
/// The configuration is one.
pub(super) fn join(conf: &Conf, _: [u8; 16], _: bool) -> Result<Option<Joined>, Failure> {
    match &conf.cluster.name {
        None => Ok(None),
        Some(_) => Err(Failure::new(
            Exit::Usage,
            "cluster.name: this program was built without the feature `cluster`",
        )),
    }
}
