"""The webs of the comparison, and who serves them.

All but one are the lab's: drawn, every host a seed, every page reachable, all of it allowed. The
lab serves replies made beforehand from memory. `docs` is real: the HTML manuals of Debian packages
of documentation, served by nginx, each host a copy of one manual. A web is served anew for each
program, so that none finds connections or counts of another.
"""

import html.parser
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[2]
SERVER_CORE = "0"
# Hosts by number, as the lab places them; those of the manuals are elsewhere.
LAB_ADDRESS = 0x7F010001
DOCS_ADDRESS = 0x7F020001
DOCS_PORT = 21080
DOCS_COPIES = 8

LAB = """
[job]
directory = "job"
[politeness]
burst = "server"
delay = "0s"
delay_factor = 0
address_delay = "0s"
domain_delay = "0s"
[lab]
directory = "lab"
manifest = false
[web]
preset = "bench"
hosts = {hosts}
seeds = {hosts}
easy = true
pages = {pages}
{more}
"""

NGINX = """
{user}
daemon off;
master_process off;
pid {work}/nginx.pid;
error_log {work}/nginx.err;
events {{ worker_connections 4096; }}
http {{
    types {{ text/html html; text/css css; application/javascript js; }}
    default_type text/plain;
    log_format line '$host $uri $status';
    access_log {work}/nginx.log line buffer=1m;
    client_body_temp_path {work}/t1; proxy_temp_path {work}/t2; fastcgi_temp_path {work}/t3;
    uwsgi_temp_path {work}/t4; scgi_temp_path {work}/t5;
    tcp_nopush on;
    keepalive_requests 1000000;
    open_file_cache max=8000;
    open_file_cache_valid 1h;
    {servers}
}}
"""


def address(number):
    return ".".join(str(number >> shift & 255) for shift in (24, 16, 8, 0))


class Served:
    """A server that runs: where it is, and what it is told apart by."""

    def __init__(self, child, work):
        self.child = child
        self.work = work
        self.seeds = []
        self.dns = None
        self.ca = None
        self.pages_met = None

    def cpu(self):
        """CPU seconds it has used."""
        fields = open(f"/proc/{self.child.pid}/stat").read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class LabWeb:
    """A web that the lab draws and serves."""

    def __init__(self, name, hosts, pages, says, tls=False, more=""):
        self.name, self.says, self.tls = name, says, tls
        self.pages = pages
        self.conf = LAB.format(hosts=hosts, pages=pages, more=more)
        self.hosts = {f"h{number:04}.test": address(LAB_ADDRESS + number) for number in range(hosts)}

    def is_here(self):
        return True

    def serve(self, work):
        conf = work / "web.toml"
        conf.write_text(self.conf)
        command = ["taskset", "-c", SERVER_CORE, os.environ["STED"], "web", conf.name]
        pipe = subprocess.PIPE
        child = subprocess.Popen(command, cwd=work, stdin=pipe, stdout=pipe, text=True)
        line = child.stdout.readline()
        if not line:
            raise SystemExit(f"peers: the lab did not serve {self.name}")
        ready = json.loads(line)
        served = Served(child, work)
        served.seeds, served.dns = ready["seeds"], ready["dns"]
        served.ca = str(work / ready["ca"]) if self.tls else None
        return served

    def end(self, served):
        """Stops it; the number of different pages that were asked for."""
        served.child.stdin.close()
        totals = json.loads(served.child.stdout.readline())
        served.child.wait()
        return totals["pages"]


class DocsWeb:
    """Real pages by nginx."""

    name, tls = "docs", False

    def __init__(self):
        self.manuals = {}
        for name in ("python", "postgresql"):
            folder = ROOT / "target/deps/docs" / name
            if (folder / "index.html").exists():
                self.manuals[name] = folder.resolve()
        manuals = ", ".join(f"{name} ({version(path)})" for name, path in self.manuals.items())
        self.says = f"manuals by nginx, {DOCS_COPIES} hosts each: {manuals}"
        folders = [path for path in self.manuals.values() for _ in range(DOCS_COPIES)]
        self.folders = {f"docs{number:02}.test": path for number, path in enumerate(folders)}
        places = zip(self.folders, range(DOCS_ADDRESS, DOCS_ADDRESS + len(folders)))
        self.hosts = {host: address(number) for host, number in places}
        self.reachable = {path: reachable(path) for path in self.manuals.values()}
        self.pages = sum(len(self.reachable[path]) for path in folders)

    def is_here(self):
        if not self.manuals or not shutil.which("nginx"):
            print("peers: no docs: nginx or the manuals are missing", file=sys.stderr)
            return False
        return True

    def serve(self, work):
        program = shutil.which("nginx")
        servers = ""
        for path in self.manuals.values():
            hosts = [host for host, folder in self.folders.items() if folder == path]
            listens = " ".join(f"listen {self.hosts[host]}:{DOCS_PORT};" for host in hosts)
            servers += f"server {{ {listens} root {path}; }}\n"
        user = "user root;" if os.geteuid() == 0 else ""
        conf = work / "nginx.conf"
        conf.write_text(NGINX.format(user=user, work=work, servers=servers))
        (work / "nginx.log").write_text("")
        command = ["taskset", "-c", SERVER_CORE, program, "-c", str(conf), "-p", str(work)]
        child = subprocess.Popen(command, cwd=work)
        served = Served(child, work)
        served.seeds = [f"http://{host}:{DOCS_PORT}/index.html" for host in self.folders]
        for _ in range(100):
            if (work / "nginx.pid").exists():
                return served
            time.sleep(0.05)
        raise SystemExit(f"peers: nginx did not start: {(work / 'nginx.err').read_text()}")

    def end(self, served):
        served.child.send_signal(signal.SIGQUIT)
        served.child.wait()
        met = set()
        for line in open(served.work / "nginx.log"):
            host, path, status = line.split()[0], line.split()[1], line.split()[-1]
            if status == "200" and path in self.reachable.get(self.folders.get(host), ()):
                met.add((host, path))
        return len(met)


class Links(html.parser.HTMLParser):
    """What the `a` elements of a page refer to."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attributes):
        if tag == "a":
            self.found += [value for name, value in attributes if name == "href" and value]


def reachable(folder):
    """Paths of the HTML pages that links lead to from the first: what a crawl must bring home."""
    known, left = {"/index.html"}, ["/index.html"]
    while left:
        path = left.pop()
        links = Links()
        links.feed((folder / path[1:]).read_text(errors="replace"))
        for link in links.found:
            url = urllib.parse.urlsplit(urllib.parse.urljoin(f"http://here.test{path}", link.strip()))
            target = urllib.parse.unquote(url.path)
            if url.netloc != "here.test" or not target.endswith(".html") or target in known:
                continue
            if (folder / target[1:]).is_file():
                known.add(target)
                left.append(target)
    return known


def version(path):
    """The package that a manual is from, as far as its path tells."""
    found = re.search(r"/doc/([^/]+)/", str(path))
    package = found.group(1) if found else path.name
    return re.sub(r"^(python3\.\d+|postgresql-doc-\d+)$", r"\1", package)


THOUSAND = "a connection to each of a thousand hosts, nineteen pages on it"
LARGE = """page_bytes = "242KB"
links_per_page = 60
gzip_share = 1
tls_share = 1
requests_per_connection = ["10 for 1"]"""

# Pages as the open web has them: half are shorter than 138 KB, the mean is 190 KB.
OPEN = """page_bytes = "138KB"
page_bytes_sigma = 0.8
links_per_page = 60
tls_share = 1
requests_per_connection = ["1 for 1"]
"""

# Pages of the webs that ratios are told of: of 19,200 the fastest crawler's start is a twentieth.
MANY = 57_600
OPEN_PAGES = 10_000
OPEN_SAYS = "190 KB and 60 links a page, 500 hosts, one page a TLS connection"


def open_web(name, pages):
    """The web that is like the open web."""
    says = f"{OPEN_SAYS}, gzip, all handshakes but a host's first resumed"
    return LabWeb(name, 500, pages, says, True, OPEN + "gzip_share = 1")


# How each is made: the manuals are read through to be counted, which takes a quarter of a minute.
WEBS = {
    "pages-64": lambda name: LabWeb(name, 64, MANY, "64 hosts of 900 pages, 16.7 KB and 25 links each"),
    "pages-1": lambda name: LabWeb(name, 1, 19_200, "a third of these pages on one host"),
    "pages-1000": lambda name: LabWeb(name, 1_000, 19_200, "a third of these pages on a thousand hosts"),
    "docs": lambda _: DocsWeb(),
    "tls-reuse": lambda name: LabWeb(
        name, 64, MANY, "`pages-64` over TLS, connections kept", True, "tls_share = 1"),
    "tls-per-host": lambda name: LabWeb(
        name, 1_000, 19_200, f"over TLS: {THOUSAND}", True, "tls_share = 1"),
    "large": lambda name: LabWeb(
        name, 64, 1_280, "242 KB and 60 links, gzip, TLS, ten pages a connection", True, LARGE),
    "open": lambda name: open_web(name, OPEN_PAGES),
    "open-mixed": lambda name: LabWeb(
        name, 500, OPEN_PAGES, f"{OPEN_SAYS}, gzip and brotli by half, half of the hosts resume nothing",
        True, OPEN + "gzip_share = 0.5\nbrotli_share = 0.5\nresume_share = 0.5"),
}
