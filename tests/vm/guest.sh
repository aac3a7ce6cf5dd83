# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
#
# What guest tests share: everything of tests/netns/lib.sh, and here NIC pairs in namespaces, queues,
# carrier, and the wire as QEMU saw it. README.md has the list. job.sh puts NICs back after each test.
# shellcheck source=tests/netns/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../netns/lib.sh"

ns_count=0

# The interfaces of pair N (0 is the first) of a kind; nothing if the machine has none.
pair_of() { # KIND [N]
	local entry n=${2:-0}
	for entry in $VM_NICS; do
		[ "${entry%%:*}" = "$1" ] || continue
		if [ "$n" = 0 ]; then
			entry=${entry#*:}
			echo "${entry/,/ }"
			return
		fi
		n=$((n - 1))
	done
	return 1
}

# Kinds of this machine, each once.
kinds() {
	local entry seen=' '
	for entry in $VM_NICS; do
		[[ $seen == *" ${entry%%:*} "* ]] || seen+="${entry%%:*} "
	done
	echo "${seen# }"
}

# Move an interface into a namespace: no IPv6, up. Without QUEUES: one, where the driver can be told.
into() { # NS DEV [QUEUES]
	ip link set "$2" netns "$1" && no_ipv6 "$1" "$2" || return 1
	if [ -n "${3:-}" ]; then
		queues "$1" "$2" "$3" || return 1
	else
		queues "$1" "$2" 1 2>/dev/null
	fi
	ip -n "$1" link set "$2" up
}

# Pair N of KIND: DA in namespace HA, DB in HB, up, with carrier.
# shellcheck disable=SC2034 # for the tests
pair_up() { # KIND [QUEUES [N]]
	local p
	p=$(pair_of "$1" "${3:-0}") || return 1
	read -r DA DB <<<"$p"
	L=vm$((ns_count++))
	HA=$L-a HB=$L-b
	ip netns add "$HA" && ip netns add "$HB" &&
		into "$HA" "$DA" "${2:-}" && into "$HB" "$DB" "${2:-}" && carrier "$HA" "$DA" && carrier "$HB" "$DB"
}

# Two pairs in line: DA in HA - D0 in HD, D1 in HD - DB in HB.
# shellcheck disable=SC2034
line_up() { # KIND [QUEUES] [KIND of the second pair]
	local p q
	p=$(pair_of "$1" 0) && q=$(if [ "${3:-$1}" = "$1" ]; then pair_of "$1" 1; else pair_of "$3" 0; fi) || return 1
	read -r DA D0 <<<"$p"
	read -r D1 DB <<<"$q"
	L=vm$((ns_count++))
	HA=$L-a HB=$L-b HD=$L-d
	ip netns add "$HA" && ip netns add "$HB" && ip netns add "$HD" &&
		into "$HA" "$DA" "${2:-}" && into "$HD" "$D0" "${2:-}" && into "$HD" "$D1" "${2:-}" &&
		into "$HB" "$DB" "${2:-}" &&
		carrier "$HA" "$DA" && carrier "$HD" "$D0" && carrier "$HD" "$D1" && carrier "$HB" "$DB"
}

# All NICs of these namespaces back into the first one.
nics_down() {
	local ns nic
	for ns in "$L-a" "$L-b" "$L-d"; do
		[ -e "/run/netns/$ns" ] || continue
		for nic in $(ip -n "$ns" -br link | awk '$1 != "lo" { print $1 }'); do
			ip -n "$ns" link set "$nic" netns 1
		done
		ip netns del "$ns"
	done
}

has_carrier() { # NS DEV
	ip -n "$1" link show dev "$2" up | grep -q LOWER_UP
}

# Drivers reset on attach, bind and detach, some for seconds: wait before sending.
carrier() { # NS DEV [SECONDS]
	within "${3:-15}" has_carrier "$1" "$2"
}

# N receive and N transmit queues; fails if the device has no such number.
queues() { # NS DEV N
	local now
	now=$(on "$1" ethtool -l "$2" 2>/dev/null | sed -n '/^Current/,$s/^Combined:[[:space:]]*//p')
	[ "${now:-1}" = "$3" ] || on "$1" ethtool -L "$2" combined "$3"
}

# ---- the wire, captured outside the guest ---------------------------------------------------------------

# Frames the NIC has put on its wire up to now.
wire_count() { # DEV
	python3 tests/vm/pcap.py "$VM_OUT/$1.pcap" count
}

# They themselves, one line of hex each, in order, from number FROM (0 is the first) on.
wire() { # DEV [FROM]
	python3 tests/vm/pcap.py "$VM_OUT/$1.pcap" hex "${2:-0}"
}
