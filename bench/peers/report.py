"""The report: raw.csv as rows come, README.md with medians, ratios and verdicts at each round's end.

Figures are medians over the rounds; ratios are taken within a round and are medians of these. A
crawl that brought home fewer than 999 of 1,000 pages, or did not end well, is shown, and compared
with nobody.
"""

import csv
import datetime
import os
import pathlib
import platform
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMPLETE = 0.999
# Below it the client was waiting, or others had its core.
FULL = 0.90

COLUMNS = [
    *("round", "web", "program", "pages", "met", "wall_s", "user_s", "system_s", "cpu_s", "peak_mib"),
    *("client_share", "server_share", "ended", "own_pages", "lag_us"),
    *("digest_us", "gzip_us", "write_us", "write_plain_us"),
]


def output_of(*command):
    """What a command prints, or nothing."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    except OSError:
        return ""
    return done.stdout.strip()


def machine():
    """Processor, cores, memory, system."""
    text = open("/proc/cpuinfo").read()
    model = next((l.split(":")[1].strip() for l in text.splitlines() if "model name" in l), "?")
    memory = int(open("/proc/meminfo").readline().split()[1]) / 1048576
    system = next(
        (l.split("=")[1].strip('"\n') for l in open("/etc/os-release") if l.startswith("PRETTY_NAME")), "?"
    )
    kernel = ".".join(platform.release().split("-")[0].split(".")[:3])
    return f"{model}, {os.cpu_count()} cores, {memory:.0f} GiB, {system}, Linux {kernel}"


def commit():
    """The commit, and whether the tree has changes on top of it."""
    changed = output_of("git", "status", "--porcelain", "--untracked-files=no")
    return output_of("git", "rev-parse", "--short", "HEAD") + (" with changes" if changed else "")


def folder():
    """Where the report goes: a folder of its own day, or what PEERS_OUT says."""
    named = os.environ.get("PEERS_OUT")
    day = datetime.date.today().isoformat()
    return pathlib.Path(named) if named else ROOT / "bench/runs" / f"{day}-peers"


def median(values):
    """The median, or None of nothing."""
    values = list(values)
    return statistics.median(values) if values else None


class Report:
    """What has been measured so far."""

    def __init__(self, repeats, webs, programs, absent, limit, slow_rounds):
        self.webs = {web.name: web for web in webs}
        self.programs = {program.name: program for program in programs}
        self.repeats, self.absent, self.limit, self.slow_rounds = repeats, absent, limit, slow_rounds
        self.rows = []
        self.load_before = os.getloadavg()[0]
        self.commit = commit()
        self.out = folder()
        self.out.mkdir(parents=True, exist_ok=True)
        self.csv = open(self.out / "raw.csv", "w", newline="")
        self.writer = csv.DictWriter(self.csv, COLUMNS, extrasaction="ignore", lineterminator="\n")
        self.writer.writeheader()

    def add(self, row):
        """Takes a row in and keeps it."""
        self.rows.append(row)
        short = {k: round(v, 4) if isinstance(v, float) else v for k, v in row.items()}
        self.writer.writerow(short)
        self.csv.flush()
        rate = row["pages"] / row["cpu_s"] if row["cpu_s"] else 0
        print(
            f"{row['round']} {row['web']:12} {row['program']:21} {row['pages']:7} pages"
            f" {row['wall_s']:7.2f} s {rate:9.0f} /CPU-s  core {row['client_share']:4.0%}"
            f" server {row['server_share']:4.0%} {row['peak_mib']:6.0f} MiB  {row['ended']}",
            file=sys.stderr,
        )

    # -- what rows say --

    def of(self, web, program):
        """Rows of a program on a web, by round."""
        found = (r for r in self.rows if r["web"] == web and r["program"] == program)
        return {row["round"]: row for row in found}

    def completeness(self, row):
        """Share of the web's pages that a crawl brought home; None of who only fetches."""
        if self.programs[row["program"]].kind not in ("crawler", "model"):
            return None
        return row["pages"] / self.webs[row["web"]].pages

    def counts(self, row):
        """Whether a row may be compared with."""
        share = self.completeness(row)
        ends_well = row["ended"] in self.programs[row["program"]].ends_well
        return ends_well and row["pages"] > 0 and (share is None or share >= COMPLETE)

    def ratio(self, web, above, below, value=None):
        """Of pages per CPU-second, or of what `value` takes of a row, within rounds."""
        value = value or (lambda row: row["pages"] / row["cpu_s"])
        first, second = self.of(web, above), self.of(web, below)
        shared = [(first[n], second[n]) for n in first if n in second]
        return median(value(a) / value(b) for a, b in shared if self.counts(a) and self.counts(b))

    def best_other(self, web):
        """The crawler other than ours with most pages per CPU-second."""
        best = (0, None)
        for name, program in self.programs.items():
            if program.kind != "crawler" or name.startswith("sted"):
                continue
            rate = median(r["pages"] / r["cpu_s"] for r in self.of(web, name).values() if self.counts(r))
            best = max(best, (rate or 0, name), key=lambda pair: pair[0])
        return best[1]

    def us(self, web, program):
        """Microseconds of CPU a page, by round."""
        rows = self.of(web, program)
        return {n: 1e6 * r["cpu_s"] / r["pages"] for n, r in rows.items() if self.counts(r)}

    # -- the page --

    def write(self):
        """Writes README.md anew."""
        done = max(row["round"] for row in self.rows)
        command = "bench/peers/run " + " ".join([str(self.repeats), *self.webs])
        lines = [
            f"# {self.out.name}: `sted` beside other crawlers",
            "",
            f"Machine: {machine()}; load average {self.load_before:.1f} at the start, "
            f"{os.getloadavg()[0]:.1f} at the end.",
            f"Commit: {self.commit}. Command: `{command}`; {done} of {self.repeats} rounds done.",
            "Written by `bench/peers/run`; how to read it: `bench/README.md`. Table: `raw.csv`.",
            "",
            "Loopback, plain HTTP unless a web says TLS, one core for the client, the other for the "
            "server: figures compare programs; they say nothing about the open web.",
            "",
        ]
        lines += self.targets()
        for web in self.webs.values():
            lines += self.table(web)
        lines += self.versions()
        (self.out / "README.md").write_text("\n".join(lines) + "\n")

    def targets(self):
        """What is to be reached, and what was."""
        verdicts = []

        def verdict(what, value, least, at_most=False, unit=" x"):
            if value is None:
                verdicts.append(f"| {what} | {least}{unit} | not measured | |")
                return
            reached = value <= least if at_most else value >= least
            word = "reached" if reached else "missed"
            bound = "at most" if at_most else "at least"
            verdicts.append(f"| {what} | {bound} {least:,g}{unit} | {value:,.2f}{unit} | {word} |")

        best = self.best_other("pages-64")
        verdict(f"pages per CPU-second, `pages-64`: of the best other crawler's ({best})",
                self.ratio("pages-64", "sted", best) if best else None, 5)
        verdict("of wrk's without pipelining", self.ratio("pages-64", "sted", "wrk"), 0.5)
        verdict("CPU a page: of the model's", self.ratio("pages-64", "bare-crawl", "sted"), 2, True)
        verdict("WARC: CPU on top of store none, of its parts measured bare", self.archive("sted-warc"), 1.15, True)
        verdict("WARC uncompressed likewise", self.archive("sted-warc-plain"), 1.15, True)
        verdict("`tls-reuse`: pages per CPU-second of plain", self.over_tls(), 0.65)
        large = self.of("large", "sted").values()
        rate = median(r["pages"] / r["cpu_s"] for r in large if self.counts(r))
        verdict("`large`: pages per CPU-second", rate, 1_000, unit="")
        return ["| what | to reach | here | |", "|---|---|---|---|", *verdicts, ""]

    def archive(self, program):
        """What the archive adds to a page, as a multiple of what its parts cost alone."""
        with_it, without = self.us("pages-64", program), self.us("pages-64", "sted")
        bare = self.of("pages-64", "bare-archive")
        gzip = program == "sted-warc"
        shares = []
        for n in with_it:
            if n in without and n in bare:
                row = bare[n]
                write = row["gzip_us"] + row["write_us"] if gzip else row["write_plain_us"]
                shares.append((with_it[n] - without[n]) / (row["digest_us"] + write))
        return median(shares)

    def over_tls(self):
        """Pages per CPU-second over TLS, of those in plain in the same round."""
        plain, coded = self.us("pages-64", "sted"), self.us("tls-reuse", "sted")
        return median(plain[n] / coded[n] for n in plain if n in coded)

    def table(self, web):
        """All programs on one web."""
        lines = [
            f"## {web.name}: {web.pages:,} pages",
            "",
            f"{web.says[0].upper()}{web.says[1:]}.",
            "",
            "| program | rounds | pages | pages/s | pages per CPU-s | us a page | core | server's core |"
            " peak MiB | `sted` to it | |",
            "|---|---|---|---|---|---|---|---|---|---|---|",
        ]
        for name, program in self.programs.items():
            rows = list(self.of(web.name, name).values())
            if rows and program.kind != "bare":
                lines.append(self.line(web, name, rows))
        bare = list(self.of(web.name, "bare-archive").values())
        if bare:
            part = {k: median(r[k] for r in bare) for k in ("digest_us", "gzip_us", "write_us", "write_plain_us")}
            lines += ["", "The archive's parts alone, microseconds a page: "
                      f"digests {part['digest_us']:.1f}, gzip {part['gzip_us']:.1f}, writes "
                      f"{part['write_us']:.1f} compressed and {part['write_plain_us']:.1f} not."]
        return [*lines, ""]

    def line(self, web, name, rows):
        """One program on one web."""
        good = [row for row in rows if self.counts(row)]
        used = good or rows
        rate = median(r["pages"] / r["wall_s"] for r in used)
        per_cpu = median(r["pages"] / r["cpu_s"] for r in used)
        share = median(r["client_share"] for r in used)
        remarks = []
        if not good:
            remarks.append(f"**does not count** (ended: {used[0]['ended']})")
        complete = [self.completeness(row) for row in used]
        if complete[0] is not None and min(complete) < COMPLETE:
            remarks.append(f"incomplete: {min(complete):.1%}")
        if any(row["ended"] == "hung" for row in good):
            remarks.append("hung at the end, and was ended")
        if share < FULL:
            remarks.append("core not full")
        ratio = self.ratio(web.name, "sted", name)
        us = f"{1e6 / per_cpu:.1f}" if per_cpu else ""
        return (
            f"| {name} | {len(rows)} | {median(r['pages'] for r in used):,.0f} | {rate:,.0f} | {per_cpu:,.0f} |"
            f" {us} | {share:.0%} | {median(r['server_share'] for r in used):.0%} |"
            f" {median(r['peak_mib'] for r in used):,.0f} | {'' if ratio is None else f'{ratio:.2f}'} |"
            f" {', '.join(remarks)} |"
        )

    def versions(self):
        """Who they are."""
        lines = ["## Programs", "", "| program | version | how it is run |", "|---|---|---|"]
        for name, program in self.programs.items():
            lines.append(f"| {name} | {program.version()} | {program.note} |")
        if self.absent:
            lines += ["", f"Not to be had here, and left out: {', '.join(self.absent)}."]
        slow = ", ".join(name for name, program in self.programs.items() if program.slow)
        patient = "".join(f", {name} {program.patience} times that" for name, program in
                          self.programs.items() if program.patience > 1)
        lines += ["", f"A program was given {self.limit:.0f} s at most{patient}; those that are slow ran in "
                  f"{self.slow_rounds} of the rounds{': ' + slow if slow else ''}."]
        return lines
