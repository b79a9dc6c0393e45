//! Reads the body of a robots.txt from the WARC files of a job.
//!
//! Law: damaged files cost bounded memory, and no panic.

use crate::http::coding::{Coding, DecodeLimits, Decoder, State};
use crate::http::response::{Event, Limits, Reader};
use crate::robots::SIZE_BYTES_MAX;
use flate2::read::GzDecoder;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;

/// The maximum length of a record that is read, in bytes.
const RECORD_BYTES_MAX: u64 = 4 << 20;

/// The WARC files of a job.
#[derive(Debug)]
pub(super) struct Archive {
    folder: PathBuf,
    /// The file that was read last, with its name.
    open: Option<(String, File)>,
}

impl Archive {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder, open: None }
    }

    /// Returns the text of the reply in the record at an offset of a file, decoded; `None` if it
    /// can't be read.
    pub(super) fn text(&mut self, name: &str, offset: u64) -> Option<Vec<u8>> {
        if name.contains('/') {
            return None;
        }
        if self.open.as_ref().is_none_or(|(open, _)| open != name) {
            let path = self.folder.join(name);
            let file =
                File::open(&path).or_else(|_| File::open(format!("{}.open", path.display())));
            self.open = Some((name.to_owned(), file.ok()?));
        }
        let (_, file) = self.open.as_mut().expect("just opened");
        file.seek(SeekFrom::Start(offset)).ok()?;
        let mut record = Vec::new();
        if name.ends_with(".gz") {
            GzDecoder::new(file).take(RECORD_BYTES_MAX).read_to_end(&mut record).ok()?;
        } else {
            file.take(RECORD_BYTES_MAX).read_to_end(&mut record).ok()?;
        }
        reply_of(&record)
    }
}

/// Returns the decoded body of the response in a WARC record.
fn reply_of(record: &[u8]) -> Option<Vec<u8>> {
    let end = memchr::memmem::find(record, b"\r\n\r\n")?;
    let head = std::str::from_utf8(&record[..end]).ok()?;
    let field = |name: &str| {
        let mut lines = head.lines().filter_map(|line| line.split_once(':'));
        lines.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    };
    if field("WARC-Type") != Some("response") {
        return None;
    }
    let bytes: usize = field("Content-Length")?.parse().ok()?;
    let block = &record[end + 4..];
    body_of(&block[..bytes.min(block.len())])
}

/// Returns the decoded body of a reply.
fn body_of(mut bytes: &[u8]) -> Option<Vec<u8>> {
    let mut reader = Reader::new(Limits::default());
    reader.begin();
    let (mut body, mut codings) = (Vec::new(), Vec::new());
    loop {
        let step = match reader.read(bytes, true) {
            Ok(step) => step,
            // The crawler reads no more of a file than that.
            Err(_) if body.len() > SIZE_BYTES_MAX => break,
            Err(_) => return None,
        };
        let used = &bytes[..step.used];
        match step.event {
            Event::Head => codings.extend(reader.head().codings(used).known),
            Event::Payload(range) => body.extend_from_slice(&used[range]),
            Event::End(_) => break,
            Event::More if used.is_empty() => return None,
            Event::More | Event::Interim | Event::Blank => {}
        }
        bytes = &bytes[step.used..];
    }
    // As the crawler, read gzip that no field announces.
    if codings.is_empty() && body.starts_with(b"\x1F\x8B") {
        codings.push(Coding::Gzip);
    }
    if codings.is_empty() { Some(body) } else { decoded(&body, &codings) }
}

fn decoded(body: &[u8], codings: &[Coding]) -> Option<Vec<u8>> {
    let mut decoder = Decoder::new(DecodeLimits { decoded_bytes_max: SIZE_BYTES_MAX as u64 + 1 });
    decoder.begin(codings);
    let (mut text, mut taken) = (Vec::new(), 0);
    loop {
        let step = decoder.decode(&body[taken..], true, &mut text, SIZE_BYTES_MAX + 1);
        taken += step.used;
        match step.state {
            State::Done | State::TooLarge => return Some(text),
            State::More => {}
            _ => return None,
        }
    }
}
