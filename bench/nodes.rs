//! What several nodes bring that share a crawl, simulated: pages a second where the core is full.
//!
//! `nodes costs` measures what a node does in addition to a crawl, and what it costs the core; the
//! model of the simulated core has these costs (`Exchange::MEASURED`).
//!
//! `nodes crawl NODES PAGES OF_PAGES HOSTS DELAY_MS SENT_LOG2` gets so many pages of a web of
//! OF_PAGES with so many nodes, 0 for a crawler without a cluster, and prints a line of a table.
//! `nodes head` prints its head. `nodes lost SEED PAGES HOSTS PERIOD_S` loses one of three nodes at
//! each tenth of the pages and prints a line for each; `nodes lost` prints their head.
//! `bench/nodes` makes the tables. Without arguments a small crawl of each kind runs, as a test.
//!
//! Everything but the costs is on a virtual clock: the same on every machine.

#[path = "nodes_costs.rs"]
mod costs;
#[path = "nodes_crawl.rs"]
mod crawl;
#[path = "nodes_lost.rs"]
mod lost;

/// The hash key of the crawls.
const KEY: [u8; 16] = [7; 16];

fn main() {
    let words: Vec<String> =
        std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        [] => {
            println!("{}", crawl::HEAD);
            for nodes in [0, 1, 3] {
                let plan = crawl::Plan { nodes, ..Default::default() };
                crawl::run(&plan);
            }
            println!("{}", lost::HEAD);
            lost::run(&lost::Plan::default());
        }
        ["costs"] => costs::show(crawl::web(5_000, 300_000), 9),
        ["head"] => println!("{}", crawl::HEAD),
        ["crawl", nodes, pages, of_pages, hosts, delay_ms, sent_log2] => {
            let number = |word: &str| word.parse::<u32>().expect("a number");
            crawl::run(&crawl::Plan {
                nodes: number(nodes) as usize,
                pages: number(pages),
                of_pages: number(of_pages),
                hosts: number(hosts),
                delay_ms: number(delay_ms).into(),
                sent_log2: number(sent_log2),
            });
        }
        ["lost"] => println!("{}", lost::HEAD),
        ["lost", seed, pages, hosts, period_s] => {
            let number = |word: &str| word.parse::<u32>().expect("a number");
            lost::run(&lost::Plan {
                seed: number(seed).into(),
                pages: number(pages),
                hosts: number(hosts),
                period_s: number(period_s).into(),
            });
        }
        _ => panic!("nothing, `costs`, `head`, `crawl` and six numbers, or `lost` and four"),
    }
}
