"""The programs compared: how each is run at its best reasonable settings, and what it brought home.

Common to all crawlers: the web's hosts and no others, robots.txt not asked for (`sted` asks, and
pays for it), no delays, 64 requests under way where that can be said, only links of pages followed,
nothing kept longer than it must be. Certificates are checked where a program can be told whom to
trust. A program that isn't here is left out, and the report says so.
"""

import json
import os
import pathlib
import platform
import shutil
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILT = ROOT / "target/peers"
HERE = pathlib.Path(__file__).resolve().parent

CONF = """
[identity]
contact = "bench@sted.dev"
[job]
directory = "job"
seeds_file = "seeds.txt"
[scope]
span = "host"
[names]
{names}
[connections]
addresses_allowed = ["127.0.0.0/8"]
[politeness]
burst = "server"
delay = "0s"
delay_factor = 0
address_delay = "0s"
domain_delay = "0s"
{tls}
[store]
format = "{form}"
gzip_level = {gzip}
"""

# Paths of one host, asked for in turn by every connection: what wrk can do. With a depth, so many
# requests go out at once; wrk counts the replies.
SCRIPT = """
local paths = {{ {paths} }}
local depth = {depth}
local at = 0
local function one()
  at = at % #paths + 1
  return wrk.format("GET", paths[at])
end
function request()
  if depth == 1 then return one() end
  local all = {{}}
  for i = 1, depth do all[i] = one() end
  return table.concat(all)
end
"""

WRK_SECONDS = 2
FETCH_TIMES = 3


class Program:
    """Common to all; what differs is overridden."""

    # "crawler" if it finds its way by links; "fetch" if it is told what to fetch.
    kind = "crawler"
    # So slow that it runs in the first rounds only.
    slow = False
    # How many times the limit it may take.
    patience = 1
    # Exit codes of runs that went well.
    ends_well = ("0",)
    # What must be there for it to run.
    needs = ()

    def __init__(self, name, note):
        self.name, self.note = name, note

    def suits(self, _web):
        return True

    def is_here(self):
        return all(shutil.which(str(need)) for need in self.needs)

    def version(self):
        return ""

    def command(self, web, served, work):
        """Writes what it needs into `work` and says how it is started there."""
        raise NotImplementedError

    def pages(self, met, _work):
        """Pages it brought home, given what the server saw."""
        return met

    def extra(self, _work):
        """What else it has to say, as a dictionary."""
        return {}


def said(command):
    """The first line that a program says of itself."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = (done.stdout + done.stderr).strip().splitlines()
    return lines[0].strip() if lines else ""


class Sted(Program):
    """Ourselves."""

    def __init__(self, name, note, form="none", gzip=1, webs=None):
        super().__init__(name, note)
        self.form, self.gzip, self.webs = form, gzip, webs
        self.needs = (os.environ["STED"],)

    def suits(self, web):
        return self.webs is None or web.name in self.webs

    def version(self):
        return said([os.environ["STED"], "--version"])

    def command(self, web, served, work):
        if served.dns:
            names = f'servers = ["{served.dns}"]'
        else:
            names = f'hosts_file = "/etc/hosts"\nfamilies = "ipv4"'
        tls = f'[tls]\nroots_file = "{served.ca}"' if served.ca else ""
        conf = CONF.format(names=names, tls=tls, form=self.form, gzip=self.gzip)
        (work / "sted.toml").write_text(conf)
        return [os.environ["STED"], "crawl", "sted.toml"]

    def extra(self, work):
        summary = json.loads((work / "job/summary.json").read_text())
        return {"own_pages": summary["counts"]["pages"], "lag_us": summary["loop"]["lag_us"]["p99"]}


class Archive(Program):
    """What an archive does to the records of the `sted-warc-plain` run before it, bare."""

    kind = "bare"

    def __init__(self):
        super().__init__("bare-archive", "digests, gzip level 1 and writes of that run's records alone")
        self.needs = (os.environ["BARE"],)

    def suits(self, web):
        return web.name == "pages-64"

    def command(self, web, served, work):
        files = sorted(str(path) for path in (work.parent / "kept").rglob("*.warc"))
        if not files:
            return None
        return [os.environ["BARE"], "archive", *files]

    def pages(self, _met, work):
        return self.extra(work)["pages"]

    def extra(self, work):
        return json.loads((work / "out").read_text().splitlines()[-1])


class Bare(Program):
    """Our own floor: bench/bare.rs."""

    def __init__(self, name, note, mode, depth):
        super().__init__(name, note)
        self.mode, self.depth = mode, depth
        self.kind = "fetch" if mode == "fetch" else "model"
        self.needs = (os.environ["BARE"],)

    def suits(self, web):
        return not web.tls and web.name != "docs"

    def command(self, web, served, work):
        end = [str(FETCH_TIMES)] if self.mode == "fetch" else []
        list_ = "urls.txt" if self.mode == "fetch" else "seeds.txt"
        return [os.environ["BARE"], self.mode, list_, "64", str(self.depth), *end]

    def pages(self, met, work):
        own = json.loads((work / "out").read_text().splitlines()[-1])["pages"]
        return own if self.mode == "fetch" else met


class Wrk(Program):
    """A load generator: fetches and looks at nothing."""

    kind, needs = "fetch", ("wrk",)

    def __init__(self, name, note, depth):
        super().__init__(name, note)
        self.depth = depth

    def suits(self, web):
        return self.depth == 1 or not web.tls

    def version(self):
        return said(["wrk", "--version"])

    def command(self, web, served, work):
        first = served.seeds[0]
        origin = first[: first.index("/", 8)]
        urls = (work / "urls.txt").read_text().splitlines()
        paths = [url[len(origin) :] for url in urls if url.startswith(origin + "/")]
        text = ", ".join(json.dumps(path) for path in paths[:5_000])
        (work / "wrk.lua").write_text(SCRIPT.format(paths=text, depth=self.depth))
        head = ["wrk", "-t1", "-c64", f"-d{WRK_SECONDS}s", "-H", "Accept-Encoding: gzip"]
        return [*head, "-s", "wrk.lua", origin + "/"]

    def pages(self, _met, work):
        text = (work / "out").read_text()
        return int(text.split(" requests in")[0].split()[-1]) if "requests in" in text else 0


class Wget2(Program):
    """GNU's second, with threads."""

    needs = ("wget2",)
    # 8 says that a server said so of some URL: the manuals have dead links. When all is fetched, its
    # threads at times wait for each other for ever; what it brought home counts all the same.
    ends_well = ("0", "8", "hung")

    def version(self):
        return said(["wget2", "--version"])

    def command(self, web, served, work):
        trust = [f"--ca-certificate={served.ca}"] if served.ca else []
        return [
            *("wget2", "--no-config", "-q", "--robots=off", "--max-threads=64", "-r", "-l", "0"),
            *("-H", "--domains=test", "--follow-tags=a/href", "-nd", "--delete-after"),
            *(*trust, "-i", "seeds.txt"),
        ]


class Wget(Program):
    """GNU's first: one connection, one request after the other."""

    needs = ("wget",)
    ends_well = ("0", "8")

    def version(self):
        return said(["wget", "--version"])

    def command(self, web, served, work):
        trust = [f"--ca-certificate={served.ca}"] if served.ca else []
        return [
            # It takes each seed for a crawl of its own: across hosts it would do all as often.
            *("wget", "--no-config", "-q", "-e", "robots=off", "-r", "-l", "inf", "--follow-tags=a"),
            *("-nd", "--delete-after", *trust, "-i", "seeds.txt"),
        ]


class Httrack(Program):
    """A copier of sites; it can't go without keeping them."""

    slow, needs = True, ("httrack",)

    def suits(self, web):
        # It puts the port into the name that it greets a server by, which none may accept.
        return not web.tls

    def version(self):
        return said(["httrack", "--version"])

    def command(self, web, served, work):
        return [
            # It has limits of its own, one connection a second among them: 0 takes them off.
            *("httrack", "-%L", "seeds.txt", "-O", "out.d", "-q", "-%v0", "-s0", "-c64", "-%c0"),
            *("-A0", "--disable-security-limits", "-p1", "-I0", "-C0", "-Q", "-F", "peer"),
            *("-*", "+*.test/*", "+*.test:*/*"),
        ]


class Scrapy(Program):
    """The framework, with the shortest spider."""

    slow, needs = True, (BUILT / "venv/bin/python",)

    def version(self):
        return said([BUILT / "venv/bin/python", "-m", "scrapy", "version"])

    def command(self, web, served, work):
        return [str(BUILT / "venv/bin/python"), str(HERE / "scrapy_peer.py"), "seeds.txt"]


class Colly(Program):
    """The library for Go, driven by bench/peers/colly."""

    slow, needs = True, (BUILT / "colly",)

    def version(self):
        lines = (HERE / "colly/go.mod").read_text().splitlines()
        found = next((line.split()[-1] for line in lines if "gocolly/colly" in line), "")
        return f"colly {found}, {said(['go', 'version']) if shutil.which('go') else ''}"

    def command(self, web, served, work):
        (work / "hosts.txt").write_text("\n".join(web.hosts))
        return [str(BUILT / "colly"), "seeds.txt", "hosts.txt", *([served.ca] if served.ca else [])]


class Spider(Program):
    """The crate, driven by bench/peers/spider."""

    needs = (BUILT / "spider/release/peer-spider",)

    def version(self):
        text = (HERE / "spider/Cargo.lock").read_text()
        return "spider " + text.split('name = "spider"\nversion = "')[1].split('"')[0]

    def command(self, web, served, work):
        return [str(self.needs[0]), "seeds.txt", *([served.ca] if served.ca else [])]


# Where those written in Java run: on others they would take minutes, and say the same.
JAVA_WEBS = ("pages-64", "open")

# No delays, sizes as small as these crawls, and no digest of the text, so that one of the bytes is taken:
# pages that differ in digits only are one to the former. Nothing is stored but robots.txt.
BUBING = """
rootDir=crawl
maxUrlsPerSchemeAuthority=1000000
fetchingThreads=64
parsingThreads=1
dnsThreads=1
fetchFilter=true
scheduleFilter=HostEndsWith(.test)
followFilter=true
parseFilter=true
storeFilter=false
keepAliveTime=1h
schemeAuthorityDelay=0
ipDelay=0
ipDelayFactor=0
maxUrls=1M
bloomFilterPrecision=1E-8
seed=file:seeds.txt
socketTimeout=30s
connectionTimeout=30s
fetchDataBufferByteSize=1Mi
cookiePolicy=ignoreCookies
cookieMaxByteSize=2000
userAgent=peer
robotsExpiration=1d
responseBodyMaxByteSize=16Mi
digestAlgorithm=MurmurHash3
startPaused=true
workbenchMaxByteSize=512Mi
urlCacheMaxByteSize=64Mi
sieveSize=1Mi
parserSpec=HTMLParser()
dnsResolverClass=it.unimi.di.law.bubing.frontier.dns.JavaResolver
"""


class Bubing(Program):
    """The one for Java that was made to use the whole machine, driven by bench/peers/bubing."""

    slow, needs = True, ("java", "keytool")
    built = BUILT / "bubing"

    def suits(self, web):
        return web.name in JAVA_WEBS

    def is_here(self):
        return super().is_here() and (self.built / "Crawl.class").exists()

    def version(self):
        found = next(self.built.glob("bubing-*.jar"), None)
        return f"{found.stem}, {said(['java', '-version'])}" if found else ""

    def command(self, web, served, work):
        (work / "bubing.properties").write_text(BUBING)
        return [
            *java(web, served, work),
            *("-cp", f"{self.built}:{self.built}/*"),
            f"-Dlogback.configurationFile={HERE}/bubing/logback.xml",
            f"-Dit.unimi.di.law.bubing.jgroups.configurationFile={HERE}/bubing/jgroups.xml",
            *("Crawl", "bubing.properties"),
        ]


HERITRIX_WRITER = '<bean class="org.archive.modules.writer.WARCWriterChainProcessor"/>'


class Heritrix(Program):
    """The Internet Archive's."""

    slow, patience, needs = True, 2, ("java", "keytool")
    built = BUILT / "heritrix"

    def __init__(self, name, note, warc=False):
        super().__init__(name, note)
        self.warc = warc

    def suits(self, web):
        return web.name in JAVA_WEBS and not (self.warc and web.name == "pages-64")

    def version(self):
        found = next(self.built.glob("lib/heritrix-engine-*.jar"), None)
        return f"{found.stem}, {said(['java', '-version'])}" if found else ""

    def is_here(self):
        return super().is_here() and (self.built / "lib").exists()

    def command(self, web, served, work):
        job = work / "jobs/peer"
        job.mkdir(parents=True)
        shutil.copy(work / "seeds.txt", job)
        beans = (HERE / "heritrix/crawler-beans.cxml").read_text()
        writer, digest = (HERITRIX_WRITER, "true") if self.warc else ("", "false")
        (job / "crawler-beans.cxml").write_text(beans.format(writer=writer, digest=digest))
        # It won't go without a console, and that not without a key.
        key = ["keytool", "-genkeypair", "-alias", "console", "-dname", "CN=localhost", "-keyalg", "EC"]
        console = f"{work}/console.p12"
        call = [*key, "-keystore", console, "-storepass", "changeit"]
        subprocess.run(call, check=True, capture_output=True)
        return [
            *java(web, served, work),
            *("-cp", f"{self.built}/lib/*", f"-Dheritrix.home={work}", "org.archive.crawler.Heritrix"),
            *("-a", "peer:peer", "-s", f"{console},changeit,changeit"),
            *("-l", f"{HERE}/heritrix/logging.properties", "-r", "peer"),
        ]


def java(web, served, work):
    """A Java that suits one core, knows the web's hosts, and trusts the lab's authority."""
    # Java programs look up this machine, too, and BUbiNG looks up names with the root's dot.
    places = {"localhost": "127.0.0.1", platform.node(): "127.0.0.1", **web.hosts}
    (work / "hosts").write_text("".join(f"{at} {host} {host}.\n" for host, at in places.items()))
    command = ["java", "-XX:+UseSerialGC", "-Xmx2g", f"-Djdk.net.hosts.file={work}/hosts"]
    if served.ca:
        store = ["-keystore", str(work / "trust.p12"), "-storepass", "changeit"]
        call = ["keytool", "-importcert", "-noprompt", "-alias", "lab", "-file", served.ca, *store]
        subprocess.run(call, check=True, capture_output=True)
        command += [f"-Djavax.net.ssl.trustStore={store[1]}"]
        command += [f"-Djavax.net.ssl.trustStorePassword={store[3]}"]
    return command


def all_programs():
    """In the order in which they run: those whose ratios matter most are neighbours."""
    return [
        Sted("sted", "nothing kept but the crawl log"),
        Bare("bare-crawl", "the model: fetch, scan, join, look up, follow; eight requests a connection", "crawl", 8),
        Wrk("wrk", "one host's pages, 64 connections, no pipelining", 1),
        Wget2("wget2", "64 threads, files removed at once"),
        Spider("spider", "fewest features, one thread, a `Website` a host, 64 requests"),
        Colly("colly", "one collector, 64 requests"),
        Wget("wget", "one request at a time, files removed at once"),
        Wrk("wrk-pipelined", "the same, eight requests at once", 8),
        Bare("bare-fetch", "the list of URLs, at least 64 connections, no pipelining", "fetch", 1),
        Bare("bare-fetch-pipelined", "the same, eight requests a connection", "fetch", 8),
        Sted("sted-warc", "the archive: gzip level 1, digests, index", "warc", 1, ("pages-64", "open", "open-mixed")),
        Sted("sted-warc-plain", "the same without compression", "warc", 0, ("pages-64",)),
        Archive(),
        Scrapy("scrapy", "XPath of the links, 64 requests, spare parts off"),
        Httrack("httrack", "64 connections, limits off, pages kept"),
        Bubing("bubing", "64 fetching threads, one parsing; nothing stored; asks for robots.txt, as it must"),
        Heritrix("heritrix", "eight threads, links of HTML only, no archive; asks for robots.txt, and ignores it"),
        Heritrix("heritrix-warc", "the same with its archive: gzip, digests", True),
    ]
