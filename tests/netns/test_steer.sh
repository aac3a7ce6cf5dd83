#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
# Rules: DNS goes to user space while all else on the port stays with the kernel and loses nothing;
# counted per rule; changed while traffic flows, by two at once, and not at all by garbage.
# shellcheck disable=SC2016,SC2119,SC2317 # awk programs; lab_up without options; functions called by name
# shellcheck source=tests/netns/lib.sh
. "$(dirname "$0")/lib.sh"

DNS='proto udp dport 53 action xsk'
# Not by a wrapper of python3, which may be slow.
hosts=("$(python3 -c "import sys; print(sys.executable)")" tests/netns/hosts.py)

steer() { # ARGS of steer b0
	on "$HB" "${XDPATH[@]}" steer b0 "$@"
}

# Silent when it works; what it says is kept for `t`.
st() {
	steer "$@" >"$TMP/st" 2>&1 || { cat "$TMP/st" && return 1; }
}

rules() { # FILTER: of the list as JSON
	steer list --json 2>/dev/null | jq -r "$1"
}

texts() { rules '[.rules[] | "\(.id) \(.rule)"] | join("; ")'; }

# packets that a rule matched
matched() { # RULE
	steer list --json 2>/dev/null | jq -r --arg r "$1" '.rules[] | select(.rule == $r) | .packets'
}

# ---- ordinary programs on the hosts -----------------------------------------------------------------

declare -A r_pid=()

# A receiver on b; what it prints goes to $TMP/TAG.got.
receive() { # TAG udp-count|tcp-take PORT...
	ip netns exec "$HB" "${hosts[@]}" "${@:2}" >"$TMP/$1.got" 2>&1 </dev/null 3>&- &
	r_pid[$1]=$!
	within 10 grep -q ready "$TMP/$1.got" || fail "receiver on port ${*:3}" "$(cat "$TMP/$1.got")"
}

# What came, once all of it is there.
received() { # TAG
	kill -TERM "${r_pid[$1]}" 2>/dev/null
	within 20 xd_ended "${r_pid[$1]}" # not "wait": this may be a subshell, whose child it is not
	sed -n 2p "$TMP/$1.got"
}

send() { # ARGS of hosts.py
	ip netns exec "$HA" "${hosts[@]}" "$@"
}

lost() { sed -n 's/^\([0-9]*\) packets transmitted, \([0-9]*\) received.*/\1 \2/p' "$1"; }

# Each address is looked up anew, and the first question must be answered: none is repeated within 0.5 s.
neighbours() { # TIMES: prints how many were not found at once
	local i bad=0 to
	for ((i = 0; i < $1; i++)); do
		for to in 10.77.0.2 fd77::2; do
			ip -n "$HA" neigh flush dev a0
			on "$HA" ping -n -q -c 1 -W 0.5 $to >/dev/null || bad=$((bad + 1))
		done
	done
	echo $bad
}

# ---- DNS by rule, all else to the kernel --------------------------------------------------------------
lab_up
# With a queueing discipline a veth whose ring is full makes the sender wait, in place of a loss
# that nobody here could be blamed for (Linux 6.16).
ip netns exec "$HA" tc qdisc replace dev a0 root pfifo limit 10000
xd_up s "$HB" sink b0 -r "$DNS"
receive other udp-count 54
receive file tcp-take 5001
on "$HA" ping -n -q -i 0.002 -W 1 -c 700 10.77.0.2 >"$TMP/ping4" 2>&1 &
p4=$!
on "$HA" ping -n -q -i 0.002 -W 1 -c 700 fd77::2 >"$TMP/ping6" 2>&1 &
p6=$!
send tcp-send 10.77.0.2 5001 30000000 >"$TMP/sent" &
pt=$!
send udp-send 10.77.0.2 53 4000 &
pu=$!
send udp-send fd77::2 54 4000
wait $p4 $p6 $pt $pu
is "ping 4 beside DNS by rule" "$(lost "$TMP/ping4")" "700 700"
is "ping 6 beside DNS by rule" "$(lost "$TMP/ping6")" "700 700"
is "TCP beside it: every byte" "$(received file)" "$(grep . "$TMP/sent" || echo none sent)"
is "UDP to another port beside it" "$(received other)" 4000
is "ARP and ND beside it" "$(neighbours 8)" 0
is "the rule's counter" "$(matched "$DNS")" 4000
is "... and bytes" "$(rules '.rules[0].bytes')" $((4000 * 74))
send udp-send fd77::2 53 1000
is "by IPv6 too" "$(matched "$DNS")" 5000
t "list as text" awk -v r="$DNS" 'NR == 2 && $1 == 1 && $2 == 5000 && index($0, r) {ok = 1} END {exit !ok || NR != 2}' <(steer list)

# ---- changes to a running verb's rules ----------------------------------------------------------------
t "add the words of a rule" st add proto udp dport 1000-1999 action drop
t "add several rules at once" st add 'ether arp action pass' 'prio 5 proto udp dport 2000 action pass' "filter 'udp port 3000' action drop"
is "in the order in which they are tried" "$(texts)" \
	"4 prio 5 proto udp dport 2000 action pass; 1 $DNS; 3 ether arp action pass; 2 proto udp dport 1000-1999 action drop; 5 filter \"udp port 3000\" action drop"
is "the first one's counter goes on" "$(matched "$DNS")" 5000
receive some udp-count 1500 2000 3000
send udp-send 10.77.0.2 1500 300 10.77.0.2 2000 300 fd77::2 3000 300
is "dropped, passed, filtered: what the kernel has of it" "$(received some)" "0 300 0"
is "action drop" "$(matched 'proto udp dport 1000-1999 action drop')" 300
is "action pass" "$(matched 'prio 5 proto udp dport 2000 action pass')" 300
is "a filter" "$(matched 'filter "udp port 3000" action drop')" 300
t "remove by ids" st del 5 3
t "remove by the rule" st del dport 1000-1999 proto 17 action drop
is "what is left" "$(texts)" "4 prio 5 proto udp dport 2000 action pass; 1 $DNS"
printf '# a set\n%s\n\nproto tcp dport 7 action drop # discard\n' "$DNS" >"$TMP/set"
t "load a set" st load -f "$TMP/set"
is "no id is used again, what stays keeps its own" "$(texts)" "1 $DNS; 6 proto tcp dport 7 action drop"
is "... and its counter" "$(matched "$DNS")" 5000
t "load from standard input" st load -f - <"$TMP/set"
t "add from a file" st add -f <(echo 'vlan 7 action pass')
t "flush" st flush
is "nothing left" "$(steer list)" "b0: no rules"
receive kernel udp-count 53
send udp-send 10.77.0.2 53 300
is "without rules the kernel has all" "$(received kernel)" 300

# ---- garbage ------------------------------------------------------------------------------------------
st load -f "$TMP/set"
send udp-send 10.77.0.2 53 10
before=$(steer list)
g() { # NAME CODE PATTERN ARGS of steer b0
	local name=$1 code=$2 pattern=$3
	shift 3
	refuses "$name" "$code" "^xdpath steer: .*$pattern" on "$HB" "${XDPATH[@]}" steer b0 "$@"
}
g "nothing to do" 2 "b0: what.*add RULE"
g "an unknown deed" 2 "ad: .*give add RULE" ad
g "a word too many" 2 "list: nothing follows|all: nothing follows list" list all
g "a file for list" 2 "-f: list takes no file" list -f "$TMP/set"
g "add nothing" 2 "add: no rule; .*action xsk" add
g "a misspelt word" 2 "dprt: .*did you mean dport" add proto udp dprt 53 action xsk
g "a bad port" 2 "dport 70000: out of range; .*65535" add proto udp dport 70000 action xsk
g "a bad prefix" 2 "10\.0\.0\.1/8: .*write 10\.0\.0\.0/8" add 'src 10.0.0.1/8 action drop'
g "mixed families" 2 "dst: of IPv6.*src is of IPv4" add src 10.0.0.1 dst fd00::1 action drop
g "no action" 2 "does not end with an action; .*xsk" add proto udp dport 53
g "no such device to redirect to" 1 "b00: no such device.*did you mean b0" add action redirect b00
g "a filter that is none" 2 "filter.*udp prot 53.*;" add filter 'udp prot 53' action xsk
g "an open quote" 2 "quote.*;" add 'filter "udp action xsk'
g "the same again" 2 "rule 1 is the same; " add "$DNS"
g "the same, another action" 2 "rule 1 has the same matches.*;.*prio" add proto udp dport 53 action drop
g "one of two is bad" 2 "vlan 5000: .*;" add 'vlan 5 action drop' 'vlan 5000 action drop'
g "two alike at once" 2 "vlan 5 action drop: .*is the same; " add 'vlan 5 action drop' 'vlan 5 action drop'
g "delete what is not there" 2 "del 99: no such rule.*list" del 99
g "one of two is not there" 2 "del 99: no such rule" del 1 99
g "delete by a rule that is not there" 2 "del proto udp dport 54 action xsk: no such rule" del proto udp dport 54 action xsk
g "delete what?" 2 "del: what\?.*list" del
g "delete by half an id" 2 "1x: no such match|1x: no id" del 1 1x
g "no such file" 2 "nowhere: No such file.*;" load -f "$TMP/nowhere"
g "load without a file" 2 "load: no file; .*-f" load
printf 'vlan 1 action drop\nvlan 2 action dorp\n' >"$TMP/bad"
g "a bad line in a file" 2 "bad:2: action dorp: .*did you mean drop" load -f "$TMP/bad"
head -c 5000 /dev/urandom >"$TMP/noise"
g "noise for a file" 2 "noise:[0-9]+: .*;" load -f "$TMP/noise"
for i in {0..99}; do echo "prio $i src 10.0.0.0/$((8 + i % 8)) sport $((i * 64))-$((i * 64 + 40)) dst 10.0.0.0/$((8 + i / 8)) action drop"; done >"$TMP/shapes"
g "too many shapes" 2 "100 distinct mask shapes.*64.*;" load -f "$TMP/shapes"
refuses "no such device" 1 "^xdpath steer: b00: no such device.*b0" on "$HB" "${XDPATH[@]}" steer b00 list
refuses "not root" 1 "^xdpath steer: .*;.*root" \
	on "$HB" setpriv --reuid=65534 --regid=65534 --clear-groups "${XDPATH[@]}" steer b0 flush
refuses "not root: list" 1 "^xdpath steer: b0: not permitted.*;.*root" \
	on "$HB" setpriv --reuid=65534 --regid=65534 --clear-groups "${XDPATH[@]}" steer b0 list
is "after all that nothing has changed" "$(steer list)" "$before"

# ---- rules flap, nothing is lost ------------------------------------------------------------------------
st flush
receive kernel udp-count 53
receive file tcp-take 5001
on "$HA" ping -n -q -i 0.002 -W 1 -c 1000 10.77.0.2 >"$TMP/ping4" 2>&1 &
p4=$!
ip netns exec "$HA" "${hosts[@]}" udp-on 10.77.0.2 53 >"$TMP/on" &
pu=$!
send tcp-send fd77::2 5001 30000000 >"$TMP/sent" &
pt=$!
flaps=0
for ((i = 0; i < 25; i++)); do
	st add "$DNS" && st del "$DNS" && flaps=$((flaps + 1))
done
wait $p4 $pt
kill -TERM $pu
wait $pu
is "rules put in and taken out" $flaps 25
is "ping while rules flap" "$(lost "$TMP/ping4")" "1000 1000"
is "TCP while rules flap: every byte" "$(received file)" "$(grep . "$TMP/sent" || echo none sent)"
kernel=$(received kernel)
xd_stop s
ended_well "sink while rules flap" s
user=$(($(sum_of s rx packets) - 5010))
is "each datagram went to the kernel or to user space" $((kernel + user)) "$(cat "$TMP/on")"
num "... some to the kernel" "$kernel" -ge 1
num "... some to user space" $user -ge 1
is "the program is gone with the run" "$(xdp_prog_id "$HB" b0)" ""
g "no program" 1 "b0: no xdpath program is attached; .xdpath attach b0" list
g "no program to add to" 1 "b0: no xdpath program is attached; " add "$DNS"

# ---- a run's own filter: another program takes over while it opens
for mode in copy generic; do
	xd_start s "$HB" sink b0 -m $mode -r 'filter "udp port 53" action xsk' --duration 0.3
	xd_wait s 10
	is "a run with a filter, $mode" "${xd_rc[s]} $(head -n 1 "$TMP/s.err")" "0 "
done

# ---- rules of a kept program ------------------------------------------------------------------------------
t "attach with rules" on "$HB" "${XDPATH[@]}" attach b0 -r "$DNS" -f <(echo "filter \"vlan 7\" action pass")
is "they are there" "$(texts)" "1 $DNS; 2 filter \"vlan 7\" action pass"
refuses "a run with other rules" 1 "^xdpath sink: .*b0.*rules of its own; .*xdpath steer b0" \
	on "$HB" "${XDPATH[@]}" sink b0 -r 'vlan 7 action pass'
refuses "a run with --all" 1 "^xdpath sink: .*b0.*;" on "$HB" "${XDPATH[@]}" sink b0 --all
refuses "a list that cannot be written" 1 'could not be written' \
	on "$HB" sh -c '"$@" >/dev/full' sh "${XDPATH[@]}" steer b0 list --json
xd_up s "$HB" sink b0
send udp-send 10.77.0.2 53 500
dns_is() { [ "$(matched "$DNS")" = "$1" ]; }
t "the rule has counted them" within 2 dns_is 500
xd_stop s
is "a run takes what the kept program's rules say" "$(sum_of s rx packets)" 500
xd_start s "$HB" forward b0 --duration 0.3
xd_wait s 10
is "forward yields to them" "${xd_rc[s]} $(texts)" "0 1 $DNS; 2 filter \"vlan 7\" action pass"
on "$HB" "${XDPATH[@]}" forward b0 --duration 0.1 >"$TMP/said" 2>&1
t "... and says so" grep -q "its rules hold" "$TMP/said"

# two at once lose nothing of each other's
adder() { # FROM
	local i
	for ((i = $1; i < $1 + 10; i++)); do st add "dport $i action pass" || echo "$i"; done
}
adder 100 >"$TMP/add1" 2>&1 &
p1=$!
adder 200 >"$TMP/add2" 2>&1 &
p2=$!
wait $p1 $p2
is "two at the same time: each has all its rules" \
	"$(cat "$TMP/add1" "$TMP/add2") $(rules '[.rules[].rule | select(startswith("dport"))] | length') $(rules '[.rules[].id] | unique | length')" " 20 22"

# many
for i in {0..9999}; do echo "proto udp src 10.1.$((i / 250)).$((i % 250)) dport $((i + 1)) action drop"; done >"$TMP/many"
begin=${EPOCHREALTIME/./}
t "load 10,000 rules" st load -f "$TMP/many"
num "... in ms" $(((${EPOCHREALTIME/./} - begin) / 1000)) -le 2000
is "they are all there" "$(rules '.rules | length')" 10000
t "remove one of them" st del proto udp src 10.1.0.7 dport 8 action drop
is "... is gone" "$(rules '.rules | length')" 9999
t "detach" on "$HB" "${XDPATH[@]}" detach b0
is "nothing is left" "$(xdp_prog_id "$HB" b0)$(find /run/xdpath -name "*$(stat -L -c %i "/run/netns/$HB")*" 2>/dev/null)" ""
refuses "rules that are none: a run" 2 "^xdpath sink: dport x: .*;" on "$HB" "${XDPATH[@]}" sink b0 -r 'dport x action xsk'
refuses "two rules alike: a run" 2 "^xdpath sink: .*rule 1 is the same" on "$HB" "${XDPATH[@]}" sink b0 -r "$DNS" -r "$DNS"
refuses "no rule in the file: a run" 2 "^xdpath sink: b0: nothing would reach.*;" on "$HB" "${XDPATH[@]}" sink b0 -f /dev/null
finish
