"""Runs every program on every web, round by round, and has the report written.

    main.py REPEATS [WEB...]

Started by bench/peers/run, which says where things are: STED, BARE, WORK. A round runs each web,
and on it each program, once; whatever drifts on the machine then drifts alike for neighbours.
CPU is user and system time of the program with all its threads and the children it waited for;
memory is the largest resident set seen by looking every few milliseconds.
"""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import programs
import report
import webs

CLIENT_CORE = "1"
LOOK_SECONDS = 0.005
# Who does nothing for so long has hung: wget2 does at times, when all is fetched.
HUNG_SECONDS = 10
LIMIT_SECONDS = float(os.environ.get("PEERS_LIMIT", "300"))
SLOW_ROUNDS = int(os.environ.get("PEERS_SLOW", "1"))
WORK = pathlib.Path(os.environ["WORK"])
# The file that lies over /etc/hosts; written in place, as a new one would not be seen.
HOSTS = WORK / "hosts"


def peak_kib(pid):
    """The largest resident set of a process so far, 0 if it is gone."""
    try:
        lines = open(f"/proc/{pid}/status").read().splitlines()
    except OSError:
        return 0
    found = [line.split()[1] for line in lines if line.startswith("VmHWM:")]
    return int(found[0]) if found else 0


def cpu_ticks(pid):
    """CPU time of a process so far, in ticks of the system's clock."""
    try:
        fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    except OSError:
        return 0
    return int(fields[11]) + int(fields[12])


def measured(command, work, served, limit):
    """Runs a command on the client's core for so many seconds at most; what it took, how it ended."""
    with open(work / "out", "w") as out, open(work / "err", "w") as err:
        server_before = served.cpu()
        begun = time.monotonic()
        child = subprocess.Popen(
            ["taskset", "-c", CLIENT_CORE, *command], cwd=work, stdout=out, stderr=err,
            stdin=subprocess.DEVNULL, start_new_session=True,
        )
        peak, status, why, ticks, busy = 0, None, None, 0, begun
        while True:
            peak = max(peak, peak_kib(child.pid))
            pid, status, usage = os.wait4(child.pid, os.WNOHANG)
            if pid:
                break
            now, seen = time.monotonic(), cpu_ticks(child.pid)
            if seen != ticks:
                ticks, busy = seen, now
            if why is None and (now - begun > limit or now - busy > HUNG_SECONDS):
                why = "hung" if now - busy > HUNG_SECONDS else "late"
                # The session is the program's own.
                os.killpg(child.pid, signal.SIGKILL)
            time.sleep(LOOK_SECONDS)
        # The time in which it did nothing before it was ended is not its work.
        wall = (busy if why == "hung" else time.monotonic()) - begun
        child.returncode = os.waitstatus_to_exitcode(status)
        server = served.cpu() - server_before
    return {
        "wall_s": wall,
        "user_s": usage.ru_utime,
        "system_s": usage.ru_stime,
        "cpu_s": usage.ru_utime + usage.ru_stime,
        "peak_mib": peak / 1024,
        "client_share": (usage.ru_utime + usage.ru_stime) / wall,
        "server_share": server / wall,
        "ended": why or str(child.returncode),
    }


def run(program, web, urls):
    """One program on one web, served for it alone; its row, or None if it has nothing to do."""
    work = WORK / "run"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    serving = WORK / "serve"
    shutil.rmtree(serving, ignore_errors=True)
    serving.mkdir()
    served = web.serve(serving)
    try:
        (work / "seeds.txt").write_text("\n".join(served.seeds) + "\n")
        # Ports differ from one server to the next.
        (work / "urls.txt").write_text("\n".join(at_port(urls, served.seeds)) + "\n")
        command = program.command(web, served, work)
        row = command and measured(command, work, served, LIMIT_SECONDS * program.patience)
    finally:
        met = web.end(served)
    if row is None:
        return None
    try:
        row |= {"pages": program.pages(met, work), "met": met, **program.extra(work)}
    except (OSError, ValueError, KeyError, IndexError) as error:
        print(f"peers: {program.name} on {web.name}: {error}", file=sys.stderr)
        row |= {"pages": 0, "met": met, "ended": f"{row['ended']} and said nothing"}
    if program.name == "sted-warc-plain":
        shutil.rmtree(WORK / "kept", ignore_errors=True)
        shutil.copytree(work / "job", WORK / "kept")
    if row["ended"] not in program.ends_well:
        tail = (work / "err").read_text(errors="replace")[-300:].strip()
        print(f"peers: {program.name} on {web.name} ended with {row['ended']}: {tail}", file=sys.stderr)
    return row | {"web": web.name, "program": program.name}


def at_port(urls, seeds):
    """The same URLs, at the port that the seeds name now."""
    port = seeds[0].split("/")[2].rsplit(":", 1)[1]
    return [f"{url.split('/', 3)[0]}//{url.split('/')[2].rsplit(':', 1)[0]}:{port}/{url.split('/', 3)[3]}" for url in urls]


def list_urls(web):
    """The pages of a web in the order in which `sted` found them: what is told to who only fetches."""
    run(programs.Sted("sted", ""), web, [])
    log = WORK / "run/job/crawl.log"
    fields = (line.split() for line in open(log, errors="replace"))
    return [f[3] for f in fields if f[1] == "200" and not f[3].endswith("/robots.txt")]


def main():
    repeats, wanted = int(sys.argv[1]), sys.argv[2:]
    unknown = [name for name in wanted if name not in webs.WEBS]
    if unknown:
        sys.exit(f"peers: no web {', '.join(unknown)}; there are {', '.join(webs.WEBS)}")
    chosen = [make(name) for name, make in webs.WEBS.items() if not wanted or name in wanted]
    chosen = [web for web in chosen if web.is_here()]
    only = os.environ.get("PEERS_ONLY", "").split()
    everyone = [p for p in programs.all_programs() if not only or p.name in only]
    there = [program for program in everyone if program.is_here()]
    absent = [program.name for program in everyone if not program.is_here()]
    out = report.Report(repeats, chosen, there, absent, LIMIT_SECONDS, SLOW_ROUNDS)
    urls = {}
    for number in range(1, repeats + 1):
        for web in chosen:
            HOSTS.write_text("127.0.0.1 localhost\n" + "".join(
                f"{at} {host}\n" for host, at in web.hosts.items()))
            if web.name not in urls:
                urls[web.name] = list_urls(web)
            for program in there:
                if not program.suits(web) or program.slow and number > SLOW_ROUNDS:
                    continue
                row = run(program, web, urls[web.name])
                if row:
                    out.add({"round": number, **row})
            print(f"peers: round {number} of {repeats}, {web.name} done", file=sys.stderr)
        out.write()


if __name__ == "__main__":
    main()
