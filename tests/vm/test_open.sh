#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
# What opening does to a device and to the kernel's own traffic on it: the reset is waited for, a sender in
# zero-copy takes nothing from the kernel, a program in generic mode never meets a zero-copy socket, queues
# that nobody serves are named, and TX that moves is never kicked as if it stood still.
# shellcheck source=tests/vm/guest.sh
. "$(dirname "$0")/guest.sh"
# shellcheck source=tests/vm/expect.sh
. "$(dirname "$0")/expect.sh"

notices() { j "$1" '[.notices[].key] | join(" ")'; }
pings() { on "$HB" ping -q -c 20 -i 0.05 -W 2 10.9.0.1 | sed -n 's/.* \([0-9]*\) received.*/\1/p'; }

# The first frame leaves after the reset, so that none is lost; the reset itself is not told as an event.
opened() { # KIND
	local n=20 from
	from=$(wire_end "$DA")
	source_run s $n 60 79
	is "$1: opened and sent, silently" "$(outcome s tx)" "0 $(best_of "$1") $n $(bytes_of $n 60 79) 0 home"
	is "$1: nothing to notice, no kick for standing still" "$(j s '"\(.notices | length) \([.ports[].system_calls.tx_stuck_kicks] | add)"')" "0 0"
	wire_is_source "$1: on the wire from the first frame on" "$DA" "$from" $n 60 79
}

# The kernel receives on the queue whose frames a sender's fill ring lends to the NIC.
kernel_receives() { # KIND
	ip -n "$HA" addr add 10.9.0.1/24 dev "$DA"
	ip -n "$HB" addr add 10.9.0.2/24 dev "$DB"
	xd_up s "$HA" source "$DA" --rate 200 --dst-mac "${mac_of[$DB]}"
	is "$1, $(best_of "$1"): beside a sender the kernel's pings come back" "$(pings)" 20
	xd_stop s
	ended_well "$1: that sender" s
	is "$1: its mode" "$(j s .mode)" "$(best_of "$1")"
	ip -n "$HA" addr flush dev "$DA"
	ip -n "$HB" addr flush dev "$DB"
}

# A program of ours in generic mode: zero-copy is not obtained, also where none but a sender asks.
generic_in_place() { # KIND
	local n=20 from
	xd_up g "$HA" sink "$DA" --all=l2 -m generic -q 0
	from=$(wire_end "$DA")
	xd_start s "$HA" source "$DA" -q 1 -c $n --size 60-79 --rate 2k --dst-mac "${mac_of[$DB]}"
	xd_wait s 45
	ended_well "$1: a sender beside a generic program" s
	is "$1: it copies" "$(j s .mode)" copy
	is "$1: and says why not better" "$(j s '.attempts[0] | "\(.mode) \(.reason | test("generic"))"')" "zero-copy true"
	wire_is_source "$1: and sends" "$DA" "$from" $n 60 79
	refuses "$1: zero-copy by name is refused" 3 "$DA: an xdpath program .* in generic mode" \
		on "$HA" "${XDPATH[@]}" source "$DA" -q 1 -c 1 -m zero-copy
	xd_stop g
	ended_well "$1: the generic run" g
}

# igb cuts a packet in two where a frame is too small: refused, unless one wants to see it.
cut_in_two() { # KIND
	local n=50
	refuses "$1: zero-copy with 2048-byte frames" 3 "$DB: zero-copy of the driver igb would cut .* umem.frame_size=4096" \
		on "$HB" "${XDPATH[@]}" sink "$DB" --all=l2 -m zero-copy --set umem.frame_size=2048
	refuses "$1: zero-copy with a headroom that leaves less than 2048" 3 "umem.headroom=0" \
		on "$HB" "${XDPATH[@]}" sink "$DB" --all=l2 -m zero-copy --set umem.headroom=2048
	xd_up k "$HB" sink "$DB" --all=l2 -m zero-copy --set umem.frame_size=2048 --set open.quirks=0
	source_run s $n 1025 1074
	sleep 1
	xd_stop k
	is "$1: all of it was sent" "$(outcome s tx)" "0 zero-copy $n $(bytes_of $n 1025 1074) 0 home"
	# The quirk is dropped from the table once this says otherwise.
	is "$1: the fault is still there (open.quirks=0)" "$(sum_of k rx packets)" $((2 * n))
}

# More receive queues in use than served: named at the start, with its cure.
spare_queues() { # KIND
	queues "$HB" "$DB" 2 && carrier "$HB" "$DB"
	xd_up k "$HB" sink "$DB" --all=l2
	source_run s 480 60 299 --flows 96
	t "$1: 2 of 4 queues: what it costs is told" within 10 grep -q "$DB: [0-9]* packets arrived on queues that have no socket" "$TMP/k.err"
	xd_stop k
	num "$1: 2 of 4 queues: no more than some arrives" "$(sum_of k rx packets)" -lt 480
	is "$1: 2 of 4 queues: the rest went to the kernel" "$(j k '.ports[0] | .rx_packets + .program_packets.no_socket')" 480
	is "$1: 2 of 4 queues: the notice" "$(notices k)" queues-not-served
	t "$1: 2 of 4 queues: the line" grep -q "$DB: 4 receive queues .* 2 are served.*ethtool -L $DB combined" "$TMP/k.err"
	queues "$HB" "$DB" 4 && carrier "$HB" "$DB"
	xd_up k "$HB" sink "$DB" --all=l2
	xd_stop k
	ended_silent "$1: 4 of 4 queues" k
}

for kind in $(kinds); do
	case $kind in igb) n=2 ;; *) n=$(queues_for "$kind") ;; esac
	link_pair "$kind" "$n" || continue
	[ "$kind $(best_of "$kind")" != "igb zero-copy" ] || cut_in_two "$kind"
	opened "$kind"
	kernel_receives "$kind"
	[ "$(best_of "$kind")" != zero-copy ] || [ "$n" = 1 ] || generic_in_place "$kind"
	if [[ $kind == virtio ]]; then
		if [ "$n" -ge 4 ]; then spare_queues "$kind"; else skip "$kind: queues in reserve" "the machine gave it $n"; fi
	fi
	nics_down
done
finish
