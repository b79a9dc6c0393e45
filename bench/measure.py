"""Runs the crawler and others against the lab that `bench/run` has started, and prints one table.

    measure.py STED REPEATS pages          beside wrk
    measure.py STED REPEATS open BARE      beside the floor: BARE is the program of bench/bare.rs

Each round runs every program once, so that a machine whose speed drifts treats all alike. The
figures are medians over the rounds; ratios are taken within each round.
"""

import json
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import time

CONF = """
[identity]
contact = "bench@sted.dev"
[job]
directory = "{directory}"
seeds_file = "seeds.txt"
[scope]
span = "host"
[names]
servers = ["{dns}"]
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
format = "{format}"
gzip_level = {gzip}
"""

# What is crawled: the name, and the format and the level of the archive.
KINDS = [("none", "none", 1), ("warc", "warc", 1), ("warc-plain", "warc", 0)]

# Where the lab's hosts begin.
FIRST_ADDRESS = "127.1.0.1"

# One host's pages, asked for in turn by each connection: what wrk can do.
SCRIPT = """
local paths = {{ {paths} }}
local at = 0
function request()
  at = at % #paths + 1
  return wrk.format("GET", paths[at])
end
"""


def timed(command, out):
    """Runs a command on core 1; wall seconds, CPU seconds of it and its children, exit code."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.monotonic()
    code = subprocess.run(["taskset", "-c", "1", *command], stdout=out, stderr=out).returncode
    wall = time.monotonic() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return wall, cpu, code


def crawl(sted, name):
    shutil.rmtree(name, ignore_errors=True)
    with open(f"{name}.log", "w") as out:
        wall, cpu, code = timed([sted, "crawl", f"{name}.toml"], out)
    if code != 0:
        with open(f"{name}.log") as log:
            sys.exit(f"{name}: exit {code}\n{log.read()}")
    summary = json.load(open(f"{name}/summary.json"))
    pages = summary["counts"]["pages"]
    lag = summary["loop"]["lag_us"]["p99"]
    stages = {name: stage["cpu_ns"] for name, stage in summary["loop"]["cpu"]["stages"].items()}
    return {"pages": pages, "wall": wall, "cpu": cpu, "lag": lag, "stages": stages}


def wrk(ready, seconds):
    with open("wrk.log", "w") as out:
        # The first host's address; wrk asks the system for names, which knows none of the lab's.
        host = ready["seeds"][0].split("/")[2]
        url = f"http://{FIRST_ADDRESS}:{ready['http_port']}/"
        head = ["wrk", "-t1", "-c64", f"-d{seconds}s", "-H", f"Host: {host}"]
        command = [*head, "-s", "paths.lua", url]
        wall, cpu, code = timed(command, out)
    text = open("wrk.log").read()
    if code != 0 or "requests in" not in text:
        sys.exit(f"wrk: exit {code}\n{text}")
    pages = int(text.split(" requests in")[0].split()[-1])
    return {"pages": pages, "wall": wall, "cpu": cpu}


def floor(bare):
    """What the pages of the run without compression cost at least, in microseconds by part."""
    archives = sorted(str(path) for path in pathlib.Path("warc-plain/warc").glob("*.warc"))
    done = subprocess.run([bare, "floor", *archives], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def write_paths(ready):
    """Tells wrk the paths of the first host, as the crawl before has found them."""
    first = ready["seeds"][0].split("//", 1)[1].split("/", 1)[0]
    lines = (line.split() for line in open("none/crawl.log"))
    urls = [f[3] for f in lines if f[1] == "200" and f"//{first}/" in f[3]]
    paths = ", ".join(json.dumps("/" + url.split("/", 3)[3]) for url in urls)
    open("paths.lua", "w").write(SCRIPT.format(paths=paths))


def main():
    sted, repeats, web, *bare = sys.argv[1], int(sys.argv[2]), *sys.argv[3:]
    ready = json.loads(open("ready").readline())
    open("seeds.txt", "w").write("\n".join(ready["seeds"]))
    tls = f'[tls]\nroots_file = "{ready["ca"]}"' if web == "open" else ""
    for name, form, gzip in KINDS:
        conf = CONF.format(directory=name, dns=ready["dns"], tls=tls, format=form, gzip=gzip)
        open(f"{name}.toml", "w").write(conf)
    crawl(sted, "none")
    if web == "pages":
        write_paths(ready)
    rounds = []
    for number in range(repeats):
        row = {name: crawl(sted, name) for name, _, _ in KINDS}
        if web == "pages":
            row["wrk"] = wrk(ready, 2)
        else:
            row["floor"] = floor(*bare)
        rounds.append(row)
        print(f"{web}: round {number + 1} of {repeats}", file=sys.stderr)
    report(web, rounds)
    if web == "open":
        beside_floor(rounds)
    print(f"load average at the end: {os.getloadavg()[0]:.2f}")


def report(web, rounds):
    beside = [name for name in ("wrk",) if name in rounds[0]]
    ratio_to = f",ratio_to_{beside[0]}" if beside else ""
    print(f"\n{web}\nprogram,pages,pages_per_second,pages_per_cpu_second,us_per_page{ratio_to},lag_p99_us")
    for name in [kind[0] for kind in KINDS] + beside:
        runs = [row[name] for row in rounds]
        rate = statistics.median(run["pages"] / run["wall"] for run in runs)
        per_cpu = statistics.median(per_cpu_second(run) for run in runs)
        ratio = ""
        if beside:
            ratios = [per_cpu_second(row[name]) / per_cpu_second(row[beside[0]]) for row in rounds]
            ratio = f",{statistics.median(ratios):.3f}"
        lag = statistics.median(run["lag"] for run in runs) if "lag" in runs[0] else ""
        print(f"{name},{runs[0]['pages']},{rate:.0f},{per_cpu:.0f},{1e6 / per_cpu:.2f}{ratio},{lag}")
    print()
    for name in ["none", "warc"]:
        ordered = sorted(stages_of(rounds, name).items(), key=lambda pair: -pair[1])
        print(f"us a page by stage, {name}: " + ", ".join(f"{k} {v:.2f}" for k, v in ordered))


def per_cpu_second(run):
    return run["pages"] / run["cpu"]


def stages_of(rounds, name):
    """Microseconds a page of each stage, medians over the rounds."""
    runs = [row[name] for row in rounds]
    return {
        stage: statistics.median(run["stages"][stage] / run["pages"] for run in runs) / 1e3
        for stage in runs[0]["stages"]
    }


# Which stages of a crawl do what a part of the floor does.
PARTS = {
    "kernel": ("send", "receive", "wait"),
    "tls": ("tls",),
    "decode": ("decode",),
    "write": ("store",),
}


def beside_floor(rounds):
    """What the stages of a crawl with an archive take, beside what they take at least."""
    stages = stages_of(rounds, "warc")
    print("\npart,us_per_page,floor_us,ratio")
    floor_sum = 0
    for part, names in PARTS.items():
        took = sum(stages.pop(name) for name in names)
        least = statistics.median(row["floor"][f"{part}_us"] for row in rounds)
        floor_sum += least
        print(f"{part} ({' + '.join(names)}),{took:.1f},{least:.1f},{took / least:.2f}")
    print(f"all other stages,{sum(stages.values()):.1f},,")
    ratio = statistics.median(
        1e6 / per_cpu_second(row["warc"]) / row["floor"]["sum_us"] for row in rounds
    )
    us = statistics.median(1e6 / per_cpu_second(row["warc"]) for row in rounds)
    print(f"all threads,{us:.1f},{floor_sum:.1f},{ratio:.2f}")


if __name__ == "__main__":
    main()
