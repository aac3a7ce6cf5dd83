#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
# The lab itself: each pair of NICs carries frames, and the capture outside shows what was sent.
# shellcheck source=tests/vm/guest.sh
. "$(dirname "$0")/guest.sh"

for kind in $(kinds); do
	if ! pair_up "$kind" 2>"$TMP/o"; then
		fail "$kind: two interfaces, up, with carrier" "$(<"$TMP/o")"
		nics_down
		continue
	fi
	pass "$kind: two interfaces, up, with carrier"
	from=$(wire_count "$DA")
	ip -n "$HB" link set "$DB" promisc on # the frames are for nobody
	t "$kind: 64 frames of 60 to 1514 bytes arrive as they were sent" \
		python3 tests/netns/frames.py "$HA:$DA" "$HB:$DB" plain:60-1499/23 plain:1514
	is "$kind: the wire has seen them" "$(($(wire_count "$DA") - from))" 64
	is "$kind: their lengths on the wire" "$(wire "$DA" "$from" | awk '{ n += length($1) / 2 } END { print n }')" \
		"$(seq 60 23 1499 | awk '{ n += $1 } END { print n + 1514 }')"
	nics_down
done
finish
