#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
# Beside other XDP programs, in libxdp's dispatcher: ours alone, ours after another, the order, runs that
# take themselves out again, and removal that leaves the others.
# shellcheck disable=SC2004,SC2034,SC2317 # xd_pid is of lib.sh; functions called by name
# shellcheck source=tests/vm/guest.sh
. "$(dirname "$0")/guest.sh"

# bpffs is not to be seen under `ip netns exec`: x0 is in the root namespace, its peer in another.
# x0 is its own and not a NIC of the machine: a reset for each change of the dispatcher would take minutes.
HA=beside-a DB=x0 TX=x1
pass=$B/bpf/xdpath_pass.bpf.o steer=$B/bpf/xdpath_steer.bpf.o
if ! ip link add $DB numrxqueues 1 numtxqueues 1 type veth peer name $TX numrxqueues 1 numtxqueues 1; then
	skip "beside" "no veth"
	finish
fi
ip netns add $HA
ip link set $TX netns $HA
[ ! -d /proc/sys/net/ipv6 ] || echo 1 >/proc/sys/net/ipv6/conf/$DB/disable_ipv6
no_ipv6 $HA $TX
ip link set $DB up
ip -n $HA link set $TX up
dst=$(cat /sys/class/net/$DB/address)

xd() { "${XDPATH[@]}" "$@"; }
status() { xd status $DB --json | jq -r ".devices[0]$1"; }
programs() { status '.programs | map("\(.name) \(.form // "-")") | sort | join(", ")'; }
ours() { status ".programs[] | select(.xdpath)$1"; }
verdict() { ours ".steering.verdicts.$1.packets"; }
send() { on $HA "${XDPATH[@]}" source $TX -c "$1" --rate 5k --dst-mac "$dst" --quiet; }
# Like xd_up, in the root namespace.
up() { # TAG ARGS...
	local tag=$1
	shift
	env --default-signal=INT "${XDPATH[@]}" "$@" --json --quiet >"$TMP/$tag.out" 2>"$TMP/$tag.err" </dev/null &
	xd_pid[$tag]=$!
	xd_ready "$tag" || fail "xdpath $* starts" "$(cat "$TMP/$tag.err")"
}
takes() { # WHAT ARGS...: a sink that takes 100 and ends
	local what=$1
	shift
	up s sink $DB -c 100 "$@"
	send 100
	xd_wait s 20
	ended_well "$what" s
	is "$what: 100 frames" "$(sum_of s rx packets)" 100
}
nobody() { [ "$(programs)" = "" ]; } # called by name

# ---- kept -----------------------------------------------------------------------------------------

t "alone in a dispatcher" xd attach $DB --beside --all=l2
is "form" "$(programs)" "xdp_dispatcher -, xdpath_steer beside"
takes "its user"
up s sink $DB
xd_stop s KILL 2>/dev/null
send 20
is "it stays when its user is killed, and the kernel has its traffic" \
	"$(ours .form) $(verdict no_socket)" "beside 20"
t "detach" xd detach $DB
is "the dispatcher goes with it" "$(programs)" ""

t "in generic mode" xd attach $DB --beside --mode generic
is "its mode" "$(ours .attach)" generic
t "detach that too" xd detach $DB
is "nothing is left of it" "$(programs)" ""

# ---- after another --------------------------------------------------------------------------------

t "another program, by xdp-loader" xdp-loader load -m native $DB "$pass"
xd attach $DB --all=l2 >"$TMP/told" 2>&1
t "a dispatcher is joined without --beside, and that is said" grep -q 'beside others, as' "$TMP/told"
is "both are there" "$(programs)" "xdp_dispatcher -, xdpath_pass -, xdpath_steer beside"
takes "after another"
t "detach ours" xd detach $DB
is "the other is left" "$(programs)" "xdp_dispatcher -, xdpath_pass -"
refuses "detach it too" 1 "is not xdpath's; .*--force" "${XDPATH[@]}" detach $DB
t "order and chaining are given" xd attach $DB -P 7 -A drop,tx
is "as xdp-loader sees it" "$(xdp-loader status $DB | awk '/xdpath_steer/ {print $2, $NF}')" "7 XDP_DROP,XDP_TX"
t "everything, by force" xd detach $DB --force
is "then nothing is left" "$(programs)" ""

t "ours, by xdp-loader" xdp-loader load -m native $DB "$steer"
takes "ours, by xdp-loader" --all
t "detach ours" xd detach $DB
is "nothing is left of that" "$(programs)" ""

# ---- runs -----------------------------------------------------------------------------------------

takes "a run beside nobody" --beside --all=l2
is "it takes itself out" "$(programs)" ""
t "another program again" xdp-loader load -m native $DB "$pass"
takes "a run beside another" --all=l2
is "... takes itself out" "$(programs)" "xdp_dispatcher -, xdpath_pass -"
up k sink $DB --all=l2
xd_stop k KILL 2>/dev/null
is "killed, it is left" "$(programs)" "xdp_dispatcher -, xdpath_pass -, xdpath_steer beside"
takes "the next run uses that"
is "... and takes it out" "$(programs)" "xdp_dispatcher -, xdpath_pass -"
up k sink $DB --all=l2
xd_stop k KILL 2>/dev/null
t "detach what is left" xd detach $DB
is "... it goes" "$(programs)" "xdp_dispatcher -, xdpath_pass -"
is "... and its lock" "$(find /run/xdpath -type f 2>/dev/null)" ""
refuses "the other mode" 1 'dispatcher .* native' "${XDPATH[@]}" attach $DB --mode generic
xdp-loader unload $DB --all
within 5 nobody

t "replaced in place, nothing passes by" "$B/tests/unit/attach_test"
is "... in a dispatcher too" "$(grep -c 'beside: .* counted' "$TMP/o")" 1
ip netns del $HA
finish
