//! An append log of frames in numbered files (segments), which are reclaimed one by one.
//!
//! Frames are appended to the newest segment. A segment that has reached [`Limits::segment_bytes`]
//! is closed. A frame is live until the user (the code that owns the log) releases it. A segment
//! without live frames is removed as soon as no durable checkpoint names it. A closed segment is
//! sparse if its live frames make up less than a quarter of its bytes: the user *sweeps* it, which
//! means that it appends the live frames again and releases the old ones.
//!
//! A checkpoint names the segments that were [`alive`](Segments::alive) when it was taken, with
//! their lengths. Before a checkpoint is published the user calls [`write`](Segments::write) and
//! [`set_marked`](Segments::set_marked), afterwards [`on_durable`](Segments::on_durable). After a
//! restart the user calls [`restore`](Segments::restore) for each segment that the checkpoint
//! names, then [`retain`](Segments::retain) for each frame that it still needs, and last
//! [`find_sparse`](Segments::find_sparse).
//!
//! ```text
//! file   FOLDER/segment-N: the opening frame, then frames of the user's kinds
//! ```
//!
//! Laws: until a frame is released it can be read from its location, and it is as a whole either in
//! memory or on disk. A full disk loses nothing. A segment that a durable checkpoint names keeps
//! its bytes, and its number is not used again. Cost: one copy into memory for each frame, one
//! append to the disk for every [`Limits::write_bytes`] bytes; about 50 bytes of memory for each
//! segment.

use crate::ground::disk::{self, Disk};
use crate::ground::frame::{self, Damage, Flaw, Role};
use crate::ground::tail::Tail;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

#[cfg(test)]
mod tests;

/// A closed segment is sparse if less than one in this many of its bytes is live.
const SPARSE: u64 = 4;
/// The length of the longest frame, in bytes.
const FRAME_BYTES_MAX: u64 = (frame::OVERHEAD_BYTES + frame::PAYLOAD_BYTES_MAX) as u64;

/// The location of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Location {
    /// The number of the segment that contains the frame.
    pub segment: u32,
    /// The offset of the frame in the segment, in bytes.
    pub offset: u32,
    /// The length of the frame, header included. A user may store it rounded up, but must release
    /// exactly as many bytes as it has retained.
    pub bytes: u32,
}

/// The lengths at which segments are closed and frames are written to the disk.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// A segment is closed when it is at least this long.
    pub segment_bytes: u64,
    /// Frames are buffered in memory until there are this many bytes.
    pub write_bytes: usize,
}

/// An append log of frames in segments, as the head of this file describes.
#[derive(Debug)]
pub struct Segments {
    folder: &'static str,
    role: Role,
    crawl: u64,
    limits: Limits,
    segments: BTreeMap<u32, Segment>,
    /// Segments that still take frames or are not completely on disk, oldest first. Frames are
    /// appended to the last of them.
    growing: VecDeque<Growing>,
    /// The number of the segment that is created next.
    next: u32,
    /// Sparse segments that have not been swept yet.
    sparse: BTreeSet<u32>,
    /// Segments that the last checkpoint names.
    marked: BTreeSet<u32>,
}

#[derive(Debug, Default)]
struct Segment {
    bytes: u64,
    live_bytes: u64,
    /// Whether an earlier run wrote this segment.
    is_restored: bool,
}

#[derive(Debug)]
struct Growing {
    segment: u32,
    tail: Tail,
    /// Whether the segment takes no more frames although it may be shorter than the limit.
    is_ended: bool,
}

impl Segments {
    /// Creates an empty log in `folder`.
    pub fn new(folder: &'static str, role: Role, crawl: u64, limits: Limits) -> Self {
        let longest = limits.segment_bytes + FRAME_BYTES_MAX;
        assert!(longest <= u64::from(u32::MAX), "offsets have 32 bits");
        Self {
            folder,
            role,
            crawl,
            limits,
            segments: BTreeMap::new(),
            growing: VecDeque::new(),
            next: 1,
            sparse: BTreeSet::new(),
            marked: BTreeSet::new(),
        }
    }

    /// Appends a frame whose payload `write` appends to the buffer that it is given. The frame
    /// stays in memory until [`Self::write`].
    pub fn append(&mut self, kind: u8, write: impl FnOnce(&mut Vec<u8>)) -> Location {
        if self.growing.back().is_none_or(|growing| growing.is_closed(self.limits)) {
            self.begin();
        }
        let Growing { segment: number, tail, .. } = self.growing.back_mut().expect("one has begun");
        let offset = tail.len();
        frame::push_with(kind, &mut tail.pending, write);
        let segment = self.segments.get_mut(number).expect("all are listed");
        segment.bytes = tail.len();
        segment.live_bytes += segment.bytes - offset;
        let short = |bytes| u32::try_from(bytes).expect("`new` has looked at the limits");
        let bytes = short(segment.bytes - offset);
        Location { segment: *number, offset: short(offset), bytes }
    }

    fn begin(&mut self) {
        let number = self.next;
        self.next = number.checked_add(1).expect("no disk holds so many segments");
        let mut tail = Tail::new(self.name_of(number), 0);
        frame::push_opening(self.role, self.crawl, &mut tail.pending);
        self.segments.insert(number, Segment { bytes: tail.len(), ..Segment::default() });
        self.growing.push_back(Growing { segment: number, tail, is_ended: false });
    }

    /// Closes the newest segment, whatever its length. Returns the number of the segment that is
    /// created next.
    pub fn close(&mut self) -> u32 {
        self.growing.iter_mut().for_each(|growing| growing.is_ended = true);
        self.next
    }

    /// Releases a frame: the user no longer needs it. A frame may be released only once.
    pub fn release(&mut self, location: Location) {
        let segment = self.segments.get_mut(&location.segment).expect("frames lie in segments");
        let left = segment.live_bytes.checked_sub(location.bytes.into());
        segment.live_bytes = left.expect("a frame is released once");
        self.look_at(location.segment);
    }

    /// Releases all frames of a segment at once. No frame of that segment may be released by
    /// [`Self::release`] afterwards.
    pub fn release_all(&mut self, segment: u32) {
        if let Some(segment) = self.segments.get_mut(&segment) {
            segment.live_bytes = 0;
        }
    }

    /// Marks all frames of a restored segment as live.
    pub fn retain_all(&mut self, segment: u32) {
        if let Some(segment) = self.segments.get_mut(&segment) {
            segment.live_bytes = segment.bytes;
        }
    }

    /// Marks a frame of a restored segment as live. Returns `false` if no frame can be at that
    /// location.
    pub fn retain(&mut self, location: Location) -> bool {
        let Some(segment) = self.segments.get_mut(&location.segment) else { return false };
        let (offset, bytes) = (u64::from(location.offset), u64::from(location.bytes));
        let overhead = frame::OVERHEAD_BYTES as u64;
        let fits = offset >= frame::OPENING_BYTES as u64
            && offset + overhead <= segment.bytes
            && (overhead..=FRAME_BYTES_MAX).contains(&bytes);
        segment.live_bytes += if fits { bytes } else { 0 };
        fits
    }

    /// Returns whether an earlier run wrote the segment and [`Self::restore`] has restored it.
    pub fn is_restored(&self, segment: u32) -> bool {
        self.segments.get(&segment).is_some_and(|segment| segment.is_restored)
    }

    /// Returns whether the segment has a live frame.
    pub fn is_alive(&self, segment: u32) -> bool {
        self.segments.get(&segment).is_some_and(|segment| segment.live_bytes > 0)
    }

    /// Returns the bytes of a frame that is still in memory because it has not been written.
    /// Returns `None` if the frame is on disk. If `location.bytes` is rounded up, bytes of the next
    /// frame follow, as far as there are any.
    pub fn waiting(&self, location: Location) -> Option<&[u8]> {
        let mut growing = self.growing.iter();
        let tail = &growing.find(|growing| growing.segment == location.segment)?.tail;
        let from = u64::from(location.offset).checked_sub(tail.written())?;
        let bytes = tail.pending.get(usize::try_from(from).ok()?..)?;
        Some(&bytes[..bytes.len().min(location.bytes as usize)])
    }

    /// Reads the frame at `location`, from memory or from the disk, and returns its payload. The
    /// frame must be of the kind `kind`.
    ///
    /// # Errors
    /// The disk reports an error, or there is no intact frame of that kind at the location.
    pub fn read(
        &self,
        location: Location,
        kind: u8,
        disk: &mut dyn Disk,
    ) -> Result<Vec<u8>, frame::Error> {
        let (name, offset) = (self.name_of(location.segment), u64::from(location.offset));
        let mut bytes = match self.waiting(location) {
            Some(bytes) => bytes.to_vec(),
            None => {
                let mut bytes = vec![0; location.bytes as usize];
                disk::read_all(disk, &name, offset, 0, &mut bytes)?;
                bytes
            }
        };
        let found = match frame::parse(&bytes, offset) {
            Ok((frame, used)) if frame.kind == kind => Ok(used),
            Ok(_) => Err(Flaw::Senseless),
            Err(flaw) => Err(flaw),
        };
        let used = found.map_err(|flaw| Damage { name, offset, flaw })?;
        bytes.truncate(used);
        bytes.drain(..frame::OVERHEAD_BYTES);
        Ok(bytes)
    }

    /// Writes frames from memory to the disk. If `all`, writes all of them. Otherwise writes the
    /// closed segments, and the newest one only if [`Limits::write_bytes`] bytes are waiting.
    ///
    /// # Errors
    /// The disk reports an error. Nothing is lost, and the call can be repeated.
    pub fn write(&mut self, all: bool, disk: &mut dyn Disk) -> Result<(), disk::Error> {
        while let Some(growing) = self.growing.front_mut() {
            let is_closed = growing.is_closed(self.limits);
            let Growing { segment, tail, .. } = growing;
            let segment = *segment;
            if !all && !is_closed && tail.pending.len() < self.limits.write_bytes {
                break;
            }
            // A file of this name that is not empty was left behind by a crash; no checkpoint names
            // it.
            if tail.written() == 0 && disk.len(tail.name())?.is_some_and(|bytes| bytes > 0) {
                disk.truncate(tail.name(), 0)?;
            }
            tail.flush(disk, 2 * self.limits.write_bytes)?;
            if !is_closed {
                break;
            }
            self.growing.pop_front();
            self.look_at(segment);
        }
        Ok(())
    }

    /// Returns the name of a segment's file, relative to the job directory.
    pub fn name_of(&self, segment: u32) -> String {
        name_of(self.folder, segment)
    }

    /// Returns the numbers of all segments of this log, in ascending order.
    pub fn numbers(&self) -> impl Iterator<Item = u32> {
        self.segments.keys().copied()
    }

    /// Returns the number and the length in bytes of each segment that has live frames: what a
    /// checkpoint must name.
    pub fn alive(&self) -> Vec<(u32, u64)> {
        let alive = self.segments.iter().filter(|(_, segment)| segment.live_bytes > 0);
        alive.map(|(number, segment)| (*number, segment.bytes)).collect()
    }

    /// Sets the numbers of the segments that the next checkpoint names, before it is published.
    pub fn set_marked(&mut self, segments: impl IntoIterator<Item = u32>) {
        self.marked = segments.into_iter().collect();
    }

    /// Reports that the checkpoint announced by the last [`Self::set_marked`] is durable. Forgets
    /// the segments that are no longer needed and returns the names of their files, which the
    /// caller removes. The segment `keep` stays, because it is being read.
    pub fn on_durable(&mut self, keep: Option<u32>) -> Vec<String> {
        let is_needed = |number: &u32, segment: &Segment| {
            let is_named = self.marked.contains(number) || keep == Some(*number);
            segment.live_bytes > 0 || is_named || self.is_growing(*number)
        };
        let dead = self.segments.iter().filter(|(number, segment)| !is_needed(number, segment));
        let dead: Vec<u32> = dead.map(|(number, _)| *number).collect();
        for number in &dead {
            self.segments.remove(number);
            self.sparse.remove(number);
        }
        dead.into_iter().map(|number| self.name_of(number)).collect()
    }

    /// Restores a segment of `bytes` bytes that a checkpoint of an earlier run names. None of its
    /// frames is live yet. Returns `false` if the length is not valid or the segment was restored
    /// before.
    pub fn restore(&mut self, segment: u32, bytes: u64) -> bool {
        let is_long = bytes >= self.limits.segment_bytes + FRAME_BYTES_MAX;
        let Some(next) = segment.checked_add(1).filter(|_| !is_long) else { return false };
        self.next = self.next.max(next);
        let restored = Segment { bytes, live_bytes: 0, is_restored: true };
        self.segments.insert(segment, restored).is_none()
    }

    /// Restores the segments of this log after a restart. `files` are the names and lengths in
    /// bytes of all files that the checkpoint names; a file that is not a segment of this log is
    /// skipped. Returns the numbers of the restored segments.
    ///
    /// # Errors
    /// A segment's file is shorter than the checkpoint says, its number or length is not valid, or
    /// the disk reports an error.
    pub fn restore_files(
        &mut self,
        files: &[(String, u64)],
        disk: &mut dyn Disk,
    ) -> Result<Vec<u32>, frame::Error> {
        let mut numbers = Vec::new();
        for (name, bytes) in files {
            let Some(number) = number_of(self.folder, name) else { continue };
            let damage = |offset, flaw| Damage { name: name.clone(), offset, flaw };
            let len = disk.len(name)?.unwrap_or(0);
            if len < *bytes {
                return Err(damage(len, Flaw::Cut).into());
            }
            if !self.restore(number, *bytes) {
                return Err(damage(0, Flaw::Senseless).into());
            }
            numbers.push(number);
        }
        Ok(numbers)
    }

    /// Writes all frames from memory to the disk, and calls [`Self::set_marked`] with the segments
    /// that have live frames. Returns the names of their files and their lengths in bytes, which
    /// the checkpoint must name.
    ///
    /// # Errors
    /// The disk reports an error.
    pub fn mark(&mut self, disk: &mut dyn Disk) -> Result<Vec<(String, u64)>, disk::Error> {
        self.write(true, disk)?;
        let alive = self.alive();
        self.set_marked(alive.iter().map(|(number, _)| *number));
        Ok(alive.into_iter().map(|(number, bytes)| (self.name_of(number), bytes)).collect())
    }

    /// Makes new segments take numbers above `segment`, because files with numbers up to that
    /// exist.
    pub fn skip_to(&mut self, segment: u32) {
        self.next = self.next.max(segment.saturating_add(1));
    }

    /// Finds the sparse segments after a restart. Call it when all live frames have been retained.
    pub fn find_sparse(&mut self) {
        let numbers: Vec<u32> = self.numbers().collect();
        numbers.into_iter().for_each(|number| self.look_at(number));
    }

    /// Takes the oldest sparse segment off the list and returns its number and its length in bytes;
    /// `None` if there is none. All live frames of that segment are on disk.
    pub fn next_sparse(&mut self) -> Option<(u32, u64)> {
        while let Some(number) = self.sparse.pop_first() {
            if let Some(segment) = self.segments.get(&number).filter(|of| of.live_bytes > 0) {
                return Some((number, segment.bytes));
            }
        }
        None
    }

    /// Returns the total length of all segments and the total length of their live frames, in
    /// bytes.
    pub fn bytes(&self) -> (u64, u64) {
        let sum = |(all, live), segment: &Segment| (all + segment.bytes, live + segment.live_bytes);
        self.segments.values().fold((0, 0), sum)
    }

    fn is_growing(&self, segment: u32) -> bool {
        self.growing.iter().any(|growing| growing.segment == segment)
    }

    fn look_at(&mut self, number: u32) {
        let segment = &self.segments[&number];
        let is_sparse = segment.live_bytes > 0 && segment.live_bytes < segment.bytes / SPARSE;
        if is_sparse && !self.is_growing(number) {
            self.sparse.insert(number);
        }
    }
}

impl Growing {
    fn is_closed(&self, limits: Limits) -> bool {
        self.is_ended || self.tail.len() >= limits.segment_bytes
    }
}

/// Returns the name of the file of segment number `segment` in `folder`.
pub fn name_of(folder: &str, segment: u32) -> String {
    format!("{folder}/segment-{segment}")
}

/// Returns the number of the segment whose file in `folder` has the name `name`; `None` if the name
/// isn't that of a segment.
pub fn number_of(folder: &str, name: &str) -> Option<u32> {
    name.strip_prefix(folder)?.strip_prefix("/segment-")?.parse().ok()
}
