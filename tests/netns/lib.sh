# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
#
# What the namespace tests share: counted assertions, labs of unique names, xdpath in the background
# with its summary, counters of interfaces. A test sources it, ends with `finish`, and prints
# "N passed, N failed, N skipped" as its last line; whatever it made is removed however it ends.
set -u
export LC_ALL=C PATH="$PATH:/usr/sbin:/sbin"
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1

B=${B:-build}
LAB=tools/xdpath-lab
export XDPATH_TEST_ID=${XDPATH_TEST_ID:-t$$}
exec 3>&1 # where the totals go, even if we end while a function's output goes elsewhere
TMP=$(mktemp -d "${XDPATH_TEST_TMP:-/tmp}/xdpath-test.XXXXXX") || exit 1
XDPATH=("$PWD/$B/xdpath")
case $B in
/*) XDPATH=("$B/xdpath") ;;
esac
case $B in *san-*) XDPATH=(setarch -R "${XDPATH[@]}") ;; esac

# Threads of a process that has no worker yet: the runtime of the thread sanitizer has one of its own.
own_threads=1
case $B in *san-thread*) own_threads=2 ;; esac

passed=0 failed=0 skipped=0 finished=0
labs=() lab_count=0
# shellcheck disable=SC2034 # xd_rc is for the tests
declare -A xd_pid=() xd_rc=()

# ---- assertions -----------------------------------------------------------------------------------

pass() { # NAME
	passed=$((passed + 1))
	echo "ok   $1"
}

fail() { # NAME [DETAIL...]
	failed=$((failed + 1))
	echo "FAIL $1"
	shift
	[ $# -eq 0 ] || printf '     %s\n' "$@"
}

skip() { # NAME REASON
	skipped=$((skipped + 1))
	echo "skip $1: $2"
}

# The command succeeds; if not, its output is shown.
t() { # NAME CMD...
	local name=$1 rc
	shift
	"$@" >"$TMP/o" 2>&1
	rc=$?
	if [ $rc = 0 ]; then pass "$name"; else fail "$name" "status $rc of: $*" "$(tail -n 8 "$TMP/o")"; fi
}

is() { # NAME GOT WANT
	if [ "$2" = "$3" ]; then pass "$1"; else fail "$1" "got  $2" "want $3"; fi
}

# NAME A OP B: whole numbers, OP one of -lt -le -gt -ge
num() {
	if [[ $2 =~ ^-?[0-9]+$ && $4 =~ ^-?[0-9]+$ ]] && test "$2" "$3" "$4"; then
		pass "$1"
	else
		fail "$1" "got $2, want $3 $4"
	fi
}

# The command ends with CODE, prints nothing on stdout and one line on stderr that matches PATTERN.
refuses() { # NAME CODE PATTERN CMD...
	local name=$1 code=$2 pattern=$3 rc lines
	shift 3
	[ "$1" != on ] || set -- ip netns exec "${@:2}" # a program for timeout
	timeout -k 2 20 "$@" >"$TMP/o" 2>"$TMP/e" </dev/null
	rc=$?
	lines=$(wc -l <"$TMP/e")
	if [ "$rc" = "$code" ] && [ "$lines" = 1 ] && [ ! -s "$TMP/o" ] && grep -Eqi -e "$pattern" "$TMP/e"; then
		pass "$name"
	else
		fail "$name" "of: $*" "got  status $rc, $lines lines on stderr: $(head -n 4 "$TMP/e")" \
			"stdout: $(head -n 2 "$TMP/o")" "want status $code, one line matching: $pattern"
	fi
}

# Poll CMD every 20 ms until it succeeds, SECONDS at most.
within() { # SECONDS CMD...
	local end=$((${EPOCHREALTIME/./} + $1 * 1000000))
	shift
	until "$@" >/dev/null 2>&1; do
		[ "${EPOCHREALTIME/./}" -lt $end ] || return 1
		sleep 0.02
	done
}

# ---- labs -----------------------------------------------------------------------------------------

# Makes a lab and sets L (its name), HA, HB and HD (its hosts).
# shellcheck disable=SC2034 # they are for the tests
lab_up() { # [OPTIONS of xdpath-lab up]
	local ns
	L=${XDPATH_TEST_ID}${XDPATH_TEST_LETTER:-}-$((lab_count++)) # other files run beside this one
	HA=$L-a HB=$L-b HD=$L-d
	labs+=("$L")
	"$LAB" up "$L" "$@" || return 1
	for ns in "$HA" "$HB" "$HD"; do
		stat -L -c %i "/run/netns/$ns" 2>/dev/null
	done >>"${XDPATH_TEST_TMP:-$TMP}/inodes"
	return 0
}

lab_down() {
	"$LAB" down "$L"
}

on() { # HOST CMD...
	ip netns exec "$@"
}

# Nothing but the test's own frames may be on these links.
no_ipv6() { # HOST DEV...
	local host=$1 dev
	shift
	for dev in "$@"; do
		on "$host" bash -c "[ ! -d /proc/sys/net/ipv6 ] || echo 1 >/proc/sys/net/ipv6/conf/$dev/disable_ipv6"
	done
}

stat_of() { # HOST DEV rx|tx packets|bytes|dropped|errors
	ip -n "$1" -j -s link show dev "$2" | jq -r ".[0].stats64.$3.$4"
}

mac() { # HOST DEV
	ip -n "$1" -j link show dev "$2" | jq -r '.[0].address'
}

xdp_prog_id() { # HOST DEV: id of the XDP program, nothing if there is none
	ip -n "$1" -j link show dev "$2" | jq -r '.[0].xdp // empty | .prog.id // .attached[0].prog.id // empty'
}

# ---- xdpath in the background -----------------------------------------------------------------------

# Start `xdpath ARGS --json` on HOST; its streams go to $TMP/TAG.out and .err.
xd_start() { # TAG HOST ARGS...
	local tag=$1 host=$2
	shift 2
	# A shell without job control starts children with SIGINT ignored.
	env --default-signal=INT ip netns exec "$host" "${XDPATH[@]}" "$@" --json --quiet \
		>"$TMP/$tag.out" 2>"$TMP/$tag.err" </dev/null &
	xd_pid[$tag]=$!
	unset "xd_rc[$tag]"
}

# Wait until it carries traffic: sockets are connected before the first worker thread starts.
xd_ready() { # TAG
	within 30 xd_working "$1" && [ -z "${xd_gone:-}" ]
}

xd_working() {
	local tasks
	xd_gone=''
	xd_ended "${xd_pid[$1]}" && xd_gone=1 && return 0
	tasks=("/proc/${xd_pid[$1]}/task/"*)
	[ ${#tasks[@]} -gt "$own_threads" ]
}

# Start, wait until it carries traffic; counts as a test only if that fails.
xd_up() { # TAG HOST ARGS...
	xd_start "$@"
	xd_ready "$1" || fail "xdpath ${*:3} on $2 starts" "$(cat "$TMP/$1.err" "$TMP/$1.out")"
}

# Send SIG, wait until it is gone (10 s at most), put its exit code into xd_rc[TAG].
xd_stop() { # TAG [SIG]
	local pid=${xd_pid[$1]:-} sig=${2:-INT}
	[ -n "$pid" ] || return 0
	[ "$sig" = none ] || kill -s "$sig" "$pid" 2>/dev/null
	xd_wait "$1" 10
}

# Wait until it ends by itself.
# shellcheck disable=SC2034
xd_wait() { # TAG SECONDS
	local pid=${xd_pid[$1]}
	if ! within "$2" xd_ended "$pid"; then
		kill -KILL "$pid" 2>/dev/null
		echo "xdpath ($1) did not end within $2 s" >>"$TMP/$1.err"
	fi
	wait "$pid" 2>/dev/null
	xd_rc[$1]=$?
	unset "xd_pid[$1]"
}

xd_ended() { # PID: gone, or dead and not yet waited for
	local state
	read -r _ _ state _ 2>/dev/null <"/proc/$1/stat" || return 0
	[ "$state" = Z ]
}

# A value of the summary.
j() { # TAG FILTER
	jq -r "$2" "$TMP/$1.out" 2>/dev/null
}

sum_of() { # TAG rx|tx packets|bytes: over all ports
	j "$1" "[.ports[].$2_$3] | add"
}

dropped() { # TAG [rx|tx|PREFIX of the reason]: over all ports
	j "$1" "[.ports[].drops | to_entries[] | select(.key | startswith(\"${2:-}\")) | .value] | add // 0"
}

ended_silent() { # WHAT TAG
	is "$1: status 0, silent" "${xd_rc[$2]} $(head -c 300 "$TMP/$2.err")" "0 "
}

# A run that was told to end: status 0, nothing on stderr, a summary, every frame with its owner.
ended_well() { # WHAT TAG
	ended_silent "$1" "$2"
	all_home "$1" "$2"
}

all_home() { # WHAT TAG
	is "$1: no frame unaccounted for" \
		"$(j "$2" '.frames | [.unaccounted, .total - .free - .fill - .rx - .held - .tx] | @csv')" "0,0"
}

# ---- the end --------------------------------------------------------------------------------------

cleanup() {
	local tag l
	exec >&3 2>&3
	for tag in "${!xd_pid[@]}"; do
		kill -KILL "${xd_pid[$tag]}" 2>/dev/null
		wait "${xd_pid[$tag]}" 2>/dev/null
	done
	for l in "${labs[@]}"; do
		"$LAB" down "$l"
	done
	rm -rf "$TMP"
	if [ $finished = 0 ]; then
		fail "the test script ended before its end"
	fi
	echo "$passed passed, $failed failed, $skipped skipped"
	[ $failed = 0 ] || exit 1
}
trap cleanup EXIT
trap 'echo "FAIL ended by a signal" >&3; exit 1' INT TERM HUP

finish() {
	finished=1
	exit 0
}
