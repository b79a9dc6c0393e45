//! The sites: real documentation, and pages that test what the documentation doesn't contain.

use super::servers::{Rule, Server, Tree};
use std::fmt::Write;
use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// A server and what it serves.
#[derive(Clone, Debug)]
pub(super) struct Site {
    pub(super) server: Server,
    /// Its host name.
    pub(super) name: String,
    /// The address that the crawler connects to: the server's, or that of a relay in front of it.
    pub(super) front: SocketAddr,
    /// The folder of its files.
    pub(super) root: PathBuf,
    /// The Crawl-delay in its robots.txt in seconds, as spelled there.
    pub(super) crawl_delay: Option<&'static str>,
}

impl Site {
    /// Returns an origin such as `http://nginx.sted.test:4711`.
    pub(super) fn origin(&self) -> String {
        format!("{}://{}:{}", self.server.scheme(), self.name, self.front.port())
    }

    /// Returns the rules of its robots.txt.
    pub(super) fn rules(&self) -> impl Iterator<Item = Rule> {
        [Rule::Disallow("/private/")].into_iter().chain(self.server.rules().iter().copied())
    }

    /// Fills its root: documentation by symbolic links, own pages, robots.txt.
    pub(super) fn furnish(&self, sites: &[Self], docs: &Docs) {
        for tree in self.server.trees() {
            symlink(docs.of(*tree), self.root.join(tree.name())).expect("the root is new");
        }
        fs::create_dir(self.root.join("empty")).expect("the root is new");
        self.write("robots.txt", &self.robots());
        self.write("index.html", &self.entrance(sites));
        self.write("sources.html", &self.sources());
        self.furnish_oddities();
    }

    fn write(&self, path: &str, text: &str) {
        let file = self.root.join(path);
        fs::create_dir_all(file.parent().expect("below the root")).expect("the root is ours");
        fs::write(&file, text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    }

    fn robots(&self) -> String {
        let mut text = "User-agent: other\nDisallow: /\n\nUser-agent: *\n".to_owned();
        for rule in self.rules() {
            let _ = match rule {
                Rule::Allow(path) => writeln!(text, "Allow: {path}"),
                Rule::Disallow(path) => writeln!(text, "Disallow: {path}"),
            };
        }
        if let Some(delay) = self.crawl_delay {
            let _ = writeln!(text, "Crawl-delay: {delay}");
        }
        text
    }

    /// Returns the page at which the crawl begins: it links to all others, and to other servers.
    fn entrance(&self, sites: &[Self]) -> String {
        let mut page = "<!DOCTYPE html><title>Entrance</title>\n".to_owned();
        let mut link = |reference: &str| {
            let _ = writeln!(page, "<p><a href=\"{reference}\">{reference}</a>");
        };
        for tree in self.server.trees() {
            link(&format!("{}/", tree.name()));
            link(&format!("{}/index.html", tree.name()));
        }
        link("sources.html");
        link("odd/");
        link("missing.html");
        link("private/secret.html");
        link("index.html#here");
        link("mailto:somebody@example.org");
        link("http://elsewhere.example/");
        // Redirects name the server's own port: behind a relay they would bypass it.
        if !self.is_relayed() {
            link("odd");
            if self.server.status_of_folder(true, false).is_some() {
                link("empty");
                link("empty/");
            }
        }
        for site in sites {
            link(&format!("{}/", site.origin()));
        }
        page
    }

    /// Returns a page of links to source files, which aren't pages.
    fn sources(&self) -> String {
        let mut page = "<!DOCTYPE html><title>Sources</title>\n".to_owned();
        let mut files = Vec::new();
        let sources = self.root.join("python/_sources");
        if self.server.trees().contains(&Tree::Python) {
            collect(&sources, &mut files);
        }
        files.sort();
        for file in &files {
            let path = file.strip_prefix(&self.root).expect("it is below the root");
            let _ = writeln!(page, "<a href={}>source</a>", path.display());
        }
        page
    }

    fn furnish_oddities(&self) {
        self.write("odd/index.html", ODD);
        self.write("odd/quiet.html", QUIET);
        self.write("odd/based.html", BASED);
        self.write("odd/deep/index.html", "<a href=below.html>below</a>");
        self.write("private/secret.html", "<a href=/private/other.html>deeper</a>");
        for (name, marker) in PLAIN_PAGES {
            let text = format!("<!DOCTYPE html><title>{marker}</title><a href=./>back</a>");
            self.write(name, &text);
        }
    }

    fn is_relayed(&self) -> bool {
        self.front.ip().to_string().starts_with(RELAYS)
    }
}

/// The prefix of the relays' addresses.
pub(super) const RELAYS: &str = "127.77.1.";

/// Pages without new links, by their file names. Those below `unwanted` must not be found.
const PLAIN_PAGES: [(&str, &str); 21] = [
    ("odd/with space.html", "space"),
    ("odd/\u{fc}mlaut.html", "umlaut"),
    ("odd/per%cent.html", "percent"),
    ("odd/plus+plus.html", "plus"),
    ("odd/semi;colon.html", "semicolon"),
    ("odd/a&b.html", "ampersand"),
    ("odd/quo'te.html", "quote"),
    ("odd/tilde~.html", "tilde"),
    ("odd/query.html", "query"),
    ("odd/deep/below.html", "below"),
    ("odd/deep/based.html", "based"),
    ("odd/framed.html", "frame"),
    ("odd/area.html", "area"),
    ("odd/next.html", "next"),
    ("odd/refreshed.html", "refresh"),
    ("odd/unscripted.html", "noscript"),
    ("odd/unwanted/quiet.html", "meta robots"),
    ("odd/unwanted/nofollow.html", "rel=nofollow"),
    ("odd/unwanted/comment.html", "comment"),
    ("odd/unwanted/script.html", "script"),
    ("odd/unwanted/textarea.html", "textarea"),
];

/// Unusual spellings, unusual places of links, and references that aren't links.
const ODD: &str = r#"<!DOCTYPE html><title>Odd</title>
<meta http-equiv=Refresh content="3600; URL='refreshed.html'">
<link rel=next href=next.html>
<a href="with space.html">1</a> <a href="with%20space.html">1</a>
<a href="ümlaut.html">2</a> <a href="%c3%bcmlaut.html">2</a> <a href="&uuml;mlaut.html">2</a>
<a href="per%25cent.html">3</a>
<a href="plus+plus.html">4</a>
<a href="semi;colon.html">5</a>
<a href="a&amp;b.html">6</a> <a href="a&b.html">6</a>
<a href="quo'te.html">7</a>
<a href="tilde~.html">8</a> <a href="tilde%7E.html">8</a> <a href="t%69lde~.html">8</a>
<a href="query.html?a=1&amp;b=2">9</a> <a href="query.html?b=2&a=1">10</a>
<a href=query.html?>11</a> <a href=query.html>11</a>
<a href="./deep/../deep/./">12</a> <a href="..\odd\deep\">12</a>
<a href="deep/%2e%2e/deep/index.html">13</a>
<a href="
  be	low.html">14: not there</a>
<A HREF = based.html >15</A> <a href=quiet.html>16</a>
<map><area href=area.html></map>
<iframe src=framed.html><a href=unwanted/comment.html>not in a frame's text</a></iframe>
<noscript><a href=unscripted.html>17</a></noscript>
<!-- <a href=unwanted/comment.html>no</a> -->
<script>document.write("<a href=unwanted/script.html>no</a>")</script>
<textarea><a href=unwanted/textarea.html>no</a></textarea>
<a rel="external nofollow" href=unwanted/nofollow.html>no</a>
<a href="javascript:void(0)">no</a> <a name=here>no</a> <a href="http://[broken/">no</a>
<a href=unwanted/comment.html"#;

/// A page whose links must not be followed.
const QUIET: &str = r#"<!DOCTYPE html><meta name=robots content="noindex, NoFollow">
<a href=unwanted/quiet.html>no</a>"#;

/// Its links are relative to its first base; the second base doesn't count.
const BASED: &str = r#"<!DOCTYPE html><base href=deep/><base href=unwanted/>
<a href=based.html>1</a>"#;

/// The folders of the documentation.
#[derive(Clone, Debug)]
pub(super) struct Docs {
    folder: PathBuf,
}

impl Docs {
    /// Finds the documentation where `make deps` puts it. What is not part of the system is copied
    /// to `own`, because servers drop the rights that may be needed to read the project's own
    /// folder.
    pub(super) fn find(own: &Path) -> Self {
        let deps = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/deps/docs");
        let folder = own.join("docs");
        fs::create_dir(&folder).expect("the folder is new");
        for tree in [Tree::Python, Tree::Postgresql] {
            let there = deps.join(tree.name()).canonicalize().unwrap_or_else(|error| {
                panic!("no documentation of {}: `make deps` gets it ({error})", tree.name())
            });
            let here = folder.join(tree.name());
            if there.starts_with("/usr") {
                symlink(there, here).expect("the folder is new");
            } else {
                copy(&there, &here);
            }
        }
        Self { folder }
    }

    fn of(&self, tree: Tree) -> PathBuf {
        self.folder.join(tree.name()).canonicalize().expect("it was found")
    }
}

/// Collects all files below a folder.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| {
        panic!("{}: {error}", folder.display());
    });
    for entry in entries {
        let path = entry.expect("folders can be read").path();
        if path.is_dir() {
            collect(&path, files);
        } else {
            files.push(path);
        }
    }
}

/// Copies a folder; broken symbolic links are left out.
fn copy(from: &Path, to: &Path) {
    let mut files = Vec::new();
    collect(from, &mut files);
    for file in files.iter().filter(|file| file.exists()) {
        let target = to.join(file.strip_prefix(from).expect("it is below"));
        fs::create_dir_all(target.parent().expect("below a folder")).expect("room");
        fs::copy(file, target).expect("room");
    }
}
