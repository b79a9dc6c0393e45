//! Hosts of the lab that say something of the use of their pages, each in its way: what they say is
//! in the crawl log, in the archive and in the report.

use super::ask_python;
use super::crawl::Crawl;
use super::replay::replays_elsewhere;
use crate::util::{Run, sted};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use sted::store::log;
use sted::study::settings;
use sted::study::web::{Ports, Voice, Web};

/// Four of five hosts speak; pages come in all framings and codings, some of them alike.
const WEB: &str = r#"
[job]
name = "consent"
directory = "job"
[politeness]
burst = "server"
delay = "0s"
delay_factor = 0
address_delay = "0s"
domain_delay = "0s"
[lab]
directory = "lab"
[web]
preset = "plain"
hosts = 40
seeds = 40
pages = 600
page_bytes = "3KB"
consent_share = 0.8
chunked_share = 0.3
gzip_share = 0.2
brotli_share = 0.2
zstd_share = 0.2
deflate_share = 0.1
duplicate_share = 0.1
redirect_share = 0.05
not_found_share = 0.05
robots_allow_share = 0.5
robots_part_share = 0.2
"#;

#[test]
fn what_hosts_say_is_recorded() {
    let crawl = Crawl::of(WEB);
    assert_eq!(crawl.run.code, Some(0), "{}", crawl.run.err);
    let web = Web::new(settings::web(&crawl.conf.web), Ports::default());
    let voices: BTreeMap<String, Option<Voice>> =
        (0..web.hosts()).map(|number| (web.host(number).name, web.voice(number))).collect();
    let archived = ask_python("consent", &crawl);
    let text = fs::read_to_string(crawl.job().join("crawl.log")).expect("a crawl log");
    let (mut heard, mut silent) = (BTreeSet::new(), 0);
    for line in text.lines() {
        let entry = log::parse(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        if entry.status <= 0 {
            // Nothing came.
            assert!(entry.extra.consent.is_empty(), "{line}");
            continue;
        }
        let host = entry.url.split('/').nth(2).and_then(|host| host.split(':').next());
        let host = host.expect("a URL");
        let statements: Vec<&str> = entry.extra.consent.iter().map(|it| &**it).collect();
        let reserved = entry.extra.reserved.as_deref().unwrap_or_default();
        let block = archived[entry.url].as_array().map_or(&[][..], Vec::as_slice);
        let is_file = entry.url.ends_with("/robots.txt");
        let voice = voices[host].filter(|voice| {
            // Only an HTML page that is there has elements.
            let is_page = entry.mime == Some("text/html") && entry.status == 200;
            let is_element = matches!(voice, Voice::Meta | Voice::MetaReservation);
            !is_file && (!is_element || is_page)
        });
        let Some(voice) = voice else {
            assert!(statements.is_empty() && block.is_empty(), "{host} is silent: {line}");
            silent += usize::from(!is_file);
            continue;
        };
        assert_eq!(reserved, voice.reserves(), "{voice:?}: {line}");
        assert_eq!(statements.len(), 1, "{voice:?}: {line}");
        let words = voice.text().split(['"', ':', ' ', '=']).filter(|word| word.len() > 5);
        let said = statements[0].to_ascii_lowercase();
        let is_in = |word: &str| said.contains(&word.to_ascii_lowercase());
        assert!(words.filter(|word| *word != "content").all(is_in), "{voice:?}: {said}");
        assert!(block.iter().any(|line| line == statements[0]), "{block:?} has {said}");
        assert!(block.iter().any(|line| *line == format!("reserved: {reserved}")), "{block:?}");
        heard.insert(voice.text());
    }
    assert_eq!(heard.len(), Voice::ALL.len(), "each way was met: {heard:?}");
    assert!(silent > 20, "{silent} pages of silent hosts");
    replays_elsewhere(&crawl);
    is_reported(&crawl, &voices);
}

/// The report has each host that speaks, and no other; the audit has nothing to complain of.
fn is_reported(crawl: &Crawl, voices: &BTreeMap<String, Option<Voice>>) {
    let job = crawl.job();
    let job = job.to_str().expect("UTF-8");
    let run = |arguments: &[&str]| Run::of(sted(arguments).output().expect("it starts"));
    let report = run(&["report", job, "--format", "csv", "--table", "consent"]);
    assert_eq!(report.code, Some(0), "{}", report.err);
    let mut lines = report.out.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let heads = lines.next().expect("a head");
    let mut hosts = BTreeSet::new();
    for row in lines {
        let of: BTreeMap<&str, &str> = heads.iter().copied().zip(row).collect();
        let voice = voices[of["host"]].expect("a host that speaks");
        for purpose in ["search", "archive", "mining", "ai-train", "ai-input"] {
            let reserves = voice.reserves().split(' ').any(|name| name == purpose);
            let count = of[&*format!("no_{}", purpose.replace('-', "_"))];
            assert_eq!(count, if reserves { of["stated"] } else { "0" }, "{purpose}: {of:?}");
        }
        hosts.insert(of["host"].to_owned());
    }
    let speaking = voices.values().flatten().count();
    assert!(hosts.len() > 20 && hosts.len() <= speaking, "{} of {speaking}", hosts.len());
    let text = run(&["report", job]);
    assert!(text.out.contains("\nWhat was said of the use of pages\n"), "{}", text.out);
    assert!(text.out.lines().all(|line| line.chars().count() <= 100), "{}", text.out);
    let audit = run(&["audit", job]);
    assert_eq!(audit.code, Some(0), "{}{}", audit.out, audit.err);
}
