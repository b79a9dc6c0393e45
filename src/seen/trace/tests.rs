//! Tests traces that are written and read in full, in pieces, and damaged.

use super::*;
use crate::ground::random::Random;

type Pages = Vec<(Page, Vec<Link>)>;

/// Returns some pages, and their trace.
fn sample(seed: u64) -> (Pages, Vec<u8>) {
    let (mut draw, mut pages, mut writer) = (Random(seed), Vec::new(), Writer::new(seed));
    let mut bytes = Vec::new();
    for _ in 0..draw.below(20) {
        let page = Page {
            time_us: draw.below(u64::MAX),
            server: draw.below(1 << 30) as u32,
            host: draw.below(1 << 30) as u32,
            busy: draw.below(1 << 16) as u16,
            parked: draw.below(1 << 16) as u16,
        };
        let link = |draw: &mut Random| Link {
            fingerprint: Fingerprint(draw.below(u64::MAX) << 20),
            host: draw.below(1 << 30) as u32,
        };
        let links: Vec<Link> = (0..draw.below(9)).map(|_| link(&mut draw)).collect();
        writer.begin(&page);
        links.iter().for_each(|each| writer.link(each));
        writer.end();
        pages.push((page, links));
        // Sometimes the bytes so far are written.
        if draw.below(4) == 0 {
            bytes.extend_from_slice(writer.bytes());
            writer.clear();
        }
    }
    bytes.extend_from_slice(writer.bytes());
    (pages, bytes)
}

/// Reads all groups of a file that arrives in pieces, and returns what is wrong after them.
fn read(bytes: &[u8], piece: &mut dyn FnMut() -> usize) -> (Pages, Option<Broken>) {
    let (mut reader, mut pages, mut rest) = (Reader::default(), Vec::new(), bytes);
    loop {
        match reader.group() {
            Ok(Some(group)) => pages.push((group.page, group.links().collect())),
            Ok(None) if rest.is_empty() => return (pages, reader.end().err()),
            Ok(None) => {
                let (now, later) = rest.split_at(piece().clamp(1, rest.len()));
                reader.feed(now);
                rest = later;
            }
            Err(broken) => return (pages, Some(broken)),
        }
    }
}

#[test]
fn what_is_written_is_read_in_pieces_of_any_length() {
    for seed in 0..200 {
        let (pages, bytes) = sample(seed);
        let mut draw = Random(seed);
        assert_eq!(read(&bytes, &mut || usize::MAX), (pages.clone(), None), "seed {seed}");
        let mut piece = || draw.below(90) as usize;
        assert_eq!(read(&bytes, &mut piece), (pages, None), "seed {seed}, in pieces");
    }
}

#[test]
fn sizes_are_as_documented() {
    let mut writer = Writer::new(1);
    let opening = writer.bytes().len();
    let page = Page { time_us: 1, server: 2, host: 3, busy: 4, parked: 5 };
    writer.begin(&page);
    writer.end();
    assert_eq!(writer.bytes().len() - opening, 29);
    writer.begin(&page);
    (0..10).for_each(|of| writer.link(&Link { fingerprint: Fingerprint(of), host: 1 }));
    writer.end();
    assert_eq!(writer.bytes().len() - opening, 2 * 29 + 10 * 12);
}

#[test]
fn a_cut_is_told_where_the_last_whole_page_ends() {
    let (pages, bytes) = sample(3);
    assert!(pages.len() > 3, "the sample has pages");
    let mut ends = vec![frame::OPENING_BYTES];
    for (_, links) in &pages {
        ends.push(ends.last().expect("not empty") + 29 + 12 * links.len());
    }
    for cut in 0..bytes.len() {
        let (found, broken) = read(&bytes[..cut], &mut || 50);
        let whole = ends.iter().filter(|end| **end <= cut).count();
        assert_eq!(found, pages[..whole.saturating_sub(1)], "cut to {cut}");
        let offset = if whole == 0 { 0 } else { ends[whole - 1] };
        let expected = (cut != offset || whole == 0)
            .then_some(Broken { offset: offset as u64, flaw: Flaw::Cut });
        assert_eq!(broken, expected, "cut to {cut}");
    }
}

/// Whatever the disk does to a file: no panic, and nothing is read that was not written.
#[test]
fn changed_files_give_a_beginning_of_what_was_written() {
    for seed in 0..2_000 {
        let (pages, mut bytes) = sample(seed % 40);
        let mut draw = Random(seed);
        for _ in 0..=draw.below(3) {
            let at = draw.below(bytes.len() as u64) as usize;
            bytes[at] ^= 1 << draw.below(8);
        }
        let (found, broken) = read(&bytes, &mut || 1 + draw.below(200) as usize);
        assert_eq!(found, pages[..found.len()], "seed {seed}");
        let is_whole = found.len() == pages.len();
        assert!(broken.is_some() || is_whole, "seed {seed}: a loss is told");
    }
}

#[test]
fn files_of_others_are_no_traces() {
    let mut keys = Vec::new();
    frame::push_opening(Role::Keys, 1, &mut keys);
    for bytes in [&keys[..], &[b'x'; 100], &[0; 100]] {
        let (pages, broken) = read(bytes, &mut || 7);
        let expected = Broken { offset: 0, flaw: Flaw::Foreign(Role::Trace) };
        assert_eq!((pages.len(), broken), (0, Some(expected)));
    }
    let mut writer = Vec::new();
    frame::push_opening(Role::Trace, 1, &mut writer);
    let offset = writer.len() as u64;
    frame::push(9, b"what this version doesn't know", &mut writer);
    let (_, broken) = read(&writer, &mut || 100);
    assert_eq!(broken, Some(Broken { offset, flaw: Flaw::Senseless }));
}

#[test]
fn a_page_of_too_many_links_is_cut() {
    let mut writer = Writer::new(1);
    writer.begin(&Page { time_us: 0, server: 0, host: 0, busy: 0, parked: 0 });
    for of in 0..LINKS_MAX as u64 + 5 {
        writer.link(&Link { fingerprint: Fingerprint(of), host: 0 });
    }
    writer.end();
    let (pages, broken) = read(writer.bytes(), &mut || 1 << 20);
    assert_eq!((pages[0].1.len(), broken), (LINKS_MAX, None));
}
