//! `sted report`: its tables add up to the summary of the same crawl, in all formats, whatever the
//! log has in it.

use crate::util::{Run, sted};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;
use tempfile::TempDir;

/// A crawl of a lab with redirects, errors, repeated pages and two hosts of each domain.
const CRAWL: &str = r#"
[job]
directory = "job"
[politeness]
burst = "server"
delay = "0s"
delay_factor = 0
address_delay = "0s"
domain_delay = "0s"
robots_retry_wait = "1s"
[retries]
retry_wait = "1s"
retry_wait_max = "1s"
retry_after_max = "1s"
[lab]
directory = "lab"
[web]
preset = "plain"
hosts = 8
seeds = 5
pages = 300
page_bytes = "2KB"
hosts_per_domain = 2
duplicate_share = 0.3
redirect_share = 0.1
not_found_share = 0.1
hostile = ["reset", "retry-after", "redirect-loop", "endless-head", "endless-body", "nx"]
"#;

/// A row of a table, by the names of its columns.
type Row = BTreeMap<String, String>;

/// Parses CSV (RFC 4180).
fn rows_of(text: &str) -> Vec<Row> {
    let mut rows: Vec<Vec<String>> = vec![vec![String::new()]];
    let (mut is_quoted, mut chars) = (false, text.chars().peekable());
    while let Some(char) = chars.next() {
        let row = rows.last_mut().expect("there is one");
        let cell = row.last_mut().expect("there is one");
        match char {
            '"' if is_quoted && chars.peek() == Some(&'"') => cell.extend(chars.next()),
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => row.push(String::new()),
            '\n' if !is_quoted => rows.push(vec![String::new()]),
            char => cell.push(char),
        }
    }
    assert_eq!(rows.pop(), Some(vec![String::new()]), "it ends with a line end");
    let heads = rows.remove(0);
    assert!(rows.iter().all(|row| row.len() == heads.len()), "{text}");
    rows.into_iter().map(|row| heads.iter().cloned().zip(row).collect()).collect()
}

fn report(job: &Path, arguments: &[&str]) -> Run {
    let job = job.to_str().expect("UTF-8");
    let all: Vec<&str> = ["report", job].into_iter().chain(arguments.iter().copied()).collect();
    Run::of(sted(&all).output().expect("it starts"))
}

fn table(job: &Path, name: &str) -> Vec<Row> {
    let run = report(job, &["--format", "csv", "--table", name]);
    assert_eq!(run.code, Some(0), "{name}: {}", run.err);
    rows_of(&run.out)
}

fn sum(rows: &[Row], column: &str) -> u64 {
    let cells = rows.iter().map(|row| row[column].as_str()).filter(|cell| !cell.is_empty());
    cells.map(|cell| cell.parse::<u64>().expect("a number")).sum()
}

/// Returns the cells of two columns as names and numbers.
fn pairs(rows: &[Row], name: &str, number: &str) -> BTreeMap<String, u64> {
    rows.iter().map(|row| (row[name].clone(), row[number].parse().expect("a number"))).collect()
}

/// Returns the items of the table `totals` with their values.
fn pairs_of_text(rows: &[Row]) -> BTreeMap<String, String> {
    rows.iter().map(|row| (row["item"].clone(), row["value"].clone())).collect()
}

fn counts(value: &Value) -> BTreeMap<String, u64> {
    let counts = value.as_object().expect("an object").iter();
    let counts = counts.map(|(name, count)| (name.clone(), count.as_u64().expect("a number")));
    counts.filter(|(_, count)| *count > 0).collect()
}

fn crawled(conf: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("crawl.toml"), conf).expect("written");
    let mut crawl = sted(&["crawl", "crawl.toml"]);
    let run = Run::of(crawl.current_dir(folder.path()).output().expect("it starts"));
    assert!([0, 12].contains(&run.code.unwrap_or(-1)), "{run:?}");
    let job = folder.path().join("job");
    (folder, job)
}

/// Sums over hosts, domains, runs and intervals are the totals, and those are the figures of the
/// summary.
#[test]
fn all_tables_add_up_to_the_summary() {
    let (folder, job) = crawled(CRAWL);
    let summary = fs::read_to_string(job.join("summary.json")).expect("a summary");
    let summary: Value = serde_json::from_str(&summary).expect("JSON");
    let summed = &summary["counts"];
    let totals = pairs_of_text(&table(&job, "totals"));
    let total = |name: &str| totals[name].parse::<u64>().expect("a number");
    for name in ["hosts", "domains", "runs"] {
        let rows = table(&job, name);
        for column in ["requests", "pages", "bytes", "failed"] {
            assert_eq!(sum(&rows, column), total(column), "{name} {column}");
        }
        if name != "runs" {
            assert_eq!(sum(&rows, "http_errors"), total("http_errors"), "{name}");
            assert_eq!(sum(&rows, "denied"), total("denied"), "{name}");
        }
    }
    assert_eq!(sum(&table(&job, "domains"), "hosts"), total("hosts"));
    assert_eq!(table(&job, "hosts").len() as u64, total("hosts"));
    assert_eq!(sum(&table(&job, "types"), "pages"), total("pages"));
    assert_eq!(sum(&table(&job, "time"), "pages"), total("pages"));
    assert_eq!(sum(&table(&job, "time"), "bytes"), total("bytes"));

    assert_eq!(total("pages"), summed["pages"].as_u64().expect("a number"));
    assert!(total("tried_again") > 0 && total("failed") > 0, "{totals:?}");
    let statuses = pairs(&table(&job, "statuses"), "status", "replies");
    assert_eq!(statuses, counts(&summed["statuses"]));
    let outcomes = pairs(&table(&job, "outcomes"), "outcome", "lines");
    assert_eq!(outcomes, counts(&summed["outcomes"]));
    assert_eq!(pairs(&table(&job, "types"), "type", "pages"), counts(&summed["types"]));
    let failed: u64 = counts(&summed["failed"]).values().sum();
    assert_eq!(total("failed"), failed);
    assert_eq!(
        total("seeds_failed"),
        summed["seeds"]["failed"].as_object().map_or(0, |all| all.len() as u64)
    );
    let done = total("seeds_fetched") + total("seeds_redirected");
    assert_eq!(done, summed["seeds"]["done"].as_u64().expect("a number"));
    assert!(total("seeds_failed") > 0 && total("seeds_waiting") == 0, "{totals:?}");
    let files = pairs(&table(&job, "robots"), "item", "count");
    assert!(files["files_read"] > 0 && files["files_absent"] > 0, "{files:?}");
    assert!(total("repeated_payloads") > 10, "{totals:?}");
    every_format_has_every_table(&folder, &job);
    the_naive_way_agrees(&job);
}

fn every_format_has_every_table(folder: &TempDir, job: &Path) {
    let text = report(job, &[]);
    assert_eq!(text.code, Some(0), "{}", text.err);
    assert!(text.out.lines().all(|line| line.chars().count() <= 100), "{}", text.out);
    let titles = ["Totals", "Seeds", "Hosts", "Registrable domains", "Outcomes of tries"];
    assert!(titles.iter().all(|title| text.out.contains(title)), "{}", text.out);
    let short = report(job, &["--top", "2"]);
    assert!(short.out.contains("  ... and 12 more\n"), "{}", short.out);
    let out = folder.path().join("tables");
    let path = out.to_str().expect("UTF-8");
    assert_eq!(report(job, &["--format", "csv", "--out", path]).code, Some(0));
    let mut names: Vec<_> =
        fs::read_dir(&out).expect("a folder").map(|it| it.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names.len(), 15, "{names:?}");
    let hosts = fs::read_to_string(out.join("hosts.csv")).expect("a table");
    assert_eq!(rows_of(&hosts), table(job, "hosts"));
    let page = folder.path().join("report.html");
    let path = page.to_str().expect("UTF-8");
    assert_eq!(report(job, &["--format", "html", "--out", path]).code, Some(0));
    let page = fs::read_to_string(page).expect("a page");
    assert_eq!(page.matches("<svg ").count(), 2, "{page}");
    assert!(!page.contains("<script") && !page.contains("NaN"), "{page}");
    for row in table(job, "hosts") {
        assert!(page.contains(&format!("<td class=\"t\">{}<", row["host"])), "{row:?}");
    }
    let refused = report(job, &["--format", "csv"]);
    assert!(refused.code == Some(2) && refused.err.contains("--table"), "{refused:?}");
}

/// The figures of hosts, from the log in a few lines; durations are within 5%.
fn the_naive_way_agrees(job: &Path) {
    let log = fs::read_to_string(job.join("crawl.log")).expect("a log");
    let mut hosts: BTreeMap<String, (u64, u64, Vec<u64>)> = BTreeMap::new();
    for line in log.lines() {
        let (words, json) = line.split_once(" {").expect("JSON");
        let words: Vec<&str> = words.split_whitespace().collect();
        let json: Value = serde_json::from_str(&format!("{{{json}")).expect("JSON");
        let Some(sent) = json["sent"].as_u64() else { continue };
        let host = json["server"].as_str().expect("a server").split("://").nth(1).expect("a host");
        let host = hosts.entry(host.split(':').next().expect("a host").to_owned()).or_default();
        host.0 += 1;
        host.1 += words[2].parse::<u64>().unwrap_or(0);
        host.2.push(json["ended"].as_u64().expect("an end") - sent);
    }
    for row in table(job, "hosts").iter().filter(|row| row["requests"] != "0") {
        let (requests, bytes, took) = hosts.get_mut(&row["host"]).expect("a host");
        let own = (row["requests"].clone(), row["bytes"].clone());
        assert_eq!(own, (requests.to_string(), bytes.to_string()), "{row:?}");
        took.sort_unstable();
        for (column, share) in [("median_us", 0.5), ("p95_us", 0.95)] {
            let exact = took[(took.len() as f64 * share).ceil() as usize - 1].max(100) as f64;
            let found: f64 = row[column].parse().expect("a number");
            let is_near = (found - exact).abs() <= exact * 0.05 + 1.0;
            assert!(is_near, "{column} {found}, not {exact}");
        }
    }
}

/// Writes a log of lines, each with a status, a URL, a path, a media type, annotations and members
/// of the JSON.
fn write_log(path: &Path, lines: &[(&str, &str, &str, &str, &str, &str)]) {
    let mut text = String::new();
    for (number, (status, url, path, mime, annotations, json)) in lines.iter().enumerate() {
        let server: Vec<&str> = url.splitn(4, '/').take(3).collect();
        let server = serde_json::to_string(&server.join("/")).expect("a string");
        text.push_str(&format!(
            "2026-11-20T09:38:49.{number:03}Z {status:>5} 100 {url} {path} - {mime} #000 \
             20261120093849078+45 sha1:A - {annotations} {{\"server\":{server},\"visit\":1,\
             \"sent\":1795167529077123,\"hops\":0{json}}}\n"
        ));
    }
    fs::write(path, text).expect("written");
}

/// Logs of format 1, and texts of strangers in all places.
#[test]
fn texts_of_strangers_stay_texts() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("crawl.log");
    let bad = "http://a.test/<script>alert(1)</script>\"'&,x";
    write_log(
        &log,
        &[
            ("200", bad, "-", "=cmd|'/c", "-", ""),
            ("200", "http://=1+1/", "L", "@x", "<b>", ""),
            ("-3", "http://a.test/y", "L", "-", "-", ",\"reason\":\"+1\\n<i>\""),
            ("404", "http://a.test/z", "L", "text/html", "1t,linksCut", ""),
        ],
    );
    let mut text = fs::read(&log).expect("a log");
    text.extend_from_slice(b"no line\n\xff\xfe\n2026-11-20T09:3");
    fs::write(&log, text).expect("written");
    let page = report(&log, &["--format", "html"]);
    assert_eq!(page.code, Some(0), "{}", page.err);
    for tag in ["<script", "<b>", "<i>", "'&,x"] {
        assert!(!page.out.contains(tag), "{tag}: {}", page.out);
    }
    assert!(page.out.contains("&lt;script&gt;alert(1)"), "{}", page.out);
    let types = pairs(&table(&log, "types"), "type", "pages");
    let expected = [("'=cmd|'/c", 1), ("'@x", 1), ("text/html", 1)];
    assert_eq!(types, expected.map(|(name, pages)| (name.to_owned(), pages)).into());
    let outcomes = pairs(&table(&log, "outcomes"), "outcome", "lines");
    assert_eq!(outcomes["'+1\n<i>"], 1, "{outcomes:?}");
    assert!(table(&log, "hosts").iter().any(|row| row["host"] == "'=1+1"));
    assert!(table(&log, "largest").iter().any(|row| row["url"] == bad));
    let cut = table(&log, "cut");
    assert_eq!((cut[0]["cause"].as_str(), cut[0]["lines"].as_str()), ("linksCut", "1"));
    assert!(cut[0]["fix"].contains("raise links.links_max"), "{cut:?}");
    let text = report(&log, &[]);
    for says in ["3 lines can't be read", "4 lines are of format 1", "conf.toml can't be read"] {
        assert!(text.out.contains(says), "{says}: {}", text.out);
    }
}

/// What became of each seed: of the configuration, of commands, and of the log.
#[test]
fn every_seed_has_a_state() {
    let folder = tempfile::tempdir().expect("a folder");
    let job = folder.path();
    let seeds: Vec<String> = ["ok", "gone", "moved", "lost", "known", "new", "again", "shut"]
        .map(|it| format!("http://{it}.test/"))
        .into();
    let conf = format!(
        "[job]\nseeds = {seeds:?}\n[identity]\ncontact = \"me@a.org\"\n[limits]\npages_max = 9\n"
    );
    fs::write(job.join("conf.toml"), conf).expect("written");
    fs::write(
        job.join("commands.log"),
        "{\"number\":1,\"at\":\"2026-11-26T09:38:49Z\",\"verb\":\"add_seeds\",\"seeds\":\
         [\"http://added.test\"]}\n",
    )
    .expect("written");
    let chain = |name: &str, more: &str| format!(",\"chain\":\"http://{name}.test/\"{more}");
    let reason = |name: &str| format!(",\"reason\":\"{name}\"");
    let known = chain("known", &reason("redirect-to-known"));
    write_log(
        &job.join("crawl.log"),
        &[
            ("200", "http://ok.test/robots.txt", "P", "-", "-", ""),
            ("200", "http://ok.test/", "-", "text/html", "-", ""),
            ("503", "http://gone.test/", "-", "-", "retried", ""),
            ("404", "http://gone.test/", "-", "-", "1t", ""),
            ("301", "http://moved.test/", "-", "-", "-", ""),
            ("302", "http://b.test/x", "R", "-", "-", &chain("moved", "")),
            ("200", "http://b.test/y", "RR", "text/html", "-", &chain("moved", "")),
            ("301", "http://lost.test/", "-", "-", "-", ""),
            ("-2", "http://c.test/", "R", "-", "-", &chain("lost", &reason("connect-refused"))),
            ("301", "http://known.test/", "-", "-", "-", ""),
            ("-4003", "http://b.test/", "R", "-", "-", &known),
            ("503", "http://again.test/", "-", "-", "retried", ""),
            ("-5001", "http://shut.test/", "-", "-", "-", &reason("blocked")),
            ("200", "http://old.test/", "-", "text/html", "-", ""),
            ("200", "http://page.test/", "L", "text/html", "-", ""),
        ],
    );
    let rows = table(job, "seeds");
    let rows: BTreeMap<&str, (&str, &str, &str)> = rows
        .iter()
        .map(|row| (&*row["seed"], (&*row["state"], &*row["outcome"], &*row["target"])))
        .collect();
    let expected = [
        ("http://added.test/", ("waiting", "", "")),
        ("http://again.test/", ("waiting", "http-error", "")),
        ("http://gone.test/", ("failed", "http-error", "")),
        ("http://known.test/", ("redirected", "redirect-to-known", "http://b.test/")),
        ("http://lost.test/", ("failed", "connect-refused", "http://c.test/")),
        ("http://moved.test/", ("redirected", "ok", "http://b.test/y")),
        ("http://new.test/", ("waiting", "", "")),
        ("http://ok.test/", ("fetched", "ok", "")),
        ("http://old.test/", ("fetched", "ok", "")),
        ("http://shut.test/", ("blocked", "blocked", "")),
    ];
    assert_eq!(rows, expected.into());
    let pages = &table(job, "totals").into_iter().find(|row| row["item"] == "pages").unwrap();
    assert_eq!(pages["value"], "5", "neither redirects, robots.txt nor what is tried again");
    let by_conf = job.join("job.toml");
    let text = fs::read_to_string(job.join("conf.toml")).expect("written above");
    let text = text.replacen("[job]\n", &format!("[job]\ndirectory = {job:?}\n"), 1);
    fs::write(&by_conf, text).expect("written");
    assert_eq!(table(&by_conf, "seeds"), table(job, "seeds"), "a job by its configuration");
}

/// Writes a log of requests to many hosts, `of_host` to each.
fn write_long(path: &Path, lines: u64, of_host: u64) {
    let mut file = BufWriter::new(fs::File::create(path).expect("created"));
    let run = 1_800_000_000_000_000;
    for number in 0..lines {
        let host = number / of_host * 7919 % 1_000_003;
        let (sent, took) = (run + number * 1_000, 1_000 + number * 37 % 900_000);
        writeln!(
            file,
            "2027-01-15T08:{:02}:{:02}.000Z   200      16384 http://www.host-{host}.example/a/\
             page-{number}.html?id={number} L http://host-{host}.example/ text/html #000 \
             20270115080000000+{} sha1:{:032X} - - {{\"run\":{run},\"line\":{},\
             \"warcFilename\":\"sted-20270115080000-00000.warc.gz\",\"warcFileOffset\":{number},\
             \"server\":\"http://www.host-{host}.example\",\"visit\":1,\"conn\":{number},\
             \"address\":\"10.0.0.1\",\"request\":1,\"sent\":{sent},\"ended\":{},\
             \"began\":{sent},\"owed\":0,\"rule\":\"none\",\"robots\":0,\"hops\":0}}",
            number / 60_000 % 60,
            number / 1_000 % 60,
            took / 1_000,
            number % (lines / 2),
            number + 1,
            sent + took,
        )
        .expect("written");
    }
}

/// A long log takes no more memory than allowed (the data segment is limited by the system), and
/// what doesn't fit is named. STED_LOG_LINES sets the length, and prints the time.
#[test]
fn a_long_log_takes_bounded_memory() {
    let lines = std::env::var("STED_LOG_LINES").ok().and_then(|lines| lines.parse().ok());
    let (folder, count) = (tempfile::tempdir().expect("a folder"), lines.unwrap_or(100_000_u64));
    let log = folder.path().join("crawl.log");
    for (of_host, memory, is_enough) in [(count / 1_000, 256, true), (1, 96, false)] {
        write_long(&log, count, of_host);
        let begun = Instant::now();
        let command = format!(
            "ulimit -d {} && exec '{}' report '{}' --format csv --table hosts --memory {memory}",
            memory << 10,
            env!("CARGO_BIN_EXE_sted"),
            log.display()
        );
        let output = Command::new("sh").args(["-c", &command]).output().expect("a shell");
        let run = Run::of(output);
        assert_eq!(run.code, Some(0), "{}", run.err);
        let rows = rows_of(&run.out);
        assert_eq!((sum(&rows, "requests"), sum(&rows, "pages")), (count, count));
        assert_eq!(sum(&rows, "bytes"), count * 16_384);
        let is_all = !rows.iter().any(|row| row["host"] == "(beyond --memory)");
        assert_eq!(is_all, is_enough, "{} hosts", rows.len());
        if lines.is_some() {
            println!("{count} lines, {} hosts: {:.2} s", rows.len(), begun.elapsed().as_secs_f64());
        }
    }
}

/// Parts that are there twice, replies that were read back, and what is no job.
#[test]
fn nothing_counts_twice() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("crawl.log");
    write_long(&log, 100, 10);
    fs::copy(&log, folder.path().join("crawl-00000.log")).expect("copied");
    let totals = pairs_of_totals(folder.path());
    assert_eq!((totals["lines"].as_str(), totals["requests"].as_str()), ("200", "100"));
    let text = report(folder.path(), &[]);
    assert!(text.out.contains("100 lines are there twice"), "{}", text.out);
    fs::remove_file(folder.path().join("crawl-00000.log")).expect("it is there");
    let replayed = |url: &str| (("200", url.to_owned()), "replayed");
    let text = fs::read_to_string(&log).expect("a log");
    let known = text.split_whitespace().nth(3).expect("a URL");
    let again = folder.path().join("again.log");
    let lines = [replayed(known), replayed("http://new.test/")];
    let lines: Vec<_> = lines
        .iter()
        .map(|((status, url), note)| (*status, url.as_str(), "L", "text/html", *note, ""))
        .collect();
    write_log(&again, &lines);
    let again = fs::read_to_string(again).expect("a log");
    fs::write(&log, text + &again).expect("written");
    let totals = pairs_of_totals(folder.path());
    assert_eq!((totals["pages"].as_str(), totals["read_back"].as_str()), ("101", "2"));
    let empty = tempfile::tempdir().expect("a folder");
    let none = report(empty.path(), &[]);
    assert!(none.code == Some(5) && none.err.contains("no crawl log"), "{none:?}");
    assert_eq!(report(Path::new("/nonexistent"), &[]).code, Some(3));
}

fn pairs_of_totals(job: &Path) -> Row {
    table(job, "totals")
        .into_iter()
        .map(|row| (row["item"].clone(), row["value"].clone()))
        .collect()
}

/// A seed that a limit on pages leaves out has not failed: the operator has set that limit.
#[test]
fn seeds_beyond_a_limit_have_not_failed() {
    let web = "[web]\npreset = \"plain\"\nhosts = 4\nseeds = 4\npages = 20\nhosts_per_domain = 2\n";
    let rest = "burst = \"server\"\ndelay = \"0s\"\ndelay_factor = 0\n";
    let rests = "address_delay = \"0s\"\ndomain_delay = \"0s\"\n";
    let conf = format!(
        "[job]\ndirectory = \"job\"\n[limits]\npages_per_domain_max = 1\n\
         [politeness]\n{rest}{rests}[lab]\ndirectory = \"lab\"\n{web}"
    );
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("crawl.toml"), conf).expect("written");
    let mut crawl = sted(&["crawl", "crawl.toml"]);
    let run = Run::of(crawl.current_dir(folder.path()).output().expect("it starts"));
    assert_eq!(run.code, Some(0), "{}{}", run.out, run.err);
    let says = "2 fetched, 0 failed, 2 left out by a limit";
    assert!(run.out.contains(says), "{}", run.out);
    let job = folder.path().join("job");
    let totals = pairs_of_text(&table(&job, "totals"));
    for (item, expected) in [("seeds_limited", "2"), ("seeds_failed", "0"), ("failed", "0")] {
        assert_eq!(totals[item], expected, "{item}");
    }
    let seeds = table(&job, "seeds");
    let limited = seeds.iter().filter(|row| row["state"] == "limited");
    let fixes: Vec<&str> = limited.map(|row| row["fix"].as_str()).collect();
    assert_eq!(fixes, ["raise the limit in [limits]"; 2]);
}
