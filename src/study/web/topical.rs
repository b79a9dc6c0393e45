//! Qualities that run along links: a page resembles its site, and the page that links to it.
//!
//! The logarithm of a page's quality is `sigma` times a sum of two terms, each with variance 1:
//!
//! ```text
//! sqrt(site) * site(host) + sqrt(1 - site) * topic(page)
//! topic(page) = sqrt(a) * topic(parent) + sqrt(1 - a) * noise(page),  a = parent / (1 - site)
//! ```
//!
//! The parent of a page is the page that is the first to link to it in a breadth-first crawl, on
//! whatever host it is; a seed has none, and its topic is noise. So the shares of the variance are
//! `site` for the site, `parent` for what the parent has in common with the page beyond the site,
//! and the rest for noise, at any depth. The logarithms of a page's and its parent's quality
//! correlate by `sqrt(parent * (1 - site))`, and by `site` more if they are on one host.
//!
//! The quality of sites may correlate with their speed and size. Speed and size count by their
//! rank, as normal scores (a Gaussian copula): how widely they differ doesn't matter.
//!
//! Laws: qualities of reachable pages are positive and have a mean of one, all others are zero.
//! Equal webs give equal bits on every machine: only `+ - * /` and square roots are used, which
//! are exactly rounded, summed in a fixed order.
//!
//! Cost: little more than that of finding the parents ([`Reach`]), which is less than that of
//! PageRank.

#[cfg(test)]
mod tests;

use super::Web;
use super::draw::{self, Purpose};
use super::reach::Reach;

/// How qualities run along links.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Topical {
    /// The standard deviation of the natural logarithm of a quality; 0 makes all pages equal.
    pub sigma: f64,
    /// The share of the variance by site, from 0 to 1.
    pub site: f64,
    /// The share of the variance by parent, from 0 to 1 - `site`.
    pub parent: f64,
    /// The correlation over hosts of a site's quality with its speed, from -1 to 1. A host is fast
    /// if its think time and its round trip take little time together.
    pub speed: f64,
    /// The correlation over hosts of a site's quality with its number of pages, from -1 to 1. The
    /// squares of both correlations add up to at most 1 where speed and size don't correlate with
    /// each other; what can't be had is cut off this one.
    pub size: f64,
}

impl Web {
    /// Draws qualities that run along links. Indexed by [`Web::page_index`]; 0 for pages that a
    /// crawl can't reach.
    pub fn topical(&self, of: Topical) -> Vec<f64> {
        let reach = Reach::of(self);
        let site = of.site.clamp(0.0, 1.0);
        let own = 1.0 - site;
        let passed = if own > 0.0 { (of.parent / own).clamp(0.0, 1.0) } else { 0.0 };
        let (site, own) = (site.sqrt(), own.sqrt());
        let (passed, fresh) = (passed.sqrt(), (1.0 - passed).sqrt());
        let sites = self.sites(of);
        let mut topics: Vec<f64> = Vec::with_capacity(reach.pages.len());
        for (&(host, page), &parent) in reach.pages.iter().zip(&reach.parents) {
            let noise = self.draw(Purpose::Topic, host, page).normal();
            // A parent was found before its children. A seed is its own parent.
            let topic = topics.get(parent as usize);
            topics.push(topic.map_or(noise, |topic| passed * topic + fresh * noise));
        }
        let mut qualities = vec![0.0; self.pages_total()];
        let mut sum = 0.0;
        for (&(host, page), topic) in reach.pages.iter().zip(&topics) {
            let quality = draw::exp(of.sigma * (site * sites[host as usize] + own * topic));
            qualities[self.page_index(host, page)] = quality;
            sum += quality;
        }
        let mean = sum / reach.pages.len() as f64;
        qualities.iter_mut().for_each(|quality| *quality /= mean);
        qualities
    }

    /// Returns the quality of each site as a normal score: mean 0, variance 1, and the wanted
    /// correlations with speed and size over this web's hosts. A trait that all hosts have alike
    /// correlates with nothing.
    fn sites(&self, of: Topical) -> Vec<f64> {
        let hosts = || 0..self.settings.hosts;
        let seconds = |number| {
            let host = self.host(number);
            (host.think_time + host.round_trip).as_secs_f64()
        };
        let speed = scores(&hosts().map(|host| -seconds(host)).collect::<Vec<f64>>());
        let pages = |host| f64::from(self.pages_of(host));
        let size = scores(&hosts().map(pages).collect::<Vec<f64>>());
        let drawn = hosts().map(|host| self.draw(Purpose::Site, host, 0).normal()).collect();
        // Three directions at right angles: speed, what size has beyond it, and chance.
        let shared = mean_product(&speed, &size);
        let beyond = without(size, &[&speed]);
        let chance = without(standard(drawn), &[&speed, &beyond]);
        let by_speed = of.speed.clamp(-1.0, 1.0) * mean_product(&speed, &speed);
        let left = (1.0 - by_speed * by_speed).max(0.0).sqrt();
        let lacking = (1.0 - shared * shared).max(0.0).sqrt();
        let wanted = (of.size - by_speed * shared) * mean_product(&beyond, &beyond);
        let by_size = if lacking > 0.0 { (wanted / lacking).clamp(-left, left) } else { 0.0 };
        let by_chance = (left * left - by_size * by_size).max(0.0).sqrt();
        let terms = speed.iter().zip(&beyond).zip(&chance);
        terms.map(|((a, b), c)| by_speed * a + by_size * b + by_chance * c).collect()
    }
}

/// A variance below this is rounding errors.
const VARIANCE_MIN: f64 = 1e-9;

/// Returns the normal scores of the ranks of `values`: mean 0, variance 1; equal values have equal
/// scores. All are 0 if the values are equal.
fn scores(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|one, other| values[*one].total_cmp(&values[*other]));
    let mut scores = vec![0.0; values.len()];
    let mut before = 0;
    for equal in order.chunk_by(|one, other| values[*one] == values[*other]) {
        // The middle of the ranks that the equal values share, as a share of all.
        let share = (before as f64 + equal.len() as f64 / 2.0) / values.len() as f64;
        equal.iter().for_each(|at| scores[*at] = quantile(share));
        before += equal.len();
    }
    standard(scores)
}

/// Returns the value that a normal deviate is below with the probability `share` (0 to 1, both
/// excluded), by Tukey's lambda distribution: off by less than 0.02 up to three standard
/// deviations.
fn quantile(share: f64) -> f64 {
    let power = |of: f64| draw::exp(0.135 * draw::ln(of));
    (power(share) - power(1.0 - share)) / 0.1975
}

/// Shifts and scales values to mean 0 and variance 1; all become 0 if they are equal.
fn standard(mut values: Vec<f64>) -> Vec<f64> {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    values.iter_mut().for_each(|value| *value -= mean);
    let variance = mean_product(&values, &values);
    let scale = if variance > VARIANCE_MIN { 1.0 / variance.sqrt() } else { 0.0 };
    values.iter_mut().for_each(|value| *value *= scale);
    values
}

/// Returns `values` without what they share with `others`, which are at right angles to each other,
/// at mean 0 and variance 1; 0 if nothing is left.
fn without(mut values: Vec<f64>, others: &[&[f64]]) -> Vec<f64> {
    for other in others {
        let shared = mean_product(&values, other);
        values.iter_mut().zip(*other).for_each(|(value, other)| *value -= shared * other);
    }
    standard(values)
}

fn mean_product(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(one, other)| one * other).sum::<f64>() / one.len() as f64
}
