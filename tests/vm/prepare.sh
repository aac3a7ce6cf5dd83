#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
#
# prepare.sh KERNEL...: fetch QEMU and the kernels named into the cache; `lab prepare` and `lab run` call it.
# The host stays as it is: apt-get works with sources, lists, status and archives of the cache's own, and
# packages are unpacked there, never installed. Trust is apt's: signatures, by Debian's keyring.
#
#   CACHE/qemu           QEMU and the libraries this host lacks
#   CACHE/kernel/NAME    version, vmlinux, modules/ (those of $modules only)
#   CACHE/apt, CACHE/*.part  what an interrupted prepare left; the next one goes on with it
#
# A folder without `.part` is complete: it got its name by one rename. Exit 77 if this machine or network
# cannot have the lab, 1 for anything else.
set -euo pipefail
export LC_ALL=C

cache=$XDPATH_VM_CACHE
tools=$(dirname "$0")
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
# Early: what mounts the host's /. Then NIC drivers, and what tests use.
early=(virtio_pci 9pnet_virtio 9p)
modules=("${early[@]}" igb virtio_net vmxnet3 e1000e 8139cp
	af_packet unix_diag udp_diag tcp_diag xsk_diag veth dummy bridge 8021q tun cls_bpf sch_ingress)
recipe="2 ${modules[*]}" # a folder made by another one is made anew

cannot() { # WHY
	echo "lab: $*" >&2
	exit 77
}

# ---- what this host is ----------------------------------------------------------------------------

host() {
	local id=''
	# shellcheck source=/dev/null
	id=$(. /etc/os-release && echo "$ID ${VERSION_CODENAME:-}")
	case $(uname -m)/$id in
	x86_64/debian\ bookworm) qemu_suites='bookworm bookworm-backports' ;;
	x86_64/debian\ trixie) qemu_suites=trixie ;;
	*) cannot "QEMU and kernels are taken from Debian 12 or 13 on x86_64; this is $id on $(uname -m)" ;;
	esac
	codename=${id#* }
	[ -e "$keyring" ] || cannot "$keyring is missing; apt-get install debian-archive-keyring"
	mirror=${XDPATH_VM_MIRROR:-$(mirrors | awk 'NR == 1')}
	[ -n "$mirror" ] || cannot "no source in /etc/apt has the suite $codename; set XDPATH_VM_MIRROR to a Debian mirror"
}

# The host's mirrors that carry its own suite.
mirrors() {
	local f
	for f in /etc/apt/sources.list.d/*.sources; do
		[ -e "$f" ] || continue
		grep -v '^#' "$f" | awk -v suite="$codename" 'BEGIN { RS = ""; FS = "\n" } {
			uri = ""; hit = 0
			for (i = 1; i <= NF; i++) {
				n = split($i, w, /[ \t]+/)
				if (tolower(w[1]) == "uris:") uri = w[2]
				if (tolower(w[1]) == "suites:") for (k = 2; k <= n; k++) if (w[k] == suite) hit = 1
				if (tolower($i) ~ /^enabled:[ \t]*no/) next
			}
			if (hit) print uri
		}'
	done
	{ cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list 2>/dev/null || true; } |
		sed -n "s/^deb[[:space:]]\+\(\[[^]]*\][[:space:]]*\)\?\([^[:space:]]\+\)[[:space:]]\+${codename}[[:space:]].*/\2/p"
}

# ---- apt, with everything of its own ----------------------------------------------------------------

# apt TOOL ARGS...: with the sources of $group
apt() {
	local dir=$cache/apt/$group
	"$1" -q -o Dir::Etc::sourcelist="$dir/sources.list" -o Dir::Etc::sourceparts=- \
		-o Dir::Etc::preferences=/dev/null -o Dir::Etc::preferencesparts="$dir/none" \
		-o Dir::State::Lists="$dir/lists" -o Dir::Cache="$dir/cache" -o Dir::State::extended_states="$dir/states" \
		-o Dir::State::status=/var/lib/dpkg/status -o Dir::Log="$dir" -o Acquire::Languages=none \
		-o Acquire::Retries=2 -o Acquire::http::Timeout=30 -o APT::Update::Error-Mode=any \
		-o APT::Sandbox::User=root -o APT::Keep-Downloaded-Packages=true \
		-o Binary::apt-get::APT::Keep-Downloaded-Packages=true -o Debug::NoLocking=1 "${@:2}"
}

# Sets $group and fetches its lists.
suites() { # SUITE...
	local dir s
	group=$*
	group=${group// /_}
	dir=$cache/apt/$group
	mkdir -p "$dir"/{none,lists/partial,cache/archives/partial}
	for s in "$@"; do
		echo "deb [signed-by=$keyring] $mirror $s main"
	done >"$dir/sources.list"
	fetch "the package lists of $*" apt-get update
}

fetch() { # WHAT TOOL ARGS...
	local log=$cache/apt/$group/log why
	apt "${@:2}" >"$log" 2>&1 </dev/null && return
	why=$(grep -m 1 '^[EW]: ' "$log" || tail -n 1 "$log")
	if [ "$(df --output=avail -k "$cache" | tail -n 1)" -lt 500000 ]; then
		echo "lab: $cache has no room for $1; 700 MB are needed there" >&2
		exit 1
	fi
	cannot "cannot get $1 from $mirror (${why#?: }); check the network, or set XDPATH_VM_MIRROR to another mirror"
}

# Unpack the packages that were fetched, anew; not what an older, interrupted run fetched in older versions.
unpack() { # FOLDER: into its files/
	local deb
	apt apt-get autoclean >/dev/null
	rm -rf "$1"
	mkdir -p "$1/files"
	for deb in "$cache/apt/$group"/cache/archives/*.deb; do
		dpkg-deb -x "$deb" "$1/files"
	done
}

# ---- the parts --------------------------------------------------------------------------------------

is_ready() { # FOLDER
	[ "$(cat "$1/recipe" 2>/dev/null)" = "$recipe" ]
}

finish() { # FOLDER
	echo "$recipe" >"$1.part/recipe"
	rm -rf "$1"
	mv "$1.part" "$1"
	rm -rf "$cache/apt/$group"
}

qemu() {
	local to=$cache/qemu
	! is_ready "$to" || return 0
	# shellcheck disable=SC2086 # a list
	suites $qemu_suites
	echo "lab: fetching QEMU" >&2
	fetch "QEMU" apt-get -y --no-install-recommends --download-only -t "${qemu_suites##* }" install qemu-system-x86
	# Not `install`: it downloads nothing that the host has already.
	(cd "$cache/apt/$group/cache/archives" && fetch "busybox-static" apt-get download busybox-static)
	unpack "$to.part"
	cp "$(find "$to.part/files" -path '*bin/busybox')" "$to.part/busybox"
	rm -rf "$to.part/files/usr/share/"{doc,man}
	find "$to.part/files" -path '*bin/*' ! -name qemu-system-x86_64 -delete
	finish "$to"
}

kernel() { # NAME
	local to=$cache/kernel/$1 suite version image names=()
	! is_ready "$to" || return 0
	case $1 in
	new) suite=trixie-backports ;;
	6.12) suite=trixie ;;
	6.1) suite=bookworm ;;
	esac
	suites "$suite"
	echo "lab: fetching the kernel of $suite" >&2
	version=$(apt apt-cache show --no-all-versions linux-image-amd64 |
		sed -n 's/^Depends:.*linux-image-\([0-9][^ ,]*\).*/\1/p' | sort -V | tail -n 1)
	[ -n "$version" ] || cannot "$suite at $mirror has no linux-image-amd64; set XDPATH_VM_MIRROR to another mirror"
	# Newer packages are split; linux-image is an empty shell there.
	names=("linux-image-$version")
	if apt apt-cache show "linux-modules-$version" >/dev/null 2>&1; then
		names=("linux-binary-$version" "linux-modules-$version")
	fi
	(cd "$cache/apt/$group/cache/archives" && fetch "${names[*]}" apt-get download "${names[@]}")
	unpack "$to.part"
	image=$(find "$to.part/files" -name 'vmlinuz*' -type f | head -n 1)
	"$tools/unpack-vmlinux.py" "$image" "$to.part/vmlinux"
	"$tools/pick-modules.sh" "$to.part/files" "$to.part/modules" "${modules[@]}"
	# Those that have to be there before any other file can be seen.
	sed '/^9p$/q' "$to.part/modules/order" >"$to.part/modules/early"
	echo "$version" >"$to.part/version"
	rm -rf "$to.part/files"
	finish "$to"
}

# Sets todo: kernels that are not complete, or all if QEMU is not.
look() { # KERNEL...
	local name
	todo=()
	for name in "$@"; do
		if ! is_ready "$cache/kernel/$name" || ! is_ready "$cache/qemu"; then todo+=("$name"); fi
	done
}

look "$@"
[ ${#todo[@]} -gt 0 ] || exit 0
host
mkdir -p "$cache/kernel"
exec 9>"$cache/lock"
flock 9
qemu
for name in "${todo[@]}"; do
	kernel "$name"
done
