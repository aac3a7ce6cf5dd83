#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
# Frames of every shape through `forward`, compared byte for byte and in order (frames.py); what does
# not fit, what a blocked direction and a slow reader lose is counted, to the frame.
# shellcheck disable=SC2119,SC2317 # lab_up without options; functions called by name
# shellcheck source=tests/netns/lib.sh
. "$(dirname "$0")/lib.sh"

# The system's own: a version manager's python3 takes half a second to start.
FRAMES=("$(PATH=/usr/bin:$PATH command -v python3)" -SE tests/netns/frames.py)

# Collapsing pages into huge ones takes longer than all else of a start.
lean=(--set umem.hugepages=0)
up() { xd_up "$@" "${lean[@]}"; }
play() { # COUNT ARGS: a source to its end
	xd_start s "$HA" source a0 "${lean[@]}" -c "$@"
	xd_wait s 20
	sleep 0.1
}

line() { # OPTIONS of xdpath-lab up
	lab_up --line "$@"
	no_ipv6 "$HA" a0
	no_ipv6 "$HB" b0
	on "$HA" ethtool -K a0 gro off
	on "$HB" ethtool -K b0 gro off
}

says() { # PATTERN CMD...
	local pattern=$1
	shift
	"$@" 2>&1 | tee "$TMP/says" | grep -q -e "$pattern" || { cat "$TMP/says" && return 1; }
}

mtu_all() { # MTU: of the whole line
	ip -n "$HA" link set a0 mtu "$1"
	ip -n "$HB" link set b0 mtu "$1"
	ip -n "$HD" link set d0 mtu "$1"
	ip -n "$HD" link set d1 mtu "$1"
}

# Frames from a to b (with --back the other way too); how many were sent and came: $sent, $came.
frames() { # NAME ARGS of frames.py without the ends
	local name=$1
	shift
	t "$name: each frame as it was sent, in order" "${FRAMES[@]}" "$HA:a0" "$HB:b0" "$@"
	read -r sent came longer < <(tail -n 1 "$TMP/o" | tr -dc '0-9 ')
}

drop() { # TAG PORT REASON
	j "$1" ".ports[$2].drops.$3"
}

# Every packet that a port received was sent on, or dropped by a reason of ours. What is handed to the
# kernel and dropped by the device stands in both tx_packets and tx_device.
balanced() { # NAME TAG
	local i last
	last=$(j "$2" '.ports | length - 1')
	for ((i = 0; i <= last; i++)); do
		is "$1: what port $i received was sent on or counted" "$(j "$2" ".ports[$i].rx_packets")" \
			"$(j "$2" ".ports[$last - $i] | .tx_packets + .drops.tx_stall + .drops.tx_too_big + .drops.tx_too_short + .drops.tx_invalid")"
	done
	is "$1: no wrong move" "$(j "$2" '[.frames.wrong_moves, .ports[].descriptors_bad, .ports[].completions_bad] | add')" 0
}

# A forward over which all went well.
lossless() { # NAME FRAMES
	xd_stop f
	ended_well "$1" f
	balanced "$1" f
	is "$1: received, sent, dropped" "$(sum_of f rx packets) $(sum_of f tx packets) $(dropped f)" "$2 $2 0"
}

[ -x "${FRAMES[0]}" ] || { skip "all" "no python3" && finish; }

# ---- all shapes -----------------------------------------------------------------------------------

for mtu in 1500 9000; do
	line --mtu $mtu
	top=$((mtu + 14))
	shapes="plain:14-200,$((top - 4))-$top vlan:20-80,1000,$top-$((top + 4)) qinq:22-80,$((top - 4))-$top
		mpls:24-80,$((top - 4))-$top broadcast:14-64,$top multicast:14-64,$top types:14,17,60,$top"
	if [ $mtu = 1500 ]; then
		shapes+=" plain:201-1510/7"
	else
		# around one and two frames of the UMEM as they are received (3840) and as a page (4096)
		shapes+=" plain:207-9000/41,1500-1520,3836-3844,4092-4100,7676-7684,8188-8196 vlan:3836-3848,7676-7688"
	fi
	read -ra many < <(tr -s '\n\t' '  ' <<<"$shapes")
	for mode in copy generic; do
		what="$mode, MTU $mtu"
		up f "$HD" forward d0 d1 -m $mode
		frames "$what" --back "${many[@]}"
		num "$what: frames sent" "$sent" -gt 1000
		lossless "$what" "$sent"
		is "$what: the mode obtained" "$(j f .mode)" $mode
	done
	if [ $mtu = 1500 ]; then
		# Less than an Ethernet header cannot be sent: not by a packet socket, and AF_XDP drops it too.
		t "13 bytes: the kernel refuses to send them" \
			says 'frame 0: .*Invalid argument' "${FRAMES[@]}" "$HA:a0" "$HB:b0" plain:13
		what="one device"
		up f "$HD" forward d0
		t "$what: each frame comes back as it was sent" "${FRAMES[@]}" "$HA:a0" "$HA:a0" "${many[@]}"
		lossless "$what" "$(tail -n 1 "$TMP/o" | tr -dc '0-9 ' | cut -d' ' -f1)"
	fi
	lab_down
done

for mode in copy generic; do
	what="$mode, 4 queues, 32 flows"
	line --queues 4 --mtu 9000
	up f "$HD" forward d0 d1 -m $mode --set ring.rx=512 --set ring.tx=512 --set ring.fill=512
	frames "$what" --back --window 64 --repeat 2 flows:42-1514/3,1515-9014/60
	[ $mode = generic ] || num "$what: queues used" \
		"$(on "$HD" ethtool -S d0 | grep -c 'rx_queue_[0-9]_xdp_packets: [1-9]')" -gt 1
	lossless "$what" "$sent"
	lab_down
done

# ---- the fragment limit ---------------------------------------------------------------------------

# A packet has 18 fragments at most: 17 of an skb, and its head. 18 frames of 4096 bytes, 3840 of them
# used, hold the longest packet that veth takes, 65535 + 14; 18 of 2048 bytes, 1792 used, hold 32256.
line --mtu 65535
for mode in copy generic; do
	what="$mode, frames up to 65549 bytes"
	mtu_all 65535
	up f "$HD" forward d0 d1 -m $mode
	frames "$what" --back --window 4 plain:65535-65549,9000-65549/1111,65279-65281 vlan:65549
	lossless "$what" "$sent"

	what="$mode, 2048-byte frames"
	mtu_all 32242
	up f "$HD" forward d0 d1 -m $mode --set umem.frame_size=2048
	frames "$what" --back --window 4 \
		plain:14-80/3,1786-1796,2044-2052,3580-3590,4094-4098,5372-5380,9014-32256/501,30463-30466,32250-32256 vlan:1790-1796
	lossless "$what" "$sent"

	# One that needs a 19th is dropped and counted, those behind it pass.
	what="$mode, 19 fragments"
	up f "$HD" forward d0 d1 -m $mode --set umem.frame_size=2048
	mtu_all 36000
	t "$what: the new MTU was told" within 3 grep -q "d1: MTU 36000 now, was 32242" "$TMP/f.err"
	frames "$what" --back --window 4 --mtu 32242 plain:32255-32258 plain:60-70 plain:35000 plain:60,9014,32256
	xd_stop f
	balanced "$what" f
	all_home "$what" f
	is "$what: counted" "$(j f '[.ports[].drops.rx_refused] | @csv') $((came + longer))" "3,3 $sent"
	mtu_all 32243
	refuses "$what: told at the start" 1 "d0: MTU 32243 .*19 fragments.*takes 18; set the MTU to 32242 or less" \
		on "$HD" "${XDPATH[@]}" forward d0 d1 -m $mode --set umem.frame_size=2048
done
lab_down

# ---- an egress that takes less ----------------------------------------------------------------------

line --mtu 9000
ip -n "$HD" link set d1 mtu 1500
ip -n "$HB" link set b0 mtu 1500
for mode in copy generic; do
	what="$mode, egress MTU 1500, ingress 9000"
	up f "$HD" forward d0 d1 -m $mode
	frames "$what" --mtu 1500 plain:1400-1600/3,1512-1516,60,9014,64 vlan:1510-1530,4000,100 mpls:1510-1520,60 \
		qinq:1510-1518,1523-1530,60
	big=$longer
	# Two tags may be 8 bytes more by us; veth itself takes 4, and says no.
	d=$(stat_of "$HD" d1 tx dropped)
	for size in 1519 1520 1521 1522; do
		t "$what: $size bytes with two tags: dropped by veth" \
			says '1 sent, 0 came' "${FRAMES[@]}" --wait 0.2 "$HA:a0" "$HB:b0" qinq:$size
	done
	xd_stop f
	ended_well "$what" f
	balanced "$what" f
	num "$what: some were longer" "$big" -gt 30
	is "$what: exactly those are counted" "$(drop f 1 tx_too_big)" "$big"
	is "$what: what veth dropped is counted, by us and by it" \
		"$(drop f 1 tx_device) $(($(stat_of "$HD" d1 tx dropped) - d)) $(dropped f)" "4 4 $((big + 4))"
done
lab_down

# ---- one direction blocked --------------------------------------------------------------------------

# d1's socket may have so many bytes under way as net.core.wmem_default says: frames that end up in a
# queueing discipline that hardly moves are never completed, the TX ring stays full.
block() {
	ip -n "$HB" link add name hole0 type veth peer name hole1 &&
		ip -n "$HB" link set hole0 up &&
		ip -n "$HB" link set hole1 up &&
		on "$HB" tc qdisc add dev hole0 root tbf rate 8bit burst 10k limit 100m &&
		on "$HB" tc qdisc add dev b0 clsact &&
		on "$HB" tc filter add dev b0 ingress protocol all u32 match u32 0 0 action mirred egress redirect dev hole0
} >"$TMP/block" 2>&1

unblock() {
	on "$HB" tc qdisc del dev b0 clsact
	ip -n "$HB" link del hole0
}

blocked() { # WHAT STALLED-AT-LEAST
	xd_stop f
	ended_well "$1" f
	balanced "$1" f
	num "$1: dropped as tx_stall" "$(drop f 1 tx_stall)" -ge "$2"
	is "$1: nothing else was dropped inside, nothing is left in a ring" \
		"$(j f '[.ports[].drops | .rx_refused, .tx_invalid, .tx_too_big, .tx_unsent] | add') $(j f .frames.tx)" "0 0"
	is "$1: received, and dropped by the kernel, is what d0 received" \
		"$(j f '.ports[0] | .rx_packets + .drops.rx_ring_full + .drops.rx_no_frame')" \
		"$(($(stat_of "$HD" d0 rx packets) - was_d0))"
	is "$1: sent, and not dropped by d1, is what b0 received" \
		"$(($(j f '.ports[1].tx_packets') - $(drop f 1 tx_device)))" "$(($(stat_of "$HB" b0 rx packets) - was_b0))"
}

arrived() { # PACKETS
	[ "$(stat_of "$HB" b0 rx packets)" -ge "$1" ]
}

was() {
	was_d0=$(stat_of "$HD" d0 rx packets) was_b0=$(stat_of "$HB" b0 rx packets)
}

egress_blocked() { # MODE
	local what="$1, egress blocked" back
	was
	block || { skip "$what" "this kernel has not all of tbf, clsact, u32, mirred: $(tail -n 1 "$TMP/block")" && return; }
	up f "$HD" forward d0 d1 -m "$1" --set ring.tx=256
	up s "$HA" source a0 --rate 20k -c 16000
	t "$what: the other direction flows, all of it, in order" "${FRAMES[@]}" "$HB:b0" "$HA:a0" plain:14-1514/2
	back=$(tail -n 1 "$TMP/o" | tr -dc '0-9 ' | cut -d' ' -f1)
	xd_wait s 10
	unblock
	frames "$what, then free" plain:14-1514/10
	blocked "$what" 5000
	is "$what: the other direction" \
		"$(j f '.ports[1].rx_packets') $(j f '.ports[0].tx_packets') $(j f '[.ports[0].drops[]] | add')" "$back $back 0"
}

egress_down() { # MODE
	local what="$1, egress down"
	was
	up f "$HD" forward d0 d1 -m "$1" --set ring.tx=256
	ip -n "$HD" link set d1 down
	t "$what: told" within 5 grep -q "d1: set down" "$TMP/f.err"
	play 6000 --rate 20k
	ip -n "$HD" link set d1 up
	# What waited in the TX ring comes first.
	t "$what, then up: what waited was sent" within 5 arrived $((was_b0 + 230))
	frames "$what, then up" --back plain:14-1514/10
	: >"$TMP/f.err"
	blocked "$what" 5000
	num "$what: a ring's worth was sent late" "$(($(j f '.ports[1].tx_packets') - sent / 2))" -gt 230
}

for mode in copy generic; do
	line
	egress_blocked $mode
	egress_down $mode
	lab_down
done

# ---- a slow reader ----------------------------------------------------------------------------------

for mode in copy generic; do
	for verb in sink forward; do
		line
		what="$mode, $verb stopped for a second"
		was
		if [ $verb = sink ]; then
			up f "$HD" sink d0 --all -m $mode --set ring.rx=256 --set ring.fill=256
		else
			up f "$HD" forward d0 d1 -m $mode --set ring.rx=256 --set ring.fill=256
		fi
		up s "$HA" source a0 --rate 10k -c 12000
		kill -STOP "${xd_pid[f]}"
		sleep 1
		kill -CONT "${xd_pid[f]}"
		xd_wait s 10
		sleep 0.1
		xd_stop f
		ended_well "$what" f
		num "$what: the kernel dropped" "$(j f '.ports[0].drops | .rx_ring_full + .rx_no_frame')" -gt 2000
		is "$what: 12000 sent = received + dropped, nothing else lost" \
			"$(($(j f '.ports[0].rx_packets') + $(dropped f))) $(($(stat_of "$HD" d0 rx packets) - was_d0))" "12000 12000"
		is "$what: all dropped by the kernel" "$(dropped f)" "$(j f '.ports[0].drops | .rx_ring_full + .rx_no_frame')"
		[ $verb = sink ] || balanced "$what" f
		[ $verb = sink ] || is "$what: sent is what b0 received" "$(j f '.ports[1].tx_packets')" \
			"$(($(stat_of "$HB" b0 rx packets) - was_b0))"
		lab_down
	done

	line --mtu 9000
	what="$mode, sink --touch with a small ring, packets of three fragments"
	was
	up f "$HD" sink d0 --all --touch -m $mode --set ring.rx=64 --set ring.fill=64
	play 6000 --size 9014
	xd_stop f
	ended_well "$what" f
	num "$what: the kernel dropped" "$(dropped f)" -gt 0
	is "$what: sent = received + dropped" \
		"$(($(j f '.ports[0].rx_packets') + $(j f '.ports[0].drops | .rx_ring_full + .rx_no_frame')))" \
		"$(($(stat_of "$HD" d0 rx packets) - was_d0))"
	is "$what: whole packets only" "$(j f '.ports[0].rx_bytes')" "$(($(j f '.ports[0].rx_packets') * 9014))"
	lab_down
done
finish
