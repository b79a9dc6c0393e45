//! The plan of a comparison: the product of repeats, variants, values and policies, each run with
//! its own configuration.

use crate::commands::{Exit, Failure};
use crate::conf::{Change, Compare, Conf, Decimal, Over, Value, Web, Worth};
use crate::frontier::policy::Policy;
use crate::study::settings;
use crate::study::web::Topical;
use std::path::PathBuf;

/// The most crawls that one comparison may have.
const RUNS_MAX: usize = 20_000;

/// All runs (crawls) of a comparison.
#[derive(Debug)]
pub(super) struct Plan {
    /// The runs in the order in which they begin and are shown: by variant, value, repeat and
    /// policy.
    pub(super) runs: Vec<Spec>,
    /// The names of the variants; one empty name if there are none.
    pub(super) variants: Vec<String>,
    /// The key of the configuration that the sweep changes, and its values; `None` without a sweep.
    pub(super) sweep: Option<(String, Vec<Value>)>,
    /// The policies in the order in which they are shown.
    pub(super) policies: Vec<Policy>,
    /// The policy that the times and gains of the others are relative to.
    pub(super) reference: Policy,
    /// The policy that the others are compared with repeat by repeat.
    pub(super) against: Policy,
    /// The index of the variant whose crawl under that policy the others are compared with beside
    /// that of their own variant; `None` if there is none.
    pub(super) against_variant: Option<usize>,
    /// How often each crawl is repeated.
    pub(super) repeats: u32,
    /// The webs that the runs crawl, each listed once.
    pub(super) grounds: Vec<Ground>,
}

/// One crawl of a comparison.
#[derive(Clone, Debug)]
pub(super) struct Spec {
    /// The index of its variant in [`Plan::variants`].
    pub(super) variant: usize,
    /// The index of its value in [`Plan::sweep`]; 0 if there is no sweep.
    pub(super) value: usize,
    /// The number of the repeat, counted from 0.
    pub(super) repeat: u32,
    /// The policy of the crawl, which is in `conf`, too.
    pub(super) policy: Policy,
    /// The index of its web in [`Plan::grounds`].
    pub(super) ground: usize,
    /// The configuration of the crawl.
    pub(super) conf: Conf,
    /// Whether its policy is [`Plan::reference`].
    pub(super) is_reference: bool,
    /// The index of an earlier run in [`Plan::runs`] that crawls the same, and differs in how it is
    /// measured only.
    pub(super) same_as: Option<usize>,
    /// The file of its trace; `None` if it is not simulated, or no trace is asked for.
    pub(super) trace: Option<PathBuf>,
}

/// The parameters of a web and its page qualities. Runs with equal ones share one web.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Ground {
    /// The settings of the web, with the seed of the repeat.
    pub(super) web: Web,
    /// Where page qualities come from: PageRank, Zipf's law, links, or the crawl's own estimates.
    pub(super) worth: Worth,
    /// The damping factor, if the quality is PageRank.
    pub(super) damping: Decimal,
    /// The exponent of Zipf's law, if the qualities are drawn by it.
    pub(super) exponent: Decimal,
    /// How the qualities run along links, if they are drawn so.
    pub(super) topical: Topical,
}

impl Plan {
    /// Creates the plan of a configuration.
    ///
    /// # Errors
    /// Variants and values that are valid each by itself, but not together; more runs than
    /// [`RUNS_MAX`].
    pub(super) fn new(conf: &Conf, compare: &Compare, file: &str) -> Result<Self, Failure> {
        let policies = compare.policies.clone();
        let reference = if policies.contains(&Policy::Bfs) { Policy::Bfs } else { policies[0] };
        let sweep = compare.across.clone().map(|key| (key, compare.values.clone()));
        let mut plan = Self {
            runs: Vec::new(),
            variants: compare.variants.iter().map(|variant| variant.name.clone()).collect(),
            sweep,
            policies,
            reference,
            against: compare.against.unwrap_or(reference),
            against_variant: None,
            repeats: compare.repeats,
            grounds: Vec::new(),
        };
        if plan.variants.is_empty() {
            plan.variants.push(String::new());
        }
        let repeats = usize::try_from(compare.repeats).unwrap_or(usize::MAX);
        let crawls = [plan.variants.len(), plan.values(), plan.policies.len(), repeats]
            .into_iter()
            .fold(1_usize, usize::saturating_mul);
        if crawls > RUNS_MAX {
            let text = format!(
                "{file}: compare: {crawls} crawls are more than {RUNS_MAX}; take fewer repeats, \
                 variants or values"
            );
            return Err(Failure::new(Exit::Usage, text));
        }
        for variant in 0..plan.variants.len() {
            for value in 0..plan.values() {
                let changed = plan.changed(conf, compare, file, variant, value)?;
                if changed.recrawl.policy.is_some() && changed.limits.time_max.is_none() {
                    let text = format!(
                        "{file}: recrawl.policy: such a crawl never ends; write limits.time_max, \
                         the time to compare"
                    );
                    return Err(Failure::new(Exit::Usage, text));
                }
                plan.add(&changed, compare, variant, value);
            }
        }
        if let Some(name) = &compare.against_variant {
            plan.against_variant = Some(plan.comparable(name).map_err(|why| {
                Failure::new(Exit::Usage, format!("{file}: compare.against_variant: {why}"))
            })?);
        }
        Ok(plan)
    }

    /// Returns the index of the variant of this name, if all variants crawl the same webs.
    fn comparable(&self, name: &str) -> Result<usize, String> {
        let variant = self.variants.iter().position(|variant| variant == name);
        let variant = variant.ok_or_else(|| {
            let names = self.variants.join("\", \"");
            format!("no variant is named {name:?}; there are \"{names}\"")
        })?;
        let of = |variant| self.runs.iter().filter(move |run: &&Spec| run.variant == variant);
        let other = self.runs.iter().find(|run| {
            !of(variant).any(|own| (own.repeat, own.ground) == (run.repeat, run.ground))
        });
        other.map_or(Ok(variant), |run| {
            let other = &self.variants[run.variant];
            Err(format!("variant {other:?} crawls another web than {name:?}; take one of its own"))
        })
    }

    /// Returns whether the pages of a simulated web change.
    pub(super) fn has_changes(&self) -> bool {
        let changes = |run: &Spec| {
            let compare = run.conf.compare.as_ref();
            let is_simulated = compare.is_some_and(|compare| compare.over == Over::Simulation);
            is_simulated && run.conf.web.change_interval.is_some()
        };
        self.runs.iter().any(changes)
    }

    /// Returns the number of values of the sweep; 1 if there is no sweep.
    pub(super) fn values(&self) -> usize {
        self.sweep.as_ref().map_or(1, |(_, values)| values.len())
    }

    /// Returns the value of the sweep with this index as text; empty if there is no sweep.
    pub(super) fn value_name(&self, value: usize) -> &str {
        self.sweep.as_ref().map_or("", |(_, values)| values[value].name())
    }

    /// Returns the indices of the runs that are crawls of their own: those that differ only in how
    /// they are measured are one crawl.
    pub(super) fn crawls(&self) -> Vec<usize> {
        (0..self.runs.len()).filter(|run| self.runs[*run].same_as.is_none()).collect()
    }

    /// Returns the configuration with the changes of a variant and a value of the sweep, both given
    /// by their index.
    fn changed(
        &self,
        conf: &Conf,
        compare: &Compare,
        file: &str,
        variant: usize,
        value: usize,
    ) -> Result<Conf, Failure> {
        let mut changes = Vec::new();
        let mut name = file.to_owned();
        if let Some(variant) = compare.variants.get(variant) {
            changes.extend(variant.changes.iter().cloned());
            name.push_str(&format!(": variant {:?}", variant.name));
        }
        if let Some((key, values)) = &self.sweep {
            let value = values[value].clone();
            name.push_str(&format!(": {key} = {value}"));
            changes.push(Change { key: key.clone(), value });
        }
        conf.with(&name, &changes).map_err(|mistakes| Failure::new(Exit::Usage, mistakes))
    }

    /// Adds the runs of a configuration: its repeats, each under every policy.
    fn add(&mut self, conf: &Conf, compare: &Compare, variant: usize, value: usize) {
        // A variant may have its own keys for page qualities.
        let own = conf.compare.as_ref().unwrap_or(compare);
        for repeat in 0..self.repeats {
            let mut conf = conf.clone();
            let added = compare.seed + u64::from(repeat);
            conf.web.seed += added;
            conf.sim.seed += added;
            let ground = self.ground(Ground {
                web: conf.web.clone(),
                worth: own.quality,
                damping: own.damping,
                exponent: conf.quality.zipf_exponent,
                topical: settings::topical(own),
            });
            for policy in self.policies.clone() {
                conf.schedule.policy = policy;
                let conf = conf.clone();
                let same_as = self.like(ground, &conf);
                let mut spec = Spec {
                    variant,
                    value,
                    repeat,
                    policy,
                    ground,
                    conf,
                    is_reference: policy == self.reference,
                    same_as,
                    trace: None,
                };
                if compare.trace && same_as.is_none() && compare.over == Over::Simulation {
                    spec.trace = Some(compare.directory.join(self.trace_name(&spec)));
                }
                self.runs.push(spec);
            }
        }
    }

    /// Returns the file name of a run's trace: what distinguishes the run from the others, in
    /// letters that every shell accepts.
    fn trace_name(&self, spec: &Spec) -> String {
        let mut parts = vec![self.variants[spec.variant].clone()];
        if let Some((key, values)) = &self.sweep {
            let key = key.rsplit('.').next().unwrap_or(key);
            parts.push(format!("{key}-{}", values[spec.value].name()));
        }
        parts.push(spec.policy.name().to_owned());
        if self.repeats > 1 {
            parts.push((spec.repeat + 1).to_string());
        }
        parts.retain(|part| !part.is_empty());
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        let plain = |c: char| if is_plain(c) { c } else { '_' };
        let name: String = parts.join("-").chars().map(plain).collect();
        // Two names may be equal here if variants differ only in letters that were replaced.
        let file = format!("{name}.trace");
        let ends = |run: &Spec| run.trace.as_ref().is_some_and(|path| path.ends_with(&file));
        if !self.runs.iter().any(ends) {
            return file;
        }
        format!("{name}-{}.trace", self.runs.len() + 1)
    }

    /// Returns the index of the first run that crawls as `conf` says, on the web `ground`.
    fn like(&self, ground: usize, conf: &Conf) -> Option<usize> {
        let measured = |conf: &Conf| Conf { compare: None, ..conf.clone() };
        let mut runs = self.runs.iter();
        runs.position(|run| {
            run.ground == ground
                && run.policy == conf.schedule.policy
                && run.same_as.is_none()
                && measured(&run.conf) == measured(conf)
        })
    }

    fn ground(&mut self, ground: Ground) -> usize {
        let known = self.grounds.iter().position(|known| *known == ground);
        known.unwrap_or_else(|| {
            self.grounds.push(ground);
            self.grounds.len() - 1
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(text: &str) -> Result<Plan, String> {
        let conf = Conf::parse(text, "x.toml").unwrap_or_else(|error| panic!("{error}"));
        let compare = conf.compare.clone().expect("a comparison");
        Plan::new(&conf, &compare, "x.toml").map_err(|failure| failure.text)
    }

    #[test]
    fn runs_are_the_product() {
        let plan = plan(
            "[compare]\nrepeats = 3\nseed = 10\nvariants = [\"a\", \"b: web.hosts=50\"]\n\
             across = \"connections.open_max\"\nvalues = [1, 2]\n[web]\nseed = 5",
        )
        .expect("a plan");
        assert_eq!(plan.runs.len(), 2 * 2 * 3 * 4);
        assert_eq!(plan.grounds.len(), 2 * 3, "open_max makes no other web, a policy neither");
        let last = plan.runs.last().expect("some");
        assert_eq!((last.conf.web.seed, last.conf.web.hosts), (5 + 10 + 2, 50));
        assert_eq!((last.conf.sim.seed, last.conf.connections.open_max), (1 + 10 + 2, 2));
        assert_eq!((last.policy, last.conf.schedule.policy), (Policy::ALL[3], Policy::ALL[3]));
        assert_eq!((plan.value_name(1), plan.variants[1].as_str()), ("2", "b"));
    }

    /// Where the counted time ends changes no crawl, so the crawls of such a sweep are made once.
    #[test]
    fn what_differs_in_measure_only_is_crawled_once() {
        let plan = plan(
            "[compare]\npolicies = [\"bfs\", \"quality\"]\nrepeats = 2\n\
             across = \"compare.counted_share\"\nvalues = [0.5, 0.95, 1]",
        )
        .expect("a plan");
        let same: Vec<Option<usize>> = plan.runs.iter().map(|run| run.same_as).collect();
        let again = [Some(0), Some(1), Some(2), Some(3)];
        assert_eq!(same, [[None; 4], again, again].concat());
        assert_eq!(plan.crawls(), [0, 1, 2, 3]);
    }

    #[test]
    fn the_reference_is_bfs_or_the_first() {
        for (policies, expected) in [
            ("[\"quality\", \"bfs\"]", Policy::Bfs),
            ("[\"quality\", \"capability\"]", Policy::Quality),
        ] {
            let plan = plan(&format!("[compare]\npolicies = {policies}")).expect("a plan");
            assert_eq!(plan.reference, expected, "{policies}");
        }
    }

    #[test]
    fn only_a_variant_of_the_same_web_is_compared_with() {
        let text = |variant: &str| {
            format!(
                "[compare]\nvariants = [\"a\", \"b: connections.open_max=2\", \"{variant}\"]\n\
                 against_variant = \"b\""
            )
        };
        assert_eq!(plan(&text("c")).expect("a plan").against_variant, Some(1));
        for (text, expected) in [
            (text("c: web.hosts=7"), "variant \"c\" crawls another web than \"b\""),
            (text("c").replace("= \"b\"", "= \"d\""), "is named \"d\""),
        ] {
            let found = plan(&text).expect_err("not comparable");
            assert!(found.contains(expected), "{found}");
        }
    }

    #[test]
    fn contradictions_are_reported() {
        let text = plan(
            "[compare]\nvariants = [\"a: politeness.delay=1m\"]\n\
             across = \"politeness.burst\"\nvalues = [1, 10]",
        )
        .expect_err("burst x delay is longer than delay_max");
        assert!(
            text.starts_with("x.toml: variant \"a\": politeness.burst = 10: politeness."),
            "{text}"
        );
        let text = plan(
            "[compare]\nrepeats = 1000\nvariants = [\"a\", \"b\", \"c\", \"d\", \"e\", \"f\"]",
        )
        .expect_err("too many");
        assert!(text.contains("24000 crawls"), "{text}");
    }
}
