//! Comparisons from outside: what they print, what they write, how they end.

use super::util::{Run, sted};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use tempfile::TempDir;

/// A small web, crawled without any delays.
const SMALL: &str = "\
[politeness]
burst = \"server\"
delay = \"0s\"
delay_factor = 0
address_delay = \"0s\"
domain_delay = \"0s\"
robots = false
[connections]
open_max = 8
[web]
preset = \"2003\"
hosts = 20
pages = 400
";

/// Creates a folder with `study.toml` in it.
fn folder(text: &str) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("study.toml"), text).expect("written");
    folder
}

fn compare(folder: &Path) -> Run {
    let output = sted(&["compare", "study.toml"]).current_dir(folder).output();
    Run::of(output.expect("the program starts"))
}

fn study(compare: &str) -> String {
    format!("[compare]\ndirectory = \"out\"\n{compare}\n{SMALL}")
}

/// One line of series.csv.
struct Line {
    run: String,
    seconds: f64,
    pages: u64,
    quality: f64,
}

fn series(folder: &Path) -> Vec<Line> {
    let text = fs::read_to_string(folder.join("out/series.csv")).expect("the samples");
    let mut lines = text.lines();
    assert_eq!(
        lines.next(),
        Some(
            "variant,value,repeat,policy,seconds,pages,quality,requests,bytes,connections,\
             core_busy_seconds,fresh,age_seconds"
        )
    );
    let line = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        assert_eq!(cells.len(), 13, "{line}");
        Line {
            run: cells[..4].join(","),
            seconds: cells[4].parse().expect("seconds"),
            pages: cells[5].parse().expect("pages"),
            quality: cells[6].parse().expect("a quality"),
        }
    };
    lines.map(line).collect()
}

/// Returns the last line of each run, by name.
fn ends(lines: Vec<Line>) -> BTreeMap<String, Line> {
    lines.into_iter().map(|line| (line.run.clone(), line)).collect()
}

#[test]
fn the_same_web_under_each_policy() {
    let study = |threads: u32| study(&format!("repeats = 2\nthreads = {threads}"));
    let (one, two) = (folder(&study(1)), folder(&study(2)));
    let run = compare(one.path());
    assert_eq!(run.code, Some(0), "{}", run.err);
    for name in ["bfs", "performance", "quality", "capability", "8 crawls; report: out/report"] {
        assert!(run.out.contains(name), "{}", run.out);
    }
    for name in [
        "report.html",
        "conf.toml",
        "summary.csv",
        "quality-over-time.svg",
        "quality-over-pages.svg",
        "pages-over-time.svg",
    ] {
        assert!(one.path().join("out").join(name).exists(), "{name}");
    }
    let lines = series(one.path());
    for pair in lines.windows(2).filter(|pair| pair[0].run == pair[1].run) {
        assert!(pair[0].seconds < pair[1].seconds && pair[0].pages <= pair[1].pages);
        assert!(pair[0].quality <= pair[1].quality);
    }
    let ends = ends(lines);
    assert_eq!(ends.len(), 8);
    for repeat in 1..=2 {
        let of = |policy: &str| &ends[&format!(",,{repeat},{policy}")];
        for policy in ["bfs", "performance", "quality", "capability"] {
            let line = of(policy);
            assert_eq!(line.pages, 400, "{policy} fetches the whole web");
            assert!((line.quality - of("bfs").quality).abs() < 1e-9, "worth the same in the end");
            assert!((line.quality - 400.0).abs() < 0.01, "the mean page is worth one");
        }
    }
    assert!(ends[",,1,bfs"].seconds != ends[",,2,bfs"].seconds, "repeats have other seeds");
    // A crawl depends on its configuration only, not on the number of threads.
    assert_eq!(compare(two.path()).code, Some(0));
    for name in ["series.csv", "summary.csv", "quality-over-time.svg"] {
        let read = |folder: &TempDir| fs::read(folder.path().join("out").join(name));
        assert_eq!(read(&one).expect("written"), read(&two).expect("written"), "{name}");
    }
    // The same command gives the same bytes, and says once which version made them.
    for name in ["report.html", "conf.toml"] {
        let read = || fs::read_to_string(two.path().join("out").join(name)).expect("written");
        let before = read();
        assert_eq!(compare(two.path()).code, Some(0));
        assert_eq!(read(), before, "{name}");
        assert_eq!(before.matches("ade by sted ").count(), 1, "{name}");
    }
}

/// A crawl with estimated qualities is measured by the true ones: quality is the same in the end,
/// whatever it estimated on the way.
#[test]
fn estimates_are_judged_by_the_truth() {
    let folder = folder(&study(
        "policies = [\"bfs\", \"quality\"]\nvariants = [\"known\", \"opic: quality.source=opic\", \
         \"inlinks: quality.source=inlinks\"]",
    ));
    let run = compare(folder.path());
    assert_eq!(run.code, Some(0), "{}", run.err);
    let lines = series(folder.path());
    let half = |name: &str| {
        let of = |line: &&Line| line.run == name && line.pages <= 200;
        lines.iter().rfind(of).expect("samples").quality
    };
    assert!(half("known,,1,quality") > half("known,,1,bfs"), "the best go first");
    let ends = ends(series(folder.path()));
    for (name, line) in &ends {
        assert_eq!((line.pages, line.quality.round()), (400, 400.0), "{name}");
    }
    // A crawl that doesn't know the qualities treats pages as breadth-first does.
    assert_eq!(ends["known,,1,bfs"].seconds, ends["opic,,1,bfs"].seconds);
}

/// With "parent" the crawls learn a page's quality when they fetch it, and estimate those of its
/// links by it: that is worth something, and less than to know them before.
#[test]
fn parents_tell_something_of_their_links() {
    let folder = folder(&study(
        "policies = [\"bfs\", \"quality\"]\nquality = \"topical\"\ntopical_parent_share = 0.6\n\
         variants = [\"known\", \"parent: quality.source=parent\", \
         \"depth: quality.source=depth, quality.fall=1\"]",
    ));
    let run = compare(folder.path());
    assert_eq!(run.code, Some(0), "{}", run.err);
    let lines = series(folder.path());
    let half = |name: &str| {
        let of = |line: &&Line| line.run == name && line.pages <= 200;
        lines.iter().rfind(of).expect("samples").quality
    };
    let [known, parent, depth] =
        ["known", "parent", "depth"].map(|it| half(&format!("{it},,1,quality")));
    assert!(known > parent && parent > depth, "{known}, {parent}, {depth}");
    let ends = ends(series(folder.path()));
    // At a factor of 1 all depths are equal.
    assert_eq!(ends["depth,,1,bfs"].seconds, ends["depth,,1,quality"].seconds);
}

#[test]
fn a_sweep_has_a_curve_over_its_values() {
    let folder = folder(&study(
        "policies = [\"bfs\"]\nacross = \"connections.open_max\"\nvalues = [1, 2, 4]\n\
         variants = [\"plain\", \"one a connection: politeness.burst=1, \
         connections.idle_timeout=0s\"]",
    ));
    let run = compare(folder.path());
    assert_eq!(run.code, Some(0), "{}", run.err);
    let ends = ends(series(folder.path()));
    let seconds = |variant: &str, value: u32| ends[&format!("{variant},{value},1,bfs")].seconds;
    assert!(seconds("plain", 1) > seconds("plain", 4), "more connections are faster");
    assert!(seconds("one a connection", 4) > seconds("plain", 4), "and so are kept ones");
    let out = folder.path().join("out");
    assert!(out.join("pages-per-second.svg").exists() && !out.join("area.svg").exists());
    let rows = table(&out.join("summary.csv"));
    let of = |row: &BTreeMap<String, String>| row["repeat"].clone();
    assert_eq!(rows.iter().map(of).collect::<Vec<_>>(), ["median", "1"].repeat(6));
}

/// Returns the rows of a CSV file whose cells need no quotes.
fn table(path: &Path) -> Vec<BTreeMap<String, String>> {
    let text = fs::read_to_string(path).expect("a table");
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().expect("a header").split(',').collect();
    let row = |line: &str| {
        names
            .iter()
            .map(|name| (*name).to_owned())
            .zip(line.split(',').map(str::to_owned))
            .collect()
    };
    lines.map(row).collect()
}

/// Where the counted time ends changes areas and shares of time, but no crawl and no second of it;
/// differences are taken repeat by repeat.
#[test]
fn seconds_dont_hang_on_where_counted_time_ends() {
    let study = study(
        "policies = [\"bfs\", \"capability\"]\nagainst = \"bfs\"\nrepeats = 5\n\
         across = \"compare.counted_share\"\nvalues = [0.5, 0.95, 1]",
    );
    let folder = folder(&format!("{study}[sim]\ncore_reply = \"2ms\"\n"));
    let run = compare(folder.path());
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert!(run.out.contains("50%, 95%, 100% of all pages"), "{}", run.out);
    let rows = table(&folder.path().join("out/summary.csv"));
    let number = |row: &BTreeMap<String, String>, name: &str| row[name].parse::<f64>().expect(name);
    let of = |value: &str, policy: &str| {
        let is = |row: &&BTreeMap<String, String>| {
            (&*row["value"], &*row["policy"], &*row["repeat"]) == (value, policy, "3")
        };
        rows.iter().find(is).expect("a row")
    };
    for policy in ["bfs", "capability"] {
        let values = ["0.5", "0.95", "1"].map(|value| of(value, policy));
        for name in ["to_80_seconds", "to_80_requests", "to_80_cpu_seconds", "seconds"] {
            assert_eq!(number(values[0], name), number(values[2], name), "{policy}, {name}");
        }
        let counted = values.map(|row| number(row, "counted_seconds"));
        assert!(counted.is_sorted_by(|one, next| one < next), "{policy}: {counted:?}");
        let shares = values.map(|row| number(row, "to_80_percent"));
        assert!(shares.is_sorted_by(|one, next| one > next), "{policy}: {shares:?}");
        for row in values {
            let share = number(row, "bound_share_percent");
            assert!(share > 10.0 && share <= 100.0, "{policy}: {share}% of the bound");
        }
    }
    let pairs = table(&folder.path().join("out/paired.csv"));
    let is = |row: &&BTreeMap<String, String>| {
        (&*row["value"], &*row["figure"]) == ("0.95", "to_80_seconds")
    };
    let pair = pairs.iter().find(is).expect("a pair");
    assert_eq!(
        (&*pair["policy"], &*pair["against"], &*pair["repeats"]),
        ("capability", "bfs", "5")
    );
    let ends = ["low", "mean", "high"].map(|name| number(pair, name));
    assert!(ends[0] <= ends[1] && ends[1] <= ends[2] && ends[2] < 1.0, "{ends:?}");
}

#[test]
fn over_sockets_the_lab_is_crawled() {
    let folder = folder(
        &study("policies = [\"bfs\", \"capability\"]\nover = \"sockets\"\nsample_period = \"5ms\"")
            .replace("preset = \"2003\"", "preset = \"plain\""),
    );
    let run = compare(folder.path());
    assert_eq!(run.code, Some(0), "{}", run.err);
    let ends = ends(series(folder.path()));
    assert_eq!(ends.len(), 2);
    for (name, line) in ends {
        assert_eq!((line.pages, line.quality.round()), (400, 400.0), "{name}");
    }
    let again = compare(folder.path());
    assert_eq!(again.code, Some(5), "crawls are not written over: {}", again.err);
}

#[test]
fn what_can_not_be_compared_is_reported() {
    let graph = |degrees: &[u32], targets: usize| {
        let folder = folder(&study("").replace("hosts = 20", "graph = \"g\""));
        fs::create_dir(folder.path().join("g")).expect("a folder");
        let bytes: Vec<u8> = degrees.iter().flat_map(|degree| degree.to_le_bytes()).collect();
        fs::write(folder.path().join("g/outdeg.u32"), bytes).expect("written");
        fs::write(folder.path().join("g/dst.u32"), vec![0; targets]).expect("written");
        folder
    };
    let table = |text: &str| {
        let quality = "quality = \"crawl\"\n[quality]\nsource = \"file\"\nfile = \"q\"";
        let folder = folder(&study(quality));
        fs::write(folder.path().join("q"), text).expect("written");
        folder
    };
    for (folder, says, why) in [
        (folder(SMALL), "nothing serves this web", "no comparison"),
        (folder("[lab]"), "has no [compare]", "no comparison"),
        (graph(&[1, 2], 8), "web.graph: g: 1 link targets are missing", "a graph cut short"),
        (graph(&[1, 1], 7), "no multiple of 4 bytes", "a graph cut within a number"),
        (table("# c\nhttp://h1.test/ NaN\n"), "q:2: \"NaN\": not a finite number", "no number"),
        (table("h1.test 1\nh2.test x y\n"), "q:2: ", "a line with too much"),
        (table("\n# nothing\n"), "quality.file: q: has no entry", "an empty table"),
    ] {
        let run = compare(folder.path());
        assert_eq!((run.code, run.out.as_str()), (Some(2), ""), "{why}: {}", run.err);
        assert!(run.err.contains(says), "{why}: {}", run.err);
    }
}

/// A study of a graph of nine pages on three hosts, which the page on graphs makes from URLs.
fn listed() -> TempDir {
    let graph = "graph = \"links.txt.gz\"\nhosts_file = \"hosts.txt\"";
    let folder = folder(&study("policies = [\"bfs\"]").replace("hosts = 20", graph));
    let page = include_str!("../src/study/web/GRAPHS.md");
    let mut urls = Vec::new();
    for host in ["a.test", "b.test", "c.test"] {
        urls.extend((0..3).map(|page| format!("http://{host}/{page}")));
    }
    let links = |from: usize| {
        let url = |at: usize| &urls[at % 9];
        format!(
            "{0}\t{1}\n{0}\t{2}\n{0}\thttp://d.test/\n",
            url(from),
            url(from + 1),
            url(4 * from)
        )
    };
    let write = |name: &str, text: String| fs::write(folder.path().join(name), text);
    write("links.tsv", (0..9).map(links).collect()).expect("written");
    write("urls.txt", urls.join("\n") + "\n").expect("written");
    let blocks: Vec<&str> = page.split("```sh\n").skip(1).collect();
    assert_eq!(blocks.len(), 2, "hosts and links");
    for block in blocks {
        let (script, _) = block.split_once("```").expect("a block has an end");
        let mut shell = std::process::Command::new("sh");
        let ended = shell.args(["-ec", script]).current_dir(folder.path()).status();
        assert!(ended.expect("a shell").success(), "{script}");
    }
    folder
}

#[test]
fn a_graph_of_lists_is_crawled_whole() {
    let folder = listed();
    let hosts = fs::read_to_string(folder.path().join("hosts.txt")).expect("hosts");
    assert_eq!(hosts, "0 2 a.test\n3 5 b.test\n6 8 c.test\n");
    let run = compare(folder.path());
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert_eq!(ends(series(folder.path()))[",,1,bfs"].pages, 9);
    let report = || fs::read_to_string(folder.path().join("out/report.html")).expect("a report");
    let says = "links.txt.gz: 9 pages on 3 hosts; the hosts are those of web.hosts_file. A crawl \
                reaches 9 pages.";
    assert!(run.out.contains(says) && report().contains(says), "{}", run.out);
    // Without the list of hosts.
    let study = fs::read_to_string(folder.path().join("study.toml")).expect("a study");
    let study = study.replace("hosts_file = \"hosts.txt\"", "");
    fs::write(folder.path().join("study.toml"), study).expect("written");
    let run = compare(folder.path());
    assert_eq!(run.code, Some(0), "{}", run.err);
    let says = "9 pages on 1 host; the hosts are guessed from the links";
    assert!(run.out.contains(says) && report().contains(says), "{}", run.out);
}

#[test]
fn mistakes_in_lists_name_their_line() {
    for (file, text, says) in [
        ("hosts.txt", "0 2 a\n3 4 b\n6 8 c\n", "web.hosts_file: hosts.txt:3: page 5 is on no host"),
        ("hosts.txt", "0 2 a\n# b\n2 8 c\n", "hosts.txt:3: page 2 is in the range of line 1, too"),
        ("hosts.txt", "0 8", "hosts.txt:1: 2 words, not three; write the first and the last page"),
        ("links.txt", "0 1\n\n1 x\n", "web.graph: links.txt:3: \"x\" is not the number of a page"),
        ("links.txt", "", "web.graph: links.txt: there is no link"),
        ("links.txt.gz", "0 1\n0 1\n0 1\n0 1\n", "links.txt.gz:1: invalid gzip header"),
    ] {
        let folder = listed();
        fs::write(folder.path().join(file), text).expect("written");
        if file == "links.txt" {
            let study = fs::read_to_string(folder.path().join("study.toml")).expect("a study");
            fs::write(folder.path().join("study.toml"), study.replace(".txt.gz", ".txt"))
                .expect("written");
        }
        let run = compare(folder.path());
        assert_eq!((run.code, run.out.as_str()), (Some(2), ""), "{says}: {}", run.err);
        assert!(run.err.contains(says), "{says}: {}", run.err);
    }
}

/// Entries of a table that match no URL, and URLs without an entry, are counted.
#[test]
fn entries_of_a_table_without_effect_are_reported() {
    let quality = "quality = \"crawl\"\npolicies = [\"bfs\"]\n[quality]\nsource = \"file\"\n\
                   file = \"q\"";
    let folder = folder(&study(quality));
    fs::write(folder.path().join("q"), "nobody.test 2\nhttp://nobody.test/x 3\n").expect("written");
    let run = compare(folder.path());
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert!(run.err.contains("q: 2 entries match no URL of this crawl"), "{}", run.err);
    assert!(run.err.contains("q: 400 URLs are not listed"), "{}", run.err);
}

#[test]
fn a_signal_ends_it_at_once() {
    let folder = folder(&study("repeats = 1000"));
    let child = sted(&["compare", "study.toml"])
        .current_dir(folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    // Its lock is there when it handles signals, or soon after.
    while !folder.path().join("out/lock").exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_millis(200));
    let id = child.id().to_string();
    let sent = std::process::Command::new("kill").args(["-INT", &id]).status();
    assert!(sent.expect("kill is there").success());
    let run = Run::of(child.wait_with_output().expect("it ends"));
    assert_eq!((run.code, run.out.as_str()), (Some(11), ""), "{}", run.err);
    assert!(run.err.contains("no results were written"), "{}", run.err);
    assert!(!folder.path().join("out/series.csv").exists());
}
