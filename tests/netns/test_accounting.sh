#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
# Sent = received + each reason, to the frame and the byte: by our own summaries and by the counters
# of the interfaces, which know nothing of us.
# shellcheck disable=SC2016,SC2119,SC2317 # awk programs; lab_up without options; functions called by name
# shellcheck source=tests/netns/lib.sh
. "$(dirname "$0")/lib.sh"

quiet_lab() { # OPTIONS
	lab_up "$@"
	no_ipv6 "$HA" a0
	no_ipv6 "$HB" b0
}

# Run a source on a0 to its end; what a0 sent and HOST's DEV received meanwhile go to sent, sent_bytes, came.
play() { # HOST DEV ARGS...
	local host=$1 dev=$2 t0 b0 r0
	shift 2
	t0=$(stat_of "$HA" a0 tx packets) b0=$(stat_of "$HA" a0 tx bytes) r0=$(stat_of "$host" "$dev" rx packets)
	xd_start s "$HA" source a0 "$@"
	xd_wait s 20
	ended_silent "$what: source" s
	# Live frames are the kernel's own, not from a UMEM.
	[[ " $* " == *" live "* ]] || all_home "$what: source" s
	sleep 0.1
	# Where the peer takes frames in its own NAPI, veth counts them without their Ethernet header.
	[ "$mode" != copy ] || b0=$((b0 - 14 * ($(stat_of "$HA" a0 tx packets) - t0)))
	sent=$(($(stat_of "$HA" a0 tx packets) - t0))
	sent_bytes=$(($(stat_of "$HA" a0 tx bytes) - b0))
	came=$(($(stat_of "$host" "$dev" rx packets) - r0))
}

# ---- source -> sink -------------------------------------------------------------------------------

# No more frames than the RX ring has slots: then none may be lost, however busy the machine is.
to_sink() { # COUNT ARGS of source...
	local count=$1
	shift
	xd_up k "$HB" sink b0 --all -m $mode
	play "$HB" b0 -c "$count" "$@"
	xd_stop k
	ended_well "$what: sink" k
	is "$what: the source says what it was told" "$(sum_of s tx packets)" "$count"
	is "$what: a0 sent so many packets, so many bytes" "$sent $sent_bytes" "$count $(sum_of s tx bytes)"
	is "$what: b0 received them" "$came" "$count"
	is "$what: the sink has them all" "$(sum_of k rx packets) $(sum_of k rx bytes) $(dropped k)" \
		"$count $(sum_of s tx bytes) 0"
}

for mode in copy generic; do
	quiet_lab
	what="$mode, 60 bytes"
	to_sink 2000 --rate 50k
	what="$mode, 64 to 1514 bytes"
	to_sink 1451 --rate 20k --size 64-1514
	is "$what: each size in its turn" "$(sum_of s tx bytes)" \
		"$(awk 'BEGIN {for (i = 0; i < 1451; i++) n += 64 + i; print n}')"
	what="$mode, imix over IPv6"
	to_sink 1800 --rate 20k --size imix --dst 2001:2::2
	lab_down
done

mode=copy
quiet_lab --mtu 9000 --queues 2
what="MTU 9000, 2 queues"
to_sink 600 --rate 20k --size 8415-9014 --flows 32
lab_down

# ---- what is there at the end and wanted no more is counted ------------------------------------------

mode=copy
quiet_lab
what="1000 frames for a sink that takes 100"
xd_up k "$HB" sink b0 --all -c 100
kill -STOP "${xd_pid[k]}" # all of them wait in the RX ring
play "$HB" b0 -c 1000 --rate 50k
kill -CONT "${xd_pid[k]}"
xd_wait k 10
ended_well "$what" k
is "$what: taken, left, lost" "$(j k '.ports[0] | "\(.rx_packets) \(.drops.rx_unread)"') $(($(dropped k) - $(dropped k rx_unread)))" "100 900 0"
is "$what: b0 received them" "$came" 1000
lab_down

# ---- what does not fit is dropped, and counted by its reason ----------------------------------------

for mode in copy generic; do
	quiet_lab
	what="$mode, small rings at full speed"
	xd_up k "$HB" sink b0 --all -m $mode --set ring.rx=64 --set ring.fill=64
	play "$HB" b0 -c 300000
	xd_stop k
	ended_well "$what: sink" k
	num "$what: something was dropped" "$(dropped k)" -gt 0
	is "$what: received and dropped are what a0 sent" "$(($(sum_of k rx packets) + $(dropped k)))" "$sent"
	lab_down
done

# ---- source -> forward -> sink, and -> kernel -------------------------------------------------------

for mode in copy generic; do
	quiet_lab --line
	what="$mode, forward to a sink"
	xd_up k "$HB" sink b0 --all -m $mode
	xd_up f "$HD" forward d0 d1 -m $mode
	play "$HB" b0 -c 2000 --rate 50k --size 60-1514
	xd_stop f
	xd_stop k
	ended_well "$what: forward" f
	ended_well "$what: sink" k
	is "$what: a0, d0, d1, b0 and the sink" \
		"$sent $(j f '.ports[0].rx_packets') $(j f '.ports[1].tx_packets') $came $(sum_of k rx packets)" \
		"2000 2000 2000 2000 2000"
	is "$what: bytes" "$(sum_of s tx bytes) $(j f '.ports[0].rx_bytes') $(j f '.ports[1].tx_bytes')" \
		"$sent_bytes $(sum_of k rx bytes) $(sum_of k rx bytes)"
	is "$what: nothing dropped" "$(dropped f) $(dropped k)" "0 0"

	what="$mode, forward at full speed"
	xd_up f "$HD" forward d0 d1 -m $mode
	play "$HB" b0 -c 300000
	xd_stop f
	ended_well "$what" f
	# What the socket had no room for counts as received by the port, and as dropped.
	is "$what: sent by a0 = sent on + dropped" "$sent" "$(($(j f '.ports[1].tx_packets') + $(dropped f)))"
	is "$what: sent on = received by b0" "$(j f '.ports[1].tx_packets')" "$came"

	what="$mode, one device"
	came_back=$(stat_of "$HA" a0 rx packets)
	xd_up f "$HD" forward d0 -m $mode
	play "$HD" d0 -c 2000 --rate 20k
	xd_stop f
	ended_well "$what" f
	is "$what: all came back" "$(j f '.ports[0].tx_packets') $(($(stat_of "$HA" a0 rx packets) - came_back)) $(dropped f)" "2000 2000 0"
	lab_down
done

what="egress of a smaller MTU"
quiet_lab --line --mtu 9000
ip -n "$HD" link set d1 mtu 1500
ip -n "$HB" link set b0 mtu 1500
xd_up f "$HD" forward d0 d1
play "$HB" b0 -c 2000 --rate 20k --size 1513-1516
xd_stop f
ended_well "$what" f
is "$what: half of them are too big" "$(j f '.ports[1].tx_packets') $came $(dropped f)" "1000 1000 1000"
is "$what: and counted as such" "$(j f '[.ports[].drops["tx_too_big"] // 0] | add')" 1000
lab_down

# ---- the frames are right: a kernel that has nobody on that port says so, after checking sums ---------

snmp() { on "$HB" awk -v k="$1" '$1 == "Udp:" && !n {n = split($0, name); next} $1 == "Udp:" {for (i = 2; i <= n; i++) if (name[i] == k) print $i}' /proc/net/snmp; }
snmp6() { on "$HB" awk -v k="$1" '$1 == k {print $2}' /proc/net/snmp6; }

mode=none
lab_up
on "$HA" ping -q -c 1 -W 1 10.77.0.2 >/dev/null
on "$HA" ping -q -c 1 -W 1 fd77::2 >/dev/null
what="UDP over IPv4"
play "$HB" b0 -c 1451 --rate 20k --size 64-1514 --dst 10.77.0.2 --src 10.77.0.1
is "$what: accepted by a stack, wrong sums" "$(snmp NoPorts) $(snmp InCsumErrors)" "1451 0"
what="UDP over IPv6"
play "$HB" b0 -c 1451 --rate 20k --size 64-1514 --dst fd77::2 --src fd77::1
is "$what: accepted by a stack, wrong sums" "$(snmp6 Udp6NoPorts) $(snmp6 Udp6InCsumErrors)" "1451 0"
lab_down

# ---- the kernel's live-frame injection --------------------------------------------------------------

quiet_lab
mode=copy what="live frames"
xd_up k "$HB" sink b0 --all -m copy
play "$HB" b0 --engine live --rate 20k -c 10000
xd_stop k
ended_well "$what: sink" k
is "$what: source, b0 and the sink" "$(sum_of s tx packets) $came $(($(sum_of k rx packets) + $(dropped k)))" "10000 10000 10000"
finish
