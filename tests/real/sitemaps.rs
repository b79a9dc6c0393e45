//! Sitemaps and feeds as files that nginx serves: of all kinds, and with all kinds of faults.

use super::process::{Running, free_port};
use super::servers::{Place, Server};
use crate::util::sted;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, Permissions};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use sted::store::log;
use tempfile::TempDir;

/// A server with a folder of files.
struct Files {
    origin: String,
    root: PathBuf,
    _running: Running,
}

impl Files {
    fn serve(folder: &Path, ip: &str) -> Self {
        let folder = folder.join(ip);
        let root = folder.join("root");
        fs::create_dir_all(&root).expect("the folder is the test's");
        let listen = free_port(ip);
        let place =
            Place { name: ip.to_owned(), listen, root: root.clone(), folder: folder.clone() };
        let (name, text) = Server::Nginx.configuration(&place);
        fs::write(folder.join(name), text).expect("written");
        let (program, arguments) = Server::Nginx.command(&place);
        let running = Running::start(program, &arguments, &folder, listen);
        Self { origin: format!("http://{listen}"), root, _running: running }
    }

    fn put(&self, path: &str, bytes: impl AsRef<[u8]>) {
        fs::write(self.root.join(path.trim_start_matches('/')), bytes).expect("written");
    }

    /// Puts a page, and returns its URL.
    fn page(&self, path: &str) -> String {
        self.put(path, format!("<title>{path}</title>"));
        format!("{}{path}", self.origin)
    }
}

fn folder() -> TempDir {
    let open = Permissions::from_mode(0o755);
    let folder = tempfile::Builder::new().prefix("sted-real-").permissions(open).tempdir();
    folder.expect("temporary folders can be made")
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = GzEncoder::new(Vec::new(), Compression::fast());
    out.write_all(bytes).expect("memory");
    out.finish().expect("memory")
}

fn urlset<'a>(urls: impl IntoIterator<Item = &'a str>) -> String {
    let mut text = "<?xml version=\"1.0\"?>\n<urlset xmlns=\"http://www.sitemaps.org/schemas/\
                    sitemap/0.9\">\n"
        .to_owned();
    for url in urls {
        writeln!(text, "<url><loc>{url}</loc><lastmod>2026-11-01</lastmod></url>").expect("memory");
    }
    text + "</urlset>\n"
}

/// Crawls from the seeds; returns the job's folder, and for each URL of the crawl log its status
/// and what its annotations say of sitemaps.
fn crawl(
    folder: &Path,
    seeds: &[String],
    more: &str,
) -> (PathBuf, BTreeMap<String, (i32, String)>) {
    let conf = format!(
        "[job]\nname = \"maps\"\ndirectory = \"job\"\nseeds = {seeds:?}\n[identity]\n\
         contact = \"crawler@sted.dev\"\n[connections]\naddresses_allowed = [\"127.0.0.0/8\"]\n\
         [politeness]\nburst = \"server\"\ndelay = \"0s\"\naddress_delay = \"0s\"\n\
         delay_factor = 0\n[scope]\nspan = \"host\"\n{more}"
    );
    fs::write(folder.join("maps.toml"), conf).expect("written");
    let run = sted(&["crawl", "maps.toml"]).current_dir(folder).output().expect("it runs");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let text = fs::read_to_string(folder.join("job/crawl.log")).expect("a log");
    let lines = text.lines().map(|line| {
        let line = log::parse(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        let words = line.annotations.unwrap_or_default().split(',');
        let words: Vec<&str> =
            words.filter(|word| word.starts_with("sitemap") || *word == "feed").collect();
        (line.url.to_owned(), (line.status, words.join(",")))
    });
    (folder.join("job"), lines.collect())
}

/// A file of a server, and what the annotations of its line are to say.
type Map = (&'static str, Vec<u8>, &'static str);

/// Puts a page that a sitemap lists, and returns its URL.
fn want(files: &Files, path: &str, wanted: &mut Vec<String>) -> String {
    wanted.push(files.page(&format!("/{path}.html")));
    wanted.last().expect("just added").clone()
}

/// Returns sitemaps of all forms.
fn forms(files: &Files, wanted: &mut Vec<String>) -> Vec<Map> {
    let mut want = |path: &str| want(files, path, wanted);
    let text = format!("{}\n\r\n{}\n", want("t1"), want("t2"));
    let odd = urlset([&*want("odd")]).replace("http://www.sitemaps.org", "https://wrong.example");
    let wide: Vec<u16> = urlset([&*want("wide")]).encode_utf16().collect();
    let wide = [0xfeff].into_iter().chain(wide).flat_map(u16::to_le_bytes).collect();
    let rss = format!(
        "<rss version=\"2.0\"><channel><item><link>{}</link><pubDate>Sun, 01 Nov 2026 10:00:00 \
         GMT</pubDate></item></channel></rss>",
        want("rss")
    );
    let atom = format!(
        "<feed xmlns=\"http://www.w3.org/2005/Atom\"><entry><link href=\"{}\"/></entry></feed>",
        want("atom")
    );
    let cdata = urlset([&*format!("<![CDATA[{}?a=1&b=2]]>", files.page("/cdata.html"))]);
    wanted.push(format!("{}/cdata.html?a=1&b=2", files.origin));
    let mut want = |path: &str| self::want(files, path, wanted);
    vec![
        ("map.xml", urlset([&*want("plain")]).into(), "sitemap"),
        ("map.txt", text.into(), "sitemap"),
        ("map.xml.gz", gzip(urlset([&*want("packed")]).as_bytes()), "sitemap"),
        ("cdata.xml", cdata.into(), "sitemap"),
        ("namespace.xml", odd.into(), "sitemap"),
        ("utf16.xml", wide, "sitemap"),
        ("rss.xml", rss.into(), "feed"),
        ("atom.xml", atom.into(), "feed"),
    ]
}

/// Returns sitemaps with all kinds of faults.
fn faults(files: &Files, other: &Files, wanted: &mut Vec<String>) -> Vec<Map> {
    let mut want = |path: &str| want(files, path, wanted);
    let never = |path: &str| files.page(&format!("/never/{path}.html"));
    let cut = urlset([&*want("before"), &*never("behind")]);
    let end = cut.find("behind").expect("it is there");
    let broken = urlset([&*want("sound"), "<!x>", &*never("unsound")]);
    let mut damaged = gzip(urlset([&*never("damaged")]).as_bytes());
    damaged.truncate(damaged.len() / 2);
    let deep = urlset([&*want("shallow"), &"<x>".repeat(200), &*never("deep")]);
    let long = format!("<url><loc>http://h/{}</loc></url><url></url></urlset>", "x".repeat(3_000));
    let long = urlset([&*want("short")]).replace("</urlset>", &long);
    let numbers = (0..49_999).map(|number| format!("{}/none/{number}", other.origin));
    let many: Vec<String> = [want("first")].into_iter().chain(numbers).collect();
    let many = urlset(many.iter().map(String::as_str).chain([&*never("last")]));
    let foreign = urlset([&*other.page("/never.html")]);
    vec![
        ("cut.xml", cut[..end].into(), "sitemapCut,sitemap"),
        ("broken.xml", broken.into(), "sitemapBroken,sitemap"),
        ("damaged.xml.gz", damaged, "sitemapBroken"),
        ("deep.xml", deep.into(), "sitemapBroken,sitemap"),
        ("long.xml", long.into(), "sitemapEntries,sitemap"),
        ("none.txt", "no list of URLs".into(), "sitemapUnread"),
        ("many.xml", many.into(), "sitemapCut,sitemap,sitemapForeign"),
        ("foreign.xml", foreign.into(), "sitemap,sitemapForeign"),
    ]
}

/// A page that only one sitemap lists is fetched, whatever its form; what is behind a fault isn't
/// read, and what is before it is. A sitemap may list pages of another host only if the robots.txt
/// of that host names it.
#[test]
fn sitemaps_of_all_kinds_are_read() {
    let folder = folder();
    let [a, b] = ["127.0.0.1", "127.0.0.2"].map(|ip| Files::serve(folder.path(), ip));
    fs::create_dir(a.root.join("never")).expect("the folder is the test's");
    let seeds = [a.page("/index.html"), b.page("/index.html")];
    let mut wanted = Vec::new();
    let mut maps = forms(&a, &mut wanted);
    maps.extend(faults(&a, &b, &mut wanted));
    let cross = urlset([&*want(&b, "named", &mut wanted)]);
    maps.iter().for_each(|(name, bytes, _)| a.put(name, bytes));
    a.put("cross.xml", &cross);
    let urls: Vec<String> = maps.iter().map(|(name, ..)| format!("{}/{name}", a.origin)).collect();
    let index = urlset(urls.iter().map(String::as_str));
    a.put("index.xml", index.replace("urlset", "sitemapindex").replace("url>", "sitemap>"));
    a.put("robots.txt", format!("Sitemap: {}/index.xml\n", a.origin));
    b.put("robots.txt", format!("sitemap: {}/cross.xml\n", a.origin));

    let (job, lines) = crawl(folder.path(), &seeds, "");
    for url in &wanted {
        let line = lines.get(url);
        assert!(line.is_some_and(|(status, _)| *status == 200), "{url}: {line:?}");
    }
    for (url, (.., words)) in urls.iter().zip(&maps) {
        let (status, found) = &lines[url];
        assert_eq!((*status, &**found), (200, *words), "{url}");
    }
    let never: Vec<&String> = lines.keys().filter(|url| url.contains("never")).collect();
    assert!(never.is_empty(), "{never:?}");
    let figures = fs::read(job.join("summary.json")).expect("figures");
    let figures: serde_json::Value = serde_json::from_slice(&figures).expect("JSON");
    // Two of them are none, and there are the index and the one that the other host names.
    assert_eq!(figures["counts"]["sitemaps"], maps.len());
    assert_eq!(figures["counts"]["cut"]["sitemapForeign"], 49_999 + 1);
}

/// With "none" no sitemap is fetched; with "well-known" the usual places are tried.
#[test]
fn the_setting_says_where_sitemaps_are_looked_for() {
    for (value, is_read) in [("none", false), ("robots", false), ("well-known", true)] {
        let folder = folder();
        let files = Files::serve(folder.path(), "127.0.0.1");
        let (seed, listed) = (files.page("/index.html"), files.page("/listed.html"));
        files.put("sitemap.xml", urlset([&*listed]));
        let more = format!("[discovery]\nsitemaps = \"{value}\"\n");
        let (_, lines) = crawl(folder.path(), &[seed], &more);
        assert_eq!(lines.contains_key(&listed), is_read, "{value}: {lines:?}");
    }
}

/// A million URLs in twenty sitemaps, all known when the crawl ends: memory and the loop's lag stay
/// within their bounds. By hand: a minute.
#[test]
#[ignore = "a minute; see `make sitemaps`"]
fn a_million_urls() {
    let folder = folder();
    let files = Files::serve(folder.path(), "127.0.0.1");
    let seed = files.page("/index.html");
    let mut robots = String::from("User-agent: *\nDisallow: /n/\n");
    for map in 0..20 {
        let urls: Vec<String> = (0..50_000)
            .map(|number| format!("{}/n/{map}/a-page-with-a-name-{number}.html", files.origin))
            .collect();
        files.put(&format!("map{map}.xml"), urlset(urls.iter().map(String::as_str)));
        writeln!(robots, "Sitemap: {}/map{map}.xml", files.origin).expect("memory");
    }
    files.put("robots.txt", robots);
    let (job, _) = crawl(folder.path(), &[seed], "");
    let figures = fs::read(job.join("summary.json")).expect("figures");
    let figures: serde_json::Value = serde_json::from_slice(&figures).expect("JSON");
    let (counts, lag) = (&figures["counts"], &figures["loop"]["lag_us"]);
    eprintln!("{} new URLs; lag of the loop {lag} us", counts["urls_new"]);
    assert_eq!(counts["sitemaps"], 20);
    assert!(counts["urls_new"].as_u64() >= Some(1_000_000), "{}", counts["urls_new"]);
    assert!(lag["p99"].as_u64() < Some(5_000), "{lag}");
}
