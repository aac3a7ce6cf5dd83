#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
# kill -9 of `xdpath forward` under load, started again at once, many times: it works each time, the
# kernel has its traffic in between, and nothing is left of any of the dead.
# shellcheck disable=SC2016,SC2119,SC2317 # awk programs; lab_up without options; functions called by name
# shellcheck source=tests/netns/lib.sh
. "$(dirname "$0")/lib.sh"

loops=$([ -n "${LONG:-}" ] && echo 200 || echo 25)
load=20000 # packets/s offered
least=10000

# Counters without starting a process: through a sleeper on the host, whose /proc shows its namespace.
declare -A at=()
watch_host() { # HOST
	ip netns exec "$1" sleep 3600 &
	at[$1]=/proc/$!/net
	within 2 in_namespace "$1" $!
}
in_namespace() { [ "$(stat -L -c %i "/proc/$2/ns/net")" = "$(stat -L -c %i "/run/netns/$1")" ]; }
unwatch() {
	local host pid
	for host in "${!at[@]}"; do
		pid=${at[$host]//[!0-9]/}
		kill "$pid"
		wait "$pid" 2>/dev/null
	done
	at=()
}
b_received() { # to n: what b0 received
	local name packets
	while read -r name _ packets _; do
		[ "$name" != b0: ] || n=$packets
	done <"${at[$HB]}/dev"
}
to_kernel() { # to n: IP packets to d0's MAC
	local a
	while read -r -a a; do
		[ "${a[0]}" != Ip: ] || n=${a[3]}
	done <"${at[$HD]}/snmp"
}
more_than() { # COUNTER COUNT
	local n
	"$1"
	[ "$n" -gt "$2" ]
}
programs() { ip -n "$HD" -j link show | jq -r '[.[] | select(.xdp) | "\(.ifname) \(.xdp.prog.id // 0)"] | join(", ")'; }
no_programs() { [ -z "$(programs)" ]; }
run_files() { find /run/xdpath -type f -name "*$(stat -L -c %i "/run/netns/$HD")*" 2>/dev/null | sort; }
offloads() { on "$HD" ethtool -k d0 | grep -E '^(rx-vlan-offload|large-receive-offload)'; }
promiscuous() { ip -n "$HD" -d -j link show d0 | jq '.[0].promiscuity'; }

# Packets/s that arrive at b0, over 0.1 s.
rate() {
	local n before t
	b_received
	before=$n t=${EPOCHREALTIME/./}
	sleep 0.1
	b_received
	echo $(((n - before) * 1000000 / (${EPOCHREALTIME/./} - t)))
}
# The machine may be busy with something else at one moment, not for seconds.
loaded() {
	r=$(rate)
	[ "$r" -ge "$least" ]
}

# One life and death; says what was wrong, or nothing.
round() { # MODE
	local n r=0
	b_received
	xd_start f "$HD" forward d0 d1 -m "$1"
	if ! xd_ready f; then
		echo "did not start: $(head -n 2 "$TMP/f.err")"
	elif ! within 3 more_than b_received "$n"; then
		echo "started, but carries nothing"
	elif ! within 3 loaded; then
		echo "carries only $r packets/s"
	fi
	xd_stop f KILL
	to_kernel
	within 3 no_programs || echo "XDP program $(programs) is left"
	within 3 more_than to_kernel "$n" || echo "the kernel did not get its traffic"
}

for mode in copy generic; do
	lab_up --line
	no_ipv6 "$HA" a0
	no_ipv6 "$HB" b0
	watch_host "$HB"
	watch_host "$HD"
	# To d0's own MAC: the forwarder carries it on all the same, and without one the kernel takes it.
	xd_up s "$HA" source a0 --rate $load --dst-mac "$(mac "$HD" d0)"
	fds=("/proc/${xd_pid[s]}/fd/"*)
	before="$(offloads) $(promiscuous)"
	bad=()
	r=0
	for ((i = 1; i <= loops; i++)); do
		round $mode >"$TMP/round" 2>&1
		# The shell tells of each child that was killed: that is what we are here for.
		text=$(grep -v ' Killed  ' "$TMP/round" | head -n 3 | tr '\n' ' ')
		[ -z "$text" ] || bad+=("round $i: $text")
	done
	is "$mode: killed and started again $loops times" "${#bad[@]} ${bad[*]:0:3}" "0 "
	xd_up f "$HD" forward d0 d1 -m $mode
	t "$mode: $least packets/s after that" within 3 loaded
	xd_stop f
	ended_well "$mode: the last run" f
	is "$mode: the mode obtained" "$(j f .mode)" $mode
	is "$mode: no program is left" "$(programs)" ""
	is "$mode: no file under /run/xdpath is left" "$(run_files)" ""
	is "$mode: the device is as before" "$(offloads) $(promiscuous)" "$before"
	after=("/proc/${xd_pid[s]}/fd/"*)
	is "$mode: the generator saw nothing of it" "${#after[@]}" "${#fds[@]}"
	unwatch
	xd_stop s
	ended_well "$mode: the generator" s
	lab_down
done
finish
