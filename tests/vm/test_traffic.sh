#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
# source -> wire -> sink and reflect, paced, in frames of every length: exact counts at both ends, and the
# wire as QEMU captured it is what was promised, byte for byte. MTU 1500.
# shellcheck source=tests/vm/guest.sh
. "$(dirname "$0")/guest.sh"
# shellcheck source=tests/vm/expect.sh
. "$(dirname "$0")/expect.sh"

sink_counts() { # KIND MODE FIRST LAST
	local what="$1, $2, $3 to $4 bytes" n=$(($4 - $3 + 1)) from
	xd_up k "$HB" sink "$DB" --all=l2 -m "$2" -c $n
	from=$(wire_end "$DA")
	source_run s $n "$3" "$4" -m "$2"
	ends_or_stop k
	is "$what: source" "$(outcome s tx)" "0 $2 $n $(bytes_of $n "$3" "$4") 0 home"
	is "$what: sink" "$(outcome k rx)" "0 $2 $n $(bytes_of $n "$3" "$4") 0 home"
	wire_is_source "$what: on the wire" "$DA" "$from" $n "$3" "$4"
}

reflect_counts() { # KIND MODE FIRST LAST
	local what="$1, $2, reflect" n=$(($4 - $3 + 1)) bytes from back
	bytes=$(bytes_of $n "$3" "$4")
	xd_up r "$HB" reflect "$DB" --all=l2 -m "$2"
	from=$(wire_end "$DA") back=$(wire_end "$DB")
	source_run s $n "$3" "$4" -m "$2"
	wire_comes "$DB" "$back" $n "$bytes"
	xd_stop r
	is "$what: source" "$(outcome s tx)" "0 $2 $n $bytes 0 home"
	is "$what: received" "$(outcome r rx)" "0 $2 $n $bytes 0 home"
	is "$what: sent back" "$(outcome r tx)" "0 $2 $n $bytes 0 home"
	wires_are "$what: the wire back is the wire there, turned around" turned "$DA" "$from" "$DB" "$back"
}

for kind in $(kinds); do
	link_pair "$kind" || continue
	modes=$(modes_of "$kind")
	[ -n "${LONG:-}" ] || modes=${modes%% *}
	for mode in $modes; do
		sink_counts "$kind" "$mode" 60 1514
		reflect_counts "$kind" "$mode" 60 1514
	done
	nics_down
done
finish
