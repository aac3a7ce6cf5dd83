#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
# The carrier at opening: waited for where there was one before, bounded, and one line where there is none.
# The resets of real drivers are in tests/vm/test_open.sh.
# shellcheck source=tests/netns/lib.sh
. "$(dirname "$0")/lib.sh"

notices() { j "$1" '[.notices[].key] | join(" ")'; }
told() { # WHAT TAG PATTERN: exactly this line
	is "$1: one line" "$(wc -l <"$TMP/$2.err")" 1
	t "$1: the line" grep -Eq "$3" "$TMP/$2.err"
}

t "a lab" lab_up
no_ipv6 "$HA" a0
no_ipv6 "$HB" b0

what="a carrier that is there"
xd_up s "$HB" sink b0 --all=l2
xd_stop s
ended_well "$what" s
is "$what: nothing to notice" "$(notices s)" ""

what="no carrier, and it stays so"
ip -n "$HA" link set a0 down
xd_up s "$HB" sink b0 --all=l2 --set open.wait_ms=200
xd_stop s
told "$what" s "^xdpath sink: b0: no carrier, waited 200 ms .*; goes on, "
is "$what: the notice" "$(notices s)" no-carrier
all_home "$what" s

what="a carrier that comes in time"
xd_start s "$HB" sink b0 --all=l2 --set open.wait_ms=20000
sleep 0.5
is "$what: it is waited for" "$(xd_working s && echo "${xd_gone:-started}")" ""
ip -n "$HA" link set a0 up
t "$what: then it starts" xd_ready s
on "$HA" ping -q -c 3 -i 0.01 -W 0.1 10.77.0.2 >/dev/null
xd_stop s
ended_well "$what" s
is "$what: nothing to notice" "$(notices s)" ""
num "$what: it carries traffic" "$(sum_of s rx packets)" -gt 0

what="never a carrier"
ip -n "$HB" link add n0 type veth peer name n1
no_ipv6 "$HB" n0
ip -n "$HB" link set n0 up
begin=${EPOCHREALTIME/./}
xd_up s "$HB" sink n0 --all=l2 --set open.wait_ms=60000
num "$what: not waited for" $((${EPOCHREALTIME/./} - begin)) -lt 50000000
told "$what" s "^xdpath sink: n0: no carrier, and there never was one; goes on, "
ip -n "$HB" link set n1 up
t "$what: its first one is told" within 10 grep -q "n0: carrier again; goes on" "$TMP/s.err"
xd_stop s
all_home "$what" s
finish
