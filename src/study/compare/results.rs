//! The results of a comparison: its crawls, grouped and measured.

use super::measure::{Figures, Measure, Spread, figures};
use super::plan::{Plan, Spec};
use super::series::Run;
use super::stats::Paired;
use crate::frontier::policy::Policy;
use std::collections::BTreeSet;

/// The results of a comparison, from which its tables and figures are made.
#[derive(Debug)]
pub(super) struct Results<'a> {
    /// The plan of the comparison.
    pub(super) plan: &'a Plan,
    /// The crawls, in the order of the plan.
    pub(super) runs: &'a [Run],
    /// The figures of each crawl, in the same order.
    pub(super) figures: Vec<Figures>,
    /// The values by which each crawl is measured, in the same order.
    pub(super) measures: Vec<Measure>,
    /// One row for each variant, value and policy, with its repeats.
    pub(super) rows: Vec<Row>,
    /// A paragraph for each graph that was crawled; none if the webs are drawn.
    pub(super) graphs: Vec<String>,
}

/// The repeats of one crawl: the runs of one variant, value and policy.
#[derive(Clone, Debug)]
pub(super) struct Row {
    /// The indices of the crawls in [`Results::runs`], by repeat.
    pub(super) runs: Vec<usize>,
    /// The number of repeats in which this policy has the largest area of all policies, which
    /// medians don't show.
    pub(super) firsts: usize,
}

impl<'a> Results<'a> {
    /// Computes the results of `runs`, which are all crawls of the plan in its order.
    ///
    /// # Errors
    /// Runs that are not those of the plan, or crawls of one web and repeat that crawled different
    /// webs: what is computed of them would compare nothing.
    pub(super) fn new(plan: &'a Plan, runs: &'a [Run]) -> Result<Self, String> {
        check(plan, runs)?;
        let (figures, measures) = figures(runs, plan);
        let policies = plan.policies.len();
        let repeats = usize::try_from(plan.repeats).expect("a few");
        let first = (0..runs.len()).step_by(policies * repeats);
        let firsts = firsts(&figures, policies);
        let row = |at: usize| {
            let runs: Vec<usize> = (0..repeats).map(|turn| at + turn * policies).collect();
            Row { firsts: runs.iter().filter(|run| firsts.contains(run)).count(), runs }
        };
        let rows = first.flat_map(|at| (0..policies).map(move |policy| row(at + policy)));
        Ok(Self { plan, runs, rows: rows.collect(), figures, measures, graphs: Vec::new() })
    }

    /// Returns the median and the range of a figure over the repeats of a row.
    pub(super) fn spread(&self, row: &Row, of: fn(&Figures) -> f64) -> Spread {
        Spread::of(row.runs.iter().map(|run| of(&self.figures[*run])))
    }

    /// Returns the plan of the first crawl of a row, for what it has in common with its repeats.
    pub(super) fn spec(&self, row: &Row) -> &Spec {
        &self.runs[row.runs[0]].spec
    }

    /// Returns the row with the variant and value of `row` under another policy.
    pub(super) fn under(&self, row: &Row, policy: Policy) -> Option<&Row> {
        self.of(self.spec(row).variant, self.spec(row).value, policy)
    }

    /// Returns the rows that `row` is compared with: that of [`Plan::against`] in its own variant,
    /// and that in [`Plan::against_variant`], unless they are `row` itself.
    pub(super) fn against(&self, row: &Row) -> impl Iterator<Item = &Row> {
        let (spec, against) = (self.spec(row), self.plan.against);
        let own = (spec.variant, spec.policy);
        let named = self.plan.against_variant.filter(|variant| *variant != spec.variant);
        let variants = [Some(spec.variant), named].into_iter().flatten();
        variants
            .filter(move |variant| (*variant, against) != own)
            .filter_map(move |variant| self.of(variant, spec.value, against))
    }

    fn of(&self, variant: usize, value: usize, policy: Policy) -> Option<&Row> {
        let key = |spec: &Spec| (spec.variant, spec.value, spec.policy);
        self.rows.iter().find(|row| key(self.spec(row)) == (variant, value, policy))
    }

    /// Compares a figure of two rows repeat by repeat: the differences `row` - `other`, or those of
    /// the logarithms. Repeats in which one has no such figure are left out; `None` if all are.
    pub(super) fn paired(
        &self,
        (row, other): (&Row, &Row),
        of: fn(&Figures) -> f64,
        by_logarithm: bool,
    ) -> Option<Paired> {
        let value = |run: &usize| {
            let value = of(&self.figures[*run]);
            if by_logarithm { value.ln() } else { value }
        };
        let pairs = row.runs.iter().zip(&other.runs).map(|(own, other)| value(own) - value(other));
        let pairs: Vec<f64> = pairs.filter(|difference| difference.is_finite()).collect();
        Paired::of(&pairs)
    }
}

/// Checks that `runs` are those of the plan, and that crawls of one web and repeat crawled the same
/// web.
fn check(plan: &Plan, runs: &[Run]) -> Result<(), String> {
    if runs.len() != plan.runs.len() {
        return Err(format!("{} crawls of {} are there", runs.len(), plan.runs.len()));
    }
    let key = |spec: &Spec| (spec.variant, spec.value, spec.repeat, spec.policy, spec.ground);
    for (at, (run, planned)) in runs.iter().zip(&plan.runs).enumerate() {
        let named = || format!("crawl {} ({})", at + 1, planned.policy.name());
        if key(&run.spec) != key(planned) {
            return Err(format!("{} is another one: {}", named(), run.spec.policy.name()));
        }
        let first = runs.iter().find(|other| other.spec.ground == run.spec.ground);
        let first = first.expect("it is one itself");
        if first.web != run.web {
            return Err(format!("{} is of another web: {:?}, {:?}", named(), run.web, first.web));
        }
    }
    Ok(())
}

/// Returns the indices of the crawls with the largest area of each web and repeat; crawls with
/// equal areas all count.
fn firsts(figures: &[Figures], policies: usize) -> BTreeSet<usize> {
    let area = |run: usize| figures[run].over_time().area;
    let first = |at: usize| {
        let runs = at..at + policies;
        let most = runs.clone().map(area).filter(|area| area.is_finite());
        let most = most.fold(f64::NEG_INFINITY, f64::max);
        runs.filter(move |run| area(*run) == most)
    };
    (0..figures.len()).step_by(policies).flat_map(first).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::series::{Sample, Series};
    use super::*;
    use crate::conf::Conf;
    use std::sync::Arc;

    /// Returns what `of` makes of the results of a comparison, whose runs have these qualities
    /// after one of two seconds.
    pub(in super::super) fn results<T>(
        text: &str,
        quality: &[u64],
        of: fn(&Results<'_>) -> T,
    ) -> T {
        tampered(text, quality, |_| {}, |found| of(&found.expect("as planned")))
    }

    type Tamper = fn(&mut Vec<Run>);

    fn tampered<T>(
        text: &str,
        quality: &[u64],
        tamper: Tamper,
        of: impl FnOnce(Result<Results<'_>, String>) -> T,
    ) -> T {
        let conf = Conf::parse(text, "x.toml").expect("valid");
        let compare = conf.compare.clone().expect("a comparison");
        let plan = Plan::new(&conf, &compare, "x.toml").expect("a plan");
        let runs = plan.runs.iter().zip(quality).map(|(spec, &quality_millionths)| {
            let mut series = Series::new();
            for (seconds, quality_millionths) in [(1.0, quality_millionths), (2.0, 100)] {
                let pages = if seconds > 1.0 { 100 } else { 10 };
                let requests = pages;
                let one =
                    Sample { seconds, pages, quality_millionths, requests, ..Sample::default() };
                series.push(one);
            }
            Run {
                spec: spec.clone(),
                series: Arc::new(series),
                web: Default::default(),
                bound: None,
            }
        });
        let mut runs: Vec<Run> = runs.collect();
        tamper(&mut runs);
        of(Results::new(&plan, &runs))
    }

    #[test]
    fn who_shares_the_largest_area_has_it() {
        let text = "[compare]\npolicies = [\"performance\", \"capability\"]\nrepeats = 2";
        for (quality, expected) in
            [([10, 10, 10, 10], [2, 2]), ([10, 10, 20, 10], [2, 1]), ([10, 20, 10, 30], [0, 2])]
        {
            let firsts = |results: &Results<'_>| {
                results.rows.iter().map(|row| row.firsts).collect::<Vec<usize>>()
            };
            assert_eq!(results(text, &quality, firsts), expected, "{quality:?}");
        }
    }

    /// A comparison of crawls that don't belong together is refused.
    #[test]
    fn a_wrong_comparison_is_refused() {
        let text = "[compare]\npolicies = [\"performance\", \"capability\"]\nrepeats = 2";
        let cases: [(Tamper, &str); 4] = [
            (|runs| runs.swap(0, 1), "crawl 1 (performance) is another one: capability"),
            (|runs| runs.swap(1, 3), "crawl 2 (capability) is another one"),
            (|runs| drop(runs.pop()), "3 crawls of 4 are there"),
            (|runs| runs[3].web.quality_millionths += 1, "crawl 4 (capability) is of another web"),
        ];
        for (tamper, expected) in cases {
            let found = tampered(text, &[10; 4], tamper, |found| found.map(drop));
            assert!(found.as_ref().is_err_and(|text| text.starts_with(expected)), "{found:?}");
        }
    }
}
