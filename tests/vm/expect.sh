# shellcheck shell=bash
# shellcheck disable=SC2154 # xd_pid, xd_rc: of lib.sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
#
# What each NIC of the lab is known to grant, by kernel, and runs of xdpath judged by it. Sourced by guest
# tests after guest.sh. Every process costs tenths of a second under emulation: few are started here.

# Modes that a driver grants, best first; the first is what auto has to obtain.
modes_of() { # KIND
	case $VM_KERNEL/$1 in
	*/e1000e | */rtl8139) echo generic ;;
	new/igb | new/virtio) echo zero-copy copy generic ;;
	*) echo copy generic ;;
	esac
}

# The best that all of them grant.
best_of() { # KIND...
	local kind best=zero-copy now
	for kind in "$@"; do
		now=$(modes_of "$kind")
		case ${now%% *} in
		generic) best=generic ;;
		copy) [ $best = generic ] || best=copy ;;
		esac
	done
	echo $best
}

# The errno of a mode that is refused. What is not advertised is refused before the kernel is asked.
refusal_of() { # KIND MODE
	case $VM_KERNEL/$1/$2 in
	new/virtio-plain/zero-copy) echo 22 ;; # EINVAL: advertised, but without the DMA API there is no mapping
	*) echo 95 ;;                          # EOPNOTSUPP
	esac
}

declare -A mac_of=() # by interface
for nic in /sys/class/net/*; do
	read -r "mac_of[${nic##*/}]" <"$nic/address"
done

# ---- links, as a test each --------------------------------------------------------------------------

# The most queues a NIC can have; asked while it is where tests find it.
declare -A most_queues=()
for kind in $(kinds); do
	nic=$(pair_of "$kind")
	most_queues[$kind]=$(ethtool -l "${nic%% *}" 2>/dev/null | sed -n '1,/^Current/s/^Combined:[[:space:]]*//p')
	most_queues[$kind]=${most_queues[$kind]:-1}
done

# A number without surprises: igb takes any; vmxnet3 only the one it has; virtio needs all it was given, or
# native XDP loses traffic to the others.
queues_for() { # KIND
	local nic
	nic=$(pair_of "$1") && nic=${nic%% *}
	case $1 in
	igb) echo 1 ;;
	vmxnet3) cat "/run/queues.$nic" ;;
	*) echo "${most_queues[$1]}" ;;
	esac
}

link_pair() { # KIND [QUEUES]
	if pair_up "$1" "${2:-$(queues_for "$1")}" 2>"$TMP/o"; then
		pass "$1: link${2:+ of $2 queues}"
	else
		fail "$1: link${2:+ of $2 queues}" "$(cat "$TMP/o")"
		return 1
	fi
}

# Ready for frames.py: its ends take frames for foreign addresses, and the kernel hands each one on alone. From a
# batch it gives those that have a protocol handler to packet sockets at once and the others after the
# batch, so that IPv4 overtakes what came before it.
link_line() { # KIND [KIND2]
	if echo 1 >/proc/sys/net/core/gro_normal_batch && line_up "$1" "$(queues_for "$1")" "${2:-}" 2>"$TMP/o" &&
		ip -n "$HA" link set "$DA" promisc on && ip -n "$HB" link set "$DB" promisc on; then
		pass "$1${2:+ and $2}: links"
	else
		fail "$1${2:+ and $2}: links" "$(cat "$TMP/o")"
		return 1
	fi
}

# ---- runs -------------------------------------------------------------------------------------------

# `source` on DA towards DB, until it ends by itself: TAG.out and .err as with xd_start.
source_run() { # TAG COUNT FIRST LAST [ARGS...]
	local tag=$1 count=$2 first=$3 last=$4
	shift 4
	xd_start "$tag" "$HA" source "$DA" -c "$count" --size "$first-$last" --rate 2k --dst-mac "${mac_of[$DB]}" "$@"
	xd_wait "$tag" 45
}

# A run that ends by itself at its count; if it does not, its summary shows how far it came.
ends_or_stop() { # TAG
	within 10 xd_ended "${xd_pid[$1]}"
	xd_stop "$1"
}

# Status, mode, packets, bytes, dropped; "home" if every frame has its owner; and whatever was said.
outcome() { # TAG rx|tx
	local said
	said=$(<"$TMP/$1.err")
	echo "${xd_rc[$1]} $(jq -r "[.mode, ([.ports[].$2_packets] | add), ([.ports[].$2_bytes] | add),
		([.ports[].drops[]] | add), (.frames | if .unaccounted == 0 and .wrong_moves == 0
		and .total == .free + .fill + .rx + .held + .tx then \"home\" else tojson end)] | join(\" \")" "$TMP/$1.out" 2>&1)${said:+ $said}"
}

# Bytes of COUNT frames of sizes FIRST..LAST in turn.
bytes_of() { # COUNT FIRST LAST
	local span=$(($3 - $2 + 1)) whole rest
	whole=$(($1 / span)) rest=$(($1 % span))
	echo $((whole * span * ($2 + $3) / 2 + rest * $2 + rest * (rest - 1) / 2))
}

# ---- the wire: a place in a capture is a size of its file -------------------------------------------------

wire_end() { # DEV
	stat -c %s "$VM_OUT/$1.pcap"
}

# Wait until so many frames of so many bytes in all are there, and a little for what should not come.
wire_comes() { # DEV START COUNT BYTES
	within 10 wire_reaches "$1" $(($2 + $4 + 16 * $3)) || return
	sleep 0.2
}

wire_reaches() { # DEV PLACE
	[ "$(wire_end "$1")" -ge "$2" ]
}

wire_is_source() { # NAME DEV START COUNT FIRST LAST
	wire_comes "$2" "$3" "$4" "$(bytes_of "$4" "$5" "$6")"
	t "$1" python3 tests/vm/wire.py source "$VM_OUT/$2.pcap" "$3" "$4" "$5" "$6" "${mac_of[$DB]}"
}

wires_are() { # NAME same|turned DEV START DEV START
	t "$1" python3 tests/vm/wire.py "$2" "$VM_OUT/$3.pcap" "$4" "$VM_OUT/$5.pcap" "$6"
}

# ---- what the kernel says ---------------------------------------------------------------------------

# The program on an interface: native, generic, none.
attached() { # HOST DEV
	local link
	link=$(ip -n "$1" link show dev "$2")
	case $link in
	*xdpgeneric*) echo generic ;;
	*xdp*) echo native ;;
	*) echo none ;;
	esac
}

# Of the AF_XDP sockets of a namespace: "zc:1" or "zc:0", each once; and how many UMEMs they have.
sockets_say() { # HOST
	local all
	all=$(on "$1" ss -H --xdp -e 2>/dev/null)
	grep -o 'zc:[01]' <<<"$all" | sort -u | tr '\n' ' '
	grep -o 'umem(id:[0-9]*' <<<"$all" | sort -u | grep -c .
}

kernel_says() { # MODE: what sockets_say has to be
	case $1 in
	zero-copy) echo "zc:1 1" ;;
	*) echo "zc:0 1" ;;
	esac
}

# Nothing of ours is on an interface: program, sockets of its namespace, promiscuity.
traces() { # HOST DEV
	local link
	link=$(ip -n "$1" -d link show dev "$2")
	[[ $link =~ promiscuity\ ([0-9]+) ]]
	echo "$(attached "$1" "$2") $(on "$1" ss -H --xdp 2>/dev/null | grep -c .) ${BASH_REMATCH[1]}"
}
