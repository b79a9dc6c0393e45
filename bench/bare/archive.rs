//! What an archive does to its records, each part by itself and nothing around it.
//!
//! The records are those that `sted` wrote for the same web without compression, so that bytes and
//! their number are the same: one response and one request a page. Digests are SHA-1 of a record's
//! block and, of a response, of the payload; compression is one gzip member of level 1 a record;
//! writes are of a mebibyte, to a file beside the archive, removed afterwards.

use libdeflater::{CompressionLvl, Compressor};
use memchr::memmem;
use sha1::{Digest, Sha1};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use sted::os::signal;

const WRITE_BYTES: usize = 1 << 20;

/// One record of an archive in memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record<'a> {
    /// All of it, its end included.
    pub(crate) whole: &'a [u8],
    pub(crate) block: &'a [u8],
    /// Whether it is a page: its payload begins behind the head in its block.
    pub(crate) is_response: bool,
}

/// Microseconds of CPU for each response record of these files, one line of JSON.
pub(crate) fn run(files: &[&str]) -> io::Result<String> {
    let archives = read(files)?;
    let records: Vec<Record<'_>> = archives.iter().flat_map(|bytes| split(bytes)).collect();
    let beside = Path::new(files[0]).with_extension("bare");
    let pages = records.iter().filter(|record| record.is_response).count();
    let (digest_ns, sum) = timed(|| Ok(digests(&records)))?;
    let (gzip_ns, packed) = timed(|| Ok(compress(&records)))?;
    let (write_ns, ()) = timed(|| write(&beside, packed.iter().map(Vec::as_slice)))?;
    let whole = records.iter().map(|record| record.whole);
    let (write_plain_ns, ()) = timed(|| write(&beside, whole))?;
    fs::remove_file(&beside)?;
    Ok(format!(
        "{{\"pages\":{pages},\"digest_us\":{:.3},\"gzip_us\":{:.3},\"write_us\":{:.3},\
         \"write_plain_us\":{:.3},\"sum\":{sum}}}",
        us(digest_ns, pages),
        us(gzip_ns, pages),
        us(write_ns, pages),
        us(write_plain_ns, pages)
    ))
}

/// The contents of these files.
pub(crate) fn read(files: &[&str]) -> io::Result<Vec<Vec<u8>>> {
    files.iter().map(fs::read).collect()
}

/// Microseconds a page.
pub(crate) fn us(ns: u64, pages: usize) -> f64 {
    ns as f64 / 1e3 / pages.max(1) as f64
}

/// Does some work; the CPU time of this thread that it took, in nanoseconds, and its result.
pub(crate) fn timed<T>(work: impl FnOnce() -> io::Result<T>) -> io::Result<(u64, T)> {
    let before = signal::thread_cpu_ns();
    let done = work()?;
    Ok((signal::thread_cpu_ns() - before, done))
}

/// The records of an uncompressed archive.
pub(crate) fn split(mut bytes: &[u8]) -> Vec<Record<'_>> {
    let mut records = Vec::new();
    while let Some(head) = memmem::find(bytes, b"\r\n\r\n") {
        let text = String::from_utf8_lossy(&bytes[..head]);
        let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name));
        let length = field("Content-Length: ").and_then(|text| text.trim().parse::<usize>().ok());
        let (begin, length) = (head + 4, length.expect("a record of known length"));
        let is_response = field("WARC-Type: ") == Some("response");
        let (whole, rest) = bytes.split_at(begin + length + 4);
        records.push(Record { whole, block: &whole[begin..begin + length], is_response });
        bytes = rest;
    }
    records
}

/// Takes all digests; something of each, so that none is left out.
fn digests(records: &[Record<'_>]) -> u64 {
    let mut sum = 0;
    for record in records {
        sum += u64::from(Sha1::digest(record.block)[0]);
        if record.is_response {
            let payload = memmem::find(record.block, b"\r\n\r\n").map_or(0, |end| end + 4);
            sum += u64::from(Sha1::digest(&record.block[payload..])[0]);
        }
    }
    sum
}

/// Members of many records each, as they would wait to be written.
fn compress(records: &[Record<'_>]) -> Vec<Vec<u8>> {
    let mut compressor = Compressor::new(CompressionLvl::new(1).expect("a level"));
    let mut done = Vec::new();
    let mut at = 0;
    let mut chunk = Vec::new();
    for record in records {
        let bound = compressor.gzip_compress_bound(record.whole.len());
        chunk.resize((at + bound).max(chunk.len()), 0);
        let packed = compressor.gzip_compress(record.whole, &mut chunk[at..at + bound]);
        at += packed.expect("there is room");
        if at >= WRITE_BYTES {
            done.push(chunk[..at].to_vec());
            at = 0;
        }
    }
    done.push(chunk[..at].to_vec());
    done
}

/// Writes pieces in mebibytes, as an archive does, whatever pieces they come in.
pub(crate) fn write<'a>(path: &Path, pieces: impl Iterator<Item = &'a [u8]>) -> io::Result<()> {
    let mut out = io::BufWriter::with_capacity(WRITE_BYTES, File::create(path)?);
    for piece in pieces {
        out.write_all(piece)?;
    }
    out.into_inner()?.sync_data()
}

/// An archive of two records is read as such, and what comes back from gzip is what went in.
pub(crate) fn check() -> io::Result<()> {
    let record = |kind: &str, block: &str| {
        let length = block.len();
        format!("WARC/1.1\r\nWARC-Type: {kind}\r\nContent-Length: {length}\r\n\r\n{block}\r\n\r\n")
    };
    let page = record("response", "HTTP/1.1 200 OK\r\n\r\npage\r\n\r\n with a gap");
    let text = page + &record("request", "GET / HTTP/1.1\r\n\r\n");
    let records = split(text.as_bytes());
    assert_eq!(records.iter().map(|record| record.is_response).collect::<Vec<_>>(), [true, false]);
    let mut unpacked = Vec::new();
    let packed = compress(&records).concat();
    io::Read::read_to_end(&mut flate2::read::MultiGzDecoder::new(&packed[..]), &mut unpacked)?;
    assert_eq!(unpacked, text.as_bytes());
    let path = std::env::temp_dir().join(format!("bare-{}.warc", std::process::id()));
    fs::write(&path, &text)?;
    let line = run(&[path.to_str().expect("a plain path")])?;
    fs::remove_file(&path)?;
    assert!(line.starts_with("{\"pages\":1,"), "{line}");
    Ok(())
}
