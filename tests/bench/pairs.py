#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
"""xdpath beside the bare rings (tests/bench/bare) and beside its peers.

Both sides of a row run one after the other, again and again: AB, BA, AB, ... A machine that is slow
for a minute is slow for both, so only the ratio of a pair is looked at: their median, and its 95 %
interval by bootstrap. PAIRS (15) pairs are run, and more while the interval is wider than WIDTH
(0.02), up to PAIRS_MAX (60) and for no longer than ROW_SECS (250) a row. QUICK=1: three short pairs,
nothing is judged. ROWS=word,word: only the rows whose name has one of the words. V=1 prints each leg.
INSTALL_PEERS=1 installs dpdk-dev and netsniff-ng first. A leg during which other processes held one
of the two CPUs is run again, a few times; those that stay so are counted as disturbed.

The frame source or the client runs on CPU 0, what is measured on CPU 1, in a lab of
tools/xdpath-lab. Rates are those of the interface counters: what has arrived behind the device, or,
for a receiver, what the device gave to its socket.
"""
import math
import os
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

B = os.environ.get("B", "build")
QUICK = os.environ.get("QUICK", "") not in ("", "0")
PAIRS = 3 if QUICK else int(os.environ.get("PAIRS", "15"))
PAIRS_MAX = PAIRS if QUICK else max(PAIRS, int(os.environ.get("PAIRS_MAX", "60")))
WIDTH = float(os.environ.get("WIDTH", "0.02"))
SECS = float(os.environ.get("SECS", "0.5" if QUICK else "1.0"))
TRIPS = 5000 if QUICK else 20000
ROW_SECS = float(os.environ.get("ROW_SECS", "250"))  # neither more pairs nor second tries after it
VERBOSE = os.environ.get("V", "") not in ("", "0")  # each leg's figure too
ROWS = [w for w in os.environ.get("ROWS", "").split(",") if w]
LAB = f"bp{os.getpid()}"
XDPATH, BARE, RTT = f"{B}/xdpath", f"{B}/tests/bench/bare", f"{B}/tests/bench/rtt"
D0_MAC, ELSEWHERE, OTHER_MAC = "02:77:00:00:00:d0", "02:00:00:00:00:99", "02:77:00:00:00:1a"
PEERS = ("dpdk-testpmd", "testpmd", "netsniff-ng", "tcpdump")  # that they do not run is not our fault
DISTURBED, TRIES = 0.04, 3  # share of a leg ready to run but not running; legs for a good one
TIMEOUT = 20  # s, for anything that should take less than one

tally = {"ok": 0, "FAIL": 0, "SKIP": 0}
started = []  # processes to end, whatever happens


class BenchError(Exception):
    pass


def run(*cmd):
    r = subprocess.run(cmd, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
    if r.returncode:
        raise BenchError(f"{' '.join(cmd)}: {(r.stderr or r.stdout).strip()[-300:]}")
    return r.stdout


class Process:
    """A command in a namespace of the lab, on one CPU; its output goes to a file."""

    def __init__(self, host, cpu, cmd, ready=None, env=None):
        self.name = os.path.basename(cmd[0])
        self.log = tempfile.TemporaryFile("w+")
        self.p = subprocess.Popen(
            ["ip", "netns", "exec", f"{LAB}-{host}", "taskset", "-c", str(cpu), *cmd],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
            env={**os.environ, **(env or {})}, start_new_session=True)
        started.append(self)
        if ready:
            self.wait_for(ready)

    def text(self):
        self.log.seek(0)
        return self.log.read()

    def wait_for(self, pattern):
        end = time.monotonic() + TIMEOUT
        while not re.search(pattern, self.text()):
            if self.p.poll() is not None or time.monotonic() > end:
                raise BenchError(f"{self.name} did not start: {self.text().strip()[-300:]}")
            time.sleep(0.01)

    def end(self):
        """What it printed; it is asked to end first, unless it has done so."""
        if self.p.poll() is None:
            self.p.send_signal(signal.SIGINT)
        try:
            self.p.wait(TIMEOUT)
        except subprocess.TimeoutExpired:
            self.p.kill()
            self.p.wait()
            raise BenchError(f"{self.name} did not end when told to") from None
        finally:
            started.remove(self)
        text = self.text()
        self.log.close()
        if self.p.returncode not in (0, -signal.SIGINT, 130):
            raise BenchError(f"{self.name} ended with {self.p.returncode}: {text.strip()[-300:]}")
        return text

    def counters(self, dev):
        """Of a device in its namespace: received, dropped on receiving, sent."""
        with open(f"/proc/{self.p.pid}/net/dev", encoding="ascii") as f:
            for line in f:
                name, _, rest = line.partition(":")
                if name.strip() == dev:
                    n = rest.split()
                    return int(n[1]), int(n[3]), int(n[9])
        raise BenchError(f"{dev}: not in /proc/{self.p.pid}/net/dev")

    def cpu_ns(self):
        """Of its threads: time on a CPU, and time ready to run while others had it."""
        base, ran, waited = f"/proc/{self.p.pid}/task", 0, 0
        for t in os.listdir(base):
            with open(f"{base}/{t}/schedstat", encoding="ascii") as f:
                n = f.read().split()
                ran, waited = ran + int(n[0]), waited + int(n[1])
        return ran, waited


# ---- legs: one run of one side ----

class Dut:
    """What is measured: how to start it, how it tells that it runs, what it lost without the device
    knowing: a pattern for each count of its report, of all and of those lost."""

    def __init__(self, label, cmd, ready, counts=None):
        self.label, self.cmd, self.ready, self.counts = label, cmd, ready, counts

    def start(self):
        return Process("d", 1, self.cmd, self.ready)

    def share_taken(self, text):
        if not self.counts:
            return 1
        seen = [sum(int(n) for n in re.findall(p, text)) for p in self.counts]
        if not seen[0]:
            raise BenchError(f"{self.label} has no count in its report: {text.strip()[-300:]}")
        return 1 - seen[1] / seen[0]


def ours(*args):
    return Dut("xdpath " + args[0], [XDPATH, *args, "--duration", "60"], "worker")


def bare(*args):
    return Dut("bare " + args[-2], [BARE, *args], "ready")


def testpmd(mode, *devs):
    vdevs = [f"--vdev=net_af_xdp{i},iface={d}" for i, d in enumerate(devs)]
    return Dut("testpmd " + mode, [
        "dpdk-testpmd", "--lcores", "0@1,1@1", "--no-pci", "--no-huge", "-m", "256",
        "--file-prefix", LAB, *vdevs, "--", f"--forward-mode={mode}", "--stats-period", "1", "-a",
        "--total-num-mbufs=16384"], "Port statistics")


class Source:
    """Live frames into the device under test, from CPU 0, for not longer than a leg may take."""

    def __init__(self, dut, rate=None, comes_back=False):
        before = dut.counters("d0")[0]
        self.p = Process("a", 0, [XDPATH, "source", "a0", "--engine", "live", "--size", "64",
                                  "--dst-mac", ELSEWHERE, "--duration", "30", "--quiet",
                                  *(["--rate", str(rate)] if rate else [])])
        end = time.monotonic() + TIMEOUT
        while dut.counters("d0")[0] - before < 1000:
            if self.p.p.poll() is not None or time.monotonic() > end:
                raise BenchError(f"no frames from the source: {self.p.text().strip()[-300:]}")
            time.sleep(0.01)
        # frames that come back with their MACs swapped shall not be for a0's stack either
        self.comes_back = comes_back
        if comes_back:
            self.mac = run("ip", "netns", "exec", f"{LAB}-a", "cat", "/sys/class/net/a0/address")
            run("ip", "-n", f"{LAB}-a", "link", "set", "a0", "address", OTHER_MAC)
        time.sleep(0.2)

    def end(self):
        self.p.end()
        if self.comes_back:
            run("ip", "-n", f"{LAB}-a", "link", "set", "a0", "address", self.mac.strip())


def rate_leg(dut, where, rate=None, comes_back=False):
    """Rate at `where`, a pair of (process of the namespace, device); None: what d0 receives."""
    p = dut.start()
    source = Source(p, rate, comes_back)

    def look():
        rx, dropped, _ = (where[0] if where else p).counters(where[1] if where else "d0")
        return (time.monotonic(), rx - (0 if where else dropped), dropped, *p.cpu_ns(),
                p.counters("d0")[0], source.p.cpu_ns()[1])

    before = look()
    time.sleep(SECS)
    secs, n, lost, ran, waited, offered, source_waited = (b - a for a, b in zip(before, look()))
    source.end()
    n *= dut.share_taken(p.end())
    if not n:
        raise BenchError(f"{dut.label}: nothing carried")
    return {"kpps": n / secs / 1000, "lost": lost, "offered": offered / secs / 1000, "ns": ran / n,
            "waited": max(waited, source_waited) / secs / 1e9}


def trip_leg(dut):
    p = dut.start()
    began, waited = time.monotonic(), 0
    client = Process("a", 0, [RTT, "a0", D0_MAC, str(TRIPS)])
    while client.p.poll() is None and time.monotonic() < began + 60:
        try:
            waited = max(client.cpu_ns()[1], p.cpu_ns()[1])
        except FileNotFoundError:
            break  # it has just ended
        time.sleep(0.02)
    secs = time.monotonic() - began
    p50, p99, p999, lost = (int(x) for x in client.end().split())
    p.end()
    return {"p50": p50 / 1000, "p99": p99 / 1000, "p999": p999 / 1000, "lost": lost,
            "waited": waited / secs / 1e9}


def undisturbed(leg, dut, until):
    """A leg whose processes had their CPUs; after a few tries, one as good as could be had."""
    best = None
    for _ in range(1 if QUICK else TRIES):
        try:
            got = leg(dut)
        except BenchError:
            settle_down()
            got = leg(dut)  # once more: a peer may not have come up
        if best is None or got["waited"] < best["waited"]:
            best = got
        if best["waited"] <= DISTURBED or time.monotonic() > until:
            break
    return best


# ---- rows ----

def interval(ratios):
    """Median and the 95 % interval of it, by bootstrap, the same for the same figures."""
    rng = random.Random(1)
    medians = sorted(statistics.median(rng.choices(ratios, k=len(ratios))) for _ in range(4000))
    return statistics.median(ratios), medians[99], medians[3899]


def say(verdict, name, text):
    tally[verdict] += 1
    print(f"{verdict:4} {name}: {text}", flush=True)


def settle_down():
    """After a leg that failed: end what it left."""
    for p in list(started):
        if p not in holders.values():
            try:
                p.end()
            except BenchError:
                pass
    run("tools/xdpath-lab", "up", LAB, "--line")


def pairs(a, b, leg, key, most=None):
    """Pairs of legs of a and b, until the interval of key's ratio is narrow enough."""
    one, two, until = [], [], time.monotonic() + ROW_SECS
    for i in range(most or PAIRS_MAX):
        if i >= PAIRS and time.monotonic() > until:
            break
        if i >= PAIRS:
            _, low, high = interval([x[key] / y[key] for x, y in zip(one, two)])
            if high - low <= WIDTH:
                break
        for side in ((a, one), (b, two)) if i % 2 == 0 else ((b, two), (a, one)):
            side[1].append(undisturbed(leg, side[0], until))
    return one, two


def figures(legs, key):
    return statistics.median(x[key] for x in legs)


def judge(name, one, two, key, unit, good, want):
    """One line: both medians, the ratio, what it has to be."""
    mid, low, high = interval([x[key] / y[key] for x, y in zip(one, two)])
    ok = good(mid, low, high)
    bad = sum(x["waited"] > DISTURBED for x in one + two)
    say("ok" if ok or QUICK else "FAIL", name,
        f"{figures(one, key):.4g} against {figures(two, key):.4g} {unit}, ratio {mid:.3f} "
        f"[{low:.3f}, {high:.3f}], {len(one)} pairs; {want}{' (quick: not judged)' if QUICK else ''}"
        f"{f'; {bad} of {2 * len(one)} legs disturbed' if bad else ''}")
    if VERBOSE:
        for side in (one, two):
            print("     ", *(f"{x[key]:.4g}{'*' if x['waited'] > DISTURBED else ''}" for x in side))


def row(name, body):
    if ROWS and not any(w in name for w in ROWS):
        return
    try:
        body(name)
    except (BenchError, subprocess.TimeoutExpired) as e:
        why = str(e).replace("\n", " | ")
        say("SKIP" if why.startswith(PEERS) else "FAIL", name, why)
        settle_down()


def rate_row(a, b, where=None, comes_back=False, least=0.95, strict=True):
    """Rate of a over that of b: the lower bound (strict) or the median has to reach `least`."""
    def body(name):
        one, two = pairs(a, b, lambda d: rate_leg(d, where, comes_back=comes_back), "kpps",
                         most=None if strict else PAIRS)
        price = f"; {figures(one, 'ns'):.4g} against {figures(two, 'ns'):.4g} ns of CPU a packet"
        if strict:
            judge(name, one, two, "kpps", "kpps", lambda m, lo, hi: lo >= least,
                  f"lower bound at least {least}" + price)
        else:
            judge(name, one, two, "kpps", "kpps", lambda m, lo, hi: m > least,
                  f"above {least}" + price)
    return body


def trip_row(a, b):
    def body(name):
        one, two = pairs(a, b, trip_leg, "p50")
        lost = sum(x["lost"] for x in one), sum(x["lost"] for x in two)
        note = f"; not back within 20 ms: {lost[0]} and {lost[1]} of {TRIPS * len(one)}"
        judge(name + " p50", one, two, "p50", "us", lambda m, lo, hi: m <= 1.2,
              "at most 1.2" + note)
        judge(name + " p99", one, two, "p99", "us", lambda m, lo, hi: m <= 2, "at most 2")
    return body


def lossless(leg):
    """The leg, run until a host that halts a CPU has spared it; the last one, after a few tries."""
    def body(dut):
        for _ in range(TRIES):
            got = leg(dut)
            if got["lost"] == 0:
                break
        return got
    return body


def by_chance(a, b):
    """How likely at least a of a + b events fall to the first of two equals (one-sided sign test):
    a host that halts a CPU costs frames whoever runs there."""
    n = a + b
    return sum(math.comb(n, k) for k in range(a, n + 1)) / 2 ** n


def highest_rate(duts):
    """The highest of a few rates that each takes without loss and that the source reaches."""
    for rate in (3000000, 2000000, 1000000, 500000, 250000):
        legs = [lossless(lambda d, r=rate: rate_leg(d, None, r))(d) for d in duts]
        if all(x["lost"] == 0 and x["offered"] >= 0.9 * rate / 1000 for x in legs):
            return rate
    return None


def block_row(a, b, hz):
    def body(name):
        rate = highest_rate((a, b))
        if rate is None and not QUICK:
            raise BenchError("not even 250 kpps are taken without loss; is the machine busy?")
        one, two = pairs(a, b, lossless(lambda d: rate_leg(d, None, rate or 250000)), "ns")
        lossy = [sum(x["lost"] > 0 for x in side) for side in (one, two)]
        chance = by_chance(*lossy)
        say("ok" if QUICK or chance > 0.05 else "FAIL", name + " loss",
            f"{sum(x['lost'] for x in one)} and {sum(x['lost'] for x in two)} frames lost, in "
            f"{lossy[0]} and {lossy[1]} of {len(one)} legs, at {figures(one, 'kpps'):.4g} and "
            f"{figures(two, 'kpps'):.4g} kpps; in none, or by chance (p {chance:.2g}, above 0.05)")
        for x in one + two:
            x["cycles"] = x["ns"] * hz / 1e9
        judge(name + " CPU", one, two, "cycles", "cycles a packet", lambda m, lo, hi: m <= 1.1,
              "at most 1.1")
    return body


def peer_receiver_row(dut, hz):
    """For the record: what readers of packet sockets take, and at what price."""
    def body(name):
        run("ip", "netns", "exec", f"{LAB}-d", "ethtool", "-K", "d0", "gro", "on")
        try:
            one, two = pairs(ours("sink", "d0", "--all=l2"), dut,
                             lambda d: rate_leg(d, None), "kpps", most=3)
        finally:
            run("ip", "netns", "exec", f"{LAB}-d", "ethtool", "-K", "d0", "gro", "off")
        say("ok", name, f"{figures(one, 'kpps'):.4g} against {figures(two, 'kpps'):.4g} kpps, "
            f"{figures(one, 'ns') * hz / 1e9:.4g} against {figures(two, 'ns') * hz / 1e9:.4g} cycles "
            f"a packet on the receiver's CPU, {len(one)} pairs; figures only")
    return body


def has_reflect():
    return subprocess.run([XDPATH, "reflect", "-h"], capture_output=True, check=False).returncode == 0


def all_rows(hz):
    behind = (holders["b"], "b0")
    back = (holders["a"], "a0")
    spin = ("--set", "poll.mode=spin")
    if has_reflect():
        word, mine, floor = "reflect", ("reflect", "d0", "--all=l2"), ("reflect", "d0")
    else:
        word, mine, floor = "forward d0 (hairpin)", ("forward", "d0"), ("forward", "d0")
    row("forward", rate_row(ours("forward", "d0", "d1"), bare("-p", "forward", "d0", "d1"), behind))
    row(word, rate_row(ours(*mine), bare("-p", *floor), back, comes_back=True))
    row("sink, spinning", rate_row(ours("sink", "d0", "--all=l2", *spin), bare("sink", "d0")))
    # deeper rings, the same on both sides: a halt of the host of some milliseconds is not our matter
    deep = ("--set", "ring.rx=4096", "--set", "ring.fill=4096")
    row("sink, blocking", block_row(ours("sink", "d0", "--all=l2", *deep),
                                    Dut("bare sink", [BARE + "_deep", "-p", "sink", "d0"], "ready"),
                                    hz))
    row(f"round trip, {word}, spinning", trip_row(ours(*mine, *spin), bare(*floor)))
    row(f"round trip, {word}, blocking", trip_row(ours(*mine), bare("-p", *floor)))
    if shutil.which("dpdk-testpmd"):
        row("forward and testpmd io", rate_row(ours("forward", "d0", "d1"),
                                               testpmd("io", "d0", "d1"), behind, False, 1.0, False))
        row(f"{word} and testpmd macswap", rate_row(ours(*mine), testpmd("macswap", "d0"), back, True,
                                                    1.0, False))
    else:
        say("SKIP", "testpmd", "dpdk-testpmd is not installed; INSTALL_PEERS=1 does it")
    readers = (
        ("netsniff-ng", ["--in", "d0", "--out", "/dev/null", "--silent", "--ring-size", "64MiB"],
         "Running|Hit", (r"(\d+)  packets incoming", r"(\d+)  packets failed filter")),
        ("tcpdump", ["-i", "d0", "-w", "/dev/null", "-B", "65536", "-s", "128"], "listening on",
         (r"(\d+) packets received by filter", r"(\d+) packets dropped by kernel")))
    for tool, args, ready, counts in readers:
        if shutil.which(tool):
            row(f"sink and {tool}", peer_receiver_row(Dut(tool, [tool, *args], ready, counts), hz))
        else:
            say("SKIP", tool, f"{tool} is not installed; INSTALL_PEERS=1 does it")


# ---- the whole ----

holders = {}  # a process in each namespace, by which its counters are read


def clean():
    for p in list(started):
        p.p.kill()
        p.p.wait()
    subprocess.run(["tools/xdpath-lab", "down", LAB], capture_output=True, check=False, timeout=60)


def ended(sig, _frame):
    raise SystemExit(128 + sig)


def reason_to_skip():
    if os.getuid():
        return "needs root"
    if len(os.sched_getaffinity(0)) < 2 or not {0, 1} <= os.sched_getaffinity(0):
        return "needs CPUs 0 and 1"
    return None


def main():
    why = reason_to_skip()
    if why:
        say("SKIP", "pairs", why)
    else:
        signal.signal(signal.SIGTERM, ended)
        signal.signal(signal.SIGHUP, ended)
        if os.environ.get("INSTALL_PEERS", "") not in ("", "0"):
            subprocess.run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", "dpdk-dev",
                            "netsniff-ng"], stdout=subprocess.DEVNULL, check=False,
                           env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"})
        try:
            run("tools/xdpath-lab", "up", LAB, "--line")
            for host in "abd":
                holders[host] = Process(host, 0, ["sleep", "7200"])
            hz = float(run(RTT))
            all_rows(hz)
        except KeyboardInterrupt:
            say("FAIL", "pairs", "interrupted")
        except BenchError as e:
            say("FAIL", "pairs", str(e).replace("\n", " | "))
        finally:
            clean()
    print(f"{tally['ok']} passed, {tally['FAIL']} failed, {tally['SKIP']} skipped")
    return 1 if tally["FAIL"] else 0


if __name__ == "__main__":
    sys.exit(main())
