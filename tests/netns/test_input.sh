#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
# Bad input and bad circumstances: one line that names cause and cure, the right exit code, and
# nothing left behind.
# shellcheck disable=SC2016,SC2119,SC2317 # awk programs; lab_up without options; functions called by name
# shellcheck source=tests/netns/lib.sh
. "$(dirname "$0")/lib.sh"

lab_up
x() { # NAME CODE PATTERN ARGS of xdpath
	local name=$1 code=$2 pattern=$3
	shift 3
	refuses "$name" "$code" "^xdpath.*$pattern" on "$HB" "${XDPATH[@]}" "$@"
}

# ---- usage: 2 -------------------------------------------------------------------------------------
on "$HB" "${XDPATH[@]}" >"$TMP/usage" 2>&1
is "no verb: the verbs are listed, status" "$? $(grep -c -E '^  (probe|status|forward|sink|source) ' "$TMP/usage")" "2 5"
x "unknown verb" 2 "forwrad.*;.*forward" forwrad b0
x "unknown option" 2 "sink: .*--al.*;" sink b0 --al-2
x "unknown short option" 2 "sink: .*-Z.*;" sink b0 -Z
x "option of another verb" 2 "sink: .*--rate.*;" sink b0 --rate 10
x "option without its value" 2 "sink: .*--mode.*;" sink b0 --mode
x "no device" 2 "sink: .*;" sink --all
x "a device too many" 2 "sink: .*;" sink b0 b1 --all
x "unknown mode" 2 "fast.*;.*generic" sink b0 --all --mode fast
x "queue list" 2 "0-x.*;" sink b0 --all -q 0-x
x "unknown knob" 2 "ring\.rxx.*;.*ring\.rx" sink b0 --all --set ring.rxx=64
x "knob without a value" 2 "ring\.rx.*;" sink b0 --all --set ring.rx
x "ring not a power of two" 2 "ring\.rx.*1000.*power of two.*;" sink b0 --all --set ring.rx=1000
x "ring too small" 2 "ring\.rx.*;" sink b0 --all --set ring.rx=8
x "frames of 3000 bytes" 2 "umem\.frame_size.*3000.*;.*4096" sink b0 --all --set umem.frame_size=3000
x "no such config file" 2 "nowhere\.conf.*;" sink b0 --all --config "$TMP/nowhere.conf"
printf 'rx.batch = 32\nring.rx = x\n' >"$TMP/bad.conf"
x "bad line in a config file" 2 "bad\.conf.*2.*ring\.rx.*;" sink b0 --all --config "$TMP/bad.conf"
x "sink without saying what" 2 "sink: .*;.*--all" sink b0
x "rate" 2 "--rate.*quick.*;" source b0 --rate quick
x "frame above the MTU" 2 "--size.*1515.*1514.*MTU" source b0 --size 1515
x "MAC" 2 "--dst-mac.*;" source b0 --dst-mac 02:00
x "address" 2 "--dst.*;" source b0 --dst 10.77.0.300
x "mixed families" 2 "--src.*--dst.*;" source b0 --src 10.77.0.1 --dst fd77::2
x "worst better than best" 2 "generic.*copy.*;" sink b0 --all --mode generic --worst copy
x "the same device twice" 2 "b0.*;" forward b0 b0
x "more workers than queues" 2 "workers.*;.*--workers 1" sink b0 --all --workers 2

# ---- failures: 1 ----------------------------------------------------------------------------------
x "no such device" 1 "b00: no such device.*b0" sink b00 --all
x "no such device for forward's second" 1 "b9: no such device" forward b0 b9
x "queue out of range" 1 "b0 queue 7.*only queue 0.*;" sink b0 --all -q 7
ip -n "$HB" link set b0 down
x "device down" 1 "b0.*down.*;.*ip link set b0 up" sink b0 --all
ip -n "$HB" link set b0 up
refuses "not root: sink" 1 "^xdpath sink: .*;.*root" \
	on "$HB" setpriv --reuid=65534 --regid=65534 --clear-groups "${XDPATH[@]}" sink b0 --all
refuses "not root: forward" 1 "^xdpath forward: .*;.*root" \
	on "$HB" setpriv --reuid=65534 --regid=65534 --clear-groups "${XDPATH[@]}" forward b0
refuses "locked memory too small" 1 "^xdpath sink: .*RLIMIT_MEMLOCK.*;.*ulimit -l" \
	on "$HB" setpriv --bounding-set=-ipc_lock --inh-caps=-ipc_lock bash -c 'ulimit -l 64; exec "$@"' - "${XDPATH[@]}" sink b0 --all

# ---- a mode or feature that is not to be had: 3 -----------------------------------------------------
x "zero-copy on a veth" 3 "b0.*zero-copy.*;.*--mode" sink b0 --all --mode zero-copy --worst zero-copy
x "zero-copy on a veth, by --worst" 3 "b0.*zero-copy.*;" sink b0 --all --worst zero-copy
x "zero-copy on a veth, by --mode alone" 3 "b0.*zero-copy.*;" sink b0 --all --mode zero-copy
on "$HB" "${XDPATH[@]}" probe b0 --require zero-copy >"$TMP/o" 2>"$TMP/e"
is "probe --require zero-copy: status" $? 3
t "and it says so in one line" awk '/^xdpath probe: b0: zero-copy.*;/ {n++} END {exit !(n == 1 && NR == 1)}' "$TMP/e"
t "probe --require of what is there" on "$HB" "${XDPATH[@]}" probe b0 --require native
ip -n "$HA" link set a0 mtu 65535
ip -n "$HB" link set b0 mtu 65535
x "MTU 65535 on frames of 2048 bytes" 1 "b0.*MTU 65535.*;.*MTU to [0-9]+ or less.*4096" sink b0 --all --set umem.frame_size=2048
ip -n "$HA" link set a0 mtu 1500
ip -n "$HB" link set b0 mtu 1500

# ---- another program is attached --------------------------------------------------------------------
cat >"$TMP/other.c" <<'TEXT'
__attribute__((section("xdp"), used)) int other_prog(void *ctx) { return 2; }
char terms[] __attribute__((section("license"), used)) = "GPL";
TEXT
${CLANG:-clang} -O2 -target bpf -c "$TMP/other.c" -o "$TMP/other.o"
for attach in xdpdrv xdpgeneric; do
	ip -n "$HB" link set dev b0 $attach obj "$TMP/other.o" sec xdp
	id=$(xdp_prog_id "$HB" b0)
	for mode in auto copy generic; do
		x "another program ($attach), mode $mode: named, with its id" 1 "other_prog.*$id.*;" sink b0 --all -m $mode
	done
	is "it is still there ($attach)" "$(xdp_prog_id "$HB" b0)" "$id"
	ip -n "$HB" link set dev b0 $attach off
done

is "no program is left" "$(xdp_prog_id "$HB" b0)" ""
is "no file under /run/xdpath is left" "$(find /run/xdpath -type f -name "*$(stat -L -c %i "/run/netns/$HB")*" 2>/dev/null)" ""
xd_up k "$HB" sink b0 --all
xd_stop k
ended_well "after all that it works" k
finish
