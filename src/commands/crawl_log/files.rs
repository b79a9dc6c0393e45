//! The parts of a crawl log, in order: rotated, renamed by other programs, or compressed.

use flate2::read::MultiGzDecoder;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use super::line::Line;

const BUFFER_BYTES: usize = 256 << 10;
/// The maximum length of a line that is read, in bytes. The longest is the first of a run with
/// 10,000 tables `[[site]]`; longer ones are of a damaged file.
const LINE_BYTES_MAX: usize = 4 << 20;

/// Returns the files of a job's crawl log, oldest first. `path` is a job directory, or a file of a
/// log.
///
/// # Errors
/// A file or the directory can't be read.
pub(in crate::commands) fn parts(path: &Path) -> io::Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut parts = Vec::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with("crawl") && name.contains(".log") && entry.path().is_file() {
            let order = first_line(&entry.path())?;
            parts.push((order, entry.path()));
        }
    }
    parts.sort();
    Ok(parts.into_iter().map(|(_, path)| path).collect())
}

/// Opens a part, compressed or not.
///
/// # Errors
/// The file can't be opened.
pub(in crate::commands) fn open(path: &Path) -> io::Result<Box<dyn BufRead>> {
    let mut file = BufReader::with_capacity(BUFFER_BYTES, File::open(path)?);
    let is_gzip = file.fill_buf()?.starts_with(b"\x1F\x8B");
    Ok(if is_gzip {
        Box::new(BufReader::with_capacity(BUFFER_BYTES, MultiGzDecoder::new(file)))
    } else {
        Box::new(file)
    })
}

/// Reads the next line, without its end, into `line`. Returns `false` at the end of the file. A
/// line that is too long is cut.
///
/// # Errors
/// The file can't be read.
pub(in crate::commands) fn read_line(
    file: &mut dyn BufRead,
    line: &mut Vec<u8>,
) -> io::Result<bool> {
    line.clear();
    let mut limited = file.take(LINE_BYTES_MAX as u64);
    let is_any = limited.read_until(b'\n', line)? > 0;
    if line.last() == Some(&b'\n') {
        line.pop();
    }
    Ok(is_any)
}

/// Returns what sorts the parts: the run and the number of the first line; lines of format 1 come
/// first, by their time.
fn first_line(path: &Path) -> io::Result<(u64, u64, String)> {
    let (mut file, mut line) = (open(path)?, Vec::new());
    read_line(&mut *file, &mut line)?;
    let time = String::from_utf8_lossy(&line).chars().take(24).collect();
    let place = Line::parse(&line).map(|line| (line.more.run, line.more.line));
    let (run, number) = place.unwrap_or_default();
    Ok((run.unwrap_or(0), number.unwrap_or(0), time))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_cut_and_lines_without_an_end_are_read() {
        let text = [vec![b'a'; LINE_BYTES_MAX + 5], b"\n\nb".to_vec()].concat();
        let (mut file, mut line) = (&text[..], Vec::new());
        let mut lengths = Vec::new();
        while read_line(&mut file, &mut line).expect("memory") {
            lengths.push(line.len());
        }
        assert_eq!(lengths, [LINE_BYTES_MAX, 5, 0, 1]);
    }
}
