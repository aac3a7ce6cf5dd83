#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
# Single packets through `xdpath forward`: every size up to the MTU, none lost at light load, and
# none that waits for the next one to be sent (a missing kick shows only with one in flight).
# shellcheck disable=SC2016,SC2119,SC2317 # awk programs; lab_up without options; functions called by name
# shellcheck source=tests/netns/lib.sh
. "$(dirname "$0")/lib.sh"

lost() { sed -n 's/^\([0-9]*\) packets transmitted, \([0-9]*\) received.*/\1 \2/p' "$TMP/ping"; }

# COUNT pings, all answered.
answered() { # NAME COUNT ARGS...
	local name=$1 count=$2
	shift 2
	on "$HA" ping -n -W 1 -c "$count" "$@" >"$TMP/ping" 2>&1
	is "$name: sent and answered" "$(lost)" "$count $count"
}

# Of the round trips in $TMP/ping, how many took longer than MS?
slower() { # MS
	sed -n 's/.*time=\([0-9.]*\) ms.*/\1/p' "$TMP/ping" | awk -v m="$1" '$1 > m {n++} END {print n + 0}'
}

sizes() { # MTU TARGET HEADERS SIZES...
	local size bad=() mtu=$1 target=$2 headers=$3
	shift 3
	for size in "$@" $((mtu - headers)); do
		[ $((size + headers)) -le "$mtu" ] || continue
		on "$HA" ping -n -q -M "do" -s "$size" -c 2 -i 0.002 -W 1 "$target" >/dev/null 2>&1 || bad+=("$size")
	done
	is "$what: sizes up to the MTU to $target" "${bad[*]}" ""
}

# Sizes around what a frame and a fragment hold; the largest is added.
for mode in copy generic; do
	for shape in "1500 4096" "9000 4096" "9000 2048"; do
		mtu=${shape% *}
		what="$mode, MTU $mtu, frames of ${shape#* }"
		lab_up --line --mtu "$mtu"
		xd_up f "$HD" forward d0 d1 -m $mode --set umem.frame_size="${shape#* }"
		sizes "$mtu" 10.77.0.2 28 0 1 17 18 56 1000 1471 1785 1786 1787 3798 3799 4054 4055 7500 8971
		sizes "$mtu" fd77::2 48 0 1000 3778 3779
		xd_stop f
		ended_well "$what" f
		lab_down
	done
done

# As `xdpath forward d0 d1` runs when nothing else is said.
lab_up --line
xd_up f "$HD" forward d0 d1
on "$HA" ping -n -q -c 1 -W 1 10.77.0.2 >/dev/null
answered "one in flight, the next on its answer" 2000 -A 10.77.0.2
num "one in flight: round trips over 200 ms" "$(slower 200)" -le 0
num "one in flight: round trips over 5 ms" "$(slower 5)" -le 40
answered "one in flight, 200 ms apart" 15 -i 0.2 fd77::2
num "200 ms apart: round trips over 100 ms" "$(slower 100)" -le 0
answered "10 s at light load" 1000 -i 0.01 -q 10.77.0.2
xd_stop f
ended_well "after the pings" f
is "nothing was dropped" "$(dropped f)" 0
finish
