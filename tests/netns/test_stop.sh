#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
# How a run ends, under load and idle, and who may be on a device beside it.
# shellcheck disable=SC2016,SC2119,SC2317 # awk programs; lab_up without options; functions called by name
# shellcheck source=tests/netns/lib.sh
. "$(dirname "$0")/lib.sh"

run_files() { find /run/xdpath -type f -name "*$(stat -L -c %i "/run/netns/$1")*" 2>/dev/null | sort; }
promiscuous() { ip -n "$HD" -d -j link show d0 | jq '.[0].promiscuity'; }
moving() { [ "$(stat_of "$HB" b0 rx packets)" -gt "$1" ]; }

nothing_left() { # WHAT
	is "$1: no program, no file, no promiscuity is left" \
		"$(xdp_prog_id "$HD" d0)$(xdp_prog_id "$HD" d1)$(run_files "$HD")$(promiscuous)" 0
}

lab_up --line
no_ipv6 "$HA" a0
no_ipv6 "$HB" b0

for sig in INT TERM; do
	for mode in copy generic; do
		xd_up s "$HA" source a0
		xd_up f "$HD" forward d0 d1 -m $mode
		is "promiscuous while it runs" "$(promiscuous)" 1
		sleep 0.5
		xd_stop f $sig
		xd_stop s
		ended_well "SIG$sig under full load, $mode" f
		num "SIG$sig under full load, $mode: packets it had carried" "$(sum_of f tx packets)" -gt 10000
		is "SIG$sig under full load, $mode: sent and dropped are what was received" \
			"$(($(sum_of f tx packets) + $(dropped f tx)))" "$(sum_of f rx packets)"
		ended_well "SIG$sig, the generator" s
		nothing_left "SIG$sig, $mode"
	done
done

xd_up f "$HD" forward d0 d1
sleep 0.3
xd_stop f
ended_well "SIGINT when idle" f
is "idle: nothing counted" "$(sum_of f rx packets) $(sum_of f tx packets) $(dropped f)" "0 0 0"

xd_up f "$HD" forward d0 d1 --duration 0.5
xd_wait f 5
ended_well "--duration" f
num "--duration 0.5: at least that long" "$(j f '.seconds * 1000 | floor')" -ge 500
num "--duration 0.5: not much longer" "$(j f '.seconds * 1000 | floor')" -lt 1500

xd_up k "$HD" sink d0 --all -c 1000
xd_up s "$HA" source a0 --rate 20k
xd_wait k 5
xd_stop s
ended_well "sink -c 1000" k
is "sink -c 1000: counted" "$(sum_of k rx packets)" 1000
nothing_left "-c"

# ---- two on a device ------------------------------------------------------------------------------

xd_up f "$HD" forward d0 d1
pid=${xd_pid[f]}
refuses "a second forward on the same queues names the first" 1 "d0.*queue 0.*pid $pid.*forward.*;" \
	on "$HD" "${XDPATH[@]}" forward d0 d1
refuses "a sink on one of them too" 1 "d1.*queue 0.*pid $pid.*;" on "$HD" "${XDPATH[@]}" sink d1 --all=l2
is "status names it" "$(on "$HD" "${XDPATH[@]}" status d0 --json | jq -r '.devices[0].queues_taken | map("\(.queue) \(.pid)") | join(",")')" "0 $pid"
xd_up s "$HA" source a0 --rate 20k
before=$(stat_of "$HB" b0 rx packets)
t "the first did not notice" within 3 moving "$before"
xd_stop s
xd_stop f
ended_well "the first" f
lab_down

lab_up --line --queues 2
no_ipv6 "$HA" a0
no_ipv6 "$HB" b0
xd_up k0 "$HD" sink d0 -q 0 --all
xd_up k1 "$HD" sink d0 -q 1 --all
id=$(xdp_prog_id "$HD" d0)
on "$HD" "${XDPATH[@]}" status d0 --json >"$TMP/status"
is "two on different queues: both are known" "$(jq -r '.devices[0].queues_taken | map("\(.queue) \(.pid)") | join(",")' "$TMP/status")" \
	"0 ${xd_pid[k0]},1 ${xd_pid[k1]}"
refuses "a queue of the two is taken" 1 "queue 1.*pid ${xd_pid[k1]}.*;" on "$HD" "${XDPATH[@]}" sink d0 --all -q 1
# The one that loaded the program dies: the other keeps it.
xd_stop k0 KILL
is "the program stays while one of the two lives" "$(xdp_prog_id "$HD" d0)" "$id"
xd_up s "$HA" source a0 --rate 20k --flows 64 -c 4000
xd_wait s 5
xd_stop k1
ended_well "the survivor" k1
num "the survivor received" "$(sum_of k1 rx packets)" -gt 0
is "the program goes with the last" "$(xdp_prog_id "$HD" d0)" ""
xd_up k0 "$HD" sink d0 -q 0 --all
xd_stop k0
is "the next run clears away what the dead one left" "$(run_files "$HD")" ""
finish
