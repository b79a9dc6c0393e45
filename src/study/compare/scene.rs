//! The webs of a comparison and their page qualities, each made by the first run that needs it and
//! dropped after the last.

use super::plan::{Ground, Plan};
use super::series::Crawled;
use crate::commands::Failure;
use crate::conf::Worth;
use crate::ground::quality::Quality;
use crate::rating::Table;
use crate::study::report::number::grouped;
use crate::study::web::graph::Graph;
use crate::study::web::{Ports, Web};
use crate::study::{inputs, settings};
use crate::url::Url;
use crate::url::scope::{self, FromSeeds};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// A web and the qualities of its pages.
#[derive(Debug)]
pub(super) struct Scene {
    /// The description of the web, which the crawls share.
    pub(super) web: Arc<Web>,
    /// The quality of each page, by the page's number in the web; empty if the crawls estimate
    /// qualities themselves.
    pub(super) worths: Vec<Quality>,
    /// The qualities by URL, as the crawls look them up; `None` if the crawls estimate them.
    pub(super) table: Option<Arc<Table>>,
}

impl Scene {
    /// Makes the web of `ground` and computes the qualities of its pages.
    ///
    /// # Errors
    /// A link graph that can't be read.
    pub(super) fn new(ground: &Ground) -> Result<Self, Failure> {
        let settings = settings::web(&ground.web);
        let ports = Ports::default();
        let web = match &ground.web.graph {
            None => Web::new(settings, ports),
            Some(place) => {
                let graph = inputs::graph(&ground.web, place)?;
                Web::of_graph(Arc::new(graph), settings, ports)
            }
        };
        let found = match ground.worth {
            Worth::PageRank => web.page_rank(ground.damping.as_f64()).quality,
            Worth::Zipf => web.zipf_permutation(ground.exponent.as_f64(), ground.web.seed),
            Worth::Topical => web.topical(ground.topical),
            Worth::Crawl => Vec::new(),
        };
        // Qualities too large for the number format are limited to its maximum.
        let worths: Vec<Quality> = found
            .into_iter()
            .map(|worth| Quality::from_f64(worth).unwrap_or(Quality::MAX))
            .collect();
        let table = (!worths.is_empty()).then(|| Arc::new(table(&web, &worths)));
        Ok(Self { web: Arc::new(web), worths, table })
    }
}

impl Scene {
    /// Returns what identifies the web in the results.
    pub(super) fn crawled(&self) -> Crawled {
        Crawled {
            hosts: self.web.hosts(),
            pages: self.web.pages_total(),
            quality_millionths: self.worths.iter().map(|worth| worth.millionths()).sum(),
            is_alike: self.worths.windows(2).all(|pair| pair[0] == pair[1]),
        }
    }
}

/// Returns how many pages and hosts the graph at `place` has, and how the hosts were found.
fn description(place: &Path, graph: &Graph) -> String {
    let number = |count: u32| grouped(f64::from(count), 0);
    let (pages, hosts) = (number(graph.pages()), number(graph.hosts()));
    let found = match graph.is_guessed() {
        true => {
            "the hosts are guessed from the links, because web.hosts_file doesn't name them: the \
             graph is cut where hardly any short link crosses"
        }
        false => "the hosts are those of web.hosts_file",
    };
    let (place, noun) = (place.display(), if graph.hosts() == 1 { "host" } else { "hosts" });
    let reached = number(graph.entry().reached);
    format!("{place}: {pages} pages on {hosts} {noun}; {found}. A crawl reaches {reached} pages.")
}

/// Returns the qualities of pages by URL. URLs contain the web's ports, so each needs its own
/// table.
pub(super) fn table(web: &Web, worths: &[Quality]) -> Table {
    let mut table = Table::default();
    for (index, worth) in worths.iter().enumerate() {
        let url = web.url(web.place_of(index));
        let url = Url::parse(&url).expect("a synthetic web's own URLs are URLs");
        table.insert(url.view(), *worth);
    }
    table
}

/// Keeps a crawl within the web. Links out of the web lead to names that don't exist, and retrying
/// these names hours later is not what is compared.
pub(super) fn stay_in_the_web(scope: &mut scope::Settings) {
    let is_open = scope.hosts.is_empty() && scope.domains.is_empty() && scope.prefixes.is_empty();
    if scope.from_seeds == FromSeeds::Any && is_open {
        scope.from_seeds = FromSeeds::Host;
        scope.domains.push("test".to_owned());
    }
}

/// The webs of a plan, each kept as long as runs need it.
#[derive(Debug)]
pub(super) struct Scenes<'a> {
    plan: &'a Plan,
    places: Vec<Mutex<Place>>,
    /// The descriptions of the graphs that were read.
    graphs: Mutex<BTreeSet<String>>,
}

#[derive(Debug, Default)]
struct Place {
    scene: Option<Arc<Scene>>,
    /// The number of runs that haven't taken the scene yet.
    waiting: usize,
}

impl<'a> Scenes<'a> {
    pub(super) fn new(plan: &'a Plan) -> Self {
        let mut places: Vec<Place> = plan.grounds.iter().map(|_| Place::default()).collect();
        for run in plan.crawls() {
            places[plan.runs[run].ground].waiting += 1;
        }
        let places = places.into_iter().map(Mutex::new).collect();
        Self { plan, places, graphs: Mutex::default() }
    }

    /// Returns the scene with the index `ground`; each run that needs it calls this once. The first
    /// caller makes the scene, others wait for it.
    pub(super) fn of(&self, ground: usize) -> Result<Arc<Scene>, Failure> {
        let mut place = self.places[ground].lock().expect("nobody panics while a web is made");
        let scene = match place.scene.take() {
            Some(scene) => scene,
            None => Arc::new(self.make(&self.plan.grounds[ground])?),
        };
        place.waiting -= 1;
        // When the last run has taken the scene, it is kept only by the runs that use it, and
        // dropped with them.
        place.scene = (place.waiting > 0).then(|| Arc::clone(&scene));
        Ok(scene)
    }
    fn make(&self, ground: &Ground) -> Result<Scene, Failure> {
        let scene = Scene::new(ground)?;
        if let (Some(place), Some(graph)) = (&ground.web.graph, scene.web.graph()) {
            let mut graphs = self.graphs.lock().expect("nobody panics with it in hand");
            graphs.insert(description(place, graph));
        }
        Ok(scene)
    }

    /// Returns a paragraph for each graph that was crawled: its pages and hosts, and how the hosts
    /// were found.
    pub(super) fn graphs(self) -> Vec<String> {
        let graphs = self.graphs.into_inner().expect("nobody panicked with it in hand");
        graphs.into_iter().collect()
    }
}
