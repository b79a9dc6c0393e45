//! Files made by `xz` 5.4, decompressed: whole, truncated, damaged, too large.

use crate::study::web::draw::{Draw, Purpose};
use crate::study::web::graph::{XzFlaw, unpack_xz};

const TEXT: &str = "river stone the of and crawl, river stone the of and crawl\n";

/// `xz`
const CRC64: &str = "\
    fd377a585a000004e6d6b4460200210116000000742fe5a3e0003a00265d00391a4b32e44e0bae696c34\
    05c7db12942ffc1ec70f092773f24047a271632c1a6c23bdd40000000000892a1bddccb09fbc0001423b\
    8871c2531fb6f37d010000000004595a";

/// `xz --check=sha256`
const SHA256: &str = "\
    fd377a585a00000ae1fb0ca10200210116000000742fe5a3e0003a00265d00391a4b32e44e0bae696c34\
    05c7db12942ffc1ec70f092773f24047a271632c1a6c23bdd40000000000f61e39b502e60f939b218c2f\
    e67e330985b8f7aa24c033d34f80fd6582f30a3900015a3bd1e9d9d1189b4b9a01000000000a595a";

/// `xz` and `xz --check=crc32`, one after the other.
const TWO: &str = "\
    fd377a585a000004e6d6b4460200210116000000742fe5a3e0003a00265d00391a4b32e44e0bae696c34\
    05c7db12942ffc1ec70f092773f24047a271632c1a6c23bdd40000000000892a1bddccb09fbc0001423b\
    8871c2531fb6f37d010000000004595afd377a585a0000016922de360200210116000000742fe5a3e000\
    3a00265d00391a4b32e44e0bae696c3405c7db12942ffc1ec70f092773f24047a271632c1a6c23bdd400\
    0000000035e2130a00013e3b724748d09042990d010000000001595a";

/// `xz --block-size=20`
const BLOCKS: &str = "\
    fd377a585a000004e6d6b4460200210116000000742fe5a301001372697665722073746f6e6520746865\
    206f662061000ea3790191db2d510200210116000000742fe5a30100136e6420637261776c2c20726976\
    65722073746f6e000eefc86b2aafb32b0200210116000000742fe5a30100126520746865206f6620616e\
    6420637261776c0a0000d98bf801f8b3e34c00032c142c142b136696c1b2b1c467fb020000000004595a";

/// `xz --lzma2=preset=6,dict=512MiB`
const WIDE: &str = "\
    fd377a585a000004e6d6b44602002101220000008240acdce0003a00265d00391a4b32e44e0bae696c34\
    05c7db12942ffc1ec70f092773f24047a271632c1a6c23bdd40000000000892a1bddccb09fbc0001423b\
    8871c2531fb6f37d010000000004595a";

/// A million zeros.
const ZEROS: &str = "\
    fd377a585a000004e6d6b4460200210116000000742fe5a3ef423f00d15d00006ffdffffa3b7ff473e48\
    1572396151b89228e6a38607f9eee41e82d32fc53a3c014bb17ec98a8a4d2fa30dd97fa6e38c231153e0\
    5918c5758ae277f8b6947f0c6ac0de744964e2e95c53b204d8f7440cab5f0d6d46e9e5c37688b79657ac\
    b64de1691d6ffb4b88106c42cb883f5c008fd04eaf262894711f3d8f24e1709ea7235fec28cb85d19598\
    8a7e2a91f22775f719c006984d98fdd8afd5900fc42553f8f591363105a5b0ee6fc1704d470cd19111aa\
    ad601dbaceb127185c5986e9665258bee976ac59e4e55b0508f993c33f360000000032b35597eed2e1e3\
    0001ed01c0843d00d5e076aeb1c467fb020000000004595a";

fn bytes(hex: &str) -> Vec<u8> {
    let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
    (0..hex.len()).step_by(2).map(byte).collect()
}

#[test]
fn what_xz_packed_is_unpacked() {
    let cases = [
        (CRC64, TEXT.to_owned(), "the usual check"),
        (SHA256, TEXT.to_owned(), "another check"),
        (TWO, TEXT.repeat(2), "format 2: streams one after the other are one file"),
        (BLOCKS, TEXT.to_owned(), "format 3: a stream may have several blocks"),
        (ZEROS, "\0".repeat(1_000_000), "much from little"),
    ];
    for (packed, expected, why) in cases {
        let unpacked = unpack_xz(&bytes(packed), 1 << 20);
        assert!(unpacked.as_deref() == Ok(expected.as_bytes()), "{why}");
    }
}

#[test]
fn the_cap_holds_to_the_byte() {
    let packed = bytes(ZEROS);
    assert_eq!(unpack_xz(&packed, 1_000_000).map(|bytes| bytes.len()), Ok(1_000_000));
    for cap in [0, 1, 999_999] {
        assert_eq!(unpack_xz(&packed, cap), Err(XzFlaw::TooLarge), "{cap}");
    }
}

/// The file is 100 bytes long and needs half a gigabyte of memory to be decompressed.
#[test]
fn a_file_that_wants_much_memory_is_refused() {
    assert!(matches!(unpack_xz(&bytes(WIDE), 1 << 20), Err(XzFlaw::Broken(_))));
}

#[test]
fn a_cut_file_is_broken() {
    for packed in [CRC64, SHA256, BLOCKS, ZEROS].map(bytes) {
        for length in 0..packed.len() {
            let unpacked = unpack_xz(&packed[..length], 1 << 20);
            assert!(matches!(unpacked, Err(XzFlaw::Broken(_))), "{length} of {}", packed.len());
        }
    }
}

/// Whatever bytes change, the result is the text or an error, and never a panic.
#[test]
fn a_damaged_file_is_found_out() {
    let mut draw = Draw::new(1, Purpose::Noise, 0, 0);
    let mut broken = 0;
    for (packed, text) in [(CRC64, TEXT.to_owned()), (TWO, TEXT.repeat(2))] {
        let packed = bytes(packed);
        for _ in 0..2_000 {
            let mut damaged = packed.clone();
            for _ in 0..=draw.below(3) {
                let at = draw.below(u32::try_from(packed.len()).unwrap()) as usize;
                damaged[at] = draw.next() as u8;
            }
            match unpack_xz(&damaged, 1 << 20) {
                Ok(unpacked) => assert!(unpacked == text.as_bytes(), "{damaged:02x?}"),
                Err(_) => broken += 1,
            }
        }
    }
    assert!(broken > 3_900, "{broken} of 4,000 were found out");
}
