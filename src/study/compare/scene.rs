//! The webs of a comparison and their page qualities, each made by the first run that needs it and
//! dropped after the last.

use super::plan::{Ground, Plan};
use crate::commands::Failure;
use crate::conf::Worth;
use crate::ground::quality::Quality;
use crate::rating::Table;
use crate::study::web::{Ports, Web};
use crate::study::{inputs, settings};
use crate::url::Url;
use crate::url::scope::{self, FromSeeds};
use std::sync::{Arc, Mutex};

/// A web and the qualities of its pages.
#[derive(Debug)]
pub(super) struct Scene {
    /// The web.
    pub(super) web: Arc<Web>,
    /// The quality of each page by its number; empty if the crawls estimate qualities themselves.
    pub(super) worths: Vec<Quality>,
    /// The qualities as the crawls look them up; `None` if there are none.
    pub(super) table: Option<Arc<Table>>,
}

impl Scene {
    /// Makes a web and computes the qualities of its pages.
    ///
    /// # Errors
    /// A link graph that can't be read.
    pub(super) fn new(ground: &Ground) -> Result<Self, Failure> {
        let settings = settings::web(&ground.web);
        let ports = Ports::default();
        let web = match &ground.web.graph {
            None => Web::new(settings, ports),
            Some(folder) => {
                let graph = inputs::graph(folder)?;
                Web::of_graph(Arc::new(graph), settings, ports)
            }
        };
        let found = match ground.worth {
            Worth::PageRank => web.page_rank(ground.damping.as_f64()).quality,
            Worth::Zipf => web.zipf_permutation(ground.exponent.as_f64(), ground.web.seed),
            Worth::Crawl => Vec::new(),
        };
        // Qualities beyond the scale are limited to its maximum.
        let worths: Vec<Quality> = found
            .into_iter()
            .map(|worth| Quality::from_f64(worth).unwrap_or(Quality::MAX))
            .collect();
        let table = (!worths.is_empty()).then(|| Arc::new(table(&web, &worths)));
        Ok(Self { web: Arc::new(web), worths, table })
    }
}

/// Returns the qualities by URL; the URLs depend on the web's ports.
pub(super) fn table(web: &Web, worths: &[Quality]) -> Table {
    let mut table = Table::default();
    for (index, worth) in worths.iter().enumerate() {
        let url = web.url(web.place_of(index));
        let url = Url::parse(&url).expect("a synthetic web's own URLs are URLs");
        table.insert(url.view(), *worth);
    }
    table
}

/// Keeps a crawl within the web. Links out of it lead to names that don't exist, and retrying them
/// hours later is not what is compared.
pub(super) fn stay_in_the_web(scope: &mut scope::Settings) {
    let is_open = scope.hosts.is_empty() && scope.domains.is_empty() && scope.prefixes.is_empty();
    if scope.from_seeds == FromSeeds::Any && is_open {
        scope.from_seeds = FromSeeds::Host;
        scope.domains.push("test".to_owned());
    }
}

/// The webs of a plan that are still needed.
#[derive(Debug)]
pub(super) struct Scenes<'a> {
    plan: &'a Plan,
    places: Vec<Mutex<Place>>,
}

#[derive(Debug, Default)]
struct Place {
    scene: Option<Arc<Scene>>,
    /// Runs that haven't taken it yet.
    waiting: usize,
}

impl<'a> Scenes<'a> {
    pub(super) fn new(plan: &'a Plan) -> Self {
        let mut places: Vec<Place> = plan.grounds.iter().map(|_| Place::default()).collect();
        for run in &plan.runs {
            places[run.ground].waiting += 1;
        }
        Self { plan, places: places.into_iter().map(Mutex::new).collect() }
    }

    /// Returns the scene of a run; called once for each run. The first caller makes it, others
    /// wait.
    pub(super) fn of(&self, ground: usize) -> Result<Arc<Scene>, Failure> {
        let mut place = self.places[ground].lock().expect("nobody panics while a web is made");
        let scene = match place.scene.take() {
            Some(scene) => scene,
            None => Arc::new(Scene::new(&self.plan.grounds[ground])?),
        };
        place.waiting -= 1;
        // After the last run has taken it, it is dropped with the runs that use it.
        place.scene = (place.waiting > 0).then(|| Arc::clone(&scene));
        Ok(scene)
    }
}
