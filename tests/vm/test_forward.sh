#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
# `xdpath forward` between two NICs of one kind, on one UMEM: every shape of frame, both ways, and what QEMU saw
# leave is what it saw come. Where both are in zero-copy the kernel's own copying functions are not called
# once. Killed and started again; a link that goes down and comes back.
# shellcheck disable=SC2317 # functions called by name
# shellcheck source=tests/vm/guest.sh
. "$(dirname "$0")/guest.sh"
# shellcheck source=tests/vm/expect.sh
. "$(dirname "$0")/expect.sh"

trace=/sys/kernel/tracing
# What copies in the kernel: a frame into the UMEM, a burst out of it into skbs.
copying=(__xsk_rcv __xsk_generic_xmit)

# Count the calls of the kernel's functions from now on.
count_calls() { # FUNCTION...
	local f
	[ ! -e $trace/events/kprobes ] || echo 0 >$trace/events/kprobes/enable
	: >$trace/kprobe_events
	for f in "$@"; do
		echo "p:$f $f" >>$trace/kprobe_events || return 1
	done
	echo 1 >$trace/events/kprobes/enable
}

calls() { # FUNCTION
	awk -v f="$1" '$1 == f { n = $2 } END { print n + 0 }' $trace/kprobe_profile
}

# Frames of every shape a NIC can put on a wire; each way, compared at the far end by frames.py.
shapes=(plain:60-1514/13 plain:1514 vlan:64-1518/97 qinq:70 qinq:1500 mpls:70 mpls:1500 broadcast:60 broadcast:1514
	multicast:60 multicast:1514 types:64 types:200 flows:60-1514/23)
ask=(--back --window 8 --wait 5)

carry() { # [SHAPE...]
	python3 tests/netns/frames.py "${ask[@]}" "$HA:$DA" "$HB:$DB" "$@"
}

run_files() { find /run/xdpath -type f -name "*$(stat -L -c %i "/run/netns/$HD")*" 2>/dev/null | sort; }
offloads() { on "$HD" ethtool -k "$1" | grep -E '^(rx-vlan-offload|large-receive-offload)' | tr '\n' ' '; }

shapes_pass() { # WHAT MODE [ARGS...]
	local what=$1 mode=$2 a b d0 d1 sent said
	shift 2
	xd_up f "$HD" forward "$D0" "$D1" "$@"
	a=$(wire_end "$DA") b=$(wire_end "$DB") d0=$(wire_end "$D0") d1=$(wire_end "$D1")
	count_calls "${copying[@]}" || fail "$what: the kernel counts calls"
	t "$what: frames of every shape, both ways" carry "${shapes[@]}"
	sent=$(sed -n 's/^\([0-9]*\) sent.*/\1/p' "$TMP/o")
	if [ "$mode" = zero-copy ]; then
		is "$what: frames that the kernel copied in, bursts it copied out" "$(calls __xsk_rcv) $(calls __xsk_generic_xmit)" "0 0"
	else
		is "$what: frames that the kernel copied in" "$(calls __xsk_rcv)" "$sent"
		num "$what: bursts it copied out" "$(calls __xsk_generic_xmit)" -gt 0
	fi
	said=$(sockets_say "$HD")
	is "$what: the kernel says of its sockets and their UMEM" "$said" "$(kernel_says "$mode")"
	wires_are "$what: sent on is what came, on the wires" same "$DA" "$a" "$D1" "$d1"
	wires_are "$what: and the other way" same "$DB" "$b" "$D0" "$d0"
	xd_stop f
	is "$what: received" "$(outcome f rx | cut -d ' ' -f 1-3,5-)" "0 $mode $sent 0 home"
	is "$what: sent" "$(outcome f tx | cut -d ' ' -f 1-3,5-)" "0 $mode $sent 0 home"
}

# Killed, started again at once, and then a link that goes and comes under traffic.
goes_on() { # KIND
	local before from
	before="$(offloads "$D0")$(offloads "$D1")"
	xd_up f "$HD" forward "$D0" "$D1"
	xd_stop f KILL 2>/dev/null # the shell tells of it
	xd_up f "$HD" forward "$D0" "$D1"
	t "$1: killed, started again at once: carries" carry plain:60 plain:1514
	from=$(wire_end "$D1")
	# Copying, this end resets nothing.
	xd_start s "$HA" source "$DA" -m generic --size 60 --rate 500 --dst-mac "${mac_of[$DB]}"
	t "$1: traffic flows" within 20 wire_reaches "$D1" $((from + 7600))
	ip -n "$HD" link set "$D0" down
	sleep 1.2
	ip -n "$HD" link set "$D0" up
	t "$1: the link is back" carrier "$HD" "$D0"
	from=$(wire_end "$D1")
	t "$1: traffic flows again" within 20 wire_reaches "$D1" $((from + 7600))
	xd_stop s
	is "$1: the sender saw nothing of it" "${xd_rc[s]} $(<"$TMP/s.err")" "0 "
	t "$1: after that every frame passes" carry plain:60-1514/97
	xd_stop f
	is "$1: status and mode" "${xd_rc[f]} $(j f .mode)" "0 $(best_of "$1")"
	all_home "$1" f
	is "$1: a line when the link goes, a line when it comes" "$(sed 's/;.*//' "$TMP/f.err" | tr '\n' ' ')" \
		"xdpath forward: $D0: set down xdpath forward: $D0: set up again "
	is "$1: nothing is left" "$(traces "$HD" "$D0") $(traces "$HD" "$D1") $(run_files)" "none 0 0 none 0 0 "
	is "$1: offloads are as before" "$(offloads "$D0")$(offloads "$D1")" "$before"
}

pairs_of() { tr ' ' '\n' <<<"$VM_NICS" | grep -c "^$1:"; }

for kind in $(kinds); do
	[ "$(pairs_of "$kind")" -ge 2 ] || { skip "$kind" "forward needs two pairs of it" && continue; }
	link_line "$kind" || continue
	modes=$(modes_of "$kind")
	[ -n "${LONG:-}" ] || modes=${modes%% *}
	for mode in $modes; do
		shapes_pass "$kind, $mode" "$mode" -m "$mode"
	done
	goes_on "$kind"
	nics_down
done
finish
