"""Runs the crawler and wrk against the lab that `bench/run` has started, and prints one table.

Each round runs every program once, so that a machine whose speed drifts treats all alike. The
figures are medians over the rounds; ratios are taken within each round.
"""

import json
import os
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
[store]
format = "{format}"
gzip_level = {gzip}
"""

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
        sys.exit(f"{name}: exit {code}\n{open(f'{name}.log').read()}")
    summary = json.load(open(f"{name}/summary.json"))
    pages = summary["counts"]["pages"]
    lag = summary["loop"]["lag_us"]["p99"]
    return {"pages": pages, "wall": wall, "cpu": cpu, "lag": lag, "stages": {name: stage["cpu_ns"] for name, stage in summary["loop"]["cpu"]["stages"].items()}}


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


def main():
    sted, repeats = sys.argv[1], int(sys.argv[2])
    ready = json.loads(open("ready").readline())
    open("seeds.txt", "w").write("\n".join(ready["seeds"]))
    kinds = [("none", "none", 1), ("warc", "warc", 1), ("warc-plain", "warc", 0)]
    for name, form, gzip in kinds:
        conf = CONF.format(directory=name, dns=ready["dns"], format=form, gzip=gzip)
        open(f"{name}.toml", "w").write(conf)
    crawl(sted, "none")
    first = ready["seeds"][0].split("//", 1)[1].split("/", 1)[0]
    lines = (line.split() for line in open("none/crawl.log"))
    urls = [f[3] for f in lines if f[1] == "200" and f"//{first}/" in f[3]]
    paths = ", ".join(json.dumps("/" + url.split("/", 3)[3]) for url in urls)
    open("paths.lua", "w").write(SCRIPT.format(paths=paths))
    rounds = []
    for number in range(repeats):
        row = {name: crawl(sted, name) for name, _, _ in kinds}
        row["wrk"] = wrk(ready, 2)
        rounds.append(row)
        print(f"round {number + 1} of {repeats}", file=sys.stderr)
    report(rounds)


def report(rounds):
    print("program,pages,pages_per_second,pages_per_cpu_second,us_per_page,ratio_to_wrk,lag_p99_us")
    for name in ["none", "warc", "warc-plain", "wrk"]:
        runs = [row[name] for row in rounds]
        rate = statistics.median(run["pages"] / run["wall"] for run in runs)
        per_cpu = statistics.median(run["pages"] / run["cpu"] for run in runs)
        ratio = statistics.median(
            (row[name]["pages"] / row[name]["cpu"]) / (row["wrk"]["pages"] / row["wrk"]["cpu"])
            for row in rounds
        )
        lag = statistics.median(run["lag"] for run in runs) if "lag" in runs[0] else ""
        pages = runs[0]["pages"]
        print(f"{name},{pages},{rate:.0f},{per_cpu:.0f},{1e6 / per_cpu:.2f},{ratio:.3f},{lag}")
    print()
    for name in ["none", "warc"]:
        stages = [row[name]["stages"] for row in rounds]
        pages = rounds[0][name]["pages"]
        share = {key: statistics.median(s[key] for s in stages) / pages / 1e3 for key in stages[0]}
        ordered = sorted(share.items(), key=lambda pair: -pair[1])
        print(f"us a page by stage, {name}: " + ", ".join(f"{k} {v:.2f}" for k, v in ordered))
    print(f"load average at the end: {os.getloadavg()[0]:.2f}")


if __name__ == "__main__":
    main()
