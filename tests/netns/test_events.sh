#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
# What happens to a device while a datapath runs on it. Each event ends the run (exit 1) or lets it go
# on, with one line that says which; it never hangs, never spins, loses no frame from its books, and
# leaves nothing behind.
# shellcheck disable=SC2016,SC2119,SC2317 # jq programs; lab_up without options; functions called by name
# shellcheck source=tests/netns/lib.sh
. "$(dirname "$0")/lib.sh"

# Collapsing pages into huge ones takes longer than all else of a start.
lean=(--set umem.hugepages=0)
up() { xd_up "$@" "${lean[@]}"; }
send() { on "$HA" "${XDPATH[@]}" source a0 --rate 20k --quiet "${lean[@]}" "$@"; }

run_files() { [ ! -e "/run/netns/$1" ] || find /run/xdpath -type f -name "*$(stat -L -c %i "/run/netns/$1")*" 2>/dev/null | sort; }
moving() { [ "$(stat_of "$HB" b0 rx packets)" -gt "$1" ]; }
said() { grep -Eq -e "$2" "$TMP/$1.err"; } # TAG PATTERN

line() { # OPTIONS of xdpath-lab up
	lab_up --line "$@"
	no_ipv6 "$HA" a0
	no_ipv6 "$HB" b0
}

# The event is told in time.
told() { # WHAT TAG PATTERN
	t "$1: told" within 5 said "$2" "^xdpath [a-z]*: $3"
}

# One line for each event, seen at the end of a run.
lines() { # WHAT TAG LINES
	if [ "$(wc -l <"$TMP/$2.err")" = "$3" ]; then pass "$1: told in a line each"; else
		fail "$1: told in a line each" "want $3, got:" "$(head -n 9 "$TMP/$2.err")"
	fi
}

# CPU time of all its threads, in microseconds.
cpu_us() { # TAG
	cat "/proc/${xd_pid[$1]}/task/"*/schedstat 2>/dev/null | awk '{n += $1} END {printf "%d\n", n / 1000}'
}

# Blocking costs nothing: of one second without traffic less than a fiftieth.
no_spin() { # WHAT TAG
	local c
	sleep 0.1
	c=$(cpu_us "$2")
	sleep 1
	num "$1: CPU of an idle second, us" "$(($(cpu_us "$2") - c))" -lt 20000
}

# Nothing of a run is left on a device or under /run.
nothing_left() { # WHAT HOST:DEVICE...
	local what=$1 d left=''
	shift
	for d in "$@"; do
		left+=$(ip -n "${d%:*}" -d -j link show "${d#*:}" |
			jq -r '.[0] | .xdp // empty, select(.promiscuity != 0) | "\(.) "')
	done
	is "$what: no program, no promiscuity, no file is left" "$left$(run_files "$HA")$(run_files "$HB")$(run_files "$HD")" ""
}

# The books of the forwarder: what came in went out, or was counted.
books() { # WHAT
	all_home "$1" f
	is "$1: wrong moves; received = sent on or counted, both ways" "$(j f '
		([.frames.wrong_moves, .ports[].descriptors_bad, .ports[].completions_bad] | add) as $wrong
		| .ports | [.[] | .tx_packets + .drops.tx_stall + .drops.tx_too_big] as $out
		| "\($wrong) \(.[0].rx_packets - $out[1]) \(.[1].rx_packets - $out[0])"')" "0 0 0"
}

begin() { # ARGS of forward
	was_d0=$(stat_of "$HD" d0 rx packets) was_b0=$(stat_of "$HB" b0 rx packets)
	up f "$HD" forward d0 d1 "$@"
}

# A run that an event let go on is stopped; the counters of the interfaces, over its whole life, agree.
went_on() { # WHAT LINES
	xd_stop f
	lines "$1" f "$2"
	is "$1: status 0" "${xd_rc[f]}" 0
	books "$1"
	is "$1: d0 and b0 received what it says" "$(j f '.ports | "\(.[0] | .rx_packets + .drops.rx_ring_full + .drops.rx_no_frame) \(
		.[1] | .tx_packets - .drops.tx_device - .drops.tx_unsent)"')" \
		"$(($(stat_of "$HD" d0 rx packets) - was_d0)) $(($(stat_of "$HB" b0 rx packets) - was_b0))"
	nothing_left "$1" "$HD:d0" "$HD:d1"
}

# A run that the event ended, by itself.
ended() { # WHAT TAG PATTERN
	xd_wait "$2" 5
	t "$1: told why" said "$2" "^xdpath [a-z]*: $3"
	lines "$1" "$2" 1
	is "$1: status 1" "${xd_rc[$2]}" 1
	all_home "$1" "$2"
	is "$1: no wrong move" "$(j "$2" .frames.wrong_moves)" 0
}

# Traffic flows again, and nothing of it is lost.
flows() { # WHAT
	local b
	b=$(stat_of "$HB" b0 rx packets)
	t "$1: 2000 frames sent" send -c 2000
	within 2 moving $((b + 1999))
	is "$1: 2000 frames came" "$(($(stat_of "$HB" b0 rx packets) - b))" 2000
}

traffic() {
	up s "$HA" source a0 --rate 5k "$@"
	within 3 moving "$was_b0"
}

traffic_off() {
	xd_stop s
	sleep 0.1
}

# ---- it goes on -------------------------------------------------------------------------------------

line
for mode in copy generic; do
	for dev in d0 d1; do
		what="$mode, $dev set down and up"
		begin -m $mode
		traffic
		ip -n "$HD" link set $dev down
		told "$what" f "$dev: set down; goes on when it is up again"
		traffic_off
		no_spin "$what" f
		ip -n "$HD" link set $dev up
		told "$what" f "$dev: set up again; goes on"
		sleep 0.1
		flows "$what"
		went_on "$what" 2
	done
done

# While a device is down, poll() says nothing of what its RX ring holds.
for mode in copy generic; do
	what="$mode, set down with frames in the ring"
	begin -m $mode
	kill -STOP "${xd_pid[f]}"
	send -c 50
	ip -n "$HD" link set d0 down
	kill -CONT "${xd_pid[f]}"
	t "$what: they are carried" within 2 moving $((was_b0 + 49))
	told "$what" f "d0: set down"
	ip -n "$HD" link set d0 up
	told "$what" f "d0: set up again"
	went_on "$what" 2
done

what="down and at once up"
begin
traffic
ip -n "$HD" link set d1 down
ip -n "$HD" link set d1 up
told "$what" f "d1: was set down and up again; goes on"
traffic_off
flows "$what"
went_on "$what" 1

what="stopped while down"
begin
traffic
ip -n "$HD" link set d1 down
sleep 0.3
traffic_off
xd_stop f
is "$what: status 0" "${xd_rc[f]}" 0
books "$what"
nothing_left "$what" "$HD:d0" "$HD:d1"
ip -n "$HD" link set d1 up

what="renamed"
on "$HD" ethtool -K d0 rxvlan on
begin
traffic
ip -n "$HD" link set d0 name x0
told "$what" f "d0: called x0 now; goes on"
traffic_off
flows "$what"
no_spin "$what" f
ip -n "$HD" link set x0 mtu 1400
told "$what, then its MTU" f "x0: MTU 1400 now, was 1500"
xd_stop f
nothing_left "$what" "$HD:x0" "$HD:d1"
is "$what: what it had turned off is on again" "$(on "$HD" ethtool -k x0 | awk '/^rx-vlan-offload/ {print $2}')" on
ip -n "$HD" link set x0 name d0
ip -n "$HD" link set d0 mtu 1500
on "$HD" ethtool -K d0 rxvlan off
is "$what: status 0" "${xd_rc[f]}" 0
books "$what"

what="carrier lost and back"
begin
traffic
ip -n "$HB" link set b0 down
told "$what" f "d1: no carrier; goes on when it is back"
traffic_off
no_spin "$what" f
ip -n "$HB" link set b0 up
told "$what" f "d1: carrier again; goes on"
flows "$what"
went_on "$what" 2

for mode in copy generic; do
	what="$mode, MTU lowered and back"
	begin -m $mode
	send --size 1400 -c 500
	ip -n "$HD" link set d1 mtu 1000
	told "$what" f "d1: MTU 1000 now, was 1500; longer packets are dropped and counted \(tx_too_big\)"
	b=$(stat_of "$HB" b0 rx packets)
	send --size 1011-1018 -c 800
	send --size 1400 -c 500
	within 2 moving $((b + 399))
	is "$what: half of those around it came" "$(($(stat_of "$HB" b0 rx packets) - b))" 400
	ip -n "$HD" link set d1 mtu 1500
	told "$what" f "d1: MTU 1500 now, was 1000"
	b=$(stat_of "$HB" b0 rx packets)
	send --size 1400 -c 500
	within 2 moving $((b + 499))
	is "$what: all come again" "$(($(stat_of "$HB" b0 rx packets) - b))" 500
	went_on "$what" 2
	is "$what: longer ones were counted, nothing else" "$(j f '.ports[1].drops.tx_too_big') $(dropped f)" "900 900"
done

what="MTU lowered under traffic above it"
begin
traffic --size 1400
ip -n "$HD" link set d1 mtu 1000
told "$what" f "d1: MTU 1000 now"
sleep 0.2
ip -n "$HD" link set d1 mtu 1500
told "$what" f "d1: MTU 1500 now"
traffic_off
flows "$what"
went_on "$what" 2
num "$what: some were too big" "$(j f '.ports[1].drops.tx_too_big')" -gt 100

what="sink set down and up"
up f "$HD" sink d0 --all=l2
up s "$HA" source a0 --rate 20k
sleep 0.1
ip -n "$HD" link set d0 down
told "$what" f "d0: set down; goes on"
xd_stop s
no_spin "$what" f
ip -n "$HD" link set d0 up
told "$what" f "d0: set up again; goes on"
was_d0=$(stat_of "$HD" d0 rx packets)
send -c 1000
sleep 0.1
is "$what: received again" "$(($(stat_of "$HD" d0 rx packets) - was_d0))" 1000
xd_stop f
lines "$what" f 2
is "$what: status 0" "${xd_rc[f]}" 0
all_home "$what" f
nothing_left "$what" "$HD:d0"

for rate in 20k max; do
	what="source, rate $rate, set down and up"
	if [ $rate = max ]; then up s "$HA" source a0; else up s "$HA" source a0 --rate $rate; fi
	ip -n "$HA" link set a0 down
	told "$what" s "a0: set down; goes on"
	no_spin "$what" s
	ip -n "$HA" link set a0 up
	told "$what" s "a0: set up again; goes on"
	was_d0=$(stat_of "$HD" d0 rx packets)
	sleep 0.3
	num "$what: sends again" "$(($(stat_of "$HD" d0 rx packets) - was_d0))" -gt 100
	xd_stop s
	lines "$what" s 2
	is "$what: status 0" "${xd_rc[s]}" 0
	all_home "$what" s
	nothing_left "$what" "$HA:a0"
done
lab_down

# ---- queues -----------------------------------------------------------------------------------------

queues() { # N HOST:DEV...
	local n=$1 d
	shift
	for d in "$@"; do
		on "${d%:*}" ethtool -L "${d#*:}" rx "$n" tx "$n" || fail "ethtool -L ${d#*:} rx $n"
	done
}

no_queues() {
	! on "$HD" ethtool -L d0 rx 1 tx 1
}

to_kernel() { on "$HD" tc -s -j qdisc show dev d0 clsact | jq '[.[] | select(.kind == "clsact") | .packets] | add'; }

line --queues 4
queues 1 "$HA:a0" "$HB:b0" "$HD:d0" "$HD:d1"
# Counts what the stack gets; a classifier must be there for that.
on "$HD" tc qdisc add dev d0 clsact
on "$HD" tc filter add dev d0 ingress protocol all u32 match u32 0 0 classid 1:1
what="queues grown"
begin
traffic
queues 4 "$HD:d0"
told "$what" f "d0: 4 queues now, were 1: the new ones are not read, their frames go to the kernel; start again to read them"
traffic_off
flows "$what"
queues 4 "$HA:a0"
d=$(stat_of "$HD" d0 rx packets) b=$(stat_of "$HB" b0 rx packets)
send -q 0-3 -c 2000
within 1 moving $((b + 499))
is "$what: received by four, carried by one, the rest is the kernel's" \
	"$(($(stat_of "$HD" d0 rx packets) - d)) $(($(stat_of "$HB" b0 rx packets) - b)) $(to_kernel)" "2000 500 1500"
xd_stop f
is "$what: status 0" "${xd_rc[f]}" 0
lines "$what" f 1
books "$what"
nothing_left "$what" "$HD:d0" "$HD:d1"
on "$HD" tc qdisc del dev d0 clsact

queues 4 "$HB:b0" "$HD:d1"
queues 2 "$HA:a0"
begin -q 0-1
traffic
what="queues shrunk below one that is bound"
t "$what: the kernel refuses" no_queues
is "$what: nothing is said" "$(cat "$TMP/f.err")" ""
what="queues shrunk above those that are bound"
queues 2 "$HD:d0"
told "$what" f "d0: 2 queues now, were 4; goes on"
traffic_off
flows "$what"
went_on "$what" 1
lab_down

# ---- it ends ----------------------------------------------------------------------------------------

link_of() { # PROG-ID
	bpftool -j link show | jq -r ".[] | select(.type == \"xdp\" and .prog_id == $1) | .id"
}

# What bpftool cannot do: put another program into a link of somebody else's.
link_update() { # LINK-ID PROG-ID
	/usr/bin/python3 -SE - "$@" <<'EOT'
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
NR = {"x86_64": 321}.get(os.uname().machine, 280)
def bpf(cmd, attr):
    buf = ctypes.create_string_buffer(attr.ljust(64, b"\0"), 64)
    r = libc.syscall(NR, cmd, buf, 64)
    if r < 0:
        sys.exit(f"bpf({cmd}): {os.strerror(ctypes.get_errno())}")
    return r
link, prog = (bpf(cmd, struct.pack("=I", int(i))) for cmd, i in ((30, sys.argv[1]), (13, sys.argv[2])))
bpf(29, struct.pack("=III", link, prog, 0))
EOT
}

gone="removed, or moved to another namespace; start again where it is"
detached="the XDP program was detached by someone else; nothing arrives any more, ends"
replaced="the XDP program was replaced by \"xdpath_pass\" \(id [0-9]+\), by someone else; nothing arrives any more, ends"

for mode in copy generic; do
	line
	what="$mode, detached"
	begin -m $mode
	traffic
	t "$what: bpftool" bpftool link detach id "$(link_of "$(xdp_prog_id "$HD" d0)")"
	ended "$what" f "d0: $detached"
	traffic_off
	books "$what"
	nothing_left "$what" "$HD:d0" "$HD:d1"

	what="$mode, detached, and another attached"
	begin -m $mode
	traffic
	kill -STOP "${xd_pid[f]}" # or it may see the moment between the two
	bpftool link detach id "$(link_of "$(xdp_prog_id "$HD" d1)")"
	ip -n "$HD" link set dev d1 "$([ $mode = copy ] && echo xdpdrv || echo xdpgeneric)" \
		obj "$B/bpf/xdpath_pass.bpf.o" sec xdp.frags
	kill -CONT "${xd_pid[f]}"
	ended "$what" f "d1: $replaced"
	traffic_off
	books "$what"
	is "$what: the other one's stays" "$(ip -n "$HD" -j link show d1 | jq -r '.[0].xdp.prog.name')" xdpath_pass
	ip -n "$HD" link set dev d1 "$([ $mode = copy ] && echo xdpdrv || echo xdpgeneric)" off
	nothing_left "$what" "$HD:d0" "$HD:d1"

	what="$mode, replaced in its link"
	begin -m $mode
	traffic
	ip -n "$HB" link set dev b0 xdpgeneric obj "$B/bpf/xdpath_pass.bpf.o" sec xdp.frags
	t "$what: done" link_update "$(link_of "$(xdp_prog_id "$HD" d0)")" "$(xdp_prog_id "$HB" b0)"
	ended "$what" f "d0: $replaced"
	traffic_off
	books "$what"
	ip -n "$HB" link set dev b0 xdpgeneric off
	nothing_left "$what" "$HD:d0" "$HD:d1"

	what="$mode, moved to another namespace"
	begin -m $mode
	traffic
	ip -n "$HD" link set d1 netns "$HB"
	ended "$what" f "d1: $gone"
	traffic_off
	books "$what"
	ip -n "$HB" link set d1 up
	nothing_left "$what" "$HD:d0" "$HB:d1"
	lab_down

	line
	what="$mode, deleted"
	begin -m $mode
	traffic
	ip -n "$HD" link del d1
	ended "$what" f "d1: $gone"
	traffic_off
	books "$what"
	nothing_left "$what" "$HD:d0"

	what="$mode, reflect, peer deleted"
	up f "$HD" reflect d0 --all=l2 -m $mode
	traffic
	ip -n "$HA" link del a0
	ended "$what" f "d0: $gone"
	is "$what: received is sent or counted" "$(j f '.ports[0].rx_packets')" "$(j f '.ports[0] | .tx_packets + .drops.tx_stall')"
	ended "$what: the source's device" s "a0: $gone"
	nothing_left "$what"
	lab_down
done

lab_up
what="idle sink, deleted"
up f "$HB" sink b0 --all=l2
ip -n "$HB" link del b0
ended "$what" f "b0: $gone"
nothing_left "$what"
lab_down
finish
