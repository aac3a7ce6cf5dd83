#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
# `make ci`: the checks, the same suites under ASan and UBSan, and lint. The last line sums them all.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

passed=0 failed=0 skipped=0
log=$(mktemp) wrong=$(mktemp)
trap 'rm -f "$log" "$wrong"' EXIT

count() { # PASSED FAILED SKIPPED
	passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + $3))
}

# A step that ends with the line of totals.
suites() { # NAME CMD...
	local rc last begin=$SECONDS name=$1
	echo "== $name"
	shift
	"$@" 2>&1 | tee "$log"
	rc=${PIPESTATUS[0]}
	grep -E -A3 '^ *\| *(FAIL|not ok|ended with|not finished)' "$log" | sed "s/^/$name: /" >>"$wrong"
	last=$(grep -E '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' "$log" | tail -n 1)
	if [[ $last =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed,\ ([0-9]+)\ skipped$ ]]; then
		count "${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}" "${BASH_REMATCH[3]}"
		[ "$rc" = 0 ] || [ "${BASH_REMATCH[2]}" != 0 ] || count 0 1 0
	else
		echo "FAIL ended with status $rc and without its totals"
		count 0 1 0
	fi
	echo "   ($((SECONDS - begin)) s)"
}

# A step that is right or wrong as a whole.
step() { # NAME CMD...
	local begin=$SECONDS
	echo "== $1"
	if "${@:2}"; then count 1 0 0; else count 0 1 0; fi
	echo "   ($((SECONDS - begin)) s)"
}

suites "make check" make --no-print-directory check
suites "the same under ASan and UBSan" make --no-print-directory check SAN=address,undefined
step "make lint" make --no-print-directory lint
[ ! -s "$wrong" ] || { echo "== what failed, once more" && cat "$wrong"; }
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
