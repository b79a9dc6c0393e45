//! Tests files that were changed, truncated or extended: they are reported with their name, or
//! harmless.

use super::*;
use crate::ground::frame::{Damage, Flaw, OPENING_BYTES};

/// The files of a crawl, and the mark that names them.
struct Image {
    files: Vec<(String, Vec<u8>)>,
    mark: Mark,
    settings: Settings,
}

impl Image {
    /// Creates a crawl that knows 40 keys, all of one bucket, in memory or (if that is small) on
    /// disk.
    fn new(memory_bytes: usize) -> Self {
        let settings = Settings { memory_bytes, crawl: Some(CRAWL), ..Settings::default() };
        let mut disk = Memory::default();
        let mut seen = Seen::new(settings.clone());
        for key in 0..40 {
            seen.offer(Fingerprint(key), b"bytes");
        }
        seen.hasten();
        run(&mut seen, &mut disk).expect("all is well");
        // Some URLs wait, if there is a batch.
        (30..50).for_each(|key| seen.offer(Fingerprint(key), b"more"));
        while seen.fresh().is_some() {}
        let mark = seen.mark(&mut disk).expect("there is room");
        let files = mark.files.iter().map(|(name, _)| (name.clone(), disk.bytes(name))).collect();
        Self { files, mark, settings }
    }

    /// Resumes a crawl from these files, and tests many more URLs.
    fn go_on(&self, state: &[u8]) -> Result<BTreeSet<Vec<u8>>, frame::Error> {
        let mut disk = Memory::default();
        for (name, bytes) in &self.files {
            disk.append(name, bytes).expect("there is room");
        }
        let mut seen = Seen::restore(self.settings.clone(), state, &mut disk)?;
        (20..80).for_each(|key| seen.offer(Fingerprint(key), format!("late {key}").as_bytes()));
        seen.hasten();
        run(&mut seen, &mut disk)
    }

    fn go_on_damaged(&self) -> Damage {
        match self.go_on(&self.mark.state) {
            Err(frame::Error::Damaged(damage)) => damage,
            Err(frame::Error::Disk(error)) => panic!("{error}"),
            Ok(_) => panic!("nobody noticed"),
        }
    }
}

/// Runs all jobs and takes all new URLs.
fn run(seen: &mut Seen, disk: &mut Memory) -> Result<BTreeSet<Vec<u8>>, frame::Error> {
    let mut out = BTreeSet::new();
    loop {
        while let Some(bytes) = seen.fresh() {
            out.insert(bytes.to_vec());
        }
        let Some(job) = seen.job(disk)? else { return Ok(out) };
        seen.worked(job.run())?;
    }
}

fn images() -> [Image; 2] {
    let images = [Image::new(1 << 20), Image::new(256)];
    let kinds = |image: &Image| -> Vec<String> {
        let kind = |name: &str| name["state/seen/".len()..].split('-').next().map(str::to_owned);
        image.files.iter().filter_map(|(name, _)| kind(name)).collect()
    };
    assert_eq!(kinds(&images[0]), ["keys"]);
    assert_eq!(kinds(&images[1]), ["bucket", "pending"]);
    images
}

#[test]
fn every_changed_bit_is_told_with_its_file() {
    for mut image in images() {
        for file in 0..image.files.len() {
            for bit in 0..image.files[file].1.len() * 8 {
                image.files[file].1[bit / 8] ^= 1 << (bit % 8);
                let Damage { name, offset, flaw } = image.go_on_damaged();
                assert_eq!(name, image.files[file].0, "{flaw} at {offset}, bit {bit}");
                assert!(offset <= (bit / 8) as u64, "{name}: {flaw} at {offset}, bit {bit}");
                image.files[file].1[bit / 8] ^= 1 << (bit % 8);
            }
        }
    }
}

#[test]
fn a_cut_is_told_and_what_does_not_count_is_harmless() {
    for mut image in images() {
        let expected = image.go_on(&image.mark.state).expect("all is well");
        assert!(expected.iter().any(|bytes| bytes.starts_with(b"late")));
        for file in 0..image.files.len() {
            let whole = image.files[file].clone();
            for len in 0..whole.1.len() {
                image.files[file].1.truncate(len);
                let (name, offset) = (whole.0.clone(), len as u64);
                assert_eq!(image.go_on_damaged(), Damage { name, offset, flaw: Flaw::Cut });
                image.files[file] = whole.clone();
            }
            image.files[file].1.extend_from_slice(b"what a crash has left");
            assert_eq!(image.go_on(&image.mark.state).expect("harmless"), expected);
            image.files[file] = whole;
        }
        // Files that the mark doesn't name; one has the name of the next new file.
        for name in ["bucket-00-9999", "keys-1", "pending-1", "bucket-00-2", "x"] {
            image.files.push((format!("state/seen/{name}"), b"left".to_vec()));
        }
        assert_eq!(image.go_on(&image.mark.state).expect("harmless"), expected);
    }
}

/// Law: no state causes a panic, and none with a byte more or less is accepted.
#[test]
fn a_state_that_makes_no_sense_is_told() {
    let mut random = Random(3);
    let mut told = 0;
    for image in images() {
        for end in 0..image.mark.state.len() {
            assert!(image.go_on(&image.mark.state[..end]).is_err(), "cut to {end}");
        }
        assert!(image.go_on(&[&image.mark.state[..], b"\0"].concat()).is_err());
        for _ in 0..3_000 {
            let mut state = image.mark.state.clone();
            for _ in 0..1 + random.below(3) {
                let at = random.below(state.len() as u64) as usize;
                state[at] = random.word() as u8;
            }
            told += u32::from(image.go_on(&state).is_err());
        }
    }
    assert!(told > 3_000, "{told}");
}

/// Valid checksums of invalid content.
#[test]
fn files_that_make_no_sense_are_told() {
    let [keys, waiting] = images();
    // The number of records, and what follows.
    let records = |count: u32, rest: &[u8]| [&count.to_le_bytes(), rest].concat();
    let cases = [
        (&keys, 0, records(2, &[7; 16]), "a key twice"),
        (&keys, 0, records(1, &[7; 7]), "less than a key"),
        (&keys, 0, records(u32::MAX, &[7; 16]), "less than its keys"),
        (&keys, 0, records(1, &[7; 9]), "bytes of a key"),
        (&keys, 0, vec![1, 2, 3], "less than a number"),
        (&waiting, 1, records(1, &[0; 7]), "less than a fingerprint"),
        (&waiting, 1, records(1, &[0; 12]), "one URL, where there were more"),
        (&waiting, 1, records(10, &[0; 82]), "less than a length"),
        (&waiting, 1, records(10, &[&[0; 80][..], &[3; 4]].concat()), "a length past the end"),
        (&waiting, 1, records(10, &[0; 121]), "a byte past the last URL"),
        (&waiting, 0, vec![1, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0], "a bucket's frame, too short"),
    ];
    for (image, file, payload, why) in cases {
        let (name, bytes) = &image.files[file];
        let mut forged = bytes[..OPENING_BYTES].to_vec();
        frame::push(log::RECORDS, &payload, &mut forged);
        // As long as before: with one more frame, which is skipped in some cases, and not in
        // others.
        let filler = bytes.len().checked_sub(forged.len() + frame::OVERHEAD_BYTES);
        frame::push(9, &vec![0; filler.expect("it was longer")], &mut forged);
        let mut files = image.files.clone();
        files[file].1 = forged;
        let image = Image { files, mark: image.mark.clone(), settings: image.settings.clone() };
        let damage = image.go_on_damaged();
        assert_eq!((&damage.name, damage.flaw), (name, Flaw::Senseless), "{why}");
    }
}
