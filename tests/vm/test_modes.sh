#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
# What probe tells of a NIC, judged by ethtool and by trying; which mode auto obtains, why no better one, and
# what the kernel says of it; a mode that is not to be had is refused and leaves nothing.
# shellcheck disable=SC2317 # functions called by name
# shellcheck source=tests/vm/guest.sh
. "$(dirname "$0")/guest.sh"
# shellcheck source=tests/vm/expect.sh
. "$(dirname "$0")/expect.sh"

# Features as the driver advertises them; kernels before 6.3 tell none.
features_of() { # KIND
	case $VM_KERNEL/$1 in
	6.1/*) echo unknown ;;
	*/e1000e | */rtl8139) echo none ;;
	new/igb) echo native redirect zero-copy ;;
	new/virtio*) echo native redirect multi-buffer zero-copy ;;
	*/igb) echo native redirect ;;
	*/virtio*) echo native redirect multi-buffer ;;
	*/vmxnet3) echo native redirect transmit ;;
	esac
}

fragments_of() { # KIND
	case $VM_KERNEL/$1 in
	6.1/*) echo null ;;
	new/igb | new/virtio*) echo 1 ;;
	*) echo 0 ;;
	esac
}

driver_of() { # KIND
	case $1 in
	virtio*) echo virtio_net ;;
	rtl8139) echo 8139cp ;;
	*) echo "$1" ;;
	esac
}

ethtool_rings() { # RX, its most, TX, its most
	on "$HA" ethtool -g "$DA" 2>/dev/null | awk '/^RX:/ { rx[++i] = $2 } /^TX:/ { tx[i] = $2 }
		END { if (i == 2) print rx[2], rx[1], tx[2], tx[1]; else print "unknown" }'
}

# All of a device at once: driver|link|queues|rings|features|fragments
facts='.devices[0] | [.driver, "\(.up) \(.carrier) \(.mac)", "\(.rx_queues) \(.tx_queues)",
	(.rings | if . then "\(.rx_slots) \(.rx_slots_max) \(.tx_slots) \(.tx_slots_max)" else "unknown" end),
	(.features | if .native == null then "unknown" else [to_entries[] | select(.value) | .key] | join(" ") end),
	(.zero_copy_max_fragments | tostring)] | join("|")'
# And what came of trying: obtained|refused without a reason|best
tried='.devices[0] | [([.modes[] | select(.obtained) | .mode] | join(" ")),
	([.modes[] | select((.obtained | not) and ((.reason // "") == ""))] | length), .best_mode] | join("|")'

probe() { # KIND: with --try, the facts are the same
	local driver link queues rings features fragments obtained reasonless best has
	t "$1: probe --try" ask_probe
	IFS='|' read -r driver link queues rings features fragments < <(jq -r "$facts" "$TMP/p")
	IFS='|' read -r obtained reasonless best < <(jq -r "$tried" "$TMP/p")
	has=$(queues_for "$1")
	is "$1: driver" "$driver" "$(driver_of "$1")"
	is "$1: up, with carrier, MAC" "$link" "true true ${mac_of[$DA]}"
	is "$1: queues" "$queues" "$has $has"
	is "$1: NIC rings as ethtool tells" "$rings" "$(ethtool_rings)"
	is "$1: features advertised" "${features:-none}" "$(features_of "$1")"
	is "$1: fragments in zero-copy" "$fragments" "$(fragments_of "$1")"
	is "$1: modes that were obtained" "$obtained" "$(modes_of "$1")"
	is "$1: modes refused without a reason" "$reasonless" 0
	is "$1: best mode" "$best" "$(best_of "$1")"
	is "$1: --try leaves nothing" "$(traces "$HA" "$DA")" "none 0 0"
}

ask_probe() { # into $TMP/p
	on "$HA" timeout 60 "${XDPATH[@]}" probe "$DA" --json --try >"$TMP/p" </dev/null
}

# The walk from zero-copy down to what auto has to obtain: "zero-copy 22, copy 0"
attempts_of() { # KIND
	local mode best list
	best=$(best_of "$1")
	list=" $(modes_of "$1") "
	for mode in zero-copy copy generic; do
		[ $mode = "$best" ] && echo "$mode 0" && return
		[[ $list == *" $mode "* ]] || echo -n "$mode $(refusal_of "$1" $mode), "
	done
}

obtains() { # KIND
	local best said attempts reasonless
	best=$(best_of "$1")
	xd_up s "$HA" sink "$DA" --all=l2
	is "$1: the program is attached as the mode has it" "$(attached "$HA" "$DA")" "$([ "$best" = generic ] && echo generic || echo native)"
	said=$(sockets_say "$HA")
	is "$1: the kernel says of its sockets" "$said" "$(kernel_says "$best")"
	xd_stop s
	is "$1: sink" "$(outcome s rx)" "0 $best 0 0 0 home"
	IFS='|' read -r attempts reasonless < <(jq -r '[([.attempts[] | "\(.mode) \(.errno)"] | join(", ")),
		([.attempts[] | select((.obtained | not) and .reason == "")] | length)] | join("|")' "$TMP/s.out")
	is "$1: attempts and their errno" "$attempts" "$(attempts_of "$1")"
	is "$1: attempts refused without a reason" "$reasonless" 0
	is "$1: nothing is left" "$(traces "$HA" "$DA")" "none 0 0"
}

# By name: exit 3, a line that says why, nothing changed.
refused() { # KIND
	local mode list
	list=" $(modes_of "$1") "
	for mode in zero-copy copy; do
		[[ $list == *" $mode "* ]] && continue
		refuses "$1: --mode $mode is refused" 3 "$DA.*(zero-copy|native XDP)" on "$HA" "${XDPATH[@]}" sink "$DA" --all=l2 -m $mode
		refuses "$1: --worst $mode is refused" 3 "$DA.*(zero-copy|native XDP)" on "$HA" "${XDPATH[@]}" sink "$DA" --all=l2 --worst $mode
		is "$1: after that nothing is attached" "$(traces "$HA" "$DA")" "none 0 0"
	done
}

for kind in $(kinds); do
	link_pair "$kind" || continue
	probe "$kind"
	carrier "$HA" "$DA"
	obtains "$kind"
	refused "$kind"
	nics_down
done
finish
