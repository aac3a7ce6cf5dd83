#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
# attach, detach, status: kept programs are found by those who come later and outlive them, a user's
# own program serves as well as ours, what another loader put in place is used, foreign programs are
# left alone, and two processes share an interface in any order of start, exit and crash.
# shellcheck disable=SC2119,SC2317 # lab_up without options; functions called by name
# shellcheck source=tests/netns/lib.sh
. "$(dirname "$0")/lib.sh"

steer=$B/bpf/xdpath_steer.bpf.o pass=$B/bpf/xdpath_pass.bpf.o
xd() { on "$HB" "${XDPATH[@]}" "$@"; }
# A value of the first program that `status` tells of.
program() { xd status b0 --json | jq -r ".devices[0].programs[0]$1"; }
programs() { xd status b0 --json | jq -r '.devices[0].programs | length'; }
verdict() { program ".steering.verdicts.$1.packets"; }
# N frames to b0, of 16 flows so that each queue has some.
send() { on "$HA" "${XDPATH[@]}" source a0 -c "$1" --rate 20k --flows 16 --dst-mac "$dst" --quiet; }
arrived() { # N: all that was sent is counted
	[ "$(program '.steering.verdicts | .xsk.packets + .no_socket.packets')" = "$1" ]
}
# What exactly is said is no concern of the test.
does() { # NAME CMD...
	local name=$1
	shift
	t "$name" xd "$@"
}

lab_up --queues 2
no_ipv6 "$HA" a0
no_ipv6 "$HB" b0
dst=$(mac "$HB" b0)

# ---- kept -----------------------------------------------------------------------------------------

kept() { # MODE: attached, used, its user killed, used again, detached
	does "$1: attach" attach b0 --mode "$1" --all=l2
	is "$1: form, mode, steering" "$(program '| [.form, .attach, .steering.mode, .own] | @csv')" \
		"\"kept\",\"$1\",\"l2\",false"
	refuses "$1: a second time" 1 'is attached already; .xdpath steer' on "$HB" "${XDPATH[@]}" attach b0
	refuses "$1: steering given beside it" 1 'sends everything to user space' \
		on "$HB" "${XDPATH[@]}" sink b0 --all
	xd_up s "$HB" sink b0
	send 200
	t "$1: 200 frames" within 3 arrived 200
	xd_stop s KILL 2>/dev/null
	is "$1: stays when its user is killed" "$(program .form) $(program .id)" "kept $(xdp_prog_id "$HB" b0)"
	send 100
	t "$1: then the kernel has its traffic" within 3 arrived 300
	is "$1: ... all of it" "$(verdict no_socket)" 100
	xd_up s "$HB" sink b0 -c 50
	send 50
	xd_wait s 10
	ended_well "$1: the next user" s
	is "$1: the next user's frames" "$(sum_of s rx packets)" 50
	does "$1: detach" detach b0
	is "$1: nothing is left" "$(programs)" 0
}
kept native
kept generic
does "again: it says so" detach b0
does "load, as xdp-loader says it" load b0
does "... and unload" unload b0
is "nothing is left" "$(programs)" 0

# Pins, on a bpffs of our own: `ip netns exec` hides the host's.
# shellcheck disable=SC2016 # the inner shell's words
pinned=$(on "$HB" unshare -m sh -c 'mount -t bpf bpf /sys/fs/bpf && "$@" attach b0 -p /sys/fs/bpf/p >&2 &&
	cd /sys/fs/bpf/p && echo *' sh "${XDPATH[@]}" 2>"$TMP/pinned")
t "pinned: program and maps, and that is said" grep -q 'pinned in /sys/fs/bpf/p' "$TMP/pinned"
is "pinned: what is there" "$(tr ' ' '\n' <<<"$pinned" | grep -cx 'xdpath_steer\|xdpath_meta\|xsks_map')" 3
does "pinned: detach" detach b0
is "pinned: nothing is left" "$(programs)" 0

# Where the driver has no native XDP, the reason is said.
on "$HB" "${XDPATH[@]}" attach lo >"$TMP/lo" 2>&1
t "generic for want of native, and why" grep -q 'not native: .*driver' "$TMP/lo"
does "lo as before" detach lo
refuses "native asked for" 3 'does not support XDP in native' on "$HB" "${XDPATH[@]}" attach lo --mode native

# ---- a user's own program -------------------------------------------------------------------------

own() { # FILE MAPS PROGRAMS
	cat <<-'C'
		#include <linux/bpf.h>
		#include <bpf/bpf_helpers.h>
		#define SOCKETS(n) struct { __uint(type, BPF_MAP_TYPE_XSKMAP); __uint(max_entries, 2); \
			__type(key, __u32); __type(value, __u32); } n SEC(".maps")
		#define PROGRAM(n) SEC("xdp") int n(struct xdp_md *c) \
			{ return bpf_redirect_map(&where_to, c->rx_queue_index, XDP_PASS); }
		char LICENSE[] SEC("license") = "GPL";
	C
	printf '%s\n' "$@"
}
build_own() { # NAME LINES...
	own "${@:2}" >"$TMP/$1.c"
	clang -g -O2 -target bpf -I"/usr/include/$(gcc -print-multiarch)" -c "$TMP/$1.c" -o "$TMP/$1.o"
}
if command -v clang >/dev/null; then
	t "build a program" build_own one 'SOCKETS(where_to);' 'PROGRAM(mine)'
	build_own two_maps 'SOCKETS(where_to);' 'SOCKETS(or_there);' 'PROGRAM(mine)'
	build_own two_progs 'SOCKETS(where_to);' 'PROGRAM(mine)' 'PROGRAM(other)'
	does "own: attach" attach b0 "$TMP/one.o"
	is "own: status" "$(program '| [.name, .form, .own, .xdpath, .steering] | @csv')" '"mine","kept",true,true,'
	refuses "own: it steers by itself" 1 'steers by itself' on "$HB" "${XDPATH[@]}" sink b0 --all
	xd_up s "$HB" sink b0 -c 100
	send 100
	xd_wait s 10
	ended_well "own: its user" s
	is "own: frames" "$(sum_of s rx packets)" 100
	does "own: detach" detach b0
	is "own: nothing is left" "$(programs)" 0
	does "own: one of two by name" attach b0 "$TMP/two_progs.o" -n other
	is "own: that one" "$(program .name)" other
	does "own: detach that too" detach b0
	refuses "two XSKMAPs" 2 'has 2 XSKMAPs' on "$HB" "${XDPATH[@]}" attach b0 "$TMP/two_maps.o"
	refuses "two programs" 2 'mine \(xdp\), other' on "$HB" "${XDPATH[@]}" attach b0 "$TMP/two_progs.o"
	refuses "no program of that name" 2 'no XDP program "none"' \
		on "$HB" "${XDPATH[@]}" attach b0 "$TMP/one.o" -n none
	refuses "rules for it" 2 'steers by itself' on "$HB" "${XDPATH[@]}" attach b0 "$TMP/one.o" --all
else
	skip "a user's own program" "no clang"
fi
refuses "no XSKMAP" 2 'has no XSKMAP' on "$HB" "${XDPATH[@]}" attach b0 "$pass"
refuses "a file of another kind" 2 'is no BPF object' on "$HB" "${XDPATH[@]}" attach b0 "$0"
refuses "no such file" 2 'no such file' on "$HB" "${XDPATH[@]}" attach b0 "$TMP/none.o"
refuses "no such device" 1 'nodev: no such device' on "$HB" "${XDPATH[@]}" attach nodev
refuses "order without --beside" 2 'add --beside' on "$HB" "${XDPATH[@]}" attach b0 -P 10
refuses "an unknown action" 2 '"pass,frob" is not understood' on "$HB" "${XDPATH[@]}" attach b0 --beside -A pass,frob
refuses "a pin that is no bpffs" 2 'bpffs' on "$HB" "${XDPATH[@]}" attach b0 -p "$TMP/pin"
refuses "--beside where extensions or bpffs are not to be had" 3 'without --beside' \
	on "$HB" "${XDPATH[@]}" attach b0 --beside
is "nothing was changed" "$(programs) $(find "$TMP/pin" 2>/dev/null)" "0 "
mkdir "$TMP/mine"
refuses "a folder of one's own that is no bpffs" 2 'bpffs' on "$HB" "${XDPATH[@]}" attach b0 -p "$TMP/mine"
t "... it stays" test -d "$TMP/mine"
if command -v setpriv >/dev/null; then
	refuses "not root" 1 'root' on "$HB" setpriv --reuid 65534 --clear-groups "${XDPATH[@]}" attach b0
fi

# ---- what others attached -------------------------------------------------------------------------

# The installed object, loaded by another loader, is used.
used() { # NAME
	xd_up s "$HB" sink b0 --all -c 100
	send 100
	xd_wait s 10
	ended_well "$1: its user" s
	is "$1: frames" "$(sum_of s rx packets)" 100
	is "$1: kept" "$(program '| [.name, .form, .steering.mode] | @csv')" '"xdpath_steer","kept","all"'
	does "$1: detach" detach b0
	is "$1: nothing is left" "$(programs)" 0
}
if ! command -v xdp-loader >/dev/null; then
	skip "xdp-loader load" "no xdp-loader (package xdp-tools)"
elif on "$HB" xdp-loader load b0 "$steer" >"$TMP/loader" 2>&1; then
	used "xdp-loader load"
else
	fail "xdp-loader load" "$(cat "$TMP/loader")"
fi
t "ip link set xdp" on "$HB" ip link set b0 xdpgeneric obj "$steer" sec xdp.frags
used "ip link set xdp"

t "a foreign program" on "$HB" ip link set b0 xdp obj "$pass" sec xdp.frags
refuses "foreign: attach" 1 'xdpath_pass .* is in place; ip link set dev b0 xdpdrv off' \
	on "$HB" "${XDPATH[@]}" attach b0
refuses "foreign: detach" 1 'is not xdpath.s; .*--force' on "$HB" "${XDPATH[@]}" detach b0
refuses "foreign: detach by id" 1 'is not xdpath.s' on "$HB" "${XDPATH[@]}" detach b0 -i "$(xdp_prog_id "$HB" b0)"
refuses "no such id" 2 'no program with id 4000000000' on "$HB" "${XDPATH[@]}" detach b0 -i 4000000000
is "foreign: how to remove it" "$(program .remove)" "ip link set dev b0 xdpdrv off"
does "foreign: --force" detach b0 --force
is "foreign: nothing is left" "$(programs)" 0

# ---- what runs leave ------------------------------------------------------------------------------

offloads() { on "$HB" ethtool -k b0 | grep -E '^(rx-vlan-offload|large-receive-offload)'; }
run_files() { find /run/xdpath -type f -name "*$(stat -L -c %i "/run/netns/$HB")*" 2>/dev/null; }
on "$HB" ethtool -K b0 rxvlan on
before=$(offloads)
xd_up f "$HB" forward b0
xd_stop f KILL 2>/dev/null
t "a crash leaves something" test -n "$(run_files)"
t "... and a setting changed" test "$(offloads)" != "$before"
does "a crashed run: detach" detach b0
is "... puts back what it changed" "$(offloads)" "$before"
is "... and removes its files" "$(run_files)" ""
own_name=${XDPATH[-1]}
ln -s "$own_name" "$TMP/"$'\033[31mEVIL'
XDPATH[-1]=$TMP/$'\033[31mEVIL'
xd_up s "$HB" sink b0 --all
XDPATH[-1]=$own_name
is "a run: its form and holder" "$(program '| [.form, .holders[0].pid] | @csv')" "\"run\",${xd_pid[s]}"
# A process calls itself what it likes: nothing of that reaches the terminal.
on "$HB" "${XDPATH[@]}" status b0 >"$TMP/said"
is "a holder's name: no escape, twice told" "$(grep -c $'\033' "$TMP/said") $(grep -o '?.31mEVIL' "$TMP/said" | wc -l)" "0 2"
does "a run: detached under its feet" detach b0
xd_wait s 5
is "... it ends, and says so" "${xd_rc[s]} $(grep -c 'detached by someone else' "$TMP/s.err")" "1 1"
is "... nothing is left" "$(programs)" 0

# ---- two processes --------------------------------------------------------------------------------

# Both get their queue's frames, the one that stays goes on getting its own, whoever started first.
share() { # FIRST-TO-START FIRST-TO-END HOW ARGS
	local start=$1 first=$2 other=$((1 - $2)) how=$3 id total
	shift 3
	xd_up "$start" "$HB" sink b0 -q "$start" "$@"
	xd_up $((1 - start)) "$HB" sink b0 -q $((1 - start))
	id=$(program .id)
	send 400
	within 3 arrived 400 || fail "$what: 400 frames" "$(xd status b0)"
	is "$what: all to sockets" "$(verdict xsk)" 400
	xd_stop "$first" "$how" 2>/dev/null
	within 3 one_queue || fail "$what: its slot is empty" "$(xd status b0)"
	send 400
	within 3 arrived 800 || fail "$what: 400 more" "$(xd status b0)"
	num "$what: the other goes on" "$(verdict xsk)" -gt 400
	is "$what: by the same program" "$(program .id)" "$id"
	total=$(verdict xsk)
	xd_stop "$other"
	ended_well "$what: the other" "$other"
	if [ "$how" != KILL ]; then # who still tells what it had
		is "$what: each frame once" $(($(sum_of 0 rx packets) + $(sum_of 1 rx packets))) "$total"
	fi
}
one_queue() { [ "$(xd status b0 --json | jq '.devices[0].queues_taken | length')" = 1 ]; }
gone() { [ "$(programs)" = 0 ]; }
for order in '0 0 INT' '0 1 INT' '0 0 KILL' '1 0 KILL'; do
	what="run, start end how: $order"
	# shellcheck disable=SC2086 # words
	share $order --all=l2
	t "$what: gone with the last" within 3 gone
done
for order in '1 1 INT' '0 1 KILL'; do
	what="kept, start end how: $order"
	xd attach b0 --all=l2 >/dev/null
	# shellcheck disable=SC2086
	share $order
	is "$what: stays" "$(program .form)" kept
	xd detach b0 >/dev/null
done
lab_down
finish
