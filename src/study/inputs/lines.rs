//! Reads a text file line by line, and unpacks it if its name ends in `.gz`, `.xz` or `.zst`.
//!
//! Laws: memory is bounded whatever the file has in it: one line of at most [`LINE_BYTES_MAX`], and
//! the decoder's window. A file that ends too early is an error.
//!
//! Cost: one copy of each byte; the decoders' cost.

use crate::os::input;
use crate::study::web::graph::unpacking_xz;
use flate2::bufread::MultiGzDecoder;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

/// The longest line in bytes, with its end.
const LINE_BYTES_MAX: u64 = 4_096;

/// Calls `take` with each line of the file at `path`, without its end, and the number of the line,
/// counted from 1.
///
/// # Errors
/// The file can't be read, a line is too long, or what `take` returns: with the names of file and
/// line.
pub(super) fn each_line(
    path: &Path,
    mut take: impl FnMut(&[u8], u64) -> Result<(), String>,
) -> Result<(), String> {
    let open = input::open(path).and_then(|file| unpacked(path, file));
    let mut reader = open.map_err(|error| format!("{}: {error}", path.display()))?;
    let mut line = Vec::new();
    for number in 1.. {
        let wrong = |why: &dyn std::fmt::Display| format!("{}:{number}: {why}", path.display());
        line.clear();
        let read = reader.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line);
        if read.map_err(|error| wrong(&error))? == 0 {
            break;
        }
        if line.len() as u64 == LINE_BYTES_MAX && !line.ends_with(b"\n") {
            let text = format!("the line is longer than {LINE_BYTES_MAX} bytes; is this text?");
            return Err(wrong(&text));
        }
        take(line.trim_ascii_end(), number).map_err(|why| wrong(&why))?;
    }
    Ok(())
}

/// Returns the content of a file, unpacked as its name says.
fn unpacked(path: &Path, file: File) -> io::Result<Box<dyn BufRead>> {
    let file = BufReader::with_capacity(1 << 16, file);
    let unpacker: Box<dyn Read> = match path.extension().and_then(|extension| extension.to_str()) {
        Some("gz") => Box::new(MultiGzDecoder::new(file)),
        Some("xz") => Box::new(unpacking_xz(file)),
        Some("zst") => Box::new(zstd::stream::read::Decoder::with_buffer(file)?),
        _ => return Ok(Box::new(file)),
    };
    Ok(Box::new(BufReader::with_capacity(1 << 16, unpacker)))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "tests write the files that are read")]

    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::fs;
    use std::io::Write;

    fn lines(path: &Path) -> Result<Vec<(u64, String)>, String> {
        let mut found = Vec::new();
        let ended = each_line(path, |line, number| {
            found.push((number, String::from_utf8_lossy(line).into_owned()));
            if line == b"bad" { Err("no line".to_owned()) } else { Ok(()) }
        });
        ended.map(|()| found)
    }

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut packer = GzEncoder::new(Vec::new(), Compression::default());
        packer.write_all(text).expect("in memory");
        packer.finish().expect("in memory")
    }

    #[test]
    fn lines_are_the_same_however_they_are_packed() {
        let folder = tempfile::tempdir().expect("a folder");
        let text = b"one\r\n\n two\t\nthree";
        // Several members follow each other where files were joined.
        let joined = [gzip(&text[..7]), gzip(&text[7..])].concat();
        let zstd = zstd::bulk::compress(text, 3).expect("in memory");
        let expected = [(1, "one"), (2, ""), (3, " two"), (4, "three")];
        let expected = expected.map(|(number, line)| (number, line.to_owned()));
        let cases: [(&str, &[u8]); 4] =
            [("a.txt", text), ("a.gz", &gzip(text)), ("b.gz", &joined), ("a.zst", &zstd)];
        for (name, bytes) in cases {
            let path = folder.path().join(name);
            fs::write(&path, bytes).expect("written");
            assert_eq!(lines(&path).expect(name), expected, "{name}");
            if name != "a.txt" {
                fs::write(&path, &bytes[..bytes.len() - 3]).expect("written");
                assert!(lines(&path).is_err(), "{name} cut short");
            }
        }
    }

    #[test]
    fn mistakes_name_file_and_line() {
        let folder = tempfile::tempdir().expect("a folder");
        let long = format!("a\n{}\n", "x".repeat(4_096));
        for (name, text, says) in [
            ("a", "one\nbad\ntwo", "a:2: no line"),
            ("b", &long, "b:2: the line is longer than 4096 bytes"),
            ("c.gz", "this is no gzip file", "c.gz:1: invalid gzip header"),
            ("d.xz", "this is no xz file", "d.xz:1: "),
        ] {
            let path = folder.path().join(name);
            fs::write(&path, text).expect("written");
            let found = lines(&path).expect_err(name);
            assert!(found.contains(says), "{name}: {found}");
        }
        let missing = lines(&folder.path().join("none")).expect_err("no file");
        assert!(missing.ends_with("none: No such file or directory (os error 2)"), "{missing}");
    }
}
