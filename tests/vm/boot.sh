# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
#
# The machine: accelerator, NIC pairs, QEMU's command line. Sourced by lab. What it starts or makes on the
# host (QEMU, a namespace with taps, captures there) it notes, and machine_down removes it.
# shellcheck disable=SC2154 # here, cache, kernel_dir, out, cpus and accelerator are lab's

declare -A kind_of=([igb]=igb [virtio]=virtio-net-pci [virtio-plain]=virtio-net-pci [vmxnet3]=vmxnet3
	[e1000e]=e1000e [rtl8139]=rtl8139)
nics=()     # "KIND:QUEUES" for each pair
nic_args=() # of QEMU
taps=()     # interfaces of the host's namespace, "TAP NAME"
vm_nics=''  # "KIND:NAME,NAME ..." for the guest
vm_macs=''  # "NAME=MAC ..." for the guest
tap_ns='' helpers=()

# A VMX or SVM of this machine's own. PVM offers /dev/kvm too, but runs only kernels made for it.
has_kvm() {
	grep -Eqw 'svm|vmx' /proc/cpuinfo && [ ! -e /sys/module/kvm_pvm ] && [ -r /dev/kvm ] && [ -w /dev/kvm ]
}

check_nic() { # KIND[:QUEUES]: into nics; 1 if there is no such thing
	local kind=${1%%:*} queues=1
	[[ $1 != *:* ]] || queues=${1#*:}
	[ -n "${kind_of[$kind]:-}" ] || return 1
	[[ $queues =~ ^[1-8]$ ]] || return 1
	# Only the virtio device needs to be told; igb has 8 in any case.
	[ "$queues" = 1 ] || [[ $kind == virtio* ]] || return 1
	nics+=("$kind:$queues")
}

# Two NICs of a kind on a wire of their own, which is a hub inside QEMU or, for several queues, two taps.
plan_nics() {
	local spec kind queues port pair=0 side name mac device names
	declare -A count=()
	for spec in "${nics[@]}"; do
		kind=${spec%:*} queues=${spec#*:} names=()
		for side in 0 1; do
			name=$kind$((${count[$kind]:-0}))
			count[$kind]=$((${count[$kind]:-0} + 1))
			names+=("$name")
			mac=$(printf '52:54:00:4d:%02x:%02x' $pair $side)
			vm_macs+=" $name=$mac"
			device=${kind_of[$kind]},netdev=$name,mac=$mac,romfile=
			[ "$kind" != virtio ] || device+=,iommu_platform=on,disable-legacy=on
			if [ "$queues" = 1 ]; then
				nic_args+=(-netdev "hubport,id=$name,hubid=$pair"
					-object "filter-dump,id=dump-$name,netdev=$name,queue=rx,file=$out/$name.pcap")
			else
				taps+=("t$pair$side $name $pair")
				nic_args+=(-netdev "tap,id=$name,ifname=t$pair$side,script=no,downscript=no,vhost=off,queues=$queues")
				device+=,mq=on,vectors=$((2 * queues + 2))
			fi
			# igb has virtual functions, for which there must be room on its bus.
			if [ "$kind" = igb ]; then
				port=$((pair * 2 + side + 1))
				nic_args+=(-device "pcie-root-port,id=port-$name,chassis=$port,slot=$port")
				device+=,bus=port-$name
			fi
			nic_args+=(-device "$device")
		done
		vm_nics+="${vm_nics:+ }$kind:${names[0]},${names[1]}"
		pair=$((pair + 1))
	done
}

# Namespace of the host with a bridge for each pair of taps; a bridge that learns nothing is a wire.
make_taps() {
	local tap name pair ns=xdvm$$
	[ ${#taps[@]} -gt 0 ] || return 0
	ip netns add $ns && tap_ns=$ns || return 1
	ip netns exec $ns sh -c 'echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6' 2>/dev/null
	while read -r tap name pair; do
		ip -n $ns link show "br$pair" >/dev/null 2>&1 ||
			ip -n $ns link add "br$pair" type bridge stp_state 0 mcast_snooping 0 group_fwd_mask 65528 || return 1
		ip -n $ns tuntap add "$tap" mode tap multi_queue && ip -n $ns link set "$tap" mtu 9200 master "br$pair" up &&
			ip -n $ns link set "$tap" type bridge_slave learning off && ip -n $ns link set "br$pair" up || return 1
		ip netns exec $ns python3 "$here/capture.py" "$tap" "$out/$name.pcap" </dev/null &
		helpers+=($!)
	done < <(printf '%s\n' "${taps[@]}")
}

# The initramfs is packed anew for each run: so init and job.sh are always those of the tree.
pack_initramfs() {
	local root=$out/initramfs.d
	mkdir -p "$root"/{bin,proc,sys,dev,host,out}
	cp "$cache/qemu/busybox" "$root/bin/" && cp "$here/init" "$root/init" && cp -r "$kernel_dir/modules" "$root/" || return 1
	ln -s busybox "$root/bin/sh"
	(cd "$root" && find . | bin/busybox cpio -o -H newc 2>/dev/null) >"$out/initramfs"
	rm -rf "$root"
}

# Sets qemu, QEMU's whole command.
plan_machine() { # CONSOLE: argument of -serial
	local files=$cache/qemu/files lib
	lib=$(dirname "$(find "$files" -path '*/usr/lib/*-linux-gnu/qemu' -type d)") # the architecture's name
	local accel=(-accel 'tcg,thread=multi,tb-size=512' -cpu max)
	[ "$accelerator" = tcg ] || accel=(-accel kvm -cpu host)
	# shellcheck disable=SC2054 # commas are QEMU's
	qemu=(env LD_LIBRARY_PATH="$lib:$files/lib/${lib##*/}" QEMU_MODULE_DIR="$lib/qemu"
		"$files/usr/bin/qemu-system-x86_64" -L "$files/usr/share/qemu" -L "$files/usr/share/seabios"
		"${accel[@]}" -machine q35 -m "${XDPATH_VM_MEM:-1536}" -smp "$cpus" -nodefaults -display none -no-reboot
		-serial "$1" -kernel "$kernel_dir/vmlinux" -initrd "$out/initramfs"
		-append 'console=ttyS0 quiet panic=-1 oops=panic nokaslr mitigations=off'
		-fsdev 'local,id=host,path=/,security_model=none,readonly=on,multidevs=remap'
		-device virtio-9p-pci,fsdev=host,mount_tag=host
		-fsdev "local,id=out,path=$out,security_model=none" -device virtio-9p-pci,fsdev=out,mount_tag=out
		"${nic_args[@]}")
	[ -z "$tap_ns" ] || qemu=(ip netns exec "$tap_ns" "${qemu[@]}")
}

sweep_taps() {
	local ns
	for ns in /run/netns/xdvm*; do
		ns=${ns##*/}
		if [ -e "/run/netns/$ns" ] && [ ! -e "/proc/${ns#xdvm}" ]; then ip netns del "$ns"; fi
	done
}

machine_down() {
	local pid
	[ -z "${qemu_pid:-}" ] || helpers=("$qemu_pid" "${helpers[@]}")
	for pid in "${helpers[@]}"; do
		kill "$pid" 2>/dev/null
		wait "$pid" 2>/dev/null
	done
	helpers=()
	[ -z "$tap_ns" ] || ip netns del "$tap_ns"
	tap_ns=''
}
