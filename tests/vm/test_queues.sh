#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
# As many queues as the device has, each with its socket: whatever queue the NIC chooses, every frame of many
# flows arrives, none on a queue that nobody serves. `source` sends on all of them, each number once.
# shellcheck source=tests/vm/guest.sh
. "$(dirname "$0")/guest.sh"
# shellcheck source=tests/vm/expect.sh
. "$(dirname "$0")/expect.sh"

frames=960 flows=96

# Fewer than all that virtio was given is a trap, and has its test there.
counts_of() { # KIND
	case $1 in
	igb) echo 1 2 4 ;;
	*) queues_for "$1" ;;
	esac
}

all_arrive() { # KIND QUEUES
	local what="$1, $2 queues" from
	# Spread by ports too. A device that cannot be told does so by itself, or not at all.
	on "$HB" ethtool -N "$DB" rx-flow-hash udp4 sdfn >/dev/null 2>&1
	xd_up k "$HB" sink "$DB" --all=l2 -c $frames
	from=$(wire_end "$DA")
	source_run s $frames 60 539 --flows $flows
	ends_or_stop k
	is "$what: source" "$(outcome s tx)" "0 $(best_of "$1") $frames $(bytes_of $frames 60 539) 0 home"
	is "$what: sink" "$(outcome k rx)" "0 $(best_of "$1") $frames $(bytes_of $frames 60 539) 0 home"
	is "$what: served, and arrived where no socket is" \
		"$(j k '.ports[0] | "\(.queues) \(.program_packets.no_socket)"')" "$2 0"
	wire_is_source "$what: on the wire" "$DA" "$from" $frames 60 539
}

for kind in $(kinds); do
	for n in $(counts_of "$kind"); do
		link_pair "$kind" "$n" || continue
		all_arrive "$kind" "$n"
		nics_down
	done
done
finish
