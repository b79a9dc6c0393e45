//! `sted audit`: real crawls of the lab are polite, and each way of spoiling their log is noticed.
//!
//! A second auditor of a few lines, which shares no code with the first, must agree with it.

use crate::util::{Run, sted};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;
use tempfile::TempDir;

/// A polite crawl of a small lab, in two runs.
const CRAWL: &str = r#"
[job]
directory = "job"
[politeness]
burst = 1
delay = "60ms"
delay_factor = 3
domain_delay = "20ms"
robots_retry_wait = "1s"
[retries]
retry_wait = "1s"
retry_wait_max = "1s"
retry_after_max = "1s"
server_failures_max = 3
[store]
format = "FORMAT"
[limits]
time_max = "TIME"
[lab]
directory = "lab"
[web]
hosts = 30
seeds = 30
pages = 120
hosts_per_domain = 2
hosts_per_address = 3
hostile = HOSTILE
"#;

/// A job directory with the log of a crawl.
struct Job(TempDir);

impl Job {
    /// Crawls the lab until nothing is left; the first run is stopped early.
    fn crawled(format: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        for time in ["1s", "60s"] {
            // Rules of more than 4 KiB are only in the archive.
            let hostile = match format {
                "none" => r#"["reset", "robots-loop", "retry-after", "redirect-loop"]"#,
                _ => r#"["quick"]"#,
            };
            let text = CRAWL.replace("FORMAT", format).replace("TIME", time);
            let text = text.replace("HOSTILE", hostile);
            fs::write(folder.path().join("crawl.toml"), text).expect("written");
            let mut crawl = sted(&["crawl", "crawl.toml"]);
            let run = Run::of(crawl.current_dir(folder.path()).output().expect("it starts"));
            // Some servers of the lab fail.
            let expected = if time == "1s" { [15, 15] } else { [0, 12] };
            assert!(expected.contains(&run.code.unwrap_or(-1)), "{run:?}");
        }
        Self(folder)
    }

    fn log(&self) -> PathBuf {
        self.0.path().join("job/crawl.log")
    }

    fn lines(&self) -> Vec<Line> {
        let text = fs::read_to_string(self.log()).expect("a log");
        text.lines().map(Line::of).collect()
    }

    fn audit(&self) -> Run {
        let job = self.0.path().join("job");
        Run::of(sted(&["audit", job.to_str().expect("UTF-8")]).output().expect("it starts"))
    }

    /// Audits the log with other lines in it, then puts it back.
    fn audit_of(&self, lines: &[Line]) -> Run {
        let before = fs::read(self.log()).expect("a log");
        let text: String = lines.iter().map(Line::text).collect();
        fs::write(self.log(), text).expect("written");
        let run = self.audit();
        fs::write(self.log(), before).expect("written");
        run
    }
}

/// A line of a log: its fields before the JSON, and the JSON.
#[derive(Clone)]
struct Line {
    words: Vec<String>,
    json: Value,
}

impl Line {
    fn of(text: &str) -> Self {
        let (words, json) = text.split_once(" {").expect("JSON at the end");
        let words = words.split_whitespace().map(str::to_owned).collect();
        Self { words, json: serde_json::from_str(&format!("{{{json}")).expect("JSON") }
    }

    fn text(&self) -> String {
        format!("{} {}\n", self.words.join(" "), self.json)
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.json[name].as_u64()
    }

    fn server(&self) -> &str {
        self.json["server"].as_str().expect("a server")
    }

    fn target(&self) -> &str {
        self.words[3].strip_prefix(self.server()).expect("a URL of the server")
    }
}

/// Returns the places of two lines: the requests of two visits to one server, one after the other
/// in one run.
fn neighbours(lines: &[Line]) -> (usize, usize) {
    let mut last: BTreeMap<&str, usize> = BTreeMap::new();
    for (place, line) in lines.iter().enumerate().filter(|(_, line)| line.number("sent").is_some())
    {
        if let Some(before) = last.insert(line.server(), place)
            && line.json["rule"] == "delay"
            && lines[before].json["run"] == line.json["run"]
            && line.number("visit") == lines[before].number("visit").map(|visit| visit + 1)
        {
            return (before, place);
        }
    }
    panic!("no server was visited twice in a row");
}

/// The second auditor. Returns what it finds, for a log with rules in it.
fn naive(lines: &[Line], delay: u64, factor: u64) -> Vec<String> {
    let mut found = Vec::new();
    let mut rules: BTreeMap<&str, &str> = BTreeMap::new();
    let mut visits: BTreeMap<&str, Vec<(u64, u64)>> = BTreeMap::new();
    for line in lines {
        if let Some(text) = line.json["rules"].as_str() {
            rules.insert(line.server(), text);
        }
        let Some(sent) = line.number("sent") else { continue };
        visits
            .entry(line.server())
            .or_default()
            .push((sent, line.number("ended").expect("an end")));
        let is_page = !line.words[4].starts_with('P');
        if is_page && !naive_allows(rules.get(line.server()).copied(), line.target()) {
            found.push(format!("{} is disallowed", line.words[3]));
        }
    }
    for (server, mut times) in visits {
        times.sort_unstable();
        let crawl_delay = rules.get(server).and_then(|text| {
            let line = text.lines().find_map(|line| line.strip_prefix("Crawl-delay: "))?;
            Some((line.parse::<f64>().expect("a number") * 1e6) as u64)
        });
        for pair in times.windows(2) {
            let [(sent, ended), (next, _)] = *pair else { continue };
            let owed = delay.max(factor * (ended - sent)).max(crawl_delay.unwrap_or(0));
            if next < ended + owed {
                found.push(format!("{server}: {next} is too early"));
            }
        }
    }
    found
}

/// The naive matcher: every rule is tried, and the longest that matches decides.
fn naive_allows(rules: Option<&str>, target: &str) -> bool {
    let matches = |rule: &str| {
        let (rule, ends) = rule.strip_suffix('$').map_or((rule, false), |rule| (rule, true));
        let mut rest = Some(target);
        for (place, piece) in rule.split('*').enumerate() {
            rest = rest.and_then(|text| match place {
                0 => text.strip_prefix(piece),
                _ => text.find(piece).map(|at| &text[at + piece.len()..]),
            });
        }
        rest.is_some_and(|rest| !ends || rest.is_empty())
    };
    fn rule(line: &str) -> Option<(bool, &str)> {
        let (key, path) = line.split_once(": ")?;
        matches!(key, "Allow" | "Disallow").then_some((key == "Allow", path))
    }
    let all = rules.unwrap_or("").lines().filter_map(rule).filter(|(_, path)| matches(path));
    all.max_by_key(|(allows, path)| (path.len(), *allows)).is_none_or(|(allows, _)| allows)
}

#[test]
fn a_crawl_with_an_archive_is_polite() {
    let job = Job::crawled("warc");
    let run = job.audit();
    assert_eq!(run.code, Some(0), "{}{}", run.out, run.err);
    assert!(run.out.starts_with(&format!("{}: polite\n", job.0.path().join("job").display())));
    assert!(
        run.out.contains(" of 2 runs\n") && run.out.contains(", 0 disallowed\n"),
        "{}",
        run.out
    );
    assert!(run.out.lines().all(|line| line.chars().count() <= 80), "{}", run.out);
    // Parts are read in order, compressed ones too.
    let log = fs::read(job.log()).expect("a log");
    let half =
        log.iter().enumerate().filter(|(_, byte)| **byte == b'\n').nth(100).expect("lines").0;
    let part = job.log().with_file_name("crawl-00000.log.gz");
    fs::write(&part, packed(&log[..=half])).expect("written");
    fs::write(job.log(), &log[half + 1..]).expect("written");
    assert_eq!(job.audit().code, Some(0), "{}", job.audit().out);
    fs::remove_file(&part).expect("it is there");
    let cut = job.audit();
    assert_eq!(cut.code, Some(21), "the oldest part is gone: {}", cut.out);
    fs::write(job.log(), &log).expect("written");
    // Without the archive the rules of most servers are not known.
    fs::remove_dir_all(job.0.path().join("job/warc")).expect("it is there");
    let bare = job.audit();
    assert_eq!(bare.code, Some(21), "{}", bare.out);
    assert!(bare.out.contains("requests can't be checked against robots.txt"), "{}", bare.out);
}

fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut packer = libdeflater::Compressor::new(libdeflater::CompressionLvl::default());
    let mut out = vec![0; packer.gzip_compress_bound(bytes.len())];
    let len = packer.gzip_compress(bytes, &mut out).expect("it fits");
    out.truncate(len);
    out
}

#[test]
fn a_log_that_was_spoilt_is_noticed() {
    let job = Job::crawled("none");
    let lines = job.lines();
    let run = job.audit();
    assert_eq!(run.code, Some(0), "{}{}", run.out, run.err);
    assert_eq!(naive(&lines, 60_000, 3), Vec::<String>::new());
    tables_have_all_that_was_visited(&job);
    let spoilt = |why: &str, spoil: &dyn Fn(&mut Vec<Line>), codes: &[i32], words: &str| {
        let mut lines = lines.clone();
        spoil(&mut lines);
        let run = job.audit_of(&lines);
        assert!(codes.contains(&run.code.unwrap_or(-1)), "{why}: {}{}", run.out, run.err);
        assert!(run.out.contains(words), "{why}: {words}: {}", run.out);
        lines
    };
    let (before, after) = neighbours(&lines);
    let ended = lines[before].number("ended").expect("a request");

    let early = |lines: &mut Vec<Line>| lines[after].json["sent"] = json!(ended + 59_000);
    let changed = spoilt("a short gap", &early, &[20], "was visited after 0.059 s, but ");
    assert!(!naive(&changed, 60_000, 3).is_empty());
    let place = format!("crawl.log:{}: server {} was", after + 1, lines[after].server());
    spoilt("its place is named", &early, &[20], &place);

    let overlap =
        |lines: &mut Vec<Line>| lines[before].json["ended"] = lines[after].json["ended"].clone();
    let changed = spoilt("an overlap", &overlap, &[20], "before its last visit had ended");
    assert!(!naive(&changed, 60_000, 3).is_empty());

    let (denied, page) = lines
        .iter()
        .filter(|line| line.json["reason"] == "robots-denied")
        .find_map(|denied| {
            let is_page = |line: &Line| {
                let is_sent = line.number("sent").is_some();
                is_sent && line.server() == denied.server() && line.words[4] != "P"
            };
            Some((denied, lines.iter().rposition(is_page)?))
        })
        .expect("a server forbids some URLs only");
    let forbidden = |lines: &mut Vec<Line>| lines[page].words[3].clone_from(&denied.words[3]);
    let words = format!("{} was requested, but line", denied.words[3]);
    let changed = spoilt("a disallowed path", &forbidden, &[20], &words);
    assert!(!naive(&changed, 60_000, 3).is_empty());

    let number = lines[after].number("line").expect("a number");
    let words = format!("line {number} is missing in the run of ");
    spoilt("a missing line", &|lines| _ = lines.remove(after), &[21], &words);
    spoilt(
        "lines swapped",
        &|lines| lines.swap(after, after + 1),
        &[21],
        "1 lines are out of order",
    );
    let times = |lines: &mut Vec<Line>| {
        for name in ["sent", "ended"] {
            let time = lines[before].json[name].take();
            lines[before].json[name] = lines[after].json[name].take();
            lines[after].json[name] = time;
        }
    };
    spoilt("times swapped", &times, &[20, 21], "visits have times that contradict their numbers");
    let old = |lines: &mut Vec<Line>| {
        lines[after].json.as_object_mut().expect("an object").remove("run");
    };
    spoilt("an old line", &old, &[21], "1 lines are of format 1");
}

/// The CSV has a row for each server, host, address and domain, and the page shows them.
fn tables_have_all_that_was_visited(job: &Job) {
    let path = job.0.path().join("job");
    let path = path.to_str().expect("UTF-8");
    let out = job.0.path().join("out");
    let result = |format: &str| {
        let arguments = ["audit", path, "--format", format, "--out", out.to_str().expect("UTF-8")];
        assert_eq!(Run::of(sted(&arguments).output().expect("it starts")).code, Some(0));
        fs::read_to_string(&out).expect("written")
    };
    let csv = result("csv");
    let count = |kind: &str| csv.lines().filter(|row| row.split(',').nth(2) == Some(kind)).count();
    let lines = job.lines();
    let asked = lines.iter().filter(|line| line.number("ended").is_some());
    let asked = asked.filter(|line| !line.json["address"].is_null());
    let servers: BTreeSet<&str> = asked.clone().map(Line::server).collect();
    let addresses: BTreeSet<String> = asked.map(|line| line.json["address"].to_string()).collect();
    assert!(servers.len() > 30 && addresses.len() > 10, "{servers:?}");
    assert_eq!((count("server"), count("address")), (servers.len(), addresses.len()), "{csv}");
    assert_eq!(count("host"), servers.len(), "{csv}");
    assert!(csv.lines().all(|row| row.split(',').count() == 12), "{csv}");
    let html = result("html");
    for server in servers {
        assert!(html.contains(&format!("<td>{server}<td>")), "{server}");
    }
    assert!(html.contains(": polite</h1>") && !html.contains("class=\"broken\""), "{html}");
}

/// Writes a log of a polite crawl: 1,000 requests to each server, a second apart.
fn write_long(path: &Path, lines: u64) {
    let mut file = BufWriter::new(fs::File::create(path).expect("created"));
    let servers = (lines / 1_000).max(20);
    let run = 1_800_000_000_000_000;
    for number in 0..lines {
        let (server, visit) = (number % servers, number / servers + 1);
        let sent = run + visit * 1_100_000 + server * 1_000_000 / servers;
        let settings = match number {
            0 => {
                "\"settings\":{\"format\":2,\"from\":0,\"product\":\"sted\",\"obeysRobots\":true,\
                 \"burst\":1,\"delay\":1000000,\"delayFactorMilli\":10000,\"delayMax\":300000000,\
                 \"addressVisitsMax\":4,\"addressDelay\":250000,\"domainVisitsMax\":2,\
                 \"domainDelay\":0},"
            }
            _ => "",
        };
        let (status, path, target) = match visit {
            1 => (404, "P", "/robots.txt".to_owned()),
            _ => (200, "L", format!("/section/page-{visit}.html?id={number}")),
        };
        let (origin, owed) =
            (format!("http://host-{server}.example"), (visit - 1).min(1) * 1_000_000);
        writeln!(
            file,
            "2027-01-15T08:00:00.000Z   {status}      16384 {origin}{target} {path} {origin}/ \
             text/html #000 - sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ - - \
             {{\"run\":{run},\"line\":{},{settings}\
             \"warcFilename\":\"sted-20270115080000-00000.warc.gz\",\
             \"warcFileOffset\":{number},\
             \"server\":\"{origin}\",\"visit\":{visit},\"conn\":{number},\
             \"address\":\"10.{}.{}.{}\",\"request\":1,\"sent\":{sent},\"ended\":{},\
             \"began\":{sent},\"owed\":{owed},\"rule\":\"delay\",\"robots\":0,\"hops\":0}}",
            number + 1,
            server >> 16,
            server >> 8 & 255,
            server & 255,
            sent + 20_000,
        )
        .expect("written");
    }
}

/// A long log is audited in one pass. LINES sets its length, and prints the time.
#[test]
fn a_long_log_is_audited() {
    let lines = std::env::var("LINES").ok().and_then(|lines| lines.parse().ok());
    let folder = tempfile::tempdir().expect("a folder");
    write_long(&folder.path().join("crawl.log"), lines.unwrap_or(30_000));
    let begun = Instant::now();
    let path = folder.path().to_str().expect("UTF-8");
    let run = Run::of(sted(&["audit", path]).output().expect("it starts"));
    assert_eq!(run.code, Some(0), "{}", run.out);
    if let Some(lines) = lines {
        println!("{lines} lines: {:.2} s", begun.elapsed().as_secs_f64());
    }
}

#[test]
fn what_is_no_job_is_refused() {
    let run = Run::of(sted(&["audit", "/nonexistent"]).output().expect("it starts"));
    assert_eq!(run.code, Some(3), "{}", run.err);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().to_str().expect("UTF-8");
    let run = Run::of(sted(&["audit", path]).output().expect("it starts"));
    assert_eq!(run.code, Some(21), "{}", run.out);
    assert!(run.out.contains("there is no crawl log"), "{}", run.out);
}
