#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
# `xdpath forward` between NICs of two drivers on one UMEM: the mode is the best that both grant, and says
# which of them grants no better.
# shellcheck source=tests/vm/guest.sh
. "$(dirname "$0")/guest.sh"
# shellcheck source=tests/vm/expect.sh
. "$(dirname "$0")/expect.sh"

between() { # KIND KIND
	local what="$1 and $2" best a b d0 d1 said
	best=$(best_of "$1" "$2")
	link_line "$1" "$2" || return
	xd_up f "$HD" forward "$D0" "$D1"
	a=$(wire_end "$DA") b=$(wire_end "$DB") d0=$(wire_end "$D0") d1=$(wire_end "$D1")
	t "$what: frames pass both ways" \
		python3 tests/netns/frames.py --back --window 8 --wait 5 "$HA:$DA" "$HB:$DB" plain:60-1514/61 plain:1514 vlan:64,1518
	wires_are "$what: sent on is what came, on the wires" same "$DA" "$a" "$D1" "$d1"
	wires_are "$what: and the other way" same "$DB" "$b" "$D0" "$d0"
	said=$(sockets_say "$HD")
	is "$what: the kernel says of its sockets" "$said" "$(kernel_says "$best")"
	xd_stop f
	is "$what: sent" "$(outcome f tx | cut -d ' ' -f 1-3,5-)" "0 $best 54 0 home"
	is "$what: each mode refused names the NIC it is for" \
		"$(j f '[.attempts[] | select(.obtained | not) | .reason | test("'"$D0|$D1"'")] | all')" true
	nics_down
}

read -r -a have <<<"$(kinds)"
for ((i = 1; i < ${#have[@]}; i++)); do
	between "${have[0]}" "${have[i]}"
done
[ ${#have[@]} -gt 1 ] || skip mixed "the machine has one kind of NIC"
finish
