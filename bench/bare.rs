//! The floor under a crawler: what the bytes of a web cost when as little as possible is done.
//!
//! Question: how far is `sted` from a program that only moves the bytes, and from one that crawls
//! by the shortest way? It has none of what makes a crawler: no politeness, no robots.txt, no
//! checks of what comes, no memory bound, no faults; references are joined by cutting and pasting.
//! It can only read what well-behaved servers send (Content-Length, status 200, plain HTTP).
//!
//! `bare fetch URLS CONNECTIONS DEPTH TIMES` fetches the URLs of a file so many times, by at least
//! one connection a host, each with up to DEPTH requests under way; 1 is no pipelining.
//! `bare crawl SEEDS CONNECTIONS DEPTH` fetches, finds every `href="`, joins it, asks a set
//! whether it is new, and follows it if its host is a seed's.
//! `bare archive WARC...` reads uncompressed archives and does to each record what an archive has
//! done to it: digests, a gzip member, a write; it says what each costs a response record.
//! Each prints one line of JSON. Under `cargo test` it runs small.
//!
//! Cost: that is what it measures; the CPU time of the fetching modes is whoever's starts it.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a bench has sockets, files and clocks"
)]

mod bare {
    pub(crate) mod archive;
    pub(crate) mod client;
    pub(crate) mod page;
}

use bare::{archive, client};
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
        ["archive", ref files @ ..] if !files.is_empty() => println!("{}", archive::run(files)?),
        _ => panic!(
            "fetch URLS CONNECTIONS DEPTH TIMES, crawl SEEDS CONNECTIONS DEPTH, archive WARC..."
        ),
    }
    Ok(())
}
