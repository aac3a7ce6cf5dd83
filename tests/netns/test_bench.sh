#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
# bench and serve: what a run counts is what the interfaces count; every engine, both families, cut
# messages, schedules; how either end takes the other's death, a stranger, a second client.
# shellcheck disable=SC2016,SC2119,SC2317 # jq programs; lab_up without options; functions called by name
# shellcheck source=tests/netns/lib.sh
. "$(dirname "$0")/lib.sh"

seconds=$([ -n "${LONG:-}" ] && echo 2 || echo 0.2)

# A run to $TMP/NAME.json.
bench() { # NAME ARGS...
	local name=$1
	shift
	timeout 60 ip netns exec "$HA" "${XDPATH[@]}" bench "$@" --time "$seconds" --warmup 0.05 --runs 1 --json \
		>"$TMP/$name.json" 2>"$TMP/$name.err" </dev/null
}

run() { # NAME FILTER: of the run
	jq -r ".measurements[0].runs[0] | $2" "$TMP/$1.json" 2>/dev/null
}

# Of each end: what came and what was dropped by reason is what the interface received, what went is
# what it sent. With native XDP on, veth counts its bytes behind the Ethernet header.
exact='[.local, .remote | (.interface_packets_in - .packets_in - .losses.rx_ring_full - .losses.rx_no_frame - .losses.rx_other),
	(.interface_packets_out - .packets_out), (.bytes_out - .interface_bytes_out | . == 0),
	(.bytes_out - .interface_bytes_out - 14 * .packets_out | . == 0)] | map(tostring) | join(" ")'

counts() { # NAME ENGINE
	local want="0 0 true false 0 0 true false"
	[ "$2" != xsk ] || want="0 0 false true 0 0 false true"
	is "$1: frames and bytes are what the interfaces count" "$(run "$1" "$exact")" "$want"
	is "$1: frames sent are the frames that arrived" \
		"$(run "$1" '[.local.packets_out - .remote.interface_packets_in, .remote.packets_out - .local.interface_packets_in] | @csv')" "0,0"
}

# Each transaction is in the histogram, none was lost, none twice.
rr() { # NAME ENGINE ARGS...
	local name=$1 engine=$2
	shift 2
	bench "$name" rr a0 "$@" --engine "$engine" || { fail "$name" "$(cat "$TMP/$name.err")" && return; }
	counts "$name" "$engine"
	is "$name: every request has its answer" \
		"$(run "$name" '[.local.messages_out - .local.messages_in, .local.messages_out - .remote.messages_in, .local.messages_out - .remote.messages_out] | @csv')" "0,0,0"
	is "$name: as many latencies as answers" "$(run "$name" '.latency.count - .local.messages_in')" 0
	is "$name: nothing lost" "$(run "$name" '[.local, .remote | .losses[]] | add')" 0
	num "$name: it did something" "$(run "$name" .local.messages_in)" -gt "$least"
}

stream() { # NAME ENGINE ARGS...
	local name=$1 engine=$2
	shift 2
	bench "$name" stream a0 "$@" --engine "$engine" || { fail "$name" "$(cat "$TMP/$name.err")" && return; }
	counts "$name" "$engine"
	is "$name: nothing out of order" "$(run "$name" '[.local, .remote | .losses | .reordered, .late, .timeouts] | add')" 0
	num "$name: messages arrived" "$(run "$name" '.local.messages_in + .remote.messages_in')" -gt 20
}

# Paced, so that nobody is overrun: all that is sent arrives.
paced() { # NAME ENGINE ARGS...
	stream "$@" --rate 2k
	is "$1: all messages arrived" \
		"$(run "$1" '[.local.messages_out - .remote.messages_in, .remote.messages_out - .local.messages_in] | @csv')" "0,0"
}

serving() { on "$HB" ss -Hltn 'sport = :12866' | grep -q 12866; }
serve_up() {
	xd_start s "$HB" serve b0
	within 10 serving || fail "serve b0 listens" "$(cat "$TMP/s.err")"
}

engines=(udp xsk packet)
lab_up --queues 2
known() { # HOST DEV PEER-HOST PEER-DEV ADDR...: no question about a neighbour falls into a run
	local a
	for a in "${@:5}"; do
		ip -n "$1" neigh replace "$a" lladdr "$(mac "$3" "$4")" dev "$2" nud permanent
	done
}
known "$HA" a0 "$HB" b0 10.77.0.2 fd77::2
known "$HB" b0 "$HA" a0 10.77.0.1 fd77::1
refuses "no serve there: cause and cure" 1 'nothing listens on port 12866.*xdpath serve' \
	on "$HA" "${XDPATH[@]}" bench rr a0 10.77.0.2
refuses "no host there: cause and cure" 1 '10.77.0.9: no answer through a0.*serve' \
	on "$HA" "${XDPATH[@]}" bench rr a0 10.77.0.9
refuses "an address behind no device" 1 'no route to it through a0' on "$HA" "${XDPATH[@]}" bench rr a0 203.0.113.1
refuses "our own address" 2 "this host itself" on "$HA" "${XDPATH[@]}" bench rr a0 10.77.0.1
refuses "no address" 2 "not an address" on "$HA" "${XDPATH[@]}" bench rr a0 nowhere
refuses "no such device" 1 "a9" on "$HA" "${XDPATH[@]}" bench rr a9 10.77.0.2

serve_up
least=20
# Every engine on both families, whole and cut; what does not depend on the engine, on one or two.
for e in "${engines[@]}"; do
	rr "$e rr v4" "$e" 10.77.0.2 -n 8 -r 64,64
	rr "$e rr cut, v6" "$e" fd77::2 -n 3 -r 14000,14000
	stream "$e stream v6" "$e" fd77::2 -n 60 -m 64 --workers 2 --peer-workers 2
	paced "$e stream both ways" "$e" 10.77.0.2 -m 5000 --bidir --mtu 600
done
for e in udp xsk; do
	rr "$e rr bursts" "$e" fd77::2 -n 4 --rate 1000 --arrival burst:8
	paced "$e stream reverse" "$e" fd77::2 -m 3000 --reverse
done
rr "xsk rr largest" xsk fd77::2 -r 65536,1
rr "xsk rr two lanes" xsk 10.77.0.2 -n 16 --workers 2 --peer-workers 2
rr "udp rr poisson" udp 10.77.0.2 -n 4 --rate 1000 --arrival poisson
num "udp rr poisson: from the due time is not less than from the sending" \
	"$(run "udp rr poisson" '(.latency.mean_us - .service.mean_us) * 1000 | floor')" -ge 0
if [ -n "${LONG:-}" ]; then
	for e in "${engines[@]}"; do
		rr "$e rr many" "$e" 10.77.0.2 -n 200 -r 1400,1
		rr "$e rr evenly" "$e" fd77::2 -n 4 --rate 1000
		stream "$e stream v4" "$e" 10.77.0.2 -m 1400
		paced "$e stream small mtu" "$e" 10.77.0.2 -m 5000 --mtu 600
	done
fi

# ---- strangers ------------------------------------------------------------------------------------

told() { # TEXT: what the server answers to it
	on "$HA" timeout 10 bash -c 'exec 3<>/dev/tcp/10.77.0.2/12866; printf "%s\n" "$1" >&3; head -n 1 <&3' told "$1" 2>/dev/null
}
hello='{"xdpath":"bench","protocol":1,"version":"0.1.0"}'
for line in 'GET / HTTP/1.0' '{}' '[1]' '{"xdpath":"bench","protocol":1}' '{"xdpath":3}' "$(printf 'x%.0s' {1..70000})"; do
	is "a stranger who says ${line:0:30} is told so" "$(told "$line" | jq -r .error 2>/dev/null)" "that is no xdpath bench"
done
second() { # TEXT: the answer to it, after the greeting
	on "$HA" timeout 10 bash -c 'exec 3<>/dev/tcp/10.77.0.2/12866; printf "%s\n%s\n" "$1" "$2" >&3; head -n 2 <&3 | tail -n 1' second "$hello" "$1" 2>/dev/null
}
for line in '{"cmd":"run"}' '{"cmd":"setup"}' '{"cmd":"setup","spec":{"kind":9}}' 'nonsense' \
	'{"cmd":"setup","spec":{"kind":0,"engine":1,"flows":4000000000,"req":1,"rsp":1,"size":0,"reverse":false,"bidir":false,"mtu":0,"arrival":0,"burst":0,"rate":0.0,"workers":0,"cpus":[]},"knobs":{},"mode":0,"worst":0,"id":1,"base":20000,"mtu":1500}'; do
	num "a setup out of bounds (${line:0:40}) is refused" "$(second "$line" | jq -r '.error | length' 2>/dev/null || echo 0)" -gt 0
done
t "after all that it still serves" bench after rr a0 10.77.0.2 --engine udp

# ---- two at a time --------------------------------------------------------------------------------

in_session() { [ "$(on "$HB" ss -Htn state established 'sport = :12866' | wc -l)" = "$1" ]; }
xd_start first "$HA" bench rr a0 10.77.0.2 --engine udp --time 30
within 5 in_session 1
refuses "a second client is told who is served" 1 'it serves 10.77.0.1 just now' \
	on "$HA" "${XDPATH[@]}" bench rr a0 10.77.0.2
xd_stop first
refuses_first=$(cat "$TMP/first.err")
is "an interrupted bench says in one line that there is nothing to report" \
	"${xd_rc[first]} $(grep -c 'before the first run was over' <<<"$refuses_first")" "1 1"

# ---- deaths ---------------------------------------------------------------------------------------

gone_ms() { # TAG: how long until it has ended
	local from=${EPOCHREALTIME/./}
	within 5 xd_ended "${xd_pid[$1]}"
	echo $(((${EPOCHREALTIME/./} - from) / 1000))
}
for e in udp xsk; do
	xd_start c "$HA" bench rr a0 10.77.0.2 --engine "$e" --time 30
	within 5 in_session 1
	sleep 0.5
	kill -KILL "${xd_pid[c]}"
	num "$e: bench killed: serve is free again soon, ms" "$({
		from=${EPOCHREALTIME/./}
		within 5 in_session 0
		echo $(((${EPOCHREALTIME/./} - from) / 1000))
	})" -le 2000
	xd_stop c none
	t "$e: and serves the next" bench next rr a0 10.77.0.2 --engine $e

	xd_start c "$HA" bench rr a0 10.77.0.2 --engine "$e" --time 30
	within 5 in_session 1
	sleep 0.5
	kill -KILL "${xd_pid[s]}"
	num "$e: serve killed: bench ends soon, ms" "$(gone_ms c)" -le 2000
	xd_stop c none
	is "$e: with one line" "${xd_rc[c]} $(wc -l <"$TMP/c.err") $(grep -c 'the far end is gone' "$TMP/c.err")" "1 1 1"
	xd_stop s none
	is "$e: nothing is left on the devices" "$(xdp_prog_id "$HA" a0)$(xdp_prog_id "$HB" b0)" ""
	serve_up
done
xd_stop s
is "serve ends by a signal: status 0, silent" "${xd_rc[s]} $(cat "$TMP/s.err")" "0 "
xd_start s "$HB" serve b0 --duration 0.3
xd_wait s 5
is "serve ends by its duration: status 0, silent" "${xd_rc[s]} $(cat "$TMP/s.err")" "0 "

# ---- without two hosts ----------------------------------------------------------------------------

lab_bench() { # NAME ARGS...
	local name=$1
	shift
	timeout 60 "${XDPATH[@]}" bench "$@" --lab --time "$seconds" --warmup 0.05 --runs 1 --json >"$TMP/$name.json" 2>"$TMP/$name.err"
}
if lab_bench lab rr -n 4; then
	counts lab xsk
	num "--lab: transactions" "$(run lab .local.messages_in)" -gt 20
else
	fail "--lab" "$(cat "$TMP/lab.err")"
fi
is "--lab leaves no process and no device" "$(ip -o link show dev xdpath0 2>/dev/null)$(pgrep -f 'bench.*--lab' | wc -l)" 0
"${XDPATH[@]}" bench rr --lab --time 30 --quiet >/dev/null 2>&1 </dev/null &
victim=$!
far_of() { pgrep -P "$victim" >"$TMP/far"; }
within 5 far_of
sleep 0.5
kill -KILL $victim
wait $victim 2>/dev/null
far_gone() { ! kill -0 "$(cat "$TMP/far")" 2>/dev/null; }
t "--lab killed: its far host goes with it" within 3 far_gone
refuses "--lab and a device" 2 "makes its own two hosts" "${XDPATH[@]}" bench rr --lab a0 10.77.0.2
refuses "a rate without sense" 2 "messages a second" "${XDPATH[@]}" bench rr --lab --rate fast
refuses "sizes above the limit" 2 "65536" "${XDPATH[@]}" bench rr --lab -r 70000,1

# ---- tune -----------------------------------------------------------------------------------------

tune=("${XDPATH[@]}" tune --knob "rx.batch=64,64" --goal throughput --runs 6 --resume "$TMP/kept"
	-w "$TMP/won" --html "$TMP/tune.html" --json --lab -- bench rr --time 0.1 --warmup 0.05)
tuned() { # FILE: the same value twice
	timeout 100 "${tune[@]}" >"$1" 2>"$1.err"
}
runs_kept() { grep -c '"setting"' "$TMP/kept"; }
t "tune: an experiment" tuned "$TMP/tuned"
is "tune: its settings, blocks and runs kept" \
	"$(jq -r '"\(.settings | length) \(.blocks)"' "$TMP/tuned") $(runs_kept)" "2 6 12"
# by chance a value may win against itself: then both have to say so
is "tune: the file of winners says what the report does" \
	"$(grep -c '^[^#].*=' "$TMP/won")" "$(jq '[.winners[] | strings] | length' "$TMP/tuned")"
num "tune: a page" "$(grep -c '<svg\|</html>' "$TMP/tune.html")" -ge 2
t "tune: what was kept is gone on with" tuned "$TMP/again"
is "tune: ... and nothing measured anew" "$(runs_kept) $(jq -c .comparisons "$TMP/again")" \
	"12 $(jq -c .comparisons "$TMP/tuned")"
refuses "tune: runs of another engine are not gone on with" 2 "another plan; give another --resume" "${tune[@]}" --engine udp
refuses "tune: without a knob" 2 "give --knob KEY=V1,V2" "${XDPATH[@]}" tune --lab -- bench rr
refuses "tune: without a test" 2 "stands behind --" "${XDPATH[@]}" tune --knob rx.batch=64,16
refuses "tune: an unknown knob" 2 "did you mean rx.batch" "${XDPATH[@]}" tune --knob rx.bacth=1,2 --lab -- bench rr
refuses "tune: an unknown preset" 2 "give seeds-rr or seeds-stream" "${XDPATH[@]}" tune --preset seeds
refuses "tune: the bench's own refusal" 2 "65536" "${XDPATH[@]}" tune --knob rx.batch=64,16 --lab -- bench rr -r 70000,1
lab_down
finish
