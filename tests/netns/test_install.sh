#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
# `make install` into a folder of its own: what is installed suffices to build the example program,
# statically, shared, and by a C++ compiler, and it counts exactly; uninstall leaves nothing.
# shellcheck disable=SC2119 # lab_up without options
# shellcheck source=tests/netns/lib.sh
. "$(dirname "$0")/lib.sh"

D=$TMP/root
pc() { PKG_CONFIG_PATH=$D/lib/pkgconfig pkg-config "$@" xdpath; }
files() { find "$D" -type f -o -type l | wc -l; }

case $B in
*san-*)
	skip "install" "a sanitizer build is not for installing"
	finish
	;;
esac
t "make install" make --no-print-directory B="$B" PREFIX="$D" install
t "the XDP object is where loaders look" test -s "$D/lib/bpf/xdpath_steer.bpf.o"
is "the version" "$(pc --modversion)" "$("$D/bin/xdpath" --version | cut -d' ' -f2)"
# shellcheck disable=SC2046 # words
t "the example, shared" gcc -Wall -Wextra -Werror -o "$TMP/shared" docs/examples/count.c $(pc --cflags --libs)
# shellcheck disable=SC2046
t "the example, static" gcc -Wall -Wextra -Werror -o "$TMP/static" docs/examples/count.c $(pc --cflags) \
	"$D/lib/libxdpath.a" $(pc --libs --static | sed 's/-lxdpath//')
if command -v g++ >/dev/null; then
	echo '#include <xdpath/xdpath.h>' >"$TMP/h.cc"
	# shellcheck disable=SC2046
	t "the headers in C++" g++ -Wall -fsyntax-only "$TMP/h.cc" $(pc --cflags)
else
	skip "the headers in C++" "no g++"
fi
is "only our symbols are exported" \
	"$(nm -D --defined-only "$D/lib/libxdpath.so" | awk '$2 != "A" {print $3}' | grep -vc '^xdpath_')" 0

lab_up
no_ipv6 "$HA" a0
for kind in shared static; do
	LD_LIBRARY_PATH=$D/lib ip netns exec "$HB" "$TMP/$kind" b0 >"$TMP/out" 2>&1 &
	pid=$!
	sleep 1
	on "$HA" "${XDPATH[@]}" source a0 -c 1000 --rate 10000 --dst-mac "$(mac "$HB" b0)" --quiet
	wait $pid
	is "$kind: counts exactly" "$(tail -n 1 "$TMP/out")" "1000 packets"
done
lab_down
t "make uninstall" make --no-print-directory B="$B" PREFIX="$D" uninstall
is "leaves no file" "$(files)" 0
finish
