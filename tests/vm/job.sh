#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
#
# In the guest, started by init: brings up loopback, loads drivers, names the NICs, then runs each test
# under its watchdog (or a shell), and puts everything back between tests. Output goes to $VM_OUT/log,
# "NAME PASSED FAILED SKIPPED SECONDS" to $VM_OUT/results; lab on the host adds up.
set -u
# shellcheck source=/dev/null
. /run/vm/env
cd "$VM_SRC" || exit 1

start() {
	local module dev name
	echo /bin/false >/proc/sys/kernel/modprobe # modules are loaded here, by name, or not at all
	while read -r module; do
		grep -qx "$module" /run/modules/early || /run/busybox insmod "/run/modules/$module.ko"
	done </run/modules/order
	ip link set lo up
	ulimit -l unlimited
	for name in $VM_MACS; do
		for dev in /sys/class/net/*; do
			if [ "$(cat "$dev/address")" = "${name#*=}" ]; then
				ip link set "${dev##*/}" name "${name%=*}"
				queues_of "${name%=*}" >"/run/queues.${name%=*}"
			fi
		done
	done
}

queues_of() { # NIC
	ethtool -l "$1" 2>/dev/null | sed -n '/^Current/,$s/^Combined:[[:space:]]*//p'
}

# Whatever the last test did to them.
reset() {
	local pid ns nic
	for pid in /proc/[0-9]*; do
		pid=${pid#/proc/}
		# Kernel threads have no executable.
		if [ "$pid" != 1 ] && [ "$pid" != $$ ] && readlink "/proc/$pid/exe" >/dev/null; then
			kill -KILL "$pid" 2>/dev/null
		fi
	done
	wait
	for ns in $(ip netns list | cut -d ' ' -f 1); do
		for nic in $VM_MACS; do
			ip -n "$ns" link set "${nic%=*}" netns 1 2>/dev/null
		done
		ip netns del "$ns"
	done
	for nic in $VM_MACS; do
		nic=${nic%=*}
		ip link set "$nic" down
		ip link show "$nic" | grep -q xdp && ip link set "$nic" xdp off && ip link set "$nic" xdpgeneric off
		ip link set "$nic" mtu 1500 promisc off
		ip addr flush dev "$nic"
		[ "$(queues_of "$nic")" = "$(cat "/run/queues.$nic")" ] || ethtool -L "$nic" combined "$(cat "/run/queues.$nic")"
	done
}

run_test() { # NAME SCRIPT
	local begin=$SECONDS from rc p='' f='' s='' log=$VM_OUT/$1.log
	from=$(stat -c %s "$VM_OUT/log")
	echo "== $1"
	dmesg -c >/dev/null
	timeout -k 5 "$VM_LIMIT" bash "$2" </dev/null 2>&1
	rc=$?
	tail -c "+$((from + 1))" "$VM_OUT/log" >"$log"
	read -r p f s < <(tail -n 40 "$log" |
		sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed, \([0-9]*\) skipped$/\1 \2 \3/p' | tail -n 1)
	case $rc in
	124 | 137) echo "FAIL not finished after $VM_LIMIT s: ended by the watchdog" ;;
	esac
	if [ -z "$s" ] || { [ "$rc" != 0 ] && [ "$f" = 0 ]; }; then
		f=$((${f:-0} + 1))
		echo "FAIL ended with status $rc${s:+ although it counted no failure}"
	fi
	dmesg | grep -E 'WARNING:|BUG:|Oops|Call Trace|stall' | head -n 5 | sed 's/^/     kernel: /'
	tail -c "+$((from + 1))" "$VM_OUT/log" >"$log"
	reset >/dev/null 2>&1
	echo "$1 ${p:-0} $f ${s:-0} $((SECONDS - begin))" >>"$VM_OUT/results"
}

if [ "$VM_JOB" = shell ]; then
	start
	echo "NICs: $VM_NICS   build: $B   ends with: exit, or Ctrl-A X"
	export PS1='vm:\w# '
	exec setsid bash -c 'exec bash --norc -i </dev/ttyS0 >/dev/ttyS0 2>&1'
fi
exec >>"$VM_OUT/log" 2>&1
start
while read -r name script <&3; do
	run_test "$name" "$script" 3<&-
done 3<"$VM_OUT/tests"
