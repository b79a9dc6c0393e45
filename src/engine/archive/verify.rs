//! Checks the archive before a crawl goes on with it, and reports what is damaged or missing.
//!
//! The store finds and repairs (`store::repair`); this reads heads for it, says in the log what was
//! found, and counts what is lost.

use crate::engine::settings::Settings;
use crate::engine::{Engine, Error};
use crate::ground::disk::Disk;
use crate::http::response::{Event, Framing, Limits, Reader};
use crate::store::job::OPEN;
use crate::store::{self, Finding, HeadFacts, Position};
use std::collections::BTreeMap;

/// By this name lost captures are counted.
const ARCHIVE_LOST: &str = "archive-lost";

/// So many lost captures are named in the log; the others are counted.
const NAMED_MAX: u64 = 10;
/// Checking more files than these is work that one waits for.
const QUICK_FILES: usize = 10;

/// What a check of the archive found, by WARC file.
#[derive(Debug, Default)]
pub(in crate::engine) struct Checked {
    /// Damaged or missing files: captures that were lost with each since the last check.
    damaged: BTreeMap<String, u64>,
    /// Files without damage: lines that their index lacked.
    sound: Vec<(String, u64)>,
    /// Lost captures that were named in the log.
    named: u64,
}

/// Checks the archive; all of it, if its state is rebuilt from it.
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
    /// Counts what a check of the archive found lost; a rebuild fetches that again.
    pub(in crate::engine) fn count_lost(&mut self, checked: Checked, rebuilt: bool) {
        let known = &mut self.counts.archive_damaged;
        let before = known.clone();
        for (file, found) in &checked.sound {
            // It was put back, unless what it lacks was cut out along the edges of records.
            if known.get(file).is_some_and(|lost| lost <= found) {
                known.remove(file);
            }
        }
        for (file, lost) in checked.damaged {
            // The file stays damaged; what its index knew of is only found to be lost once.
            let least = u64::from(!known.contains_key(&file));
            *known.entry(file).or_default() += if rebuilt { 0 } else { lost.max(least) };
        }
        let lost: u64 = known.values().sum();
        let is_new = *known != before;
        if lost > 0 {
            self.counts.cut.insert(ARCHIVE_LOST.into(), lost);
            log::error!(
                "{lost} captures or more of the archive are lost: put its files back from a copy, \
                 or let `sted crawl --rebuild` fetch them again"
            );
        } else {
            self.counts.cut.remove(ARCHIVE_LOST);
        }
        if is_new {
            // The index lacks these lines from now on: nothing else knows of them.
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

/// The final name of a WARC file.
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
            "the WARC file of {index} isn't here: taken away or lost; what it holds counts as \
             fetched"
        ),
        Finding::Missing(warc, 0) => {
            log::error!("{warc} isn't here, nor is its index: the crawl was still writing it");
        }
        Finding::Missing(warc, captures) => log::error!(
            "{warc} isn't here, with {captures} captures: the crawl was still writing it, so it \
             can't have been taken away"
        ),
        Finding::NoRoom(warc) => log::error!("the disk is full: no index for {warc} for now"),
    }
}

/// What an index line takes from the head of a reply, read as it was when it came.
fn read_head(reply: &[u8]) -> Option<HeadFacts> {
    // What was taken then is taken now, whatever the limits are.
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
