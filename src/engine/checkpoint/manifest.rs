//! The manifest, `state/checkpoint`: it names the files of the last checkpoint and what they hold.
//!
//! ```text
//! sted checkpoint FORMAT CRC32     of what follows, eight hexadecimal digits
//! {json}                           one line: Manifest
//! ```
//!
//! Laws: the file is replaced as a whole, by a rename, when everything that it names is durable. A
//! changed character or a truncated file is reported as damage. The first line is the same in all
//! formats. The second line also gives the format, so that a changed digit is not taken for another
//! version.

use crate::ground::disk::{self, Disk};
use crate::ground::frame::{Damage, Error, FORMAT, Flaw};
use crate::ground::time::UnixTime;
use crate::store::Position;
use serde::{Deserialize, Serialize};

/// The name of the manifest file, relative to the job directory.
pub(in crate::engine) const NAME: &str = "state/checkpoint";
/// The name of the manifest file while it is being written, before it is renamed.
const NEW: &str = "state/checkpoint.new";
const MAGIC: &str = "sted checkpoint";
/// The maximum length of a manifest, in bytes. A longer file is damaged.
const BYTES_MAX: u64 = 64 << 20;

/// The contents of the manifest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::engine) struct Manifest {
    /// The format of all files below `state/`. Older programs wrote it to the first line only.
    #[serde(default = "own_format")]
    pub(in crate::engine) format: u16,
    /// The number of the checkpoint in this job. Number 0 was published before the crawl began.
    pub(in crate::engine) number: u64,
    /// When the checkpoint was written (UTC, to the second).
    pub(in crate::engine) written: String,
    /// Whether the crawl was stopped in order, and has not been resumed since.
    pub(in crate::engine) clean: bool,
    /// Whether the crawl had nothing left to fetch.
    pub(in crate::engine) finished: bool,
    /// Whether the state is being rebuilt from the archive, of which an unknown part is durable.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(in crate::engine) rebuilt: bool,
    /// The key of the crawl's fingerprints, in hexadecimal digits.
    pub(in crate::engine) key: String,
    /// The serial number of the WARC file that was being written. All captures before the position
    /// that this and `archive_offset` give are included in the checkpoint.
    pub(in crate::engine) archive_serial: u32,
    /// The position within the WARC file of `archive_serial`, in bytes.
    pub(in crate::engine) archive_offset: u64,
    /// The name of the snapshot, the file with the state that was in memory; `None` before the
    /// first snapshot.
    pub(in crate::engine) snapshot: Option<String>,
    /// The digest of the scope that the queued URLs were checked against.
    #[serde(default)]
    pub(in crate::engine) scope: String,
    /// All files of the state with their valid lengths, in bytes. Anything beyond these lengths is
    /// ignored.
    pub(in crate::engine) files: Vec<(String, u64)>,
}

impl Manifest {
    /// Returns the manifest of a crawl that has not begun. Publishing it makes the job resumable.
    pub(in crate::engine) fn first(key: [u8; 16], now: UnixTime) -> Self {
        let written = now.civil().to_seconds();
        Self { format: FORMAT, written, key: digits_of(key), ..Self::default() }
    }

    pub(in crate::engine) fn key(&self) -> Option<[u8; 16]> {
        let key = u128::from_str_radix(&self.key, 16).ok();
        key.filter(|_| self.key.len() == 32).map(u128::to_be_bytes)
    }

    pub(in crate::engine) fn archive(&self) -> Position {
        Position { serial: self.archive_serial, offset: self.archive_offset }
    }

    /// Returns the position before which the archive is durable.
    pub(in crate::engine) fn durable(&self) -> Position {
        match (self.rebuilt, self.clean) {
            (true, _) => Position::END,
            // All archive files were closed, and the operator may have moved them away.
            (false, true) => self.archive().behind_file(),
            (false, false) => self.archive(),
        }
    }

    /// Returns the valid length of a file in bytes, or `None` if the manifest doesn't name the
    /// file.
    pub(in crate::engine) fn bytes_of(&self, name: &str) -> Option<u64> {
        self.files.iter().find(|(file, _)| file == name).map(|(_, bytes)| *bytes)
    }

    /// Publishes the manifest: writes it under a new name, syncs it, and renames it. Everything
    /// that it names must be durable.
    pub(in crate::engine) fn publish(&self, disk: &mut dyn Disk) -> Result<(), disk::Error> {
        if disk.len(NEW)?.is_some() {
            disk.remove(NEW)?;
        }
        disk.append(NEW, self.text().as_bytes())?;
        disk.sync(NEW)?;
        disk.rename(NEW, NAME)?;
        disk.sync(NAME)
    }

    fn text(&self) -> String {
        let json = serde_json::to_string(self).expect("plain values");
        format!("{MAGIC} {FORMAT} {:08x}\n{json}\n", libdeflater::crc32(json.as_bytes()))
    }

    /// Reads the manifest. Returns `None` if there is none.
    pub(in crate::engine) fn find(disk: &mut dyn Disk) -> Result<Option<Self>, Error> {
        let Some(bytes) = disk.len(NAME)? else { return Ok(None) };
        let damage = |flaw| Damage { name: NAME.to_owned(), offset: 0, flaw };
        let bytes = Some(bytes).filter(|bytes| *bytes < BYTES_MAX);
        let bytes = bytes.ok_or_else(|| damage(Flaw::Senseless))?;
        let mut text = vec![0; usize::try_from(bytes).expect("capped")];
        let mut filled = 0;
        while filled < text.len() {
            match disk.read_at(NAME, filled as u64, &mut text[filled..])? {
                0 => return Err(damage(Flaw::Cut).into()),
                more => filled += more,
            }
        }
        Self::parse(&text).map(Some).map_err(|flaw| damage(flaw).into())
    }

    fn parse(text: &[u8]) -> Result<Self, Flaw> {
        let text = std::str::from_utf8(text).map_err(|_| Flaw::Changed)?;
        let (head, rest) = text.split_once('\n').ok_or(Flaw::Cut)?;
        let mut words = head.strip_prefix(MAGIC).ok_or(Flaw::Changed)?.split(' ');
        let (blank, format, sum) = (words.next(), words.next(), words.next());
        let format: u16 = format.and_then(|word| word.parse().ok()).ok_or(Flaw::Changed)?;
        let json = rest.strip_suffix('\n').ok_or(Flaw::Cut)?;
        let right = format!("{:08x}", libdeflater::crc32(json.as_bytes()));
        if blank != Some("") || words.next().is_some() || sum != Some(&*right) {
            return Err(Flaw::Changed);
        }
        if format != FORMAT {
            return Err(flaw_of_other(format, json));
        }
        let manifest: Self = serde_json::from_str(json).map_err(|_| Flaw::Senseless)?;
        let is_sound = manifest.format == format && manifest.key().is_some();
        if is_sound { Ok(manifest) } else { Err(Flaw::Senseless) }
    }
}

/// Returns what is wrong with a manifest whose first line can't be used: it has another format, or
/// its first line is damaged.
fn flaw_of_other(format: u16, json: &str) -> Flaw {
    #[derive(Deserialize)]
    struct Known {
        format: Option<u16>,
    }
    match serde_json::from_str(json) {
        Ok(Known { format: Some(own) }) if own != format => Flaw::Changed,
        _ => Flaw::Version(format),
    }
}

fn own_format() -> u16 {
    FORMAT
}

/// Returns a key in hexadecimal digits.
pub(in crate::engine) fn digits_of(key: [u8; 16]) -> String {
    format!("{:032x}", u128::from_be_bytes(key))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::disk::memory::Memory;

    fn sample() -> Manifest {
        Manifest {
            format: FORMAT,
            number: 7,
            written: "2026-11-20T09:38:49Z".to_owned(),
            key: digits_of([9; 16]),
            snapshot: Some("state/snapshot-7".to_owned()),
            files: vec![("state/snapshot-7".to_owned(), 123)],
            ..Manifest::default()
        }
    }

    #[test]
    fn the_last_one_published_is_found() {
        let mut disk = Memory::default();
        assert_eq!(Manifest::find(&mut disk).unwrap(), None);
        for number in [7, 8] {
            let manifest = Manifest { number, ..sample() };
            manifest.publish(&mut disk).unwrap();
            assert_eq!(Manifest::find(&mut disk).unwrap(), Some(manifest));
        }
        assert_eq!(disk.names(), [NAME]);
    }

    #[test]
    fn every_change_and_every_cut_is_reported() {
        let text = sample().text();
        assert_eq!(Manifest::parse(text.as_bytes()), Ok(sample()));
        for place in 0..text.len() {
            let cut = Manifest::parse(&text.as_bytes()[..place]);
            assert!(matches!(cut, Err(Flaw::Cut | Flaw::Changed)), "cut at {place}: {cut:?}");
            for bit in 0..8 {
                let mut bytes = text.clone().into_bytes();
                bytes[place] ^= 1 << bit;
                let changed = Manifest::parse(&bytes);
                let is_reported = matches!(changed, Err(Flaw::Cut | Flaw::Changed));
                assert!(is_reported, "bit {bit} of {place}: {changed:?}");
            }
        }
    }

    #[test]
    fn another_format_is_reported() {
        let text_of = |format: u16, json: &str| {
            format!("{MAGIC} {format} {:08x}\n{json}\n", libdeflater::crc32(json.as_bytes()))
        };
        let own = format!("\"format\":{FORMAT},");
        let json = serde_json::to_string(&sample()).unwrap();
        for format in [FORMAT - 1, FORMAT + 1] {
            let newer = json.replacen(&own, &format!("\"format\":{format},"), 1);
            let unsaid = json.replacen(&own, "", 1);
            let unknown = format!("{{\"format\":{format},\"else\":0}}");
            for json in [newer, unsaid, unknown] {
                let text = text_of(format, &json);
                assert_eq!(Manifest::parse(text.as_bytes()), Err(Flaw::Version(format)));
            }
            let text = text_of(format, &json);
            assert_eq!(Manifest::parse(text.as_bytes()), Err(Flaw::Changed));
        }
        let text = text_of(FORMAT, &json.replacen(&own, "", 1));
        assert_eq!(Manifest::parse(text.as_bytes()), Ok(sample()), "as programs before this one");
    }

    #[test]
    fn what_it_says_of_itself_must_be_so() {
        for flaw in [
            Manifest { format: FORMAT + 1, ..sample() },
            Manifest { key: String::new(), ..sample() },
        ] {
            assert_eq!(Manifest::parse(flaw.text().as_bytes()), Err(Flaw::Senseless));
        }
    }
}
