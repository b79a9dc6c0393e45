//! Hosts of the lab that say something of the use of their pages, each in its way: what they say is
//! in the crawl log, in the archive and in the report.

use super::ask_python;
use super::crawl::Crawl;
use super::replay::replays_elsewhere;
use crate::util::{Run, sted};
use regex::Regex;
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

/// Nothing is kept of what is reserved for the purpose of the crawl, all else is, and what a
/// reserved page leads to is found: the same URLs are requested as without.
#[test]
fn what_is_reserved_is_not_kept() {
    let crawl = Crawl::of(WEB);
    let obeys = "[consent]\npurpose = \"ai-train\"\nobey = true\n[lab]";
    let obeying = Crawl::of(&WEB.replace("[lab]", obeys));
    assert_eq!(obeying.run.code, Some(0), "{}", obeying.run.err);
    let (all, archived) = (ask_python("consent", &crawl), ask_python("consent", &obeying));
    let log = |crawl: &Crawl| fs::read_to_string(crawl.job().join("crawl.log")).expect("a log");
    let (texts, ports) = ([log(&crawl), log(&obeying)], Regex::new(":\\d+/").expect("a pattern"));
    let urls = texts.each_ref().map(|text| {
        let parsed = text.lines().map(|line| log::parse(line).expect("a line").url);
        parsed.map(|url| ports.replace(url, "/").into_owned()).collect::<BTreeSet<_>>()
    });
    assert_eq!(urls[0], urls[1]);
    let (mut reserved, mut kept) = (0, 0);
    for line in texts[1].lines() {
        let entry = log::parse(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        let words = entry.extra.reserved.as_deref().unwrap_or_default();
        let is_reserved = words.split(' ').any(|word| word == "ai-train");
        let says = entry.extra.reason.as_deref() == Some("reserved");
        assert_eq!(is_reserved, says, "{line}");
        if entry.status <= 0 {
            // It was not requested, or has a line of its own.
            assert!(!is_reserved, "{line}");
            continue;
        }
        let has_record = archived.get(entry.url).is_some();
        assert_eq!(has_record, !is_reserved, "{line}");
        assert_eq!(has_record, entry.digest.is_some(), "{line}");
        reserved += usize::from(is_reserved);
        kept += usize::from(has_record);
    }
    assert!(reserved > 100 && kept > 100, "{reserved} reserved, {kept} kept");
    assert_eq!(all.as_object().map(serde_json::Map::len), Some(reserved + kept));
    assert!(obeying.run.out.contains(&format!("\nreserved              {reserved} ")));
    let job = obeying.job();
    let job = job.to_str().expect("UTF-8");
    for command in ["audit", "report"] {
        let run = Run::of(sted(&[command, job]).output().expect("it starts"));
        assert_eq!(run.code, Some(0), "{}{}", run.out, run.err);
        assert!(command != "report" || run.out.contains("reserved"), "{}", run.out);
    }
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
