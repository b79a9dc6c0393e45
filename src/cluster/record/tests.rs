//! Tests records: what is written is read again, and bytes that were changed do no harm.

use super::*;
use crate::ground::random::Random;

fn sender() -> Sender {
    Sender { name: Name::new("node-1").expect("a name"), incarnation: 7 }
}

/// A record with owned texts.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Owned(String);

/// The parts of a record as text, to be compared.
fn owned(record: Record<'_>) -> Owned {
    match record {
        Record::Settled(all) => Owned(format!("{:?}", all.collect::<Vec<_>>())),
        other => Owned(format!("{other:?}")),
    }
}

fn text(random: &mut Random, max: usize) -> String {
    let len = random.below(max + 1);
    (0..len).map(|_| char::from(random.pick(b"abcxyz019./:-%?"))).collect()
}

/// Adds a random record, and returns what is to be read for it.
fn add(random: &mut Random, records: &mut Records) -> Owned {
    let fingerprint = Fingerprint(random.word());
    let long = if random.one_in(200) { URL_BYTES_CAP } else { 90 };
    let (one, two) = (text(random, long), text(random, long));
    let (a, b) = (text(random, DOMAIN_BYTES_MAX), text(random, DOMAIN_BYTES_MAX));
    match random.below(7_u8) {
        0..2 => {
            let millionths = random.below(Quality::MAX.millionths() + 1);
            let link = Link {
                fingerprint,
                url: &one,
                via: &two,
                letter: random.word() as u8,
                hops: random.word() as u8,
                requisite: random.below(128_u8),
                depth: random.word() as u16,
                tries: random.word() as u8,
                estimate: (!random.one_in(2)).then(|| Quality::from_millionths(millionths)),
            };
            records.link(&link);
            owned(Record::Link(link))
        }
        2 => {
            records.fact(&a, &b);
            owned(Record::Fact { source: &a, target: &b })
        }
        3 => {
            let shift = random.below(64_u32);
            let count = 1 + random.below(20_usize);
            let mut some: Vec<_> =
                (0..count).map(|_| Fingerprint(random.word() >> shift)).collect();
            records.settled(&mut some);
            Owned(format!("{some:?}"))
        }
        4 => {
            let tries = random.word() as u8;
            records.tries(fingerprint, tries);
            owned(Record::Tries { fingerprint, tries })
        }
        5 => {
            let until = UnixTime::from_micros(random.word() >> random.below(64_u32));
            records.wait(&a, until);
            owned(Record::Wait { origin: &a, until })
        }
        _ => {
            records.retired(&a, &b);
            owned(Record::Retired { origin: &a, cause: &b })
        }
    }
}

fn payload(records: &Records) -> Vec<u8> {
    let mut payload = Vec::new();
    sender().put(&mut payload);
    records.iter().for_each(|record| payload.extend_from_slice(record));
    payload
}

/// Law: what was written is read again, also if each record is read by a reader of its own.
#[test]
fn what_was_written_is_read() {
    let mut random = Random(1);
    for _ in 0..200 {
        let mut records = Records::new();
        let count = random.below(30_usize);
        let expected: Vec<Owned> = (0..count).map(|_| add(&mut random, &mut records)).collect();
        let payload = payload(&records);
        let (head, reader) = Reader::open(&payload).expect("just written");
        assert_eq!(head, Head { sender: sender(), part: None });
        let mut position = reader.position();
        let read: Vec<Owned> = reader.map(|record| owned(record.expect("written"))).collect();
        assert_eq!(read, expected);
        let mut stepwise = Vec::new();
        loop {
            let mut reader = Reader::resume(&payload, position);
            let Some(record) = reader.next() else { break };
            stepwise.push(owned(record.expect("written")));
            position = reader.position();
        }
        assert_eq!(stepwise, expected);
        assert!(records.iter().all(|record| record.len() <= RECORD_BYTES_MAX));
    }
}

/// Law: changed, cut and random bytes are read or reported, and never panic. The offset of a
/// report is where the record begins that can't be read.
#[test]
fn changed_bytes_do_no_harm() {
    let mut random = Random(2);
    let (mut damaged, mut read) = (0, 0);
    for round in 0..3_000 {
        let mut records = Records::new();
        (0..random.below(8)).for_each(|_| drop(add(&mut random, &mut records)));
        let mut payload = payload(&records);
        payload.truncate(2_000);
        match round % 3 {
            0 => payload.truncate(random.below(payload.len() + 1)),
            1 => (0..3).for_each(|_| {
                let at = random.below(payload.len());
                payload[at] ^= 1 << random.below(8);
            }),
            _ => payload[16..].iter_mut().for_each(|byte| *byte = random.word() as u8 & 0x87),
        }
        let Ok((_, reader)) = Reader::open(&payload) else { continue };
        let mut next = reader.clone();
        for record in reader {
            match record {
                Ok(Record::Settled(all)) => {
                    let all: Vec<_> = all.collect();
                    assert!(all.is_sorted() && !all.is_empty());
                    read += 1;
                }
                Ok(_) => read += 1,
                Err(damage) => {
                    assert_eq!(damage.offset, next.position());
                    assert!(damage.to_string().contains("at byte"), "{damage}");
                    damaged += 1;
                }
            }
            next.next();
        }
        assert!(next.next().is_none(), "after damage a reader yields nothing");
        assert!(Reader::resume(&payload, random.below(3_000)).count() < 3_000);
    }
    assert!(damaged > 500 && read > 2_000, "{damaged} damaged, {read} read");
}

#[test]
fn limits_are_kept() {
    let mut head = Vec::new();
    sender().put(&mut head);
    let at = head.len();
    let mut long = vec![FACT];
    long.put_bytes(&[b'a'; DOMAIN_BYTES_MAX + 1]);
    long.put_bytes(b"");
    let few = |count: u64, width: u8, rest: &[u8]| {
        let mut bytes = vec![SETTLED];
        bytes.put_varint(count);
        bytes.put_u8(width);
        bytes.extend_from_slice(rest);
        bytes
    };
    let cases = [
        (long, Flaw::Value, "a domain that is too long"),
        (vec![FACT, 1, 0xff, 0], Flaw::Value, "no UTF-8"),
        (vec![99], Flaw::Kind(99), "no such kind"),
        (few(0, 0, &[0; 8]), Flaw::Value, "no fingerprints"),
        (few(2, 0, &[0; 8]), Flaw::Value, "differences of no width"),
        (few(2, 9, &[0; 17]), Flaw::Value, "a width above eight"),
        (few(2, 1, &[0; 9]), Flaw::Value, "equal fingerprints"),
        (few(2, 1, &[0xff; 9]), Flaw::Value, "fingerprints beyond 64 bits"),
        (few(1 << 60, 8, &[0; 8]), Flaw::Value, "a count that no memory holds"),
    ];
    for (record, flaw, why) in cases {
        let payload = [head.clone(), record].concat();
        let (_, mut reader) = Reader::open(&payload).expect("the head is intact");
        assert_eq!(reader.next(), Some(Err(Damage { offset: at, flaw })), "{why}");
        assert_eq!(reader.next(), None, "{why}");
    }
    let foreign = Reader::open(&[3, 0]).expect_err("another format");
    assert_eq!(foreign.flaw, Flaw::Format(3));
    assert!(Reader::open(&[]).is_err() && Reader::open(&[1, 1, b'A']).is_err());
}

#[test]
fn a_long_cause_is_cut_between_letters() {
    let mut records = Records::new();
    records.retired("http://a.test", &"é".repeat(200));
    let payload = payload(&records);
    let (_, mut reader) = Reader::open(&payload).expect("just written");
    let Some(Ok(Record::Retired { cause, .. })) = reader.next() else { panic!("another record") };
    assert_eq!(cause, "é".repeat(127));
}

/// Checks the lengths that the head of the file states.
#[test]
fn lengths_of_records() {
    let mut records = Records::new();
    let pages = [
        ("https://en.wikipedia.org/wiki/Web_crawler", "https://en.wikipedia.org/wiki/BUbiNG"),
        (
            "https://www.example.co.uk/shop/shoes/42-brown-boots-mens?colour=brown&size=44",
            "https://www.example.co.uk/shop/shoes?page=3",
        ),
        ("http://blog.example.org/2019/03/07/a-day-at-the-beach/", "https://www.example.net/links"),
        ("https://forum.example.com/viewtopic.php?f=12&t=48213", "https://forum.example.com/"),
    ];
    let mut texts = 0;
    for (url, via) in pages {
        let fingerprint = Fingerprint(0x5eed);
        let some = Link { fingerprint, url, via, letter: b'L', hops: 0, ..LINK_OF_TESTS };
        records.link(&some);
        texts += url.len() + via.len();
    }
    let own = (records.bytes() - texts) as f64 / pages.len() as f64;
    assert!((15.5..=16.5).contains(&own), "{own} bytes besides the texts");
    let each = records.bytes() / pages.len();
    assert_eq!(each, 105);
    for (others, bytes) in [(100_000_u64, 7.1), (1_000_000, 6.1)] {
        let mut random = Random(others);
        let mut all: Vec<_> = (0..others).map(|_| Fingerprint(random.word())).collect();
        records.clear();
        records.settled(&mut all);
        let each = records.bytes() as f64 / others as f64;
        assert!(each < bytes && each > bytes - 1.0, "{each} bytes of {others}");
    }
}

const LINK_OF_TESTS: Link<'_> = Link {
    fingerprint: Fingerprint(0),
    url: "",
    via: "",
    letter: b'L',
    hops: 0,
    requisite: 0,
    depth: 3,
    tries: 0,
    estimate: None,
};
