#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
# `forward` under backlog: the kernel's live-frame generator offers more than can be carried. Says how
# many frames a system call carries, how many TSC cycles of user code a frame costs, and that nothing
# was lost for reasons of ours. Median of ROUNDS (default 5) runs of SECS (default 3) seconds.
set -euo pipefail

B=${B:-build}
ROUNDS=${ROUNDS:-5}
SECS=${SECS:-3}
lab="bf$$"
out=$(mktemp -d)
pids=()

# shellcheck disable=SC2317  # called by the trap
clean() {
	local p
	for p in "${pids[@]:-}"; do
		[ -z "$p" ] || kill -INT "$p" 2>/dev/null
	done
	wait 2>/dev/null || true
	tools/xdpath-lab down "$lab" >/dev/null 2>&1 || true
	rm -rf "$out"
}
trap clean EXIT

if [ "$(id -u)" != 0 ]; then
	echo "SKIP forward under backlog: needs root"
	echo "0 passed, 0 failed, 1 skipped"
	exit 0
fi
if [ "$(uname -m)" != x86_64 ]; then
	echo "SKIP forward under backlog: cycles are TSC cycles, x86 only"
	echo "0 passed, 0 failed, 1 skipped"
	exit 0
fi

rx_packets() { ip netns exec "$1" cat "/sys/class/net/$2/statistics/rx_packets"; }

# One run: "frames-per-call user-cycles-per-frame own-drops kpps offered-kpps missing kick-cycles"
one_run() {
	local fwd before after
	before=$(rx_packets "$lab-b" b0)
	SYSCOST_OUT="$out/cost" LD_PRELOAD="$PWD/$B/tests/bench/preload/syscost.so" \
		ip netns exec "$lab-d" taskset -c 1 "$B/xdpath" forward d0 d1 --json \
		>"$out/fwd.json" 2>"$out/fwd.err" &
	fwd=$!
	pids=("$fwd")
	sleep 0.7
	ip netns exec "$lab-a" taskset -c 0 "$B/xdpath" source a0 --engine live --size 64 \
		--dst-mac 02:00:00:00:00:99 --duration "$SECS" --quiet
	sleep 0.3
	kill -INT "$fwd"
	wait "$fwd" || { cat "$out/fwd.err" >&2; return 1; }
	pids=()
	after=$(rx_packets "$lab-b" b0)
	python3 - "$out/fwd.json" "$out/cost" "$((after - before))" "$SECS" <<'PY'
import json, sys
j = json.load(open(sys.argv[1]))
stretches, median, mean, _, kmedian, kmean = (float(x) for x in open(sys.argv[2]).read().split())
arrived, secs = int(sys.argv[3]), float(sys.argv[4])
d0, d1 = j["ports"]
tx, kicks = d1["tx_packets"], d1["system_calls"]["tx_kicks"]
syscalls = kicks + sum(w["sleeps"] for w in j["workers"]) + d0["system_calls"]["tx_kicks"]
overload = ("rx_ring_full", "rx_no_frame")  # the socket's rings were full: offered more than carried
ours = sum(v for k, v in d0["drops"].items() if k not in overload) + sum(d1["drops"].values())
missing = d0["rx_packets"] - tx + (tx - arrived) + j["frames"]["unaccounted"]
user, kernel = mean / (tx / kicks), kmedian / (tx / kicks)
offered = d0["rx_packets"] + sum(d0["drops"][k] for k in overload)
print(tx / syscalls, user, ours, tx / secs / 1000, offered / secs / 1000, missing, kernel)
PY
}

tools/xdpath-lab up "$lab" --line >/dev/null
# b0's stack must not answer, and must not be the bottleneck: frames are not addressed to it
budget=$("$B/xdpath" probe --json 2>/dev/null | python3 -c '
import json,sys
j=json.load(sys.stdin)
def find(o):
    if isinstance(o,dict):
        for k,v in o.items():
            if k in ("tx_budget","tx-budget"): return v
            r=find(v)
            if r is not None: return r
    return None
v=find(j)
if isinstance(v,dict): v=v.get("available",v.get("supported"))
print("yes" if v in (True,"yes") else "no")')
want=32
[ "$budget" = yes ] || want=16
for _ in $(seq "$ROUNDS"); do
	one_run >>"$out/runs"
done
python3 - "$out/runs" "$want" "$budget" <<'PY'
import statistics as st, sys
rows = [[float(x) for x in l.split()] for l in open(sys.argv[1])]
want, failed = float(sys.argv[2]), 0
def say(ok, text):
    global failed
    failed += not ok
    print(f"{'ok  ' if ok else 'FAIL'} {text}")
per, user, ours, kpps, offered, missing, kernel = ([r[i] for r in rows] for i in range(7))
print(f"forward d0 -> d1, 64 bytes, {len(rows)} runs: {st.median(kpps):.0f} kpps carried (min {min(kpps):.0f}, "
      f"max {max(kpps):.0f}) of {st.median(offered):.0f} kpps offered; kick budget raised: {sys.argv[3]}; "
      f"the kick itself takes {st.median(kernel):.0f} cycles per frame")
say(min(per) >= want, f"frames per system call: median {st.median(per):.1f}, worst {min(per):.1f}, at least {want:.0f}")
say(st.median(user) <= 60, f"user code, TSC cycles per frame: median {st.median(user):.1f} (min {min(user):.1f}, "
    f"max {max(user):.1f}), at most 60")
say(max(ours) == 0, f"frames lost for our own reasons: {max(ours):.0f}")
say(max(map(abs, missing)) == 0, f"frames in = frames out on the wire: {max(map(abs, missing)):.0f} missing")
print(f"{4 - failed} passed, {failed} failed, 0 skipped")
sys.exit(failed > 0)
PY
