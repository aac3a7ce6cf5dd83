#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
#
# tests/run.sh SUITE... [NAME...]: run the suites `unit`, `netns`, `conf` and `vm`, only the tests named if any are.
# Called by `make check`; B is the build folder, V=1 shows all output, LONG=1 runs the long loops.
# The last line is always "N passed, N failed, N skipped"; exit 1 if anything failed.
set -u
export LC_ALL=C PATH="$PATH:/usr/sbin:/sbin"
cd "$(dirname "$0")/.." || exit 1

export B=${B:-build} LONG=${LONG:-}
# Everything the tests make carries this mark: names of namespaces, environment of processes.
export XDPATH_TEST_ID=t$$
limit=${TEST_TIMEOUT:-$([ -n "$LONG" ] && echo 3600 || echo 420)}
passed=0 failed=0 skipped=0
suites=() names=()
for arg in "$@"; do
	case $arg in
	unit | netns | conf | vm) suites+=("$arg") ;;
	-*) echo "run.sh: unknown option '$arg'; usage: tests/run.sh unit|netns|conf|vm... [NAME...]" >&2 && exit 2 ;;
	*) names+=("$arg") ;;
	esac
done
[ ${#suites[@]} -gt 0 ] || suites=(unit netns conf)

XDPATH_TEST_TMP=$(mktemp -d) || exit 1
export XDPATH_TEST_TMP
trap 'rm -rf "$XDPATH_TEST_TMP"' EXIT
trap 'echo "interrupted"; exit 1' INT TERM

# The runtimes of the sanitizers cannot live with every address layout the kernel may choose.
launch=()
case $B in *san-*) launch=(setarch -R) ;; esac

wanted() { # NAME
	local n
	[ ${#names[@]} -gt 0 ] || return 0
	for n in "${names[@]}"; do
		[ "$n" = "$1" ] && return 0
	done
	return 1
}

add() { # SUITE NAME P F S SECONDS OUTPUT-FILE
	local text="$3 passed"
	[ "$4" = 0 ] || text+=", $4 FAILED"
	[ "$5" = 0 ] || text+=", $5 skipped"
	printf '  %-6s %-16s %-34s %4s s\n' "$1" "$2" "$text" "$6"
	if [ "$4" != 0 ] || [ -n "${V:-}" ]; then
		sed 's/^/         | /' "$7"
	elif [ "$5" != 0 ]; then
		grep -E '^skip|# SKIP' "$7" | sed 's/^/         | /'
	fi
	passed=$((passed + $3)) failed=$((failed + $4)) skipped=$((skipped + $5))
}

# Run one test under the watchdog; its output goes to $out, what it returned to $rc.
run_one() { # CMD...
	local begin=$SECONDS
	# The braces keep the shell's own word about a crashed child out of our output.
	{ timeout -k 15 "$limit" "$@" >"$out" 2>&1 </dev/null; } 2>/dev/null
	rc=$?
	took=$((SECONDS - begin))
	case $rc in
	124 | 137) echo "not finished after $limit s: ended by the watchdog" >>"$out" ;;
	esac
}

run_unit() {
	local f name p n s out=$XDPATH_TEST_TMP/out rc took any=0
	for f in "$B"/tests/unit/*; do
		name=${f##*/}
		if [ ! -f "$f" ] || [ ! -x "$f" ] || ! wanted "$name"; then continue; fi
		any=1
		CMOCKA_MESSAGE_OUTPUT=TAP run_one "${launch[@]}" "$f"
		s=$(grep -c '^\(not \)\?ok .*# SKIP' "$out")
		p=$(grep '^ok ' "$out" | grep -vc '# SKIP')
		n=$(grep '^not ok ' "$out" | grep -vc '# SKIP')
		# A test that crashed, or ran nothing, is a failure whatever it said before.
		if [ "$rc" != 0 ] && [ "$n" = 0 ]; then
			n=1
			echo "ended with status $rc" >>"$out"
		elif [ $((p + n + s)) = 0 ]; then
			n=1
			echo "no test ran" >>"$out"
		fi
		add unit "$name" "$p" "$n" "$s" "$took" "$out"
	done
	[ $any = 1 ] || [ ${#names[@]} -gt 0 ] || missing unit "no test binaries in $B/tests/unit; run 'make check-unit'"
}

missing() { # SUITE TEXT
	echo "$2" >"$XDPATH_TEST_TMP/out"
	add "$1" - 0 1 0 0 "$XDPATH_TEST_TMP/out"
}

skip() { # SUITE NAME WHY
	echo "skip $2: $3" >"$XDPATH_TEST_TMP/out"
	add "$1" "$2" 0 0 1 0 "$XDPATH_TEST_TMP/out"
}

# Why namespace tests cannot run here; nothing if they can.
obstacle() {
	local dir
	[ "$(id -u)" = 0 ] || { echo "not root: namespaces and XDP need it" && return; }
	grep -q '^XDP ' /proc/net/protocols || { echo "this kernel has no AF_XDP (CONFIG_XDP_SOCKETS)" && return; }
	dir=$(unshare --net true 2>&1) || { echo "no network namespaces here: ${dir}" && return; }
	unshare --net ip link add name v0 type veth peer name v1 2>/dev/null || echo "this kernel has no veth (CONFIG_VETH)"
}

# One script with its totals, in the background: its output, status and time into files of its own.
script_job() { # SUITE NAME LETTER SCRIPT
	export XDPATH_TEST_LETTER=$3
	local out=$XDPATH_TEST_TMP/$1.$2 rc took
	run_one bash "$4"
	echo "$rc $took" >"$out.end"
}

script_result() { # SUITE NAME
	local out=$XDPATH_TEST_TMP/$1.$2 rc took p='' n='' s=''
	read -r rc took <"$out.end"
	read -r p n s < <(tail -n 40 "$out" |
		sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed, \([0-9]*\) skipped$/\1 \2 \3/p' | tail -n 1)
	if [ -z "$s" ] || { [ "$rc" != 0 ] && [ "$n" = 0 ]; }; then
		n=$((${n:-0} + 1))
		echo "ended with status $rc" >>"$out"
	fi
	add "$1" "$2" "${p:-0}" "$n" "${s:-0}" "$took" "$out"
}

# They mostly wait, and know nothing of each other: JOBS (2) at a time.
run_netns() {
	local f name why todo=() running=0 letters=abcdefghijklmnopqrstuvwxyz
	for f in tests/netns/test_*.sh; do
		name=${f##*/test_}
		name=${name%.sh}
		if wanted "$name"; then todo+=("$name"); fi
	done
	[ ${#todo[@]} -gt 0 ] || return 0
	why=$(obstacle)
	if [ -n "$why" ]; then
		for name in "${todo[@]}"; do
			skip netns "$name" "$why"
		done
		return
	fi
	for name in "${todo[@]}"; do
		if [ "$running" -ge "${JOBS:-2}" ]; then
			wait -n
			running=$((running - 1))
		fi
		script_job netns "$name" "${letters:0:1}" "tests/netns/test_$name.sh" &
		letters=${letters:1}
		running=$((running + 1))
	done
	wait
	for name in "${todo[@]}"; do
		script_result netns "$name"
	done
	check_leftovers
}

# The conformance suite: one binary, TAP. The long run: much fuzz once, then all rows 50 times in a row.
run_conf() {
	local p n s i out=$XDPATH_TEST_TMP/out rc took times=1
	[ -x "$B/tests/conf/conf" ] || { missing conf "no $B/tests/conf/conf; run 'make conformance'" && return; }
	[ -z "$LONG" ] || times=50
	for ((i = 1; i <= times; i++)); do
		if [ -n "$LONG" ] && [ "$i" = 1 ]; then
			run_one "${launch[@]}" "$B/tests/conf/conf" --long "${names[@]}"
		else
			run_one "${launch[@]}" "$B/tests/conf/conf" "${names[@]}"
		fi
		[ "$rc" != 2 ] || [ ${#names[@]} = 0 ] || return # a name of another suite's
		s=$(grep -c '^ok .*# SKIP\|^1\.\.0 # SKIP' "$out")
		p=$(grep '^ok ' "$out" | grep -vc '# SKIP')
		n=$(grep -c '^not ok ' "$out")
		if [ "$rc" != 0 ] && [ "$rc" != 77 ] && [ "$n" = 0 ]; then
			n=1
			echo "ended with status $rc" >>"$out"
		fi
		add conf "run $i" "$p" "$n" "$s" "$took" "$out"
	done
}

# Guest tests: a boot for each line of tests/vm/short; in the long run of tests/vm/all, and the lab's own test.
run_vm() {
	local list=tests/vm/short line args
	[ ${#names[@]} = 0 ] || return 0 # `make vm-run` runs a single one
	[ "$(id -u)" = 0 ] || { skip vm machines "not root: taps and namespaces need it" && return; }
	if [ -n "$LONG" ]; then
		list=tests/vm/all
		script_job vm selftest '' tests/vm/selftest.sh
		script_result vm selftest
	fi
	while read -r line; do
		read -ra args <<<"${line%%#*}"
		[ ${#args[@]} = 0 ] || boot "${args[@]}" || return
	done <$list
}

# One machine; a row for each of its tests. Status 1 if there can be no machine here.
boot() { # ARGS of lab run
	local dir=$XDPATH_TEST_TMP/vm out=$XDPATH_TEST_TMP/out name p n s took begin=$SECONDS
	rm -rf "$dir"
	tests/vm/lab run -o "$dir" "$@" >"$out" 2>&1 </dev/null
	case $? in
	0 | 1) [ ! -s "$dir/results" ] || echo "  vm     $(head -n 1 "$out") ($((SECONDS - begin)) s)" ;;
	77) skip vm machines "$(tail -n 1 "$out")" && return 1 ;;
	esac
	[ -s "$dir/results" ] || { add vm "$*" 0 1 0 $((SECONDS - begin)) "$out" && return; }
	while read -r name p n s took; do
		add vm "$name" "$p" "$n" "$s" "$took" "$dir/$name.log"
	done <"$dir/results"
}

# Processes with our mark in their environment. This script got it after its start, so has it not; the
# helpers here must not have it either.
marked_processes() (
	mark="XDPATH_TEST_ID=$XDPATH_TEST_ID"
	unset XDPATH_TEST_ID
	grep -lzx "$mark" /proc/[0-9]*/environ 2>/dev/null | tr -dc '0-9\n'
)

# What the tests left behind, a line each.
leftovers() {
	local ns pid inode prog
	for ns in $(ip netns list | awk '{print $1}'); do
		[[ $ns == "$XDPATH_TEST_ID"* ]] && echo "namespace $ns"
	done
	for pid in $(marked_processes); do
		echo "process $pid $(tr '\0' ' ' <"/proc/$pid/cmdline")"
	done
	sort -u "$XDPATH_TEST_TMP/inodes" 2>/dev/null | while read -r inode; do
		find /run/xdpath -type f -name "*$inode*" 2>/dev/null
	done
	# A program that nobody holds and no living interface carries cannot be seen in a namespace any more.
	for prog in $(orphans); do
		grep -qx "$prog" "$XDPATH_TEST_TMP/orphans" || echo "BPF program $prog, held by no process"
	done
}

# Ids of XDP programs with our marker map that no process holds, by the program or by a link to it.
orphans() {
	bpftool -j map show 2>/dev/null | jq '.[] | select(.name == "xdpath_meta") | .id' >"$XDPATH_TEST_TMP/maps"
	bpftool -j link show 2>/dev/null | jq '.[] | select((.pids // []) != []) | .prog_id' >"$XDPATH_TEST_TMP/linked"
	bpftool -j prog show 2>/dev/null |
		jq --slurpfile maps "$XDPATH_TEST_TMP/maps" --slurpfile linked "$XDPATH_TEST_TMP/linked" \
			'.[] | select(.type == "xdp" and (.pids // []) == [])
			| select((.map_ids // []) - $maps != (.map_ids // [])) | .id' |
		grep -vxF -f "$XDPATH_TEST_TMP/linked"
}

check_leftovers() {
	local out=$XDPATH_TEST_TMP/out tries
	# The kernel frees namespaces and programs some time after their last user went.
	for ((tries = 0; tries < 30; tries++)); do
		leftovers >"$out" 2>/dev/null
		[ -s "$out" ] || break
		sleep 0.1
	done
	if [ -s "$out" ]; then
		add netns leftovers 0 1 0 0 "$out"
	else
		add netns leftovers 1 0 0 0 "$out"
	fi
}

orphans >"$XDPATH_TEST_TMP/orphans" 2>/dev/null
for suite in "${suites[@]}"; do
	"run_$suite"
done
[ $((passed + failed + skipped)) -gt 0 ] || missing - "no test of that name: ${names[*]}"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
