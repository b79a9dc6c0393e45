//! Hints where a comparison can't show a difference between policies, or shows one that is luck.

use super::results::Results;
use super::series::Run;
use super::stats::REPEATS_MIN;

/// Returns what a reader should know before believing the tables, one sentence or two each.
pub(super) fn all(results: &Results<'_>) -> Vec<String> {
    let plan = results.plan;
    let mut hints = Vec::new();
    if plan.policies.len() < 2 {
        return hints;
    }
    let repeats = usize::try_from(plan.repeats).unwrap_or(usize::MAX);
    if repeats == 1 {
        hints.push("One repeat: what differs may be luck. Write compare.repeats = 20.".to_owned());
    } else if repeats < REPEATS_MIN {
        hints.push(format!(
            "{repeats} repeats are too few for intervals; write compare.repeats = 20."
        ));
    }
    let every = |is: &dyn Fn(&Run) -> bool| results.runs.iter().all(is);
    if every(&|run| run.web.is_alike) {
        hints.push(
            "All pages have the same quality: the order of pages makes no difference to quality."
                .to_owned(),
        );
    }
    let slots = |run: &Run| run.spec.conf.connections.open_max;
    if every(&|run| run.web.hosts as usize <= slots(run)) {
        hints.push(
            "Every host has a connection of its own (connections.open_max): no policy has to \
             choose between hosts, only between the pages of one."
                .to_owned(),
        );
    } else if every(&|run| most_connections(run) < slots(run)) {
        hints.push(
            "The connections were never all open: rests or discovery limit the crawls, so the \
             order of hosts makes little difference."
                .to_owned(),
        );
    }
    hints
}

fn most_connections(run: &Run) -> usize {
    run.series.samples().iter().map(|sample| sample.connections).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::super::results::tests::results;

    #[test]
    fn hints_where_policies_cant_differ() {
        let hints = |text: &str| results(text, &[10; 48], |results| super::all(results).join(" "));
        let study = "[compare]\npolicies = [\"bfs\", \"capability\"]\nrepeats = ";
        assert!(hints(&format!("{study}1")).contains("One repeat"));
        assert!(hints(&format!("{study}4")).contains("4 repeats are too few"));
        let enough = hints(&format!("{study}20"));
        assert!(!enough.contains("repeat"), "{enough}");
        assert!(enough.contains("a connection of its own"), "of no hosts: {enough}");
        let one = "[compare]\npolicies = [\"bfs\"]\nrepeats = 1";
        assert_eq!(hints(one), "", "nothing is compared");
    }
}
