//! URLs that are kept on disk outside the queues, so that they can be queued again: those of
//! servers that were given up, and those whose prefix is paused.
//!
//! Such a URL has its line in the crawl log and its final outcome. In addition it is appended to a
//! segment, as it was found. So is a URL that may not be fetched because its server's robots.txt
//! can't be fetched. [`Engine::revive`](crate::engine::Engine::revive) starts a *revival*: it
//! reinstates the servers and queues the URLs of the segments, some in each turn. URLs that are
//! given up meanwhile go to a new segment.
//!
//! A second [`GivenUp`], the *shelf*, holds URLs that left their queues while an order paused their
//! prefix. They have no line in the crawl log yet. When a prefix is resumed, all of the shelf is
//! queued again, and what is still paused returns to the shelf.
//!
//! ```text
//! file   state/given-up/segment-N, state/paused/segment-N: the opening frame, then URLs
//! URL    kind 1: see `engine::admission::Discovery::encode`
//! mark   kinds 7 and 10 of a snapshot: what a revival has still to do
//!        next server varint | last segment varint | segment varint, offset varint
//! ```
//!
//! Laws: a URL that was given up before a checkpoint is in a segment that the checkpoint names, or
//! queued. After a restart a revival continues where the checkpoint saw it, and queues no URL
//! twice.
//! Cost: a frame a URL, written in large blocks; reading back charges the turn.

use crate::frontier::ServerId;
use crate::ground::codec::{Put, Take};
use crate::ground::disk::{self, Disk};
use crate::ground::frame::{self, Flaw, Mark, Reader, Role};
use crate::ground::segments::{Limits, Segments};

/// The kind of the frame that holds a URL in a segment.
const URL: u8 = 1;
const LIMITS: Limits = Limits { segment_bytes: 64 << 20, write_bytes: 64 << 10 };
/// The folder of all segments, relative to the job directory.
pub(in crate::engine) const FOLDER: &str = "state/given-up";
/// The folder of the segments with paused URLs, relative to the job directory.
pub(in crate::engine) const SHELF_FOLDER: &str = "state/paused";

/// The URLs of given-up servers on disk, and the progress of a revival.
#[derive(Debug)]
pub(in crate::engine) struct GivenUp {
    /// The segments on disk; `None` if the crawl keeps no state.
    log: Option<Log>,
    revival: Option<Revival>,
}

#[derive(Debug)]
struct Log {
    crawl: u64,
    segments: Segments,
}

#[derive(Debug, Default)]
struct Revival {
    /// The index of the next server for the revival to reinstate.
    server: usize,
    /// The bound of the segments that the revival reads: their numbers are lower. The later
    /// segments hold URLs that were given up since.
    until: u32,
    reader: Option<(u32, Reader)>,
    /// The offset in the first segment at which reading begins, in bytes.
    offset: u64,
    /// Whether the revival waits until the queue of a server that was given up is empty.
    waits: bool,
}

impl GivenUp {
    pub(in crate::engine) fn new(folder: &'static str, crawl: Option<u64>) -> Self {
        let segments = |crawl| Segments::new(folder, Role::GivenUp, crawl, LIMITS);
        let log = crawl.map(|crawl| Log { crawl, segments: segments(crawl) });
        Self { log, revival: None }
    }

    /// Restores the segments. `files` are those that the checkpoint of an earlier run names, with
    /// their valid lengths.
    ///
    /// # Errors
    /// Those of [`Segments::restore_files`].
    pub(in crate::engine) fn restore_files(
        &mut self,
        files: &[(String, u64)],
        disk: &mut dyn Disk,
    ) -> Result<(), frame::Error> {
        let Some(Log { segments, .. }) = &mut self.log else { return Ok(()) };
        let numbers = segments.restore_files(files, disk)?;
        numbers.into_iter().for_each(|number| segments.retain_all(number));
        Ok(())
    }

    /// Restores the revival that was in progress at the checkpoint, from the bytes of its mark.
    ///
    /// # Errors
    /// The bytes are invalid, or name a file that does not exist.
    pub(in crate::engine) fn restore_mark(&mut self, bytes: &[u8]) -> Result<(), Flaw> {
        let mut take = Take::new(bytes);
        let (server, until) = (take.number()?, take.number()?);
        let (segment, offset) = (take.number()?, take.varint()?);
        let Log { segments, .. } = self.log.as_mut().ok_or(Flaw::Senseless)?;
        if (segment != 0 && !segments.is_alive(segment)) || until > segments.close() {
            return Err(Flaw::Senseless);
        }
        self.revival = Some(Revival { server, until, offset, ..Revival::default() });
        Ok(())
    }

    /// Appends everything buffered to the disk. Returns the files that a checkpoint names, with
    /// their lengths, and the state of the revival, if one is in progress.
    ///
    /// # Errors
    /// The disk reports an error.
    pub(in crate::engine) fn mark(&mut self, disk: &mut dyn Disk) -> Result<Mark, disk::Error> {
        let mut state = Vec::new();
        if let Some(revival) = &self.revival {
            let (segment, offset) = match &revival.reader {
                Some((number, reader)) => (*number, reader.offset()),
                None => (0, revival.offset),
            };
            state.put_varint(revival.server as u64);
            state.put_varint(revival.until.into());
            state.put_varint(segment.into());
            state.put_varint(offset);
        }
        let files = self.log.as_mut().map_or(Ok(Vec::new()), |log| log.segments.mark(disk))?;
        Ok(Mark { state, files })
    }

    /// Called when the checkpoint with the last [`GivenUp::mark`] is durable. Returns the names of
    /// files that are no longer needed.
    pub(in crate::engine) fn on_durable(&mut self) -> Vec<String> {
        self.log.as_mut().map_or(Vec::new(), |log| log.segments.on_durable(None))
    }

    /// Appends buffered bytes to the disk: all of them, or only if they are enough for an append.
    ///
    /// # Errors
    /// The disk reports an error. No bytes are lost, and the call may be repeated.
    pub(in crate::engine) fn write(
        &mut self,
        all: bool,
        disk: &mut dyn Disk,
    ) -> Result<(), disk::Error> {
        self.log.as_mut().map_or(Ok(()), |log| log.segments.write(all, disk))
    }

    /// Returns whether no URL is kept.
    pub(in crate::engine) fn is_empty(&self) -> bool {
        self.log.as_ref().is_none_or(|log| log.segments.alive().is_empty())
    }

    /// Returns whether a revival is in progress and can continue now.
    pub(in crate::engine) fn has_work(&self) -> bool {
        self.revival.as_ref().is_some_and(|revival| !revival.waits)
    }

    /// Returns the server that a revival reinstates next, or `None` if no revival is in progress.
    pub(in crate::engine) fn next_server(&self) -> Option<ServerId> {
        self.revival.as_ref().map(|revival| ServerId::from_index(revival.server))
    }

    /// Continues a revival. If the present server is back (`is_back`), the next one follows. If
    /// not, because its queue is not empty, the revival waits.
    pub(in crate::engine) fn advance(&mut self, is_back: bool) {
        if let Some(revival) = &mut self.revival {
            revival.server += usize::from(is_back);
            revival.waits = !is_back;
        }
    }

    /// Returns whether a revival is in progress.
    pub(in crate::engine) fn is_reviving(&self) -> bool {
        self.revival.is_some()
    }

    /// Appends a URL to the segments. `write` appends the encoded URL to the buffer that it is
    /// given.
    pub(in crate::engine) fn add(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        if let Some(log) = &mut self.log {
            log.segments.append(URL, write);
        }
    }

    /// Begins a revival of everything given up so far; one in progress is extended. Returns `false`
    /// if the crawl keeps no state.
    pub(in crate::engine) fn begin(&mut self) -> bool {
        let Some(log) = &mut self.log else { return false };
        let revival = self.revival.get_or_insert_default();
        revival.server = 0;
        revival.until = log.segments.close();
        true
    }

    /// Reads the next URL that a revival queues again. Returns `None` at the end of the revival.
    ///
    /// # Errors
    /// A segment can't be read.
    pub(in crate::engine) fn read(
        &mut self,
        disk: &mut dyn Disk,
    ) -> Result<Option<Vec<u8>>, frame::Error> {
        let Some(Log { crawl, segments }) = &mut self.log else { return Ok(None) };
        segments.write(false, disk)?;
        loop {
            let Some(revival) = &mut self.revival else { return Ok(None) };
            let Some((number, reader)) = &mut revival.reader else {
                let first = segments.alive().first().copied();
                let Some((number, bytes)) = first.filter(|(number, _)| *number < revival.until)
                else {
                    self.revival = None;
                    return Ok(None);
                };
                let name = segments.name_of(number);
                let mut reader = Reader::open(&name, Role::GivenUp, *crawl, Some(bytes), disk)?;
                let offset = std::mem::take(&mut revival.offset);
                if offset > reader.offset() {
                    reader.seek(offset);
                }
                revival.reader = Some((number, reader));
                continue;
            };
            let at = reader.offset();
            match reader.next(disk)? {
                Some(frame) if frame.kind == URL => return Ok(Some(frame.payload.to_vec())),
                Some(_) => return Err(reader.damage(at, Flaw::Senseless).into()),
                None => {
                    segments.release_all(*number);
                    revival.reader = None;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::admission::Discovery;
    use crate::ground::disk::memory::Memory;

    const CRAWL: u64 = 7;

    fn add(urls: &mut GivenUp, number: u32) {
        let found = Discovery { letter: b'E', depth: 3, requisite: 2, ..Discovery::SEED };
        urls.add(|out| found.encode(&format!("http://a.test/{number}"), "http://b.test/", out));
    }

    fn next(urls: &mut GivenUp, disk: &mut Memory) -> Option<u32> {
        let entry = urls.read(disk).expect("it is whole")?;
        let (found, url, via) = Discovery::decode(&entry);
        assert_eq!((found.depth, found.requisite, via), (3, 2, "http://b.test/"));
        url.as_str().rsplit('/').next()?.parse().ok()
    }

    /// Law: each URL given up before a revival returns once, in order; those given up meanwhile
    /// return at the next revival; restarts don't change that.
    #[test]
    fn each_url_comes_back_once() {
        for restart_after in 0..12 {
            let mut disk = Memory::default();
            let mut urls = GivenUp::new(FOLDER, Some(CRAWL));
            (0..5).for_each(|number| add(&mut urls, number));
            let Mark { state, files } = urls.mark(&mut disk).expect("there is room");
            assert_eq!((files.len(), state.len()), (1, 0));
            let mut urls = GivenUp::new(FOLDER, Some(CRAWL));
            urls.restore_files(&files, &mut disk).expect("just written");
            (5..10).for_each(|number| add(&mut urls, number));
            urls.begin();
            let mut back = Vec::new();
            for turn in 0.. {
                if turn == restart_after {
                    let Mark { state, files } = urls.mark(&mut disk).expect("there is room");
                    urls = GivenUp::new(FOLDER, Some(CRAWL));
                    urls.restore_files(&files, &mut disk).expect("just written");
                    if !state.is_empty() {
                        urls.restore_mark(&state).expect("just written");
                    }
                }
                match next(&mut urls, &mut disk) {
                    Some(number) => back.push(number),
                    None => break,
                }
                add(&mut urls, 100 + turn);
            }
            assert_eq!(back, (0..10).collect::<Vec<u32>>(), "restart after {restart_after}");
            assert!(!urls.is_reviving());
            urls.begin();
            assert_eq!(next(&mut urls, &mut disk), Some(100));
        }
    }

    #[test]
    fn segments_go_when_they_were_read_and_no_checkpoint_names_them() {
        let mut disk = Memory::default();
        let mut urls = GivenUp::new(FOLDER, Some(CRAWL));
        add(&mut urls, 1);
        urls.mark(&mut disk).expect("there is room");
        urls.begin();
        assert_eq!(next(&mut urls, &mut disk), Some(1));
        assert_eq!(next(&mut urls, &mut disk), None);
        assert!(urls.on_durable().is_empty(), "the last checkpoint names it");
        assert!(urls.mark(&mut disk).expect("there is room").files.is_empty());
        assert_eq!(urls.on_durable(), ["state/given-up/segment-1"]);
    }
}
