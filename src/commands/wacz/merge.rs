//! Merges index files to one sorted sequence of lines, in bounded memory and with few open files.
//!
//! Law: every whole line of every file comes out once, in order of its bytes. Cost: each line is
//! read twice, and once more for every factor of 64 in the number of files.

use crate::commands::crawl_log::{open, read_line};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufWriter, Write};
use std::path::{Path, PathBuf};

/// The most files that are read at once.
const FILES_MAX: usize = 64;
/// The most bytes of lines that are sorted in memory.
const SORTED_BYTES_MAX: usize = 32 << 20;

/// Takes a line, without its end.
pub(super) type Sink<'a> = dyn FnMut(&[u8]) -> io::Result<()> + 'a;

/// Passes the lines of all files to `sink`, sorted. Files that are not sorted themselves, and the
/// results of a first merge, are written to the folder `scratch`, which is created on demand.
///
/// # Errors
/// A file can't be read or written, or those of `sink`.
pub(super) fn merge(files: &[PathBuf], scratch: &Path, sink: &mut Sink<'_>) -> io::Result<()> {
    let mut runs = Runs { folder: scratch, count: 0 };
    let mut sorted = Vec::new();
    for file in files {
        match is_sorted(file)? {
            true => sorted.push(file.clone()),
            false => runs.sort(file, &mut sorted)?,
        }
    }
    while sorted.len() > FILES_MAX {
        let group: Vec<PathBuf> = sorted.drain(..FILES_MAX).collect();
        let mut out = runs.next()?;
        merge_sorted(&group, &mut |line| write_line(&mut out.1, line))?;
        out.1.flush()?;
        sorted.push(out.0);
        let done = group.iter().filter(|file| file.starts_with(scratch));
        done.into_iter().try_for_each(fs::remove_file)?;
    }
    merge_sorted(&sorted, sink)
}

/// The sorted files in the folder for temporary ones.
struct Runs<'a> {
    folder: &'a Path,
    count: usize,
}

impl Runs<'_> {
    fn next(&mut self) -> io::Result<(PathBuf, BufWriter<File>)> {
        fs::create_dir_all(self.folder)?;
        let path = self.folder.join(format!("run-{}", self.count));
        self.count += 1;
        let file = File::create(&path)?;
        Ok((path, BufWriter::new(file)))
    }

    /// Sorts a file in parts that fit into memory, each to a file of its own.
    fn sort(&mut self, path: &Path, sorted: &mut Vec<PathBuf>) -> io::Result<()> {
        let (mut file, mut line) = (open(path)?, Vec::new());
        let (mut lines, mut bytes, mut is_more): (Vec<Box<[u8]>>, _, _) = (Vec::new(), 0, true);
        while is_more {
            is_more = read_line(&mut *file, &mut line)?;
            if is_more {
                lines.push(line.as_slice().into());
                bytes += line.len() + size_of::<Box<[u8]>>();
            }
            if bytes >= SORTED_BYTES_MAX || (!is_more && !lines.is_empty()) {
                lines.sort_unstable();
                let (path, mut out) = self.next()?;
                lines.iter().try_for_each(|line| write_line(&mut out, line))?;
                out.flush()?;
                sorted.push(path);
                lines.clear();
                bytes = 0;
            }
        }
        Ok(())
    }
}

fn write_line(out: &mut impl Write, line: &[u8]) -> io::Result<()> {
    out.write_all(line)?;
    out.write_all(b"\n")
}

fn is_sorted(path: &Path) -> io::Result<bool> {
    let (mut file, mut line, mut last) = (open(path)?, Vec::new(), Vec::new());
    while read_line(&mut *file, &mut line)? {
        if line < last {
            return Ok(false);
        }
        std::mem::swap(&mut line, &mut last);
    }
    Ok(true)
}

/// Passes the lines of sorted files to `sink`, sorted.
fn merge_sorted(files: &[PathBuf], sink: &mut Sink<'_>) -> io::Result<()> {
    let mut readers: Vec<Box<dyn BufRead>> = Vec::new();
    let mut next = BinaryHeap::new();
    for (at, path) in files.iter().enumerate() {
        let (mut reader, mut line) = (open(path)?, Vec::new());
        if read_line(&mut *reader, &mut line)? {
            next.push(Reverse((line, at)));
        }
        readers.push(reader);
    }
    while let Some(Reverse((mut line, at))) = next.pop() {
        sink(&line)?;
        if read_line(&mut *readers[at], &mut line)? {
            next.push(Reverse((line, at)));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::random::Random;

    /// Against a sort of all lines in memory: sorted and unsorted files, empty ones, and more than
    /// may be open at once.
    #[test]
    fn lines_are_merged_in_order() {
        let mut random = Random(3);
        for files in [0, 1, 3, 70, 200] {
            let folder = tempfile::tempdir().expect("a folder");
            let (mut paths, mut all) = (Vec::new(), Vec::new());
            for number in 0..files {
                let count = random.below(30_u64);
                let line = |_| format!("k{} {number}", random.below(500_u64));
                let mut lines: Vec<String> = (0..count).map(line).collect();
                if number % 3 > 0 {
                    lines.sort();
                }
                let path = folder.path().join(number.to_string());
                let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
                fs::write(&path, text).expect("written");
                paths.push(path);
                all.append(&mut lines);
            }
            all.sort();
            let mut merged = Vec::new();
            let scratch = folder.path().join("scratch");
            merge(&paths, &scratch, &mut |line| {
                merged.push(String::from_utf8(line.to_vec()).expect("UTF-8"));
                Ok(())
            })
            .expect("readable");
            assert_eq!(merged, all, "{files} files");
            assert_eq!(
                scratch.exists(),
                files > 1 || paths.iter().any(|it| !is_sorted(it).unwrap())
            );
        }
    }
}
