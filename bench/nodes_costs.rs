//! What a node of a cluster does in addition to the crawl, and what each of it costs the core.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a bench measures what a call to a socket costs"
)]

use std::hint::black_box;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use sted::cluster::outbox::{self, Outbox};
use sted::cluster::queue::Name;
use sted::cluster::record::{Link, Reader, Record, Records, Sender};
use sted::cluster::{Partition, Partitioner};
use sted::ground::disk::Disk;
use sted::ground::time::Instant;
use sted::os::signal::thread_cpu_ns;
use sted::seen::cache::{Cache, Replacement};
use sted::seen::{self, Seen};
use sted::study::sim::disk::MemoryDisk;
use sted::study::web::{Place, Ports, Resource, Web};
use sted::url::{Fingerprint, Fingerprinter, UrlRef};

/// The number of links that are looked at in a round.
const LINKS: usize = 200_000;
/// The entry of a known URL, of the length of a usual one.
const ENTRY: [u8; 90] = [b'u'; 90];

/// A link of the web, as a node sees it.
struct Found {
    url: String,
    via: String,
    fingerprint: Fingerprint,
}

impl Found {
    fn host(&self) -> &str {
        UrlRef::from_canonical(self.url.as_bytes()).expect("the web's URLs").host()
    }
}

/// Prints a table of the costs: medians over rounds of the CPU time of this thread.
pub(super) fn show(web: sted::study::web::Settings, rounds: usize) {
    let (found, of) = (links(web), Partitioner::new(super::KEY));
    let median = |cost: &mut dyn FnMut() -> f64| {
        let mut costs: Vec<f64> = (0..rounds).map(|_| cost()).collect();
        costs.sort_by(f64::total_cmp);
        costs[costs.len() / 2]
    };
    println!("what,ns");
    println!("a link: whose and sent lately,{:.1}", median(&mut || whose(&found, of)));
    for bytes in [2 << 10, 128 << 10] {
        let (mut records, mut messages) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            let (record, message) = write(&found, of, bytes);
            records.push(record);
            messages.push(message);
        }
        println!("a record accepted in messages of {bytes},{:.1}", median_of(records));
        println!("a message of {bytes} handed out,{:.1}", median_of(messages));
        let payloads = payloads(&found, of, bytes);
        let (mut pressed, mut unpressed, mut ratio) = (Vec::new(), Vec::new(), 0.0);
        for _ in 0..rounds {
            let (press, unpress, shorter) = compress(&payloads);
            pressed.push(press);
            unpressed.push(unpress);
            ratio = shorter;
        }
        println!("a message of {bytes} compressed to {ratio:.3},{:.1}", median_of(pressed));
        println!("a message of {bytes} decompressed,{:.1}", median_of(unpressed));
        let taken = |new| median(&mut || read(&payloads, of, new));
        println!("a new URL read from messages of {bytes},{:.1}", taken(true));
        println!("a known URL read from messages of {bytes},{:.1}", taken(false));
        let (sent, received) = socket((bytes as f64 * ratio) as usize);
        println!("a message of {bytes} compressed and sent,{sent:.1}");
        println!("a message of {bytes} compressed and received,{received:.1}");
    }
    println!("a settled URL read,{:.1}", median(&mut settled));
    let (sent, received) = socket(64);
    println!("a request of 64 bytes sent,{sent:.1}");
    println!("an event of 64 bytes received,{received:.1}");
}

fn median_of(mut costs: Vec<f64>) -> f64 {
    costs.sort_by(f64::total_cmp);
    costs[costs.len() / 2]
}

/// Returns links of pages of a web, in the order of a crawl that goes from host to host.
fn links(settings: sted::study::web::Settings) -> Vec<Found> {
    let hosts = settings.hosts;
    let web = Web::new(settings, Ports::default());
    let hasher = Fingerprinter::new(super::KEY);
    let (mut found, mut number) = (Vec::with_capacity(LINKS), 0);
    while found.len() < LINKS {
        let page = number / hosts;
        let host = number % hosts;
        number += 1;
        if page >= web.host(host).pages {
            continue;
        }
        let via = web.url(Place { host, resource: Resource::Page(page) });
        for link in web.links(Place { host, resource: Resource::Page(page) }) {
            let url = web.url(link.to);
            let fingerprint = hasher.of(url.as_bytes());
            found.push(Found { url, via: via.clone(), fingerprint });
        }
    }
    found
}

/// Returns the nanoseconds that `work` takes, divided by `count`.
fn each(count: usize, work: impl FnOnce()) -> f64 {
    let began = thread_cpu_ns();
    work();
    (thread_cpu_ns() - began) as f64 / count as f64
}

/// For each link the mask of its partition for its key and, when it is shared, the partition and
/// the mask once more; two thirds are looked up in the cache of links that were sent.
fn whose(found: &[Found], of: Partitioner) -> f64 {
    let mut cache = Cache::new(16, Replacement::Clock, 1);
    for link in found {
        cache.touch(link.fingerprint.0);
    }
    let urls: Vec<UrlRef<'_>> = found
        .iter()
        .map(|link| UrlRef::from_canonical(link.url.as_bytes()).expect("ours"))
        .collect();
    each(found.len(), || {
        for (link, url) in found.iter().zip(&urls) {
            black_box(of.of(url.host()));
            let partition = of.of(url.host());
            if !partition.number().is_multiple_of(3) {
                black_box(cache.touch(link.fingerprint.0));
            }
        }
    })
}

fn sender() -> Sender {
    Sender { name: Name::new("node-1").expect("a name"), incarnation: 1 }
}

/// Writes the record of a link as the engine does.
fn record(found: &Found, records: &mut Records) {
    let Found { url, via, fingerprint } = found;
    let (letter, hops, requisite, depth, tries, estimate) = (b'L', 0, 0, 3, 0, None);
    records.clear();
    records.link(&Link {
        fingerprint: *fingerprint,
        url,
        via,
        letter,
        hops,
        requisite,
        depth,
        tries,
        estimate,
    });
}

/// Returns the partition that a link goes to: with long messages there are few, so that some fill.
fn partition(found: &Found, of: Partitioner, bytes: usize) -> Partition {
    let partition = of.of(found.host());
    let few = if bytes > 16 << 10 { 64 } else { 1_024 };
    Partition::new(partition.number() % few).expect("a smaller number")
}

/// Accepts all links into an outbox and publishes them. Returns the nanoseconds for a record, and
/// those for a message that is handed out and reported as published.
fn write(found: &[Found], of: Partitioner, bytes: usize) -> (f64, f64) {
    let settings = outbox::Settings { batch_bytes: bytes, window: 1_000, ..Default::default() };
    let mut outbox = Outbox::new(settings, &sender(), 1);
    outbox.connected();
    let (mut records, mut disk) = (Records::new(), MemoryDisk::new());
    let partitions: Vec<Partition> = found.iter().map(|link| partition(link, of, bytes)).collect();
    let hosts: Vec<&str> = found.iter().map(Found::host).collect();
    // The record is written after the owner of its URL is looked up again, in `note_new`.
    let accepted = each(found.len(), || {
        for ((link, partition), host) in found.iter().zip(&partitions).zip(&hosts) {
            black_box(of.of(host));
            record(link, &mut records);
            outbox.push(*partition, &records, Instant::ZERO);
        }
    });
    let (mut messages, disk) = (0, &mut disk as &mut dyn Disk);
    let later = Instant::from_micros(60_000_000);
    let began = thread_cpu_ns();
    while let Some(publication) = outbox.next(later, disk).expect("a sound disk") {
        messages += publication.messages.len();
        outbox.published(publication.id, Ok(()), later);
    }
    (accepted, (thread_cpu_ns() - began) as f64 / messages as f64)
}

/// Returns messages of about this length.
fn payloads(found: &[Found], of: Partitioner, bytes: usize) -> Vec<Vec<u8>> {
    let (mut open, mut full) = (vec![Vec::new(); 1_024], Vec::new());
    let mut records = Records::new();
    for link in found {
        let payload = &mut open[partition(link, of, bytes).index()];
        if payload.is_empty() {
            sender().put(payload);
        }
        record(link, &mut records);
        records.iter().for_each(|record| payload.extend_from_slice(record));
        if payload.len() >= bytes {
            full.push(std::mem::take(payload));
        }
    }
    assert!(full.len() > 10, "{}", full.len());
    full
}

/// Returns the nanoseconds to compress a message and to decompress it, and its share of the length.
fn compress(payloads: &[Vec<u8>]) -> (f64, f64, f64) {
    let mut compressor = zstd::bulk::Compressor::new(1).expect("memory");
    let mut pressed = Vec::new();
    let press = each(payloads.len(), || {
        pressed = payloads.iter().map(|all| compressor.compress(all).expect("memory")).collect();
    });
    let mut decompressor = zstd::bulk::Decompressor::new().expect("memory");
    let unpress = each(payloads.len(), || {
        for few in &pressed {
            black_box(decompressor.decompress(few, 256 << 10).expect("it was compressed"));
        }
    });
    let length = |all: &[Vec<u8>]| all.iter().map(Vec::len).sum::<usize>() as f64;
    (press, unpress, length(&pressed) / length(payloads))
}

/// Reads all links and offers them to a seen test that knows 200,000 others, and them unless they
/// are new. Returns the nanoseconds for one.
fn read(payloads: &[Vec<u8>], of: Partitioner, new: bool) -> f64 {
    let mut seen = Seen::new(seen::Settings { memory_bytes: 64 << 20, ..Default::default() });
    let known = (0..200_000_u64).map(sted::ground::random::mix);
    known.for_each(|number| seen.offer(Fingerprint(number), b""));
    let mut offer = || {
        let mut count = 0;
        for payload in payloads {
            let (_, reader) = Reader::open(payload).expect("it was written");
            for found in reader {
                let Ok(Record::Link(link)) = found else { unreachable!("all are links") };
                let url = UrlRef::from_canonical(link.url.as_bytes()).expect("the web's URLs");
                black_box(of.of(url.host()));
                seen.offer_with(link.fingerprint, |out| out.extend_from_slice(&ENTRY));
                count += 1;
            }
        }
        while seen.fresh().is_some() {}
        count
    };
    if !new {
        offer();
    }
    let began = thread_cpu_ns();
    let count = offer();
    (thread_cpu_ns() - began) as f64 / f64::from(count)
}

/// Reads settled URLs that are known, as a node reads its own. Returns the nanoseconds for one.
fn settled() -> f64 {
    let mut seen = Seen::new(seen::Settings { memory_bytes: 64 << 20, ..Default::default() });
    let mut all: Vec<Fingerprint> =
        (0..200_000_u64).map(|number| Fingerprint(sted::ground::random::mix(number))).collect();
    all.iter().for_each(|number| seen.offer(*number, b""));
    let (mut records, mut payload) = (Records::new(), Vec::new());
    records.settled(&mut all);
    sender().put(&mut payload);
    records.iter().for_each(|record| payload.extend_from_slice(record));
    each(all.len(), || {
        for found in Reader::open(&payload).expect("it was written").1 {
            let Ok(Record::Settled(urls)) = found else { unreachable!("all are settled") };
            urls.for_each(|url| seen.offer(url, b"D"));
        }
    })
}

/// Sends messages over loopback. Returns the nanoseconds to send one, and to receive one, each in
/// its own call.
fn socket(bytes: usize) -> (f64, f64) {
    const MESSAGES: usize = 5_000;
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("it is bound");
    let reader = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("it connects");
        let mut buffer = vec![0; bytes];
        each(MESSAGES, || {
            (0..MESSAGES).for_each(|_| stream.read_exact(&mut buffer).expect("it is sent"));
        })
    });
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.set_nodelay(true).expect("a socket");
    let message = vec![7; bytes];
    let sent = each(MESSAGES, || {
        (0..MESSAGES).for_each(|_| stream.write_all(&message).expect("it is received"));
    });
    (sent, reader.join().expect("no panic"))
}
