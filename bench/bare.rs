//! The lower bound of a crawler's cost: moving the bytes of a web with as little work as possible.
//!
//! Question: how far is `sted` from a program that only moves the bytes, and from one that crawls
//! in the simplest way? This program has no politeness, no robots.txt, no checks of what it
//! receives, no memory limit, no handling of faults; it joins references by cutting and pasting. It
//! can only read what well-behaved servers send (Content-Length, status 200, plain HTTP).
//!
//! `bare fetch URLS CONNECTIONS DEPTH TIMES` fetches the URLs of a file this many times, with at
//! least one connection a host, each with up to DEPTH unanswered requests; 1 is no pipelining.
//! `bare crawl SEEDS CONNECTIONS DEPTH` fetches, finds every `href="`, joins it, looks it up in a
//! set, and follows it if it is new and on a seed's host. `bare archive WARC...` reads uncompressed
//! archives and does with each record what an archive does: digests, a gzip member, a write; it
//! prints the cost of each per response record. `bare floor WARC...` fetches the replies of such
//! archives over loopback, one a connection, has them sent over TLS in memory, decodes and writes
//! them; it prints the cost of each part. Each prints one line of JSON. Under `cargo test` it runs
//! small.
//!
//! Cost: that is what it measures; the caller measures the CPU time of the fetching modes.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a bench has sockets, files and clocks"
)]

mod bare {
    pub(crate) mod archive;
    pub(crate) mod client;
    pub(crate) mod floor;
    pub(crate) mod page;
}

use bare::{archive, client, floor};
use std::io;

fn main() -> io::Result<()> {
    let words: Vec<String> =
        std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let number = |text: &str| text.parse::<usize>().expect("a number");
    match words[..] {
        [] => {
            client::check()?;
            archive::check()?;
            floor::check()?;
            println!("small runs went well");
        }
        ["fetch", urls, connections, depth, times] => {
            let urls = std::fs::read_to_string(urls)?;
            let plan = client::Plan {
                connections: number(connections),
                depth: number(depth),
                follow: false,
            };
            let list: Vec<&str> = urls.lines().collect();
            println!("{}", client::run(&list.repeat(number(times)), plan)?);
        }
        ["crawl", seeds, connections, depth] => {
            let seeds = std::fs::read_to_string(seeds)?;
            let plan = client::Plan {
                connections: number(connections),
                depth: number(depth),
                follow: true,
            };
            println!("{}", client::run(&seeds.lines().collect::<Vec<_>>(), plan)?);
        }
        ["floor", ref files @ ..] if !files.is_empty() => println!("{}", floor::run(files)?),
        ["archive", ref files @ ..] if !files.is_empty() => println!("{}", archive::run(files)?),
        _ => panic!(
            "fetch URLS CONNECTIONS DEPTH TIMES, crawl SEEDS CONNECTIONS DEPTH, archive WARC..., \
             floor WARC..."
        ),
    }
    Ok(())
}
