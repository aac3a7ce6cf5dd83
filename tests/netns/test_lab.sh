#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
# tools/xdpath-lab: shapes, repair, what it refuses, and that nothing remains.
# shellcheck disable=SC2016,SC2119,SC2317 # awk programs; lab_up without options; functions called by name
# shellcheck source=tests/netns/lib.sh
. "$(dirname "$0")/lib.sh"

index_of() { ip -n "$1" -j link show dev "$2" | jq '.[0].ifindex'; }
queues_of() { ip -n "$1" -d -j link show dev "$2" | jq -r '.[0] | "\(.num_rx_queues) \(.num_tx_queues)"'; }
mtu_of() { ip -n "$1" -j link show dev "$2" | jq '.[0].mtu'; }
addresses_of() { ip -n "$1" -j addr show dev "$2" | jq -r '[.[0].addr_info[] | "\(.local)/\(.prefixlen)"] | sort | join(" ")'; }
feature() { on "$1" ethtool -k "$2" | sed -n "s/^$3: \([a-z]*\).*/\1/p"; }
frames() { echo "$(stat_of "$HA" a0 tx packets) $(stat_of "$HA" a0 rx packets)"; }
hosts_of() { ip netns list | awk '{print $1}' | grep -c "^$1-[abd]\$"; }
listed() { "$LAB" list | awk -v l="$1" '$1 == l'; }

t "up makes a pair" lab_up
is "addresses of a0" "$(addresses_of "$HA" a0)" "10.77.0.1/24 fd77::1/64"
is "addresses of b0" "$(addresses_of "$HB" b0)" "10.77.0.2/24 fd77::2/64"
t "the kernel carries IPv4 over it" on "$HA" ping -q -c 2 -i 0.01 -W 1 10.77.0.2
t "and IPv6" on "$HA" ping -q -c 2 -i 0.01 -W 1 fd77::2
is "checksums are finished by the stack" "$(feature "$HA" a0 tx-checksumming) $(feature "$HB" b0 tx-checksumming)" "off off"
is "VLAN tags stand in the frame" "$(feature "$HA" a0 tx-vlan-offload) $(feature "$HB" b0 rx-vlan-offload)" "off off"
is "list has a line for it" "$(listed "$L" | awk '{print $2, $4, $6}')" "pair 1 1500"

before=$(index_of "$HA" a0)
t "up again is fine" "$LAB" up "$L"
is "and leaves what is right alone" "$(index_of "$HA" a0)" "$before"

ip -n "$HA" addr flush dev a0
ip -n "$HA" link set a0 down
t "up repairs a device that is down, without addresses" "$LAB" up "$L"
t "traffic again" on "$HA" ping -q -c 2 -i 0.01 -W 1 fd77::2
ip -n "$HA" link del a0
is "list names a half-made lab" "$(listed "$L" | awk '{print $2}')" "half-made;"
t "up repairs a lab without its link" "$LAB" up "$L"
t "traffic after that" on "$HA" ping -q -c 2 -i 0.01 -W 1 10.77.0.2
ip netns del "$HB"
t "up repairs a lab without one of its hosts" "$LAB" up "$L"
t "traffic after that too" on "$HA" ping -q -c 2 -i 0.01 -W 1 10.77.0.2

t "up turns it into a line of 4 queues, MTU 9000" "$LAB" up "$L" --line --queues 4 --mtu 9000
is "list says so" "$(listed "$L" | awk '{print $2, $4, $6}')" "line 4 9000"
for at in "$HA a0" "$HD d0" "$HD d1" "$HB b0"; do
	# shellcheck disable=SC2086 # host and device
	is "queues and MTU of ${at#* }" "$(queues_of $at) $(mtu_of $at)" "4 4 9000"
done
is "no address in the middle" "$(addresses_of "$HD" d0)$(addresses_of "$HD" d1)" ""
sleep 0.3
before=$(frames)
sleep 1.5
is "an idle lab is silent" "$(frames)" "$before"

"$LAB" exec "$HB" -- sh -c 'exit 7'
is "exec hands back the status" $? 7
is "exec runs on that host" "$("$LAB" exec "$HD" -- ls /sys/class/net | tr '\n' ' ')" "d0 d1 lo "

on "$HB" sleep 300 &
sleeper=$!
t "down" "$LAB" down "$L"
is "no host is left" "$(hosts_of "$L")" 0
t "what ran there has ended" within 2 xd_ended $sleeper
wait $sleeper 2>/dev/null
t "down again is fine" "$LAB" down "$L"
is "list does not know it any more" "$(listed "$L")" ""

foreign=${XDPATH_TEST_ID}${XDPATH_TEST_LETTER:-}-f
ip netns add "$foreign-b"
refuses "a namespace of somebody else's" 1 "$foreign-b exists .*; .*another name" "$LAB" up "$foreign"
is "nothing was made beside it" "$(hosts_of "$foreign")" 1
t "down leaves it alone" "$LAB" down "$foreign"
is "it is still there" "$(hosts_of "$foreign")" 1
refuses "exec on it" 1 "not a lab's" "$LAB" exec "$foreign-b" -- true
ip netns del "$foreign-b"

refuses "no verb" 2 "no verb" "$LAB"
refuses "unknown verb" 2 "unknown verb 'start'" "$LAB" start x
refuses "no name" 2 "no lab name" "$LAB" up
refuses "bad name" 2 "bad name 'a/b'" "$LAB" up a/b
refuses "long name" 2 "64" "$LAB" up "$(printf 'x%.0s' {1..65})"
refuses "unknown option" 2 "unknown option '--lines'" "$LAB" up x --lines
refuses "no queues" 2 "1 to 64" "$LAB" up x --queues 0
refuses "queues not a number" 2 "1 to 64" "$LAB" up x --queues four
refuses "MTU too large" 2 "1280 to 65535" "$LAB" up x --mtu 65536
refuses "MTU without a value" 2 "1280 to 65535" "$LAB" up x --mtu
refuses "no such host" 1 "no host 'nobody-a'" "$LAB" exec nobody-a -- true
refuses "exec without --" 2 "'--'" "$LAB" exec nobody-a true
refuses "not root" 1 "root" setpriv --reuid=65534 --regid=65534 --clear-groups bash "$LAB" up x
mkdir "$TMP/few"
ln -s "$(command -v bash)" "$(command -v id)" "$TMP/few"
refuses "ip is not installed" 1 "'ip' is missing" unshare --mount bash -c \
	"mount --bind $TMP/few /usr/sbin && mount --bind $TMP/few /sbin && PATH=$TMP/few exec $PWD/$LAB up x"
t "help" "$LAB" -h
finish
