#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
# `xdpath-lab up --like NIC`: a single-queue NIC without native XDP, a multi-queue NIC with it, and one
# without. What probe says of them, what is then obtained and why, that every queue carries its frames.
# shellcheck disable=SC2016,SC2119,SC2317 # jq programs; lab_up without options; functions called by name
# shellcheck source=tests/netns/lib.sh
. "$(dirname "$0")/lib.sh"

frames=4000
# A UMEM for eight queues is a second's work to zero; a tenth of a second's traffic is room enough.
small=(--set ring.fill=1024 --set umem.frames=2048)
no_native="the driver veth has no native XDP"
no_zero_copy="the driver veth does no zero-copy"

feature() { on "$HD" ethtool -k "$1" | sed -n "s/^$2: \([a-z]*\).*/\1/p"; }
flags() { # DEV: checksums, scatter-gather, TSO, GSO, RX VLAN stripping
	on "$HD" ethtool -k "$1" | sed -nE 's/^(tx-checksumming|scatter-gather|(tcp|generic)-segmentation-offload|rx-vlan-offload): ([a-z]*).*/\3/p' |
		tr '\n' ' '
}
hosts_of() { ip netns list | awk '{print $1}' | grep -c "^$1-[abd]\$"; }
listed() { "$LAB" list | awk -v l="$1" '$1 == l'; }
mode_row() { sed -n "s/^  $1 \+//p" "$TMP/probe"; } # MODE
pj() { jq -r "$1" "$TMP/probe.json"; }
echo_replies() { on "$HA" awk '$1 == "Icmp:" && !n {n = split($0, name); next} $1 == "Icmp:" {for (i = 2; i <= n; i++) if (name[i] == "InEchoReps") print $i}' /proc/net/snmp; }
replied() { [ "$(echo_replies)" = "$1" ]; }
# Of 20 pings, how many the stack took for answered in the end: ping waits for the last no longer than
# two round trips, which on a busy machine is too short.
answered() {
	local was
	was=$(echo_replies)
	on "$HA" ping -n -q -c 20 -i 0.01 10.77.0.2 >/dev/null 2>&1
	within 3 replied $((was + 20))
	echo $(($(echo_replies) - was))
}
# The kernel asks for no neighbour: nothing but the test's own frames is on the links.
neighbours() {
	ip -n "$HA" neigh replace 10.77.0.2 lladdr "$(mac "$HB" b0)" dev a0 nud permanent
	ip -n "$HB" neigh replace 10.77.0.1 lladdr "$(mac "$HA" a0)" dev b0 nud permanent
}

play() {
	xd_start s "$HA" source a0 -c $frames --rate 10k --flows 64 --dst-mac "$(mac "$HB" b0)" "${small[@]}"
	xd_wait s 20
	ended_silent "$nic: source" s
	sleep 0.1
}

# ---- what probe says ------------------------------------------------------------------------------

probed() { # QUEUES MODE REASON of copy mode, "" if there is none
	local why zero=${3:-$no_zero_copy}
	on "$HD" "${XDPATH[@]}" probe d0 >"$TMP/probe" 2>&1
	on "$HD" "${XDPATH[@]}" probe d0 --json >"$TMP/probe.json" 2>&1
	why=$([ -n "$3" ] && echo "no: $3" || echo "nothing speaks against it")
	is "$nic: probe, queues" "$(mode_row queues | head -n 1)" "$1 RX, $1 TX"
	is "$nic: probe, best mode" "$(mode_row 'best mode')" "$2"
	is "$nic: probe, zero-copy" "$(mode_row zero-copy | tail -n 1)" "no: $zero"
	is "$nic: probe, copy" "$(mode_row copy)" "$why"
	is "$nic: probe, generic" "$(mode_row generic)" "nothing speaks against it"
	is "$nic: probe --json" "$(pj '.devices[0] | "\(.rx_queues) \(.tx_queues) \(.best_mode) \(.features.native) \(.rings)"')" \
		"$1 $1 $2 $([ -z "$3" ] && echo true || echo false) null"
	is "$nic: probe --json, reasons" "$(pj '[.devices[0].modes[] | .reason // "-"] | join("|")')" "$zero|${3:--}|-"
}

required() { # MODE
	if [ "$1" = copy ]; then
		t "$nic: native XDP, if it is required" on "$HD" "${XDPATH[@]}" probe d0 --require native,redirect
	else
		on "$HD" "${XDPATH[@]}" probe d0 --require native >"$TMP/o" 2>"$TMP/e"
		is "$nic: native XDP required: status" $? 3
		is "$nic: ... and why" "$(cat "$TMP/e")" \
			"xdpath probe: d0: native is required and not there; \`xdpath probe d0\` lists what is"
		refuses "$nic: forward in copy mode" 3 "no native XDP" on "$HD" "${XDPATH[@]}" forward d0 d1 -m copy --quiet
	fi
}

# ---- what is obtained -----------------------------------------------------------------------------

obtained() { # MODE REASON of copy mode
	local zero=${2:-$no_zero_copy} tail="; use --mode generic or auto"
	[ -n "$2" ] || tail="; use --mode copy or auto"
	is "$what: mode" "$(j "$3" .mode)" "$1"
	is "$what: every better mode with its reason" \
		"$(j "$3" '[.attempts[] | select(.obtained | not) | .mode + " " + .reason] | join("|")')" \
		"zero-copy d0: $zero$tail${2:+|copy d0: $2$tail}"
}

forwarded() { # QUEUES MODE REASON
	local a b
	what="$nic: forward"
	xd_up f "$HD" forward d0 d1 "${small[@]}"
	is "$what: VLAN tags come in the frame meanwhile" "$(feature d0 rx-vlan-offload) $(feature d1 rx-vlan-offload)" "off off"
	is "$what: pings answered" "$(answered)" 20
	a=$(stat_of "$HA" a0 tx packets) b=$(stat_of "$HB" b0 rx packets)
	play
	a=$(($(stat_of "$HA" a0 tx packets) - a)) b=$(($(stat_of "$HB" b0 rx packets) - b))
	xd_stop f
	ended_well "$what" f
	is "$what: queues" "$(j f '[.ports[].queues] | join(" ")')" "$1 $1"
	is "$what: sent by a0, received by b0" "$a $b" "$frames $frames"
	is "$what: with the pings, both ways" \
		"$(j f '[.ports[] | .rx_packets, .tx_packets] | join(" ")') $(dropped f)" \
		"$((frames + 20)) 20 20 $((frames + 20)) 0"
	obtained "$2" "$3" f
	is "$what: the NIC's settings are back" "$(feature d0 rx-vlan-offload) $(feature d1 rx-vlan-offload)" "on on"
}

# A sink for each queue: what each of them received.
spread() { # QUEUES
	local q got=() sum=0
	what="$nic: a sink for each queue"
	for ((q = 0; q < $1; q++)); do
		xd_up "k$q" "$HD" sink d0 --all=l2 -q "$q" "${small[@]}"
	done
	play
	for ((q = 0; q < $1; q++)); do
		xd_stop "k$q"
		got+=("$(sum_of "k$q" rx packets)")
		sum=$((sum + ${got[q]:-0}))
		num "$what: queue $q has its share" "${got[q]}" -ge $((frames / 2 / $1))
	done
	is "$what: and together all (${got[*]})" $sum $frames
}

reflected() { # MODE REASON
	local b
	what="$nic: reflect"
	b=$(stat_of "$HB" b0 rx packets)
	xd_up r "$HD" reflect d0 --all=l2 "${small[@]}"
	is "$what: pings answered" "$(answered)" 20
	xd_stop r
	ended_well "$what" r
	is "$what: by itself" "$(j r '.ports[0] | "\(.rx_packets) \(.tx_packets)"') $(($(stat_of "$HB" b0 rx packets) - b))" "20 20 0"
	obtained "$1" "$2" r
}

# ---- one NIC after the other ----------------------------------------------------------------------

nic_test() { # NIC QUEUES MODE REASON-OF-COPY-MODE FLAGS
	local state
	nic=$1
	t "$nic: up" lab_up --line --like "$nic"
	is "$nic: up says what is played and what not" "$(sed 's/; not played: .*NIC rings (of [0-9]* slots.*)$/; and not/' "$TMP/o")" \
		"$L: like $nic on d0, d1: $2 queue$([ "$2" = 1 ] || echo s), $([ "$3" = copy ] && echo native || echo generic) XDP; and not"
	[ "$nic" != ixgbe ] || is "$nic: list says it too" "$(listed "$L" | grep -c "line  queues $2 .*; like $nic on d0, d1: .*; not played: ")" 1
	no_ipv6 "$HA" a0
	no_ipv6 "$HB" b0
	neighbours
	is "$nic: offloads" "$(flags d0)| $(flags d1)" "$5 | $5 "
	probed "$2" "$3" "$4"
	required "$3"
	forwarded "$2" "$3" "$4"
	spread "$2"
	reflected "$3" "$4"
	state="$(stat -L -c %i "/run/netns/$HD")"
	t "$nic: down" "$LAB" down "$L"
	is "$nic: no host, no saved setting is left" "$(hosts_of "$L") $(find /run/xdpath -name "$state-*" 2>/dev/null)" "0 "
}

nic_test r8169 1 generic "$no_native" "off off off off on"
nic_test ixgbe 4 copy "" "on on on on on"
nic_test bnx2x 4 generic "$no_native" "on on on on on"

# ---- a pair, and other shapes -----------------------------------------------------------------------

index_of() { ip -n "$1" -j link show dev "$2" | jq '.[0].ifindex'; }

nic="a pair like bnx2x"
t "$nic: up" lab_up --like=bnx2x --queues 4
is "$nic: it is b0 that plays" "$(sed 's/: 4 queues.*//' "$TMP/o")" "$L: like bnx2x on b0"
is "$nic: and sends finished frames" "$(on "$HB" ethtool -k b0 | sed -n 's/^tx-checksumming: //p')" off
xd_up k "$HB" sink b0 --all "${small[@]}"
xd_stop k
is "$nic: mode of a sink" "$(j k .mode)" generic
xd_up k "$HA" sink a0 --all "${small[@]}"
xd_stop k
is "$nic: a0 is no NIC of that kind" "$(j k .mode)" copy
before=$(index_of "$HB" b0)
t "$nic: up again" "$LAB" up "$L" --like bnx2x
is "$nic: leaves what is right alone" "$(index_of "$HB" b0)" "$before"
t "up without --like makes a plain pair of it" "$LAB" up "$L" --queues 4
xd_up k "$HB" sink b0 --all "${small[@]}"
xd_stop k
is "a plain b0 has native XDP" "$(j k .mode)" copy
t "up makes it an ixgbe" "$LAB" up "$L" --like ixgbe
is "which list tells" "$(listed "$L" | grep -c 'like ixgbe on b0')" 1
lab_down

refuses "a NIC that is not played" 2 "'e1000': no such NIC .*r8169, ixgbe or bnx2x" "$LAB" up x --like e1000
refuses "--like without a NIC" 2 "--like: give r8169" "$LAB" up x --like
refuses "queues that the NIC has not" 2 "--queues 2: --like r8169 has 1" "$LAB" up x --like r8169 --queues 2
finish
