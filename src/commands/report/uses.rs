//! For how many pages of a host something was said of their use, and what.

use crate::commands::crawl_log::Line;
use crate::consent::Purpose;

/// Numbers of pages.
#[derive(Clone, Debug, Default)]
pub(super) struct Uses {
    /// Those for which anything was said.
    pub(super) stated: u64,
    /// For each purpose, those whose use is reserved.
    pub(super) reserved: [u32; Purpose::ALL.len()],
    /// For each purpose, those that may be used.
    pub(super) allowed: [u32; Purpose::ALL.len()],
}

impl Uses {
    /// Adds a line of the log.
    pub(super) fn take(&mut self, line: &Line<'_>) {
        let more = &line.more;
        let words = [(&mut self.reserved, &more.reserved), (&mut self.allowed, &more.allowed)];
        for (counts, words) in words {
            let names = words.as_deref().unwrap_or_default();
            for (count, purpose) in counts.iter_mut().zip(Purpose::ALL) {
                *count += u32::from(names.split(' ').any(|name| name == purpose.name()));
            }
        }
        let is_said = !more.consent.is_empty() || line.has("consentCut");
        self.stated += u64::from(is_said);
    }

    /// Adds the numbers of another row.
    pub(super) fn merge(&mut self, other: &Self) {
        self.stated += other.stated;
        let all = self.reserved.iter_mut().chain(&mut self.allowed);
        all.zip(other.reserved.iter().chain(&other.allowed)).for_each(|(sum, more)| *sum += more);
    }
}
