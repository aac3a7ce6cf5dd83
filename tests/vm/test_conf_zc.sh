#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
# The conformance suite on a pair of each kind of NIC, in zero-copy; in the long run in the other modes
# too; on older kernels over veth. Its tables, as docs/conformance.md has them: VM_OUT/conf-NIC.md.
# shellcheck source=tests/vm/guest.sh
. "$(dirname "$0")/guest.sh"

modes=zc
[ -z "${LONG:-}" ] || modes=skb,drv,zc

# One run: what did not pass is shown, the totals are added to ours. Sets ran.
suite() { # NAME ARGS...
	local name=$1 p f s rc
	shift
	ran=0
	"$B/tests/conf/conf" --markdown "$VM_OUT/conf-$name.md" "$@" >"$TMP/conf" 2>&1
	rc=$?
	sed -n "s/^# /     /p; s/^not ok [0-9]* - /FAIL $name: /p
		s/^ok [0-9]* - \(.*\) # SKIP /skip $name: \1: /p; s/^1\.\.0 # SKIP /skip $name: /p" "$TMP/conf"
	read -r p f s < <(sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed, \([0-9]*\) skipped$/\1 \2 \3/p' "$TMP/conf")
	echo "     $name: ${p:-no} passed, ${f:-?} failed, ${s:-?} skipped"
	if [ -z "${s:-}" ] || { [ $rc != 0 ] && [ $rc != 77 ] && [ "$f" = 0 ]; }; then
		fail "$name: the suite ends with its totals" "status $rc" "$(tail -n 5 "$TMP/conf")"
		return
	fi
	passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s)) ran=$p
}

if [ "$VM_KERNEL" != new ]; then # there is no zero-copy yet
	suite veth
	finish
fi
for kind in $(kinds); do
	read -r DA DB < <(pair_of "$kind")
	suite "$kind" --devices "$DA,$DB" --mode "$modes"
	case $kind in # all skipped would be no failure
	igb | virtio) num "$kind: most rows run in zero-copy" "$ran" -ge 60 ;;
	esac
	t "$kind: the NICs are back" within 5 test -e "/sys/class/net/$DA" -a -e "/sys/class/net/$DB"
done
finish
