#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
# All benches, one after the other; the last line sums their `N passed, N failed, N skipped`.
set -uo pipefail

B=${B:-build}
export B
passed=0 failed=0 skipped=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT

run() {
	local last
	echo "== $1"
	shift
	"$@" 2>&1 | tee "$log" | sed '$d'
	last=$(tail -n 1 "$log")
	if [[ $last =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed,\ ([0-9]+)\ skipped$ ]]; then
		passed=$((passed + BASH_REMATCH[1]))
		failed=$((failed + BASH_REMATCH[2]))
		skipped=$((skipped + BASH_REMATCH[3]))
	else
		echo "$last"
		echo "FAIL ended without its closing line"
		failed=$((failed + 1))
	fi
}

run "rings in memory" "$B/tests/bench/ring"
run "the instrument's own cost" "$B/tests/bench/instrument"
run "rules" "$B/tests/bench/steer"
run "forward under backlog" bash tests/bench/forward.sh
run "paired with the bare rings and with peers" python3 tests/bench/pairs.py
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
