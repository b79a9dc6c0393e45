//! Tests decoding with any split and any budget, and decompression bombs.

use super::*;
use crate::ground::random::Random;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use flate2::{Compression, GzBuilder};
use std::io::Write;

/// [`page`] as encoded by the reference encoder of brotli, with words of its dictionary.
const PAGE_BROTLI: &str = "1b3b01108c935cfde29cdbd8ba9e2de2fb0d29aa5248829a1cb0df7e7b0a3492a4024a90\
    d3c901dd6e511415b7d2c4024cda28887dc3e220d20e45e38fba9f4884cd51647ab5374c50c501f7f3aa05";

/// The same page with a window of 2^30 bytes, which only the large-window variant allows.
const PAGE_BROTLI_LARGE: &str = "115eec0440304e72f58b736e63eb7ab688ef37a4a84a21096a72c07efbed29d0\
    48920a28414e270774bb455154dc4a130b3069a320f60d8b83483b148d3fea7e2211364791e9d5de30411507dccf\
    ab16";

/// 8 MiB of zeros.
const BOMB_BROTLI: &str = "9fffff7ff82700e2b14020f7fe0f";

fn page() -> Vec<u8> {
    let line = "<p>It is the first of the many and there are more of them: \
        <a href=\"/page\">page</a></p>\n";
    let title = "<!doctype html>\n<title>The time of the year</title>\n";
    format!("{title}{line}{line}{line}").into_bytes()
}

/// Returns text that compresses about as well as pages do, and doesn't repeat.
fn text(len: usize) -> Vec<u8> {
    let mut random = Random(7);
    let words = ["the ", "<a href=\"/", "\">", "</a>\n", "of ", "crawl", "0", "7", "x", " "];
    let mut text = Vec::new();
    while text.len() < len {
        text.extend_from_slice(words[random.below(words.len())].as_bytes());
    }
    text.truncate(len);
    text
}

fn bytes_of(hex: &str) -> Vec<u8> {
    let digits: Vec<u32> = hex.chars().filter_map(|char| char.to_digit(16)).collect();
    digits.chunks(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect()
}

fn gzip(plain: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(plain).and_then(|()| encoder.finish()).expect("memory")
}

fn zlib(plain: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(plain).and_then(|()| encoder.finish()).expect("memory")
}

fn raw_deflate(plain: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(plain).and_then(|()| encoder.finish()).expect("memory")
}

fn zstd_frame(plain: &[u8]) -> Vec<u8> {
    zstd::bulk::compress(plain, 3).expect("memory")
}

/// Decodes with the piece lengths and budgets that `cut` returns; the text is also returned after a
/// fault.
fn decode_by(
    decoder: &mut Decoder,
    codings: &[Coding],
    coded: &[u8],
    mut cut: impl FnMut() -> usize,
) -> (Vec<u8>, State) {
    decoder.begin(codings);
    let (mut at, mut come, mut out) = (0, 0, Vec::new());
    loop {
        let budget = cut().max(1);
        let before = out.len();
        let decoded = decoder.decode(&coded[at..come], come == coded.len(), &mut out, budget);
        assert!(out.len() - before <= budget, "the budget holds");
        assert_eq!(out.len() as u64, decoder.decoded_bytes());
        assert!(decoded.used <= come - at, "used more than there was");
        at += decoded.used;
        match decoded.state {
            State::More => {}
            State::Hungry => {
                assert!(at == come && come < coded.len(), "hungry with input left");
                come = (come + cut().max(1)).min(coded.len());
            }
            state => return (out, state),
        }
    }
}

fn decode(codings: &[Coding], coded: &[u8]) -> (Vec<u8>, State) {
    let mut decoder = Decoder::new(DecodeLimits::default());
    decode_by(&mut decoder, codings, coded, || usize::MAX / 2)
}

/// Returns a body in each coding, and in a stack of all that can be encoded here: the codings, the
/// coded body, and the plain text.
fn samples() -> Vec<(Vec<Coding>, Vec<u8>, Vec<u8>)> {
    let plain = text(100_000);
    let stacked = zstd_frame(&gzip(&zlib(&plain)));
    vec![
        (vec![], plain.clone(), plain.clone()),
        (vec![Coding::Gzip], gzip(&plain), plain.clone()),
        (vec![Coding::Deflate], zlib(&plain), plain.clone()),
        (vec![Coding::Deflate], raw_deflate(&plain), plain.clone()),
        (vec![Coding::Deflate], gzip(&plain), plain.clone()),
        (vec![Coding::Zstd], zstd_frame(&text(300_000)), text(300_000)),
        (vec![Coding::Deflate, Coding::Gzip, Coding::Zstd], stacked, plain),
        (vec![Coding::Brotli], bytes_of(PAGE_BROTLI), page()),
        (vec![Coding::Brotli, Coding::Gzip], gzip(&bytes_of(PAGE_BROTLI)), page()),
    ]
}

#[test]
fn names_of_codings() {
    use Coding::{Brotli, Deflate, Gzip, Zstd};
    let known =
        |list: &[Coding]| Codings { known: list.iter().copied().collect(), ..Codings::default() };
    let unknown = |list: &[Coding]| Codings { has_unknown: true, ..known(list) };
    let many = Codings { too_many: true, ..known(&[Gzip, Gzip, Gzip]) };
    let cases: [(&[&str], Codings, &str); 10] = [
        (&[], known(&[]), "no field"),
        (&["identity"], known(&[]), "RFC 9110 12.5.3"),
        (&["none"], known(&[]), "not in the standard, and clear"),
        (&["gzip"], known(&[Gzip]), "RFC 9110 8.4.1.3"),
        (&["X-GZip"], known(&[Gzip]), "RFC 9110 8.4.1: any case; 8.4.1.3: x-gzip"),
        (&["deflate", "br", "zstd"], known(&[Deflate, Brotli, Zstd]), "in order of application"),
        (&["gzip", "gzip", "gzip", "gzip"], many, "more than any server means"),
        (&["compress"], unknown(&[]), "nobody sends it"),
        (&["utf-8"], unknown(&[]), "a charset is no coding"),
        (&["aws-chunked", "gzip"], unknown(&[Gzip]), "what is known is undone"),
    ];
    for (names, expected, why) in cases {
        assert_eq!(parse(names.iter().map(|name| name.as_bytes())), expected, "{names:?}: {why}");
    }
}

#[test]
fn cuts_and_budgets_change_nothing() {
    let mut random = Random(1);
    // One decoder for all: the state of one body must not affect the next.
    let mut decoder = Decoder::new(DecodeLimits::default());
    for (codings, coded, plain) in samples() {
        assert_eq!(decode(&codings, &coded), (plain.clone(), State::Done), "{codings:?}");
        for _ in 0..10 {
            let most = 1 << (2 + random.below(15));
            let found = decode_by(&mut decoder, &codings, &coded, || 1 + random.below(most));
            assert!(found == (plain.clone(), State::Done), "{codings:?}, cuts up to {most}");
        }
    }
}

#[test]
fn bodies_cut_short_keep_what_was_decoded() {
    let mut decoder = Decoder::new(DecodeLimits::default());
    for (codings, coded, plain) in samples().into_iter().skip(1) {
        let mut longest = 0;
        // Not the last bytes, because a gzip trailer may be missing. Not the first ones, because so
        // few don't show whether they are coded at all.
        for len in (16..coded.len() - 8).step_by(coded.len() / 40 + 1) {
            let (out, state) = decode_by(&mut decoder, &codings, &coded[..len], || 5_000);
            assert_eq!(state, State::CutShort, "{codings:?} cut at {len}");
            // For an inner layer the first bytes don't suffice either.
            let few = out.len() < 3;
            assert!(few || plain.starts_with(&out), "{codings:?} cut at {len}");
            longest = longest.max(out.len());
        }
        // zstd yields whole blocks of 128 KiB, and the stack has a single one.
        let is_one_block = codings.len() > 1 && codings.last() == Some(&Coding::Zstd);
        assert!(longest > plain.len() / 4 || is_one_block, "{codings:?}: {longest} bytes");
    }
}

#[test]
fn what_browsers_forgive() {
    let plain = page();
    let whole = gzip(&plain);
    let cut = |behind: usize| whole[..whole.len() - behind].to_vec();
    let join = |parts: [&[u8]; 2]| parts.concat();
    let mut wrong_sum = whole.clone();
    let sum_at = wrong_sum.len() - 8;
    wrong_sum[sum_at] ^= 1;
    let full_header = {
        let builder = GzBuilder::new().filename("a").comment("b").extra(vec![1; 300]).mtime(1);
        let mut encoder = builder.write(Vec::new(), Compression::fast());
        encoder.write_all(&plain).and_then(|()| encoder.finish()).expect("memory")
    };
    let mut header_sum = whole.clone();
    header_sum[3] |= 1 << 1;
    header_sum.splice(10..10, [0, 0]);
    let zeros = [0; 64];
    let frame = zstd_frame(&plain);
    // RFC 8878 3.1.2: a skippable frame of three bytes.
    let skippable = [0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3];
    let cases = [
        (Coding::Gzip, wrong_sum, "RFC 1952 2.3.1: CRC32 does not match"),
        (Coding::Gzip, cut(8), "no trailer"),
        (Coding::Gzip, cut(3), "half a trailer"),
        (Coding::Gzip, full_header, "RFC 1952 2.3.1: FEXTRA, FNAME, FCOMMENT"),
        (Coding::Gzip, header_sum, "RFC 1952 2.3.1: FHCRC"),
        (Coding::Gzip, join([&whole, &zeros]), "padding behind the member"),
        (Coding::Gzip, join([&whole, b"\x1f"]), "one byte that could begin a member"),
        (Coding::Gzip, join([&whole, b"\x1f\x8b rubbish"]), "two bytes that do"),
        (Coding::Gzip, join([&whole, &gzip(b"")]), "RFC 1952 2.2: members, one of them empty"),
        (Coding::Deflate, join([&zlib(&plain), b"rubbish"]), "rubbish behind the end"),
        (Coding::Brotli, join([&bytes_of(PAGE_BROTLI), b"rubbish"]), "rubbish behind the end"),
        (Coding::Zstd, join([&frame, b"rubbish, more than a header"]), "rubbish behind a frame"),
        (Coding::Zstd, join([&frame, b"\n"]), "too little to be a frame"),
        (Coding::Zstd, join([&skippable, &frame]), "RFC 8878 3.1.2: a frame to skip"),
        (Coding::Zstd, join([&frame, &zstd_frame(b"")]), "RFC 8878 3.1: frames in a row"),
    ];
    for (coding, coded, why) in cases {
        assert_eq!(decode(&[coding], &coded), (plain.clone(), State::Done), "{why}");
        let mut decoder = Decoder::new(DecodeLimits::default());
        let bytewise = decode_by(&mut decoder, &[coding], &coded, || 1);
        assert_eq!(bytewise, (plain.clone(), State::Done), "{why}, byte by byte");
    }
    let twice = join([&whole, &whole]);
    assert_eq!(decode(&[Coding::Gzip], &twice), ([plain.clone(), plain].concat(), State::Done));
    for coding in Coding::ALL {
        assert_eq!(decode(&[coding, coding], b""), (vec![], State::Done), "no body, {coding:?}");
    }
}

#[test]
fn each_way_to_break() {
    let mut large_window = Vec::new();
    let mut encoder = zstd::stream::write::Encoder::new(&mut large_window, 3).expect("memory");
    encoder.window_log(24).expect("a window of 16 MiB");
    encoder.write_all(&text(1_000)).and_then(|()| encoder.finish().map(drop)).expect("memory");
    let mut reserved = gzip(b"x");
    reserved[3] |= 1 << 7;
    let cases = [
        (Coding::Gzip, b"\x1f\x8b\x07".to_vec(), "not gzip"),
        (Coding::Gzip, reserved, "not gzip"),
        (Coding::Gzip, [&gzip(b"")[..10], b"\x07"].concat(), "bad deflate data"),
        (Coding::Deflate, b"\x07\x00 not deflate".to_vec(), "bad deflate data"),
        // CMF 78, FLG with FDICT, a multiple of 31.
        (Coding::Deflate, b"\x78\xbb\0...".to_vec(), "zlib with a dictionary"),
        (Coding::Brotli, b"\xff\xff\xff\xff\0".to_vec(), "bad brotli data"),
        (Coding::Brotli, bytes_of(PAGE_BROTLI_LARGE), "bad brotli data"),
        (Coding::Zstd, b"\x28\xb5\x2f\xfd\xff not a frame".to_vec(), "bad zstd data"),
        (Coding::Zstd, large_window, "bad zstd data"),
    ];
    for (coding, coded, reason) in cases {
        let found = decode(&[coding], &coded);
        assert_eq!(found.1, State::Broken(reason), "{coding:?} {coded:?}");
    }
    let mut decoder = Decoder::new(DecodeLimits::default());
    decoder.begin(&[Coding::Gzip]);
    for _ in 0..2 {
        let decoded = decoder.decode(b"\x1f\x8b\x07", false, &mut Vec::new(), 100);
        assert_eq!((decoded.used, decoded.state), (3, State::Broken("not gzip")), "it stays so");
    }
}

/// A body that is not in the coding of its label is kept as it is, at any layer.
#[test]
fn labels_that_are_wrong() {
    use Coding::{Brotli, Deflate, Gzip, Zstd};
    let (plain, short) = (page(), b"\n<p>a".to_vec());
    let long = text(5_000);
    type Case<'a> = (&'a [Coding], &'a [u8], &'a [u8], bool);
    let cases: [Case<'_>; 21] = [
        (&[Gzip], &plain, &plain, true),
        (&[Gzip], b"\x1f<p>", b"\x1f<p>", true),
        (&[Gzip], b"x", b"x", true),
        (&[Zstd], &plain, &plain, true),
        (&[Zstd], b"\x28\xb5", b"", false),
        (&[Zstd], b"(\xb5", b"", false),
        (&[Zstd], b"<p", b"<p", true),
        (&[Deflate], &long, &long, true),
        (&[Deflate], &short, &short, true),
        (&[Deflate], b"\xff\xfe<\0p\0>\0", b"\xff\xfe<\0p\0>\0", true),
        (&[Brotli], &long, &long, true),
        (&[Brotli], &short, &short, true),
        (&[Brotli], b";", b"", false),
        (&[Gzip, Gzip], &gzip(&plain), &plain, true),
        (&[Brotli, Brotli], &bytes_of(PAGE_BROTLI), &plain, true),
        (&[Deflate, Gzip], &gzip(&long), &long, true),
        (&[Gzip, Zstd], &gzip(&plain), &plain, true),
        (&[Deflate], &zlib(b"<p>"), b"<p>", false),
        (&[Deflate], &gzip(b"<p>"), b"<p>", false),
        (&[Deflate, Gzip], &gzip(&gzip(b"<p>")), b"<p>", false),
        (&[Deflate], &[gzip(b""), gzip(b"<p>")].concat(), b"<p>", false),
    ];
    let mut decoder = Decoder::new(DecodeLimits::default());
    for (codings, coded, expected, is_wrong) in cases {
        for most in [usize::MAX / 2, 1, 7] {
            let (out, _) = decode_by(&mut decoder, codings, coded, || most);
            let why = format!("{codings:?} {}", coded[..coded.len().min(40)].escape_ascii());
            assert!(out == expected, "{why}: {}", out.escape_ascii());
            assert_eq!(decoder.is_mislabelled(), is_wrong, "{why}");
        }
    }
}

/// A wrong checksum or length is detected and changes nothing: any byte of it, in any member, at
/// any layer. A truncated one is not checked.
#[test]
fn sums_that_are_wrong() {
    use Coding::{Deflate, Gzip};
    let plain = text(30_000);
    let (one, two) = (gzip(&plain), [gzip(&plain[..9_000]), gzip(&plain[9_000..])].concat());
    let first = gzip(&plain[..9_000]).len();
    let zlib = zlib(&plain);
    let cases: [(&[Coding], &[u8], std::ops::Range<usize>); 4] = [
        (&[Gzip], &one, one.len() - 8..one.len()),
        (&[Gzip], &two, first - 8..first),
        (&[Gzip], &two, two.len() - 8..two.len()),
        (&[Deflate], &zlib, zlib.len() - 4..zlib.len()),
    ];
    let mut decoder = Decoder::new(DecodeLimits::default());
    let mut is_wrong = |codings: &[Coding], coded: &[u8]| {
        let mut random = Random(3);
        let found = decode_by(&mut decoder, codings, coded, || random.below(20_000));
        assert!(found == (plain.clone(), State::Done), "{codings:?}: {:?}", found.1);
        decoder.is_sum_wrong()
    };
    for (codings, coded, places) in cases {
        assert!(!is_wrong(codings, coded), "{codings:?}");
        for position in places {
            let mut coded = coded.to_vec();
            coded[position] ^= 1 << (position % 8);
            assert!(is_wrong(codings, &coded), "{codings:?}: {position}");
            assert!(
                is_wrong(&[codings, &[Gzip]].concat(), &gzip(&coded)),
                "{codings:?}: {position}"
            );
        }
        assert!(!is_wrong(codings, &coded[..coded.len() - 1]), "{codings:?}: cut");
    }
    assert!(!is_wrong(&[Deflate], &raw_deflate(&plain)), "it has none");
}

/// A fault loses nothing that was decoded before it, at any layer.
#[test]
fn a_fault_keeps_what_is_before_it() {
    let plain = text(400_000);
    let mut frame = Vec::new();
    let mut encoder = zstd::stream::write::Encoder::new(&mut frame, 3).expect("memory");
    encoder.include_checksum(true).expect("an option");
    encoder.write_all(&plain).and_then(|()| encoder.finish().map(drop)).expect("memory");
    *frame.last_mut().expect("a checksum") ^= 1;
    let found = decode(&[Coding::Zstd], &frame);
    assert_eq!(found, (plain.clone(), State::Broken("bad zstd data")), "RFC 8878 3.1.1");
    let found = decode(&[Coding::Zstd, Coding::Gzip], &gzip(&frame));
    assert_eq!(found, (plain.clone(), State::Broken("bad zstd data")), "within gzip");
    for (codings, mut coded, lost) in [
        (&[Coding::Gzip, Coding::Zstd][..], zstd_frame(&gzip(&plain)), 128 << 10),
        (&[Coding::Gzip, Coding::Gzip][..], gzip(&gzip(&plain)), 40 << 10),
        (&[Coding::Zstd][..], zstd_frame(&plain), 128 << 10),
    ] {
        let at = coded.len() * 9 / 10;
        coded[at..at + 8].fill(0xff);
        let (out, _) = decode(codings, &coded);
        let whole = plain.iter().zip(&out).take_while(|(one, other)| one == other).count();
        assert!(whole + lost > plain.len() * 8 / 10, "{codings:?}: {whole} of {}", plain.len());
    }
}

/// Input that yields no output is counted as work, at each layer: see [`Coding::in_weight`].
#[test]
fn empty_blocks_are_work() {
    let stored = [&[0, 0, 0, 0xff, 0xff][..]; 40_000].concat();
    let empty = zstd_frame(b"").repeat(20_000);
    let skipped = b"\x50\x2a\x4d\x18\0\0\0\0".repeat(20_000);
    // A metablock of metadata, of no bytes: RFC 7932 9.2.
    let metadata = [&[0x0c][..], &[0x06; 100_000], &[0x03]].concat();
    let member = gzip(b"").repeat(9_000);
    let cases: [(&[Coding], Vec<u8>); 7] = [
        (&[Coding::Deflate], stored.clone()),
        (&[Coding::Deflate, Coding::Gzip], gzip(&stored)),
        (&[Coding::Zstd], empty.clone()),
        (&[Coding::Zstd, Coding::Gzip], gzip(&empty)),
        (&[Coding::Zstd], skipped),
        (&[Coding::Brotli], metadata),
        (&[Coding::Gzip], member),
    ];
    let budget = 50_000;
    for (codings, coded) in cases {
        let mut decoder = Decoder::new(DecodeLimits::default());
        decoder.begin(codings);
        let (mut at, mut work, mut calls) = (0, 0, 0);
        loop {
            let step = decoder.decode(&coded[at..], true, &mut Vec::new(), budget);
            assert!(step.work < budget + (128 << 10), "{codings:?}: {}", step.work);
            (at, work, calls) = (at + step.used, work + step.work, calls + 1);
            if step.state != State::More {
                break;
            }
        }
        assert!(work > 500_000 && calls > 4, "{codings:?}: {work} units in {calls} calls");
    }
}

/// Decodes a body that is there as a whole, with a budget that covers it. Returns also whether a
/// checksum is wrong, and whether the label is.
fn decode_whole(decoder: &mut Decoder, coding: Coding, body: &[u8]) -> (Vec<u8>, State, [bool; 2]) {
    decoder.begin(&[coding]);
    let mut out = b"before".to_vec();
    let state = loop {
        let decoded = decoder.decode(body, true, &mut out, usize::MAX / 2);
        assert!(decoded.used == body.len() || decoded.state == State::More);
        if decoded.state != State::More {
            break decoded.state;
        }
    };
    assert_eq!(out.len() as u64, decoder.decoded_bytes() + 6);
    (out.split_off(6), state, [decoder.is_sum_wrong(), decoder.is_mislabelled()])
}

/// Law: a body that is decoded in one call has the result of one that is decoded step by step, and
/// a body that can't be has it too.
#[test]
fn one_call_changes_nothing() {
    let plain = text(100_000);
    let member = gzip(&plain);
    let with_size = |size: u32| {
        let mut body = member.clone();
        let at = body.len() - 4;
        body[at..].copy_from_slice(&size.to_le_bytes());
        body
    };
    let name = b"gzip\x1f\x8b\x08";
    let mut named = GzBuilder::new().filename(&name[..]).write(Vec::new(), Compression::fast());
    named.write_all(&plain).expect("memory");
    // For each body: its coding, and whether one call suffices for it.
    let mut bodies = vec![
        (Coding::Gzip, member.clone(), true),
        (Coding::Gzip, gzip(b"a"), true),
        (Coding::Gzip, gzip(b""), true),
        (Coding::Deflate, zlib(&plain), true),
        (Coding::Gzip, named.finish().expect("memory"), true),
        (Coding::Deflate, zlib(&[b'x'; 100_000]), false),
        (Coding::Deflate, raw_deflate(&plain), false),
        (Coding::Deflate, member.clone(), false),
        // Of two equal members, the trailer of the second suits the first.
        (Coding::Gzip, member.repeat(2), false),
        (Coding::Gzip, [&member[..], &gzip(b"more")].concat(), false),
        (Coding::Gzip, [&member[..], &[0; 512]].concat(), false),
        (Coding::Gzip, [&member[..], b"garbage"].concat(), false),
        (Coding::Gzip, with_size(0), false),
        (Coding::Gzip, with_size(99_999), false),
        (Coding::Gzip, with_size(100_001), false),
        (Coding::Gzip, with_size(u32::MAX), false),
        (Coding::Gzip, plain.clone(), false),
        (Coding::Deflate, plain, false),
    ];
    let mut random = Random(11);
    for at in 0..600 {
        let (coding, mut body, _) = bodies[at % 4].clone();
        let place = random.below(body.len());
        match at % 3 {
            0 => body[place] ^= 1 << random.below(8),
            1 => body.truncate(place),
            _ => body.insert(place, 0x1f),
        }
        bodies.push((coding, body, false));
    }
    let mut decoder = Decoder::new(DecodeLimits { decoded_bytes_max: 100_000 });
    for (at, (coding, body, suffices)) in bodies.iter().enumerate() {
        let (text, state) = decode_by(&mut decoder, &[*coding], body, || usize::MAX / 2);
        let faults = [decoder.is_sum_wrong(), decoder.is_mislabelled()];
        let found = decode_whole(&mut decoder, *coding, body);
        assert!(found == (text, state, faults), "body {at}, {coding:?}: {state:?} {:?}", found.1);
        let plan = whole::plan(*coding, body, 100_000);
        let done =
            plan.is_some_and(|plan| Whole::new().decode(plan, body, &mut Vec::new()).is_some());
        assert!(done || !suffices, "body {at} can't be decoded in one call");
        assert!(!done || state == State::Done, "body {at}: one call can't know {state:?}");
    }
}

/// A body is decoded in one call if the budget covers it, and at no greater cost.
#[test]
fn one_call_keeps_to_the_budget() {
    let (plain, mut decoder) = (text(300_000), Decoder::new(DecodeLimits::default()));
    let body = gzip(&plain);
    decoder.begin(&[Coding::Gzip]);
    let units = decoder.units_at_once(&body).expect("a gzip member");
    assert_eq!(units, plain.len().max(8 * body.len()));
    for (budget, in_one) in [(units, true), (units - 1, false)] {
        decoder.begin(&[Coding::Gzip]);
        let mut out = Vec::new();
        let decoded = decoder.decode(&body, true, &mut out, budget);
        assert_eq!(decoded.state == State::Done, in_one);
        assert!(out == plain || !in_one);
        assert!(decoded.work <= units || !in_one);
    }
    // A trailer that lies costs what it announced, and then the body's own cost.
    let mut body = gzip(&text(10_000));
    let at = body.len() - 4;
    body[at..].copy_from_slice(&200_000_u32.to_le_bytes());
    decoder.begin(&[Coding::Gzip]);
    let decoded = decoder.decode(&body, true, &mut Vec::new(), 1 << 20);
    assert!(decoder.is_sum_wrong() && decoded.state == State::Done);
    assert!(decoded.work >= 210_000, "{} units", decoded.work);
}

#[test]
fn one_body_does_not_show_in_the_next() {
    let mut decoder = Decoder::new(DecodeLimits::default());
    let steps = [
        (Coding::Gzip, gzip(b"a"), State::Done),
        (Coding::Gzip, b"plain text".to_vec(), State::Done),
        (Coding::Gzip, b"\x1f\x8b\x07".to_vec(), State::Broken("not gzip")),
        (Coding::Gzip, gzip(b"a")[..12].to_vec(), State::CutShort),
        (Coding::Deflate, zlib(b"a"), State::Done),
        (Coding::Deflate, raw_deflate(b"a"), State::Done),
        (Coding::Gzip, gzip(b"a"), State::Done),
    ];
    for (coding, coded, expected) in steps {
        let (_, state) = decode_by(&mut decoder, &[coding], &coded, || 100);
        assert_eq!(state, expected, "{coding:?} {coded:?}");
    }
}

#[test]
fn bombs_stop_at_the_cap_and_stall_no_call() {
    let zeros = vec![0; 8 << 20];
    let limits = DecodeLimits { decoded_bytes_max: 1 << 20 };
    let budget = 64 << 10;
    let bombs: [(&[Coding], Vec<u8>); 6] = [
        (&[Coding::Gzip], gzip(&zeros)),
        (&[Coding::Deflate], zlib(&zeros)),
        (&[Coding::Zstd], zstd_frame(&zeros)),
        (&[Coding::Brotli], bytes_of(BOMB_BROTLI)),
        (&[Coding::Gzip, Coding::Gzip], gzip(&gzip(&zeros))),
        // The outer layer expands into an inner one that yields no output at all.
        (&[Coding::Gzip, Coding::Gzip], gzip(&gzip(b"").repeat(100_000))),
    ];
    for (codings, coded) in bombs {
        let mut decoder = Decoder::new(limits.clone());
        decoder.begin(codings);
        let (mut at, mut out, mut calls) = (0, Vec::new(), 0);
        let state = loop {
            let before = out.len();
            let decoded = decoder.decode(&coded[at..], true, &mut out, budget);
            assert!(out.len() - before <= budget);
            at += decoded.used;
            calls += 1;
            if decoded.state != State::More {
                break decoded.state;
            }
        };
        assert_eq!(state, State::TooLarge, "{codings:?}");
        assert!(out.is_empty() || out.len() == 1 << 20, "{codings:?}: {}", out.len());
        assert!(out.capacity() <= 2 << 20, "{codings:?}: {}", out.capacity());
        assert!(calls >= (1 << 20) / budget, "{codings:?}: work is spread over {calls} calls");
    }
}

#[test]
fn a_body_that_fills_the_cap_is_not_too_large() {
    let plain = text(50_000);
    for (len, expected) in [(50_000, State::Done), (49_999, State::TooLarge)] {
        for coded in [gzip(&plain), zlib(&plain), raw_deflate(&plain)] {
            let mut decoder = Decoder::new(DecodeLimits { decoded_bytes_max: len });
            let coding = if coded[0] == 0x1f { Coding::Gzip } else { Coding::Deflate };
            let (out, state) = decode_by(&mut decoder, &[coding], &coded, || usize::MAX / 2);
            assert_eq!((out.len() as u64, state), (len, expected));
        }
    }
}

#[test]
fn mutations_never_panic_and_keep_to_the_cap() {
    let mut random = Random(3);
    let mut decoder = Decoder::new(DecodeLimits { decoded_bytes_max: 60_000 });
    let mut states = [0; 4];
    for (codings, coded, _) in samples().into_iter().skip(1) {
        for _ in 0..60 {
            let mut coded = coded.clone();
            for _ in 0..=random.below(3) {
                let at = random.below(coded.len().min(400));
                coded[at] ^= 1 << random.below(8);
            }
            coded.truncate(1 + random.below(2 * coded.len()));
            let most = 1 + random.below(9_000);
            let cut = || most;
            let (out, state) = decode_by(&mut decoder, &codings, &coded, cut);
            let whole = decode_by(&mut decoder, &codings, &coded, || usize::MAX / 2);
            assert_eq!(state, whole.1, "{codings:?} in pieces of {most}");
            assert!(out.len() <= 60_000);
            states[match state {
                State::Done => 0,
                State::Broken(_) => 1,
                State::TooLarge => 2,
                _ => 3,
            }] += 1;
        }
    }
    assert!(states.iter().all(|&count| count > 0), "each end was met: {states:?}");
}
