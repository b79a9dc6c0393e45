//! Verifies the archive before a crawl resumes, and reports what is damaged or missing.
//!
//! The store finds and repairs (`store::repair`). This file parses reply heads for it, logs the
//! findings, and counts what is lost.

use crate::engine::settings::Settings;
use crate::engine::{Engine, Error};
use crate::ground::disk::Disk;
use crate::http::response::{Event, Framing, Limits, Reader};
use crate::store::job::OPEN;
use crate::store::{self, Finding, HeadFacts, Position};
use std::collections::BTreeMap;

/// The name under which the counters of the crawl list captures that the archive has lost.
const ARCHIVE_LOST: &str = "archive-lost";

/// The maximum number of lost captures that are logged one by one; the others are only counted.
const NAMED_MAX: u64 = 10;
/// The number of WARC files above which the progress of the verification is logged.
const QUICK_FILES: usize = 10;

/// The findings of a verification, by the name of the WARC file.
#[derive(Debug, Default)]
pub(in crate::engine) struct Checked {
    /// The damaged or missing files, each with the number of captures lost since the last
    /// verification.
    damaged: BTreeMap<String, u64>,
    /// The undamaged files, each with the number of lines that were missing in its index and were
    /// restored.
    sound: Vec<(String, u64)>,
    /// The number of lost captures that were logged one by one so far.
    named: u64,
}

/// Verifies the archive. If the state is rebuilt from it, all files are checked; else the check of
/// older WARC files is limited by `store.verify_bytes_max`.
pub(in crate::engine) fn verify(
    settings: &Settings,
    durable: Position,
    disk: &mut dyn Disk,
) -> Result<Checked, Error> {
    let mut wanted = settings.store.clone();
    if durable == Position::END {
        wanted.verify_bytes_max = u64::MAX;
    }
    let mut checked = Checked::default();
    let mut take = |finding: Finding<'_>| checked.take(finding);
    let repaired = store::repair(&wanted, durable, disk, read_head, &mut take);
    let repaired = repaired.map_err(Error::Store)?;
    if repaired.unchecked_bytes > 0 {
        log::info!(
            "{} MB of older WARC files were not checked (store.verify_bytes_max)",
            repaired.unchecked_bytes / 1_000_000
        );
    }
    Ok(checked)
}

impl Engine {
    /// Adds the lost captures that a verification found to the counters, except if the state is
    /// rebuilt: then they are fetched again.
    pub(in crate::engine) fn count_lost(&mut self, checked: Checked, rebuilt: bool) {
        let known = &mut self.counts.archive_damaged;
        let before = known.clone();
        for (file, found) in &checked.sound {
            // The file is undamaged, and as many index lines as captures were lost could be
            // restored from it: it was replaced by a copy, unless exactly whole records were cut
            // out of it.
            if known.get(file).is_some_and(|lost| lost <= found) {
                known.remove(file);
            }
        }
        for (file, lost) in checked.damaged {
            // The file remains damaged, but a capture that its index names is found to be lost only
            // once.
            let least = u64::from(!known.contains_key(&file));
            *known.entry(file).or_default() += if rebuilt { 0 } else { lost.max(least) };
        }
        let lost: u64 = known.values().sum();
        let is_new = *known != before;
        if lost > 0 {
            self.counts.cut.insert(ARCHIVE_LOST.into(), lost);
            log::error!(
                "{lost} captures or more of the archive are lost: restore its files from a copy, \
                 or let `sted crawl --rebuild` fetch them again"
            );
        } else {
            self.counts.cut.remove(ARCHIVE_LOST);
        }
        if is_new {
            // The index no longer has these lines, so the count must be saved.
            self.want_checkpoint();
        }
    }
}

impl Checked {
    fn take(&mut self, finding: Finding<'_>) {
        match finding {
            Finding::Damaged(warc, ..) => self.lost(warc, 0),
            Finding::Lost(warc, ..) => self.lost(warc, 1),
            Finding::Missing(warc, captures) => self.lost(warc, captures),
            Finding::Sound(warc, found) => self.sound.push((closed(warc), found)),
            Finding::Reads(..) | Finding::Indexed(..) | Finding::Gone(_) | Finding::NoRoom(_) => {}
        }
        if let Finding::Lost(..) = finding {
            self.named += 1;
            if self.named > NAMED_MAX {
                return;
            }
        }
        report(finding);
    }

    fn lost(&mut self, warc: &str, captures: u64) {
        *self.damaged.entry(closed(warc)).or_default() += captures;
    }
}

/// Returns the final name of a WARC file.
fn closed(warc: &str) -> String {
    warc.strip_suffix(OPEN).unwrap_or(warc).to_owned()
}

fn report(finding: Finding<'_>) {
    match finding {
        Finding::Reads(warc, number, of) if of > QUICK_FILES => {
            log::info!("checking {warc} ({number} of {of} files)");
        }
        Finding::Reads(warc, ..) => log::debug!("checking {warc}"),
        Finding::Indexed(warc, lines) => {
            log::warn!("{warc}: {lines} lines of its index were missing or damaged; now rebuilt");
        }
        Finding::Damaged(warc, from, to) => {
            log::error!("{warc} is damaged at byte {from}: no whole record up to byte {to}");
        }
        Finding::Lost(warc, offset, url) => {
            log::error!("{url}: its record is lost, at byte {offset} of {warc}");
        }
        Finding::Sound(warc, _) => log::debug!("{warc} is whole"),
        Finding::Gone(index) => log::warn!(
            "the WARC file of {index} is missing: moved away or lost; what it holds counts as \
             fetched"
        ),
        Finding::Missing(warc, 0) => {
            log::error!("{warc} is missing, and so is its index: the crawl was still writing it");
        }
        Finding::Missing(warc, captures) => log::error!(
            "{warc} is missing, with {captures} captures: the crawl was still writing it, so it \
             can't have been moved away"
        ),
        Finding::NoRoom(warc) => log::error!("the disk is full: no index for {warc} for now"),
    }
}

/// Parses the head of an archived reply for its line in the index. The result is the same as when
/// the reply was received.
fn read_head(reply: &[u8]) -> Option<HeadFacts> {
    // Today's limits may be smaller than those when the head was received.
    let (head_bytes_max, fields_max) = (reply.len().max(1), Limits::FIELDS_MAX);
    let limits = Limits { head_bytes_max, fields_max, ..Limits::default() };
    let mut reader = Reader::new(limits);
    reader.begin();
    let mut rest = reply;
    loop {
        let step = reader.read(rest, true).ok()?;
        let used = &rest[..step.used];
        rest = &rest[step.used..];
        match step.event {
            Event::Head => {
                let head = reader.head();
                let text = |name: &str| {
                    let value = head.field(used, name)?;
                    std::str::from_utf8(value).ok().map(str::to_owned)
                };
                return Some(HeadFacts {
                    status: head.status,
                    mime: text("content-type").unwrap_or_default(),
                    redirect: text("location"),
                    chunked: head.framing == Framing::Chunked,
                });
            }
            Event::Interim | Event::Blank => {}
            Event::More | Event::Payload(_) | Event::End(_) => return None,
        }
    }
}
