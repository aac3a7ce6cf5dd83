#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
# Real stacks talk through `xdpath forward`: TCP over IPv4 and IPv6, several queues, MTU 1500 and
# 9000, native and generic XDP; and every frame is counted, here and by the interfaces.
# shellcheck disable=SC2016,SC2119,SC2317 # awk programs; lab_up without options; functions called by name
# shellcheck source=tests/netns/lib.sh
. "$(dirname "$0")/lib.sh"

seconds=$([ -n "${LONG:-}" ] && echo 10 || echo 1)

listening() { on "$HB" ss -Hltn 'sport = :5201' | grep -q LISTEN; }

# iperf3 from a to b; its report goes to $TMP/iperf.
iperf() { # ARGS...
	local server rc
	on "$HB" iperf3 -s -1 >/dev/null 2>&1 </dev/null &
	server=$!
	within 5 listening
	on "$HA" timeout $((seconds + 20)) iperf3 -J -t "$seconds" "$@" >"$TMP/iperf" 2>&1 </dev/null
	rc=$?
	kill $server 2>/dev/null
	wait $server 2>/dev/null
	return $rc
}

received() { jq -r '[.end | .. | objects | select(has("sum_received")) | .sum_received.bytes] | add // 0' "$TMP/iperf" 2>/dev/null; }

tcp() { # NAME ARGS...
	local name=$1
	shift
	iperf "$@" || { fail "$name: iperf3" "$(jq -r '.error // empty' "$TMP/iperf" 2>/dev/null || head -n 3 "$TMP/iperf")" && return; }
	# A link that lives on retransmissions carries less than this in the first second.
	num "$name: bytes received" "$(received)" -gt $((seconds * 5000000))
}

# The forwarder's own counters against those of the interfaces, from start to end.
counted() { # NAME
	local dev d=()
	ended_well "$1" f
	for dev in d0 d1; do
		d+=("$(($(stat_of "$HD" $dev rx packets) - ${was[$dev]}))")
	done
	is "$1: received is what the interfaces received" \
		"$(j f '[.ports[] | .rx_packets + (.drops | .rx_ring_full + .rx_no_frame + .rx_unread)] | join(" ")')" "${d[*]}"
	is "$1: sent and dropped are what was received" \
		"$(($(sum_of f tx packets) + $(dropped f tx)))" "$(sum_of f rx packets)"
	is "$1: sent is what the hosts received" "$(j f '.ports[1].tx_packets')" \
		"$(($(stat_of "$HB" b0 rx packets) - was_b))"
}

declare -A was=()
begin() { # ARGS of forward
	was[d0]=$(stat_of "$HD" d0 rx packets)
	was[d1]=$(stat_of "$HD" d1 rx packets)
	was_b=$(stat_of "$HB" b0 rx packets)
	xd_up f "$HD" forward d0 d1 "$@"
}

for mode in copy generic; do
	for mtu in 1500 9000; do
		what="$mode, MTU $mtu"
		lab_up --line --mtu $mtu
		begin -m $mode
		tcp "$what, IPv4" -c 10.77.0.2
		tcp "$what, IPv6" -c fd77::2
		xd_stop f
		is "$what: the mode obtained" "$(j f .mode)" $mode
		counted "$what"
		lab_down
	done
	what="$mode, 4 queues"
	lab_up --line --queues 4
	begin -m $mode
	tcp "$what, 8 streams" -c 10.77.0.2 -P 8
	tcp "$what, 8 streams back" -c fd77::2 -P 8 -R
	xd_stop f
	counted "$what"
	lab_down
done

# A stream of datagrams at a rate it can carry: not one is lost, not one comes out of order.
lab_up --line
begin
if iperf -c 10.77.0.2 -u -b 50M -l 1400; then
	is "UDP at 50 Mbit/s: none lost, none out of order" \
		"$(jq -r '[.end.sum.lost_packets, (.end.streams[0].udp.out_of_order // 0)] | @csv' "$TMP/iperf")" "0,0"
else
	fail "UDP at 50 Mbit/s: iperf3" "$(head -n 3 "$TMP/iperf")"
fi
xd_stop f
counted "UDP"
finish
