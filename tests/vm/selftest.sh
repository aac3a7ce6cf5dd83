#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
# The VM lab tells the truth: what fails, hangs or panics in the guest is a failure here, one test does not
# spoil the next, wrong arguments and an unreachable mirror are refused in a line.
# shellcheck disable=SC2016 # scripts are for the guest
# shellcheck source=tests/netns/lib.sh
. "$(dirname "$0")/../netns/lib.sh"

VM=tests/vm/lab
export B XDPATH_VM_CACHE=${XDPATH_VM_CACHE:-$PWD/build/vm}

guest() { # NAME SCRIPT
	printf '%s\n' "$2" >"$TMP/$1.sh"
}

# Run guest scripts in one machine; sets rc and last.
vm() { # OPTIONS NAMES...
	local args=() a
	for a in "$@"; do
		if [ -e "$TMP/$a.sh" ]; then args+=("$TMP/$a.sh"); else args+=("$a"); fi
	done
	timeout -k 5 400 "$VM" run "${args[@]}" >"$TMP/out" 2>&1 </dev/null
	rc=$?
	last=$(tail -n 1 "$TMP/out")
}

has() { # NAME PATTERN: in the output
	if grep -Eq -e "$2" "$TMP/out"; then pass "$1"; else fail "$1" "no line like: $2" "$(tail -n 12 "$TMP/out")"; fi
}

refuses "an unknown NIC" 2 "^lab: no NIC 'ixgbe'" "$VM" run -n ixgbe smoke
refuses "queues of a NIC that takes none" 2 "^lab: no NIC 'e1000e:4'" "$VM" run -n e1000e:4 smoke
refuses "more queues than there can be" 2 "^lab: no NIC 'virtio:9'" "$VM" run -n virtio:9 smoke
refuses "an unknown test" 2 "^lab: no guest test 'nosuch'" "$VM" run nosuch
refuses "a script that is not there" 2 "^lab: no file './nosuch'" "$VM" run ./nosuch
refuses "an unknown kernel" 2 "^lab: unknown kernel '5.0'" "$VM" prepare 5.0
refuses "no test" 2 "^lab: which test" "$VM" run -n igb
refuses "no command" 2 "^lab: prepare, run or shell" "$VM"
refuses "a shell without a terminal" 2 "^lab: a shell needs a terminal" "$VM" shell igb

# Another host: its sources, its system, an empty cache.
mkdir -p "$TMP/apt"/{sources.list.d,apt.conf.d,preferences.d,trusted.gpg.d}
elsewhere() { # NAME CODE PATTERN OS
	printf 'ID=%s\nVERSION_CODENAME=%s\n' "${4% *}" "${4#* }" >"$TMP/os"
	refuses "$1" "$2" "$3" unshare -m sh -ec "mount --bind $TMP/apt /etc/apt; mount --bind $TMP/os /etc/os-release
		XDPATH_VM_CACHE=$TMP/cache exec $VM prepare 6.1"
}

nowhere=http://127.0.0.1:9
elsewhere "another system" 77 "^lab: .*Debian 12 or 13 .*; this is ubuntu noble" "ubuntu noble"
elsewhere "no source of its own suite" 77 "^lab: no source in /etc/apt has the suite bookworm; set" "debian bookworm"
echo "deb [arch=amd64 trusted=no] $nowhere/classic bookworm main" >"$TMP/apt/sources.list"
elsewhere "a mirror that cannot be reached, of a classic sources.list" 77 \
	"^lab: cannot get .* from $nowhere/classic .*; check the network, or set XDPATH_VM_MIRROR" "debian bookworm"
printf '%s\n' "Types: deb" "URIs: $nowhere/other" "Suites: bookworm-security" "" "Types: deb" "# why" \
	"Suites: bookworm bookworm-updates" "URIs: $nowhere/deb822" "Components: main" >"$TMP/apt/sources.list.d/debian.sources"
elsewhere "the same, of a .sources file" 77 "^lab: cannot get .* from $nowhere/deb822 " "debian bookworm"

"$VM" prepare >"$TMP/o" 2>&1
rc=$?
if [ $rc = 77 ]; then
	skip "machines" "$(tail -n 1 "$TMP/o")"
	finish
fi
is "prepare" "$rc" 0

guest good 'echo "2 passed, 0 failed, 1 skipped"'
guest bad 'echo "FAIL something"; echo "1 passed, 1 failed, 0 skipped"; exit 1'
guest silent 'true'
guest liar 'echo "3 passed, 0 failed, 0 skipped"; exit 1'
guest messy 'ip netns add left; ip link set igb0 netns left; ip link set igb1 mtu 2000 up; ethtool -L igb1 combined 1
ip netns exec left sleep 1000 & sleep 1000'
guest after '[ "$(ip netns list)$(pidof sleep)$(cat /sys/class/net/igb1/mtu)" = 1500 ] && ip link show igb0 &&
[ "$(ethtool -l igb1 | grep -c "Combined:.*2")" = 1 ] && echo "1 passed, 0 failed, 0 skipped"'
guest panic 'echo c >/proc/sysrq-trigger; sleep 10'
guest never 'echo "9 passed, 0 failed, 0 skipped"'

vm -n igb -t 4 good bad silent liar messy after panic never
is "a guest with failures, a hang and a panic: status" "$rc" 1
# good 2+1 skipped; bad 1+1; silent 0+1; liar 3+1; messy 0+1; after 1; the panic 0+1
is "all of it counted" "$last" "7 passed, 5 failed, 1 skipped"
has "a test that hangs is ended" '^FAIL not finished after 4 s'
has "a test without totals is a failure" '^FAIL ended with status 0$'
has "a test with totals and a bad status is a failure" '^FAIL ended with status 1 although'
has "a panic is reported, with the tests it took along" '^FAIL the guest died .*: panic never$'
has "a panic is reported with the console" 'console: .*sysrq'
has "the first line names kernel and accelerator" '^lab: Linux [0-9.]+.* \(new\), (tcg|kvm),'

# Its watchdog, and all else in the guest, is stopped.
guest stuck 'kill -STOP $PPID $(cat /proc/$PPID/stat | cut -d " " -f 4); kill -STOP $$'
vm -n igb -t 3 stuck
is "a guest that hangs: status, totals" "$rc $last" "1 0 passed, 1 failed, 0 skipped"
has "a guest that hangs is ended and reported" '^FAIL the guest hung, without a result of: stuck$'
left=0
for dir in "$XDPATH_VM_CACHE"/run.*; do # run.PID.RANDOM
	pid=${dir##*/run.}
	if [ -d "$dir" ] && [ ! -e "/proc/${pid%.*}" ]; then left=$((left + 1)); fi
done
is "folders of runs left behind" "$left" 0
finish
