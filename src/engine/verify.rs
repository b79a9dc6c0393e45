//! Checks the archive before a crawl goes on with it, and reports what is damaged or missing.
//!
//! The store finds and repairs (`store::repair`); this reads heads for it, says in the log what was
//! found, and counts what is lost.

use super::settings::Settings;
use super::{Engine, Error};
use crate::disk::Disk;
use crate::http::response::{Event, Framing, Limits, Reader};
use crate::store::{self, Finding, HeadFacts, Position, Repaired};

/// So many lost captures are named in the log; the others are counted.
const NAMED_MAX: u64 = 10;
/// Checking more files than these is work that one waits for.
const QUICK_FILES: usize = 10;

/// Checks the archive; all of it, if its state is rebuilt from it.
pub(super) fn verify(
    settings: &Settings,
    durable: Position,
    disk: &mut dyn Disk,
) -> Result<Repaired, Error> {
    let mut wanted = settings.store.clone();
    if durable == Position::END {
        wanted.verify_bytes_max = u64::MAX;
    }
    let mut named = 0;
    let mut report = |finding: Finding<'_>| report(finding, &mut named);
    let repaired = store::repair(&wanted, durable, disk, read_head, &mut report);
    let repaired = repaired.map_err(Error::Store)?;
    if repaired.lost > NAMED_MAX {
        log::error!("{} captures of the archive are lost, the first ones above", repaired.lost);
    }
    if repaired.unchecked_bytes > 0 {
        log::info!(
            "{} MB of older WARC files were not checked (store.verify_bytes_max)",
            repaired.unchecked_bytes / 1_000_000
        );
    }
    Ok(repaired)
}

impl Engine {
    /// Counts what a check of the archive found lost.
    pub(super) fn count_lost(&mut self, repaired: &Repaired) {
        if repaired.lost > 0 {
            self.counts.cut("archive-lost", repaired.lost);
        }
    }
}

fn report(finding: Finding<'_>, named: &mut u64) {
    match finding {
        Finding::Reads(warc, number, of) if of > QUICK_FILES => {
            log::info!("checking {warc} ({number} of {of} files)");
        }
        Finding::Reads(warc, ..) => log::debug!("checking {warc}"),
        Finding::Indexed(warc, lines) => {
            log::warn!("{warc}: {lines} lines of its index were missing or damaged; now rebuilt");
        }
        Finding::Damaged(warc, from, to) => log::error!(
            "{warc} is damaged at byte {from}: no whole record up to byte {to}; put the file back \
             from a copy, or let `sted crawl --rebuild` fetch again what is lost"
        ),
        Finding::Lost(warc, offset, url) => {
            *named += 1;
            if *named <= NAMED_MAX {
                log::error!("{url}: its record is lost, at byte {offset} of {warc}");
            }
        }
        Finding::Gone(index) => log::warn!(
            "the WARC file of {index} isn't here: taken away or lost; what it holds counts as \
             fetched"
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
