// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
/*
 * Kernel facts by trying: sockets that are never bound, options that are refused or taken, netlink
 * questions. Called by probe. Every socket is closed again at once.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "kernel.h"
#include "netlink_parse.h"

enum { AREA = 64 * 1024 };

/* Flags of XDP_UMEM_REG; the installed headers know only the first. */
#define UMEM_UNALIGNED	 (1U << 0)
#define UMEM_TX_SW_CSUM	 (1U << 1)
#define UMEM_TX_METADATA (1U << 2)

struct umem_reg {
	uint64_t addr, len;
	uint32_t chunk_size, headroom, flags, tx_metadata_len;
};

static int xdp_socket(void)
{
	int fd = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);

	return fd < 0 ? -errno : fd;
}

/* An option that the kernel does not know is ENOPROTOOPT; any other refusal means that it does. */
static int option_known(int fd, int level, int name, int value)
{
	if (setsockopt(fd, level, name, &value, sizeof(value)) == 0)
		return 1;
	return errno != ENOPROTOOPT;
}

/* Needs a socket of its own: a UMEM is registered once. */
static int umem_taken(void *area, uint32_t chunk, uint32_t flags, uint32_t metadata)
{
	struct umem_reg r = {.addr = (uintptr_t)area,
			     .len = AREA,
			     .chunk_size = chunk,
			     .flags = flags,
			     .tx_metadata_len = metadata};
	int fd = xdp_socket(), ret = 1;

	if (fd < 0)
		return fd;
	if (setsockopt(fd, SOL_XDP, XDP_UMEM_REG, &r, sizeof(r)) < 0)
		ret = errno == EINVAL ? 0 : -errno;
	close(fd);
	return ret;
}

/* Before the flags word the kernel answers with a shorter struct. */
static int has_ring_flags(int fd)
{
	struct xdp_mmap_offsets off;
	socklen_t len = sizeof(off);

	if (getsockopt(fd, SOL_XDP, XDP_MMAP_OFFSETS, &off, &len) < 0)
		return -errno;
	return len == sizeof(off);
}

/* The flags are looked at before the device: with one that is not there nothing gets bound. */
static int bind_flag_known(int fd, uint16_t flag)
{
	struct sockaddr_xdp sa = {.sxdp_family = AF_XDP,
				  .sxdp_flags = flag,
				  .sxdp_ifindex = INT_MAX};

	if (bind(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0)
		return 1;
	return errno == ENODEV ? 1 : errno == EINVAL ? 0 : -errno;
}

/*
 * Sharing between queues and devices moved the fill ring out of the UMEM: since then, and only
 * since, a fill ring may be made on a socket that has no UMEM yet.
 */
static int fill_ring_before_umem(int fd)
{
	int slots = 64;

	if (setsockopt(fd, SOL_XDP, XDP_UMEM_FILL_RING, &slots, sizeof(slots)) == 0)
		return 1;
	return errno == EINVAL ? 0 : -errno;
}

static void query_umem(struct xdpath_kernel *k)
{
	void *area = mmap(NULL, AREA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int meta;

	if (area == MAP_FAILED)
		return;
	/* 3000 bytes: a kernel so old that it ignores the flags refuses the size. */
	k->point[XDPATH_K_UNALIGNED] = umem_taken(area, 3000, UMEM_UNALIGNED, 0);
	/* The flag came later than the feature: then the other one of the same age tells. */
	meta = umem_taken(area, 4096, UMEM_TX_METADATA, 16);
	if (meta == 0)
		meta = umem_taken(area, 4096, UMEM_TX_SW_CSUM, 16);
	k->point[XDPATH_K_TX_METADATA] = k->point[XDPATH_K_UNALIGNED] == 0 ? 0 : meta;
	munmap(area, AREA);
}

static void query_socket(struct xdpath_kernel *k)
{
	int fd = xdp_socket();

	k->point[XDPATH_K_AF_XDP] = fd >= 0 ? 1 : fd == -EAFNOSUPPORT ? 0 : fd;
	for (int i = XDPATH_K_NEED_WAKEUP; i <= XDPATH_K_BUSY_POLL; i++)
		k->point[i] = fd >= 0 ? -ENOMEM : k->point[XDPATH_K_AF_XDP];
	if (fd < 0)
		return;
	k->point[XDPATH_K_NEED_WAKEUP] = has_ring_flags(fd);
	k->point[XDPATH_K_MULTI_BUFFER] = bind_flag_known(fd, XDP_USE_SG);
	k->point[XDPATH_K_SHARED_UMEM] = fill_ring_before_umem(fd);
	k->point[XDPATH_K_TX_BUDGET] = option_known(fd, SOL_XDP, XDP_MAX_TX_SKB_BUDGET, 32);
	k->point[XDPATH_K_BUSY_POLL] = option_known(fd, SOL_SOCKET, SO_PREFER_BUSY_POLL, 1);
	query_umem(k);
	close(fd);
}

static int command_known(const struct xdpath_nl_family *f, int err, int command)
{
	return err < 0 ? err : (int)(f->ops >> command & 1);
}

static void query_netlink(struct xdpath_kernel *k)
{
	struct xdpath_xsk_facts x = {0};
	struct xdpath_nl_family f;
	int err = xdpath_nl_family_query(XDPATH_NETDEV_FAMILY, &f);

	if (err == -ENOENT)
		err = 0;
	else if (!err)
		err = 1;
	k->point[XDPATH_K_NETDEV] = err;
	k->point[XDPATH_K_QUEUE_GET] = command_known(&f, err, XDPATH_NETDEV_CMD_QUEUE_GET);
	k->point[XDPATH_K_NAPI_SET] = command_known(&f, err, XDPATH_NETDEV_CMD_NAPI_SET);
	err = xdpath_nl_sockets(&x);
	k->point[XDPATH_K_SOCK_DIAG] = err == -ENOENT ? 0 : err ? err : 1;
}

void xdpath_kernel_query(struct xdpath_kernel *k)
{
	struct utsname u;

	*k = (struct xdpath_kernel){0};
	if (uname(&u) == 0)
		snprintf(k->release, sizeof(k->release), "%s", u.release);
	query_socket(k);
	query_netlink(k);
}
