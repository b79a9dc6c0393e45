//! The index of a package: the lines of all index files, sorted and compressed in blocks, and a
//! list of the blocks.
//!
//! It is the pair `index.cdx.gz` and `index.idx` that py-wacz writes: ReplayWeb.page finds a line
//! by the list without reading all of the index, and pywb reads only indexes of this name.

use libdeflater::{CompressionLvl, Compressor};
use std::io::{self, Write};

/// The number of lines in a block.
const BLOCK_LINES: usize = 3_000;

/// Writes the blocks of an index.
pub(super) struct Blocks<'a> {
    out: &'a mut dyn Write,
    compressor: Compressor,
    block: Vec<u8>,
    packed: Vec<u8>,
    lines: usize,
    offset: u64,
    /// The list of the blocks.
    list: String,
}

impl<'a> Blocks<'a> {
    pub(super) fn new(out: &'a mut dyn Write) -> Self {
        let list = "!meta 0 {\"format\": \"cdxj-gzip-1.0\", \"filename\": \"index.cdx.gz\"}\n";
        Self {
            out,
            compressor: Compressor::new(CompressionLvl::default()),
            block: Vec::new(),
            packed: Vec::new(),
            lines: 0,
            offset: 0,
            list: list.to_owned(),
        }
    }

    /// Adds a line, without its end.
    ///
    /// # Errors
    /// The block can't be written.
    pub(super) fn add(&mut self, line: &[u8]) -> io::Result<()> {
        self.block.extend_from_slice(line);
        self.block.push(b'\n');
        self.lines += 1;
        if self.lines < BLOCK_LINES { Ok(()) } else { self.flush() }
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.lines == 0 {
            return Ok(());
        }
        self.packed.resize(self.compressor.gzip_compress_bound(self.block.len()), 0);
        let packed = self.compressor.gzip_compress(&self.block, &mut self.packed);
        let bytes = packed.expect("the bound is enough");
        self.out.write_all(&self.packed[..bytes])?;
        // A block is found by the key and the time of its first line.
        let end = memchr::memmem::find(&self.block, b" {").unwrap_or(0);
        let key = String::from_utf8_lossy(&self.block[..end]);
        let offset = self.offset;
        self.list += &format!("{key} {{\"offset\": {offset}, \"length\": {bytes}}}\n");
        self.offset += bytes as u64;
        self.block.clear();
        self.lines = 0;
        Ok(())
    }

    /// Writes the last block, and returns the list of the blocks.
    ///
    /// # Errors
    /// The block can't be written.
    pub(super) fn end(mut self) -> io::Result<String> {
        self.flush()?;
        Ok(self.list)
    }
}
