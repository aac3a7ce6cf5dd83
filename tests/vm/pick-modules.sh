#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
#
# pick-modules.sh FROM TO MODULE...: copy the kernel modules named, and what they depend on, from the tree
# FROM into the folder TO, decompressed; TO/order lists them in the order of loading. Dependencies are
# read from the modules themselves: there is no depmod here. Called by prepare.sh.
set -euo pipefail
from=$1 to=$2
shift 2
mkdir -p "$to"
: >"$to/order"
files=$(find "$from" -name '*.ko*')
declare -A seen=()

decompress() { # FILE
	case $1 in
	*.xz) xz -dc "$1" ;;
	*.zst) zstd -qdc "$1" ;;
	*.gz) gzip -dc "$1" ;;
	*) cat "$1" ;;
	esac
}

pick() { # MODULE
	local name=${1//-/_} file dep
	[ -z "${seen[$name]:-}" ] || return 0
	seen[$name]=1
	# What is built into the kernel has no file.
	file=$(grep -E "/${name//_/[_-]}\.ko(\.xz|\.zst|\.gz)?$" <<<"$files") || return 0
	decompress "$file" >"$to/$name.ko"
	for dep in $(tr '\0' '\n' <"$to/$name.ko" | sed -n 's/^depends=//p' | tr ',' ' '); do
		pick "$dep"
	done
	echo "$name" >>"$to/order"
}

for module in "$@"; do
	pick "$module"
done
