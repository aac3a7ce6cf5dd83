#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
#
# `make demo`: two hosts with user space between them, real ping and iperf3 through it, and counters
# that add up. Needs root; makes a lab of its own and removes it however it ends. Status 1 if
# anything did not work. SECONDS_EACH=N measures N seconds each (default 3).
set -u
export LC_ALL=C PATH="$PATH:/usr/sbin:/sbin"
cd "$(dirname "$0")/.." || exit 1

B=${B:-build}
case $B in /*) ;; *) B=$PWD/$B ;; esac
LAB=tools/xdpath-lab
each=${SECONDS_EACH:-3}
L=demo$$
a=$L-a b=$L-b d=$L-d
pid='' tmp='' failed=0

die() {
	printf 'demo: %s\n' "$*" >&2
	exit 1
}

# shellcheck disable=SC2317 # the trap calls it
cleanup() {
	[ -z "$pid" ] || kill -INT "$pid" 2>/dev/null
	[ -z "$pid" ] || wait "$pid" 2>/dev/null
	[ ! -d "${tmp:-/nonexistent}" ] || "$LAB" down "$L"
	rm -rf "$tmp"
}

row() { printf '  %-14s %s\n' "$1" "$2"; }

wrong() {
	failed=1
	row "$1" "FAILED: $2"
}

# ---- measuring --------------------------------------------------------------------------------------

on() { ip netns exec "$@"; }

round_trips() { # LABEL TARGET
	local text
	text=$(on "$a" ping -n -q -i 0.005 -c 400 -W 1 "$2" 2>&1)
	sed -n 's/^\([0-9]*\) packets transmitted, \([0-9]*\) received.*/\1 \2/p;s/^rtt [^=]*= \([^ ]*\) ms.*/\1/p' <<<"$text" |
		tr '/\n' '  ' >"$tmp/ping"
	local sent=0 got=0 min=0 avg=0 max=0
	read -r sent got min avg max _ <"$tmp/ping"
	if [ "$sent" != 400 ] || [ "$got" != 400 ]; then
		wrong "$1" "$got of $sent pings answered"
	else
		row "$1" "$(printf '400 of 400 answered      round trip min %s  avg %s  max %s ms' "$min" "$avg" "$max")"
	fi
}

listening() { [ -n "$(on "$b" ss -Hltn 'sport = :5201')" ]; }

# One iperf3 run from a to b; its report as JSON in $tmp/iperf.
iperf() { # LABEL ARGS...
	local label=$1 server rc tries
	shift
	on "$b" iperf3 -s -1 >/dev/null 2>&1 </dev/null &
	server=$!
	for ((tries = 0; tries < 100; tries++)); do
		listening && break
		sleep 0.05
	done
	on "$a" timeout $((each + 20)) iperf3 -J -t "$each" "$@" >"$tmp/iperf" 2>/dev/null </dev/null
	rc=$?
	kill "$server" 2>/dev/null
	wait "$server" 2>/dev/null
	[ $rc = 0 ] && return 0
	wrong "$label" "iperf3: $(jq -r '.error // "no answer"' "$tmp/iperf" 2>/dev/null)"
	return 1
}

gbits() { jq -r "$1 / 1e7 | round / 100" "$tmp/iperf" | awk '{printf "%6.2f Gbit/s", $1}'; } # FILTER to bits/s

tcp() { # LABEL ARGS...
	iperf "$@" && row "$1" "$(gbits .end.sum_received.bits_per_second)"
}

tcp_both() {
	iperf "$@" && row "$1" "$(gbits .end.sum_received.bits_per_second) and $(gbits .end.sum_received_bidir_reverse.bits_per_second | sed 's/^ *//') back"
}

udp() { # LABEL ARGS...
	iperf "$@" && row "$1" "$(gbits '(.end.sum.bits_per_second * (1 - .end.sum.lost_percent / 100))')    $(
		jq -r '.end.sum | "\(.lost_packets) of \(.packets) datagrams lost"' "$tmp/iperf")"
}

counter() { ip -n "$1" -j -s link show dev "$2" | jq ".[0].stats64.$3.packets"; } # HOST DEV rx|tx

# ---- counting ---------------------------------------------------------------------------------------

# Sent by one host, seen by the forwarder, received by the other: WHAT SENT IN OUT RECEIVED PORT_IN PORT_OUT
direction() {
	local lost_in lost_out
	lost_in=$(jq ".ports[$6].drops | .rx_ring_full + .rx_no_frame" "$tmp/out")
	lost_out=$(jq "[.ports[$7].drops | to_entries[] | select(.key | startswith(\"tx_\")) | .value] | add" "$tmp/out")
	printf '  %-14s %11s %13s %13s %11s %11s\n' "$1" "$2" "$3" "$4" "$5" $((lost_in + lost_out))
	if [ $(($3 + lost_in)) != "$2" ] || [ $(($4 + lost_out)) != "$3" ] || [ "$4" != "$5" ]; then
		failed=1
		row "" "FAILED: these do not add up"
	fi
}

count() {
	local a_tx b_tx a_rx b_rx
	a_tx=$(counter "$a" a0 tx) b_tx=$(counter "$b" b0 tx) a_rx=$(counter "$a" a0 rx) b_rx=$(counter "$b" b0 rx)
	kill -INT "$pid"
	wait "$pid" || wrong "xdpath forward" "ended with status $?: $(tail -n 1 "$tmp/err")"
	pid=''
	echo
	echo "Every frame is counted (the hosts by their interfaces, the rest by xdpath):"
	echo
	printf '  %-14s %11s %13s %13s %11s %11s\n' "frames" "host sent" "forward took" "forward sent" "host got" "dropped"
	direction "a -> b" $((a_tx - from_a)) "$(jq '.ports[0].rx_packets' "$tmp/out")" \
		"$(jq '.ports[1].tx_packets' "$tmp/out")" $((b_rx - to_b)) 0 1
	direction "b -> a" $((b_tx - from_b)) "$(jq '.ports[1].rx_packets' "$tmp/out")" \
		"$(jq '.ports[0].tx_packets' "$tmp/out")" $((a_rx - to_a)) 1 0
	jq -r '[.ports[] | .name as $n | .drops | to_entries[] | select(.value > 0) | "\(.value) at \($n): \(.key)"] | join(", ")' \
		"$tmp/out" >"$tmp/drops"
	[ ! -s "$tmp/drops" ] || [ -z "$(cat "$tmp/drops")" ] || row "dropped" "$(cat "$tmp/drops")"
	row "UMEM" "$(jq -r '.frames | "\(.total) frames: \(.free) free, \(.fill) in the fill rings, \(.tx + .rx + .held) on their way, \(.unaccounted) unaccounted for"' "$tmp/out")"
	[ "$(jq .frames.unaccounted "$tmp/out")" = 0 ] || failed=1
}

# ---- the demo ---------------------------------------------------------------------------------------

[ "$(id -u)" = 0 ] || die "network namespaces and XDP need root; run it with sudo"
[ -x "$B/xdpath" ] || die "$B/xdpath is not built; run 'make'"
[[ $each =~ ^[1-9][0-9]?$ ]] || die "SECONDS_EACH=$each: give 1 to 99"
for c in ip jq iperf3 ping ss; do
	command -v $c >/dev/null || die "command '$c' is missing; 'make deps' installs it"
done

trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
tmp=$(mktemp -d) || die "no temporary folder; is the disk full?"
"$LAB" up "$L" --line || exit 1

cat <<'TEXT'

Two hosts (network namespaces) and xdpath between them: every frame goes through user space.

  host a                     xdpath forward d0 d1                    host b
  10.77.0.1  a0 ---------- d0  RX ring -> TX ring  d1 ---------- b0  10.77.0.2

TEXT
from_a=$(counter "$a" a0 tx) from_b=$(counter "$b" b0 tx) to_a=$(counter "$a" a0 rx) to_b=$(counter "$b" b0 rx)
env --default-signal=INT ip netns exec "$d" "$B/xdpath" forward d0 d1 --json >"$tmp/out" 2>"$tmp/err" </dev/null &
pid=$!
# Its worker starts once the sockets are connected.
for ((tries = 0; tries < 200; tries++)); do
	tasks=("/proc/$pid/task/"*)
	[ ${#tasks[@]} -lt 2 ] || break
	kill -0 $pid 2>/dev/null || die "xdpath forward did not start: $(cat "$tmp/err")"
	sleep 0.05
done
row "mode" "$(sed -n '1s/.*, mode //p' "$tmp/err")"
row "not better" "$(sed -n 's/^  not better because: \([^;]*\).*/\1/p' "$tmp/err")"
echo

round_trips "ping IPv4" 10.77.0.2
round_trips "ping IPv6" fd77::2
tcp "TCP a -> b" -c 10.77.0.2
tcp "TCP b -> a" -c 10.77.0.2 -R
tcp_both "TCP both ways" -c fd77::2 --bidir
udp "UDP a -> b" -c 10.77.0.2 -u -b 200M -l 1400
count
echo
if [ $failed = 0 ]; then
	echo "All of it worked. Next: README.md, or your own lab: tools/xdpath-lab -h"
else
	echo "Something did not work: see FAILED above." >&2
fi
exit $failed
