#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
#
# `make deps`: install what building, the demo and the tests need, through the distribution's package
# manager. Called by every `make check` and `make demo`: silent and quick when nothing is missing.
# With the argument `lint`: what `make lint` and the sanitizer builds need, too. With `vm`: what the VM lab
# unpacks kernels with; QEMU and the kernels themselves it fetches on its own.
set -u
export LC_ALL=C DEBIAN_FRONTEND=noninteractive

# Build: gcc, make and git are assumed. Then tests and demo: ping, iperf3, jq, python3; setpriv and
# unshare (util-linux), ethtool and ip for the lab.
debian=(libc6-dev pkg-config clang llvm bpftool libbpf-dev libxdp-dev libelf-dev zlib1g-dev libmnl-dev
	libpcap-dev libjansson-dev libcmocka-dev iproute2 ethtool iputils-ping iperf3 jq python3 util-linux)
fedora=(glibc-devel pkgconf-pkg-config clang llvm bpftool libbpf-devel libxdp-devel elfutils-libelf-devel
	zlib-devel libmnl-devel libpcap-devel jansson-devel libcmocka-devel iproute ethtool iputils iperf3 jq
	python3 util-linux)

if [ "${1:-}" = lint ]; then
	debian+=(clang-format clang-tidy cppcheck shellcheck)
	fedora+=(clang-tools-extra cppcheck ShellCheck libasan libubsan libtsan)
elif [ "${1:-}" = vm ]; then
	debian+=(xz-utils zstd xdp-tools)
	fedora+=(xdp-tools)
fi

die() {
	printf 'deps: %s\n' "$*" >&2
	exit 1
}

need_root() {
	[ "$(id -u)" = 0 ] || die "missing: $*; run 'make deps' as root"
}

missing_debian() {
	local p have
	have=" $(dpkg-query -W -f '${db:Status-Abbrev}${Package} ' "${debian[@]}" 2>/dev/null) "
	for p in "${debian[@]}"; do
		# Ubuntu has no package of this name: there the command counts.
		[ "$p" = bpftool ] && PATH=$PATH:/usr/sbin bpftool version >/dev/null 2>&1 && continue
		[[ $have == *"ii $p "* ]] || printf '%s\n' "$p"
	done
}

# Packages as this release names them.
names_debian() {
	local p
	for p in "$@"; do
		if [ "$p" = bpftool ] && ! apt-cache show bpftool >/dev/null 2>&1; then
			printf '%s\n' linux-tools-common linux-tools-generic
		else
			printf '%s\n' "$p"
		fi
	done
}

known_debian() { apt-cache show "$@" >/dev/null 2>&1; }

install_debian() {
	local want names log
	mapfile -t want < <(missing_debian)
	[ ${#want[@]} -gt 0 ] || return 0
	need_root "${want[@]}"
	echo "  deps    installing ${want[*]}"
	log=$(mktemp) || die "no temporary file; is the disk full?"
	mapfile -t names < <(names_debian "${want[@]}")
	# Package lists may be absent or out of date: fetch them when a name is unknown or a download fails.
	if ! known_debian "${names[@]}" || ! apt_install "$log" "${names[@]}"; then
		apt-get -qq update >"$log" 2>&1 </dev/null
		mapfile -t names < <(names_debian "${want[@]}")
		if ! apt_install "$log" "${names[@]}"; then
			tail -n 20 "$log" >&2
			rm -f "$log"
			die "apt-get could not install ${names[*]}; its last words are above"
		fi
	fi
	rm -f "$log"
	mapfile -t want < <(missing_debian)
	[ ${#want[@]} -eq 0 ] || die "still missing after installing: ${want[*]}"
}

apt_install() { # LOG PACKAGES...
	apt-get -y -qq -o DPkg::Lock::Timeout=120 --no-install-recommends install "${@:2}" >"$1" 2>&1 </dev/null
}

install_fedora() {
	local want=() p log
	for p in "${fedora[@]}"; do
		rpm -q --quiet --whatprovides "$p" || want+=("$p")
	done
	[ ${#want[@]} -gt 0 ] || return 0
	need_root "${want[@]}"
	echo "  deps    installing ${want[*]}"
	log=$(mktemp) || die "no temporary file; is the disk full?"
	if ! dnf -y -q install "${want[@]}" >"$log" 2>&1 </dev/null; then
		tail -n 20 "$log" >&2
		rm -f "$log"
		die "dnf could not install ${want[*]}; its last words are above"
	fi
	rm -f "$log"
}

# Elsewhere only the commands and libraries can be checked.
check_other() {
	local c absent=()
	export PATH=$PATH:/usr/sbin:/sbin
	for c in pkg-config clang llvm-strip bpftool ip ethtool ping iperf3 jq python3 setpriv unshare; do
		command -v "$c" >/dev/null || absent+=("$c")
	done
	for c in libbpf libxdp libelf zlib libmnl libpcap jansson cmocka; do
		pkg-config --exists "$c" 2>/dev/null || absent+=("$c (development files)")
	done
	[ ${#absent[@]} -eq 0 ] && return 0
	printf 'deps: no package manager this script knows (apt-get, dnf); please install:\n' >&2
	printf '  %s\n' "${absent[@]}" >&2
	exit 1
}

if command -v apt-get >/dev/null && command -v dpkg-query >/dev/null; then
	install_debian
elif command -v dnf >/dev/null; then
	install_fedora
else
	check_other
fi
