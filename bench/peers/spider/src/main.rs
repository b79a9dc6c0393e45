//! Drives the `spider` crate as a peer: one `Website` a seed, all in one runtime of one thread.
//!
//!     peer-spider SEEDS [CA]
//!
//! SEEDS is a file of URLs, one a line. At most 64 requests are under way, shared evenly over the
//! sites; one HTTP client serves all sites, as they would else read the system's certificates
//! once each. Robots and delays are off. CA says that certificates are of an authority nobody
//! knows: the crate has no way to name one, so none is checked.

use spider::website::Website;
use std::sync::Arc;
use tokio::sync::Semaphore;
use tokio::task::LocalSet;

const REQUESTS: usize = 64;

/// A quarter of its time would go to the system's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    let mut words = std::env::args().skip(1);
    let path = words.next().expect("a file of seeds");
    let unknown = words.next().is_some();
    let text = std::fs::read_to_string(path).expect("a file that can be read");
    let seeds: Vec<String> = text.lines().map(str::to_owned).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    let local = LocalSet::new();
    let found: usize = local.block_on(&runtime, crawl(seeds, unknown));
    println!("{found}");
}

/// Crawls every site; the links found, pages included.
async fn crawl(seeds: Vec<String>, unknown: bool) -> usize {
    let each = (REQUESTS / seeds.len().max(1)).max(1);
    let client = site("http://localhost/", each, unknown).configure_http_client();
    let sites = Arc::new(Semaphore::new(REQUESTS));
    let tasks: Vec<_> = seeds
        .into_iter()
        .map(|seed| {
            let (client, sites) = (client.clone(), sites.clone());
            tokio::task::spawn_local(async move {
                let _turn = sites.acquire_owned().await.expect("it is never closed");
                let mut site = site(&seed, each, unknown);
                site.set_http_client(client);
                site.crawl_raw().await;
                site.get_links().len()
            })
        })
        .collect();
    let mut found = 0;
    for task in tasks {
        found += task.await.expect("a crawl that ends");
    }
    found
}

fn site(seed: &str, each: usize, unknown: bool) -> Website {
    let mut site = Website::new(seed);
    site.with_respect_robots_txt(false)
        .with_ignore_sitemap(true)
        .with_delay(0)
        .with_retry(2)
        .with_no_control_thread(true)
        .with_concurrency_limit(Some(each))
        .with_danger_accept_invalid_certs(unknown);
    site
}
