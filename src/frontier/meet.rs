//! A server that was not known: its name, and the groups that it shares.

use super::group::GroupId;
use super::names::Met;
use super::server::{Server, ServerId};
use super::{Frontier, GroupKind, restore};
use crate::url::{UrlRef, domain};

impl Frontier {
    /// A server that was not known, with its name and its groups.
    pub(super) fn new_server(&mut self, url: UrlRef<'_>, id: ServerId, met: Met) -> Server {
        let name = self.names.add(url, id, met != Met::New);
        let mut server = Server::new(name, self.settings.schedule.policy);
        if let Met::Sibling(first) = met {
            server.groups[0] = Some(self.shared(GroupKind::Host, first));
        }
        if self.workbench.groups.hold(GroupKind::Domain) {
            match self.first_of_domain(url.host(), id) {
                Some(first) => server.groups[1] = Some(self.shared(GroupKind::Domain, first)),
                None if self.workbench.groups.hold_one(GroupKind::Domain) => {
                    self.workbench.group_of(GroupKind::Domain, &mut server);
                }
                None => {}
            }
        }
        server.retarget(&self.settings);
        server
    }

    /// The group that a known server shares with a new one.
    fn shared(&mut self, kind: GroupKind, first: ServerId) -> GroupId {
        let first = restore::found(first, &mut self.servers, self.restoring.as_deref_mut());
        self.workbench.group_of(kind, first.expect("it is known"))
    }

    /// The first server of the registrable domain of a host, unless that is `id`.
    fn first_of_domain(&mut self, host: &str, id: ServerId) -> Option<ServerId> {
        let name = domain::registrable(host);
        let (names, servers, restoring) = (&self.names, &self.servers, &self.restoring);
        self.workbench.groups.first_of(name, id, |other| {
            let early = || restoring.as_ref().and_then(|some| some.early(other));
            let other = servers.get(other.index()).or_else(early).expect("it is known");
            domain::registrable(names.get(other.name).host()) == name
        })
    }
}
