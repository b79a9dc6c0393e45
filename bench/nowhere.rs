//! A disk that discards everything, for benches that don't measure the disk. Law: every write
//! succeeds, and no file ever exists.

use sted::ground::disk::{Disk, Error};

#[derive(Debug)]
pub(crate) struct Nowhere;

impl Disk for Nowhere {
    fn append(&mut self, _: &str, _: &[u8]) -> Result<(), Error> {
        Ok(())
    }

    fn read_at(&mut self, _: &str, _: u64, _: &mut [u8]) -> Result<usize, Error> {
        Ok(0)
    }

    fn len(&mut self, _: &str) -> Result<Option<u64>, Error> {
        Ok(None)
    }

    fn sync(&mut self, _: &str) -> Result<(), Error> {
        Ok(())
    }

    fn truncate(&mut self, _: &str, _: u64) -> Result<(), Error> {
        Ok(())
    }

    fn rename(&mut self, _: &str, _: &str) -> Result<(), Error> {
        Ok(())
    }

    fn remove(&mut self, _: &str) -> Result<(), Error> {
        Ok(())
    }

    fn list(&mut self, _: &str) -> Result<Vec<String>, Error> {
        Ok(Vec::new())
    }

    fn handle(&self) -> Box<dyn Disk> {
        Box::new(Self)
    }
}
