#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
# What real drivers do to a user who does not know them: a frame cut in two, a sender that never starts,
# queues that nobody serves, a link that is gone for seconds after each bind.
# shellcheck source=tests/vm/guest.sh
. "$(dirname "$0")/guest.sh"
# shellcheck source=tests/vm/expect.sh
. "$(dirname "$0")/expect.sh"

small=(--set umem.frame_size=2048)

# igb rounds what is left of a 2048-byte frame down to 1024 bytes and tells of no second fragment.
small_frames() { # KIND
	local what="$1, 2048-byte frames" n=200 best
	best=$(best_of "$1")
	[ "$1" != igb ] || [ "$best" != zero-copy ] || best=copy
	xd_up k "$HB" sink "$DB" --all=l2 "${small[@]}" -c $n
	source_run s $n 1025 1514
	ends_or_stop k
	is "$what: whole frames arrive" "$(outcome k rx)" "0 $best $n $(bytes_of $n 1025 1514) 0 home"
	if [ "$(best_of "$1") $best" = "zero-copy copy" ]; then
		is "$what: it says why no zero-copy" "$(j k '.attempts[0] | "\(.mode) \(.errno) \(.reason | test("1024 bytes"))"')" "zero-copy 95 true"
		refuses "$what: zero-copy by name is refused" 3 "$DB.*umem.frame_size=4096" \
			on "$HB" "${XDPATH[@]}" sink "$DB" --all=l2 "${small[@]}" -m zero-copy
	fi
}

# Zero-copy TX starts on some drivers only where a native program is attached, for a sender too; and the link
# is gone for a while after the resets of opening. All of it is on the wire all the same.
sender_alone() { # KIND
	local what="$1: a sender alone" n=50 from
	from=$(wire_end "$DA")
	source_run s $n 60 109
	is "$what" "$(outcome s tx)" "0 $(best_of "$1") $n $(bytes_of $n 60 109) 0 home"
	wire_is_source "$what: all of it is on the wire" "$DA" "$from" $n 60 109
}

# The link goes while frames are under way: the run ends by itself, and no frame is lost to the ledger.
link_lost() { # KIND
	xd_up s "$HA" source "$DA" -c 1500 --rate 1k --dst-mac "${mac_of[$DB]}"
	sleep 0.3
	ip -n "$HA" link set "$DA" down
	sleep 0.5
	ip -n "$HA" link set "$DA" up
	xd_wait s 30
	is "$1: a sender whose link goes and comes ends by itself" "${xd_rc[s]}" 0
	all_home "$1: a sender whose link goes and comes" s
	carrier "$HA" "$DA"
}

# virtio-net opens more receive queues for native XDP than it has in use.
spare_queues() { # KIND QUEUES
	local n=480 got
	queues "$HB" "$DB" "$2" || { fail "$1: $2 queues" && return; }
	carrier "$HB" "$DB"
	xd_up k "$HB" sink "$DB" --all=l2 -c $n
	source_run s $n 60 299 --flows 96
	ends_or_stop k
	got=$(sum_of k rx packets)
	if [ "$got" = $n ]; then
		is "$1, $2 of its queues in use: all arrives, nothing is said" "$(<"$TMP/k.err")" ""
	else
		num "$1, $2 of its queues in use: $got of $n arrive, and it is said" "$(grep -c 'queues' "$TMP/k.err")" -gt 0
	fi
}

for kind in $(kinds); do
	link_pair "$kind" || continue
	small_frames "$kind"
	sender_alone "$kind"
	link_lost "$kind"
	[[ $kind != virtio* ]] || [ "${most_queues[$kind]}" -lt 4 ] || spare_queues "$kind" 2
	nics_down
done
finish
