/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * One AF_XDP socket: created, sized, mapped, bound, closed. datapath.c opens them, a worker owns
 * each. What is done with a bound socket (kick, statistics) is in kick.c.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "internal.h"

#define RING_DEFAULT 2048U
#define RETRY_NS     5000000L

/* A ring that a one-way socket does not have: always empty, always full. */
static uint32_t no_ring_index;

static int set_ring(int fd, int opt, uint32_t size)
{
	return size && setsockopt(fd, SOL_XDP, opt, &size, sizeof(size)) < 0 ? -errno : 0;
}

static int register_umem(const struct xdpath_socket *s)
{
	struct xdp_umem_reg reg = {
		.addr = (uint64_t)(uintptr_t)xdpath_umem_area(s->umem),
		.len = xdpath_umem_size(s->umem),
		.chunk_size = xdpath_umem_frame_size(s->umem),
		.headroom = xdpath_umem_headroom(s->umem),
	};

	return setsockopt(s->fd, SOL_XDP, XDP_UMEM_REG, &reg, sizeof(reg)) < 0 ? -errno : 0;
}

static int umem_refused(const struct xdpath_socket *s, int err, struct xdpath_diag *d)
{
	struct rlimit lim = {0};

	if (err == -ENOBUFS) {
		getrlimit(RLIMIT_MEMLOCK, &lim);
		return xdpath_fail(d, XDPATH_R_MEMLOCK, ENOBUFS,
				   "UMEM: locked memory: needs %llu KiB, RLIMIT_MEMLOCK allows "
				   "%llu KiB; raise "
				   "it (ulimit -l), run with CAP_IPC_LOCK, or lower umem.frames",
				   (unsigned long long)(xdpath_umem_size(s->umem) >> 10),
				   (unsigned long long)(lim.rlim_cur >> 10));
	}
	if (err == -ENOMEM)
		return xdpath_fail(d, XDPATH_R_MEMORY, ENOMEM,
				   "UMEM of %llu MiB: the kernel has no memory for it; lower "
				   "umem.frames or the "
				   "ring sizes",
				   (unsigned long long)(xdpath_umem_size(s->umem) >> 20));
	return xdpath_fail(d, XDPATH_R_GEOMETRY, -err,
			   "UMEM of %u-byte frames with headroom %u: the kernel says \"%s\"; lower "
			   "umem.headroom or use 4096-byte frames",
			   xdpath_umem_frame_size(s->umem), xdpath_umem_headroom(s->umem),
			   strerror(-err));
}

static int create(struct xdpath_socket *s, const struct xdpath_socket_opts *o)
{
	int err;

	s->fd = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (s->fd < 0 && (errno == EPERM || errno == EACCES))
		return xdpath_fail(o->diag, XDPATH_R_PERMISSION, errno,
				   "AF_XDP socket: %s; run as root or with CAP_NET_RAW",
				   strerror(errno));
	if (s->fd < 0 && errno == EAFNOSUPPORT)
		return xdpath_fail(
			o->diag, XDPATH_R_KERNEL, errno,
			"AF_XDP: this kernel is built without it; use one with CONFIG_XDP_SOCKETS");
	if (s->fd < 0)
		return xdpath_fail(o->diag, XDPATH_R_REFUSED, errno,
				   "AF_XDP socket: %s; free some and try again", strerror(errno));
	err = o->share ? 0 : register_umem(s);
	if (err)
		return umem_refused(s, err, o->diag);
	if ((err = set_ring(s->fd, XDP_UMEM_FILL_RING, s->q.fill.size)) ||
	    (err = set_ring(s->fd, XDP_UMEM_COMPLETION_RING, s->q.comp.size)) ||
	    (err = set_ring(s->fd, XDP_RX_RING, s->q.rx.size)) ||
	    (err = set_ring(s->fd, XDP_TX_RING, s->q.tx.size)))
		return xdpath_fail(o->diag, XDPATH_R_GEOMETRY, -err,
				   "rings rx %u tx %u fill %u comp %u: the kernel says \"%s\"; set "
				   "powers of two, "
				   "smaller ones if memory is short",
				   s->q.rx.size, s->q.tx.size, s->q.fill.size, s->q.comp.size,
				   strerror(-err));
	return 0;
}

struct ring_view {
	uint32_t *producer, *consumer, *flags;
	void *entries;
};

/* Map one ring; an absent one points to an index that never moves. */
static int map_ring(struct xdpath_socket *s, int which, uint32_t size, size_t entry,
		    const struct xdp_ring_offset *off, off_t page, struct ring_view *v)
{
	size_t len = off->desc + (size_t)size * entry;
	uint8_t *p;

	*v = (struct ring_view){&no_ring_index, &no_ring_index, &no_ring_index, NULL};
	if (size == 0)
		return 0;
	p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, s->fd, page);
	if (p == MAP_FAILED)
		return -errno;
	s->maps[which].map = p;
	s->maps[which].len = len;
	v->producer = (uint32_t *)(void *)(p + off->producer);
	v->consumer = (uint32_t *)(void *)(p + off->consumer);
	v->flags = (uint32_t *)(void *)(p + off->flags);
	v->entries = p + off->desc;
	return 0;
}

static void view_cons(struct xdpath_cons *r, const struct ring_view *v)
{
	r->mask = r->size - 1;
	r->k_producer = v->producer;
	r->k_consumer = v->consumer;
	r->k_flags = v->flags;
	r->entries = v->entries;
}

static void view_prod(struct xdpath_prod *r, const struct ring_view *v)
{
	r->mask = r->size - 1;
	r->limit = r->size;
	r->k_producer = v->producer;
	r->k_consumer = v->consumer;
	r->k_flags = v->flags;
	r->entries = v->entries;
}

static int map_rings(struct xdpath_socket *s, struct xdpath_diag *d)
{
	struct xdp_mmap_offsets off = {0};
	socklen_t len = sizeof(off);
	struct ring_view rx, tx, fill, comp;
	int err;

	if (getsockopt(s->fd, SOL_XDP, XDP_MMAP_OFFSETS, &off, &len) < 0)
		return xdpath_fail(d, XDPATH_R_REFUSED, errno,
				   "AF_XDP: ring offsets: %s; see `xdpath probe`", strerror(errno));
	if (len < sizeof(off)) /* before 5.4: no flags word in the rings */
		return xdpath_fail(d, XDPATH_R_KERNEL, ENOSYS,
				   "AF_XDP: this kernel has no need_wakeup (5.4); use a newer one");
	if ((err = map_ring(s, 0, s->q.rx.size, sizeof(struct xdp_desc), &off.rx, XDP_PGOFF_RX_RING,
			    &rx)) ||
	    (err = map_ring(s, 1, s->q.tx.size, sizeof(struct xdp_desc), &off.tx, XDP_PGOFF_TX_RING,
			    &tx)) ||
	    (err = map_ring(s, 2, s->q.fill.size, sizeof(uint64_t), &off.fr,
			    (off_t)XDP_UMEM_PGOFF_FILL_RING, &fill)) ||
	    (err = map_ring(s, 3, s->q.comp.size, sizeof(uint64_t), &off.cr,
			    (off_t)XDP_UMEM_PGOFF_COMPLETION_RING, &comp)))
		return xdpath_fail(d, XDPATH_R_MEMORY, -err,
				   "mapping the rings: %s; lower the ring sizes", strerror(-err));
	view_cons(&s->q.rx, &rx);
	view_prod(&s->q.tx, &tx);
	view_prod(&s->q.fill, &fill);
	view_cons(&s->q.comp, &comp);
	return 0;
}

static int bind_once(const struct xdpath_socket *s, const struct xdpath_port *p,
		     const struct xdpath_socket_opts *o, bool sg)
{
	struct sockaddr_xdp addr = {.sxdp_family = AF_XDP,
				    .sxdp_ifindex = (uint32_t)p->ifindex,
				    .sxdp_queue_id = o->queue};

	if (o->share) { /* mode, need_wakeup and fragments are those of the first socket */
		addr.sxdp_flags = XDP_SHARED_UMEM;
		addr.sxdp_shared_umem_fd = (uint32_t)o->share->fd;
	} else {
		addr.sxdp_flags = XDP_USE_NEED_WAKEUP;
		addr.sxdp_flags |= o->mode == XDPATH_MODE_ZEROCOPY ? XDP_ZEROCOPY : XDP_COPY;
		addr.sxdp_flags |= sg ? XDP_USE_SG : 0;
	}
	return bind(s->fd, (struct sockaddr *)(void *)&addr, sizeof(addr)) < 0 ? -errno : 0;
}

/*
 * Advertised is not granted: drivers refuse zero-copy at bind by EOPNOTSUPP, EINVAL, ENOENT and
 * others for reasons of theirs (virtio-net without an IOMMU or without queue reset). Copying works
 * then. Only what would stop that too is told apart before.
 */
static int zerocopy_refused(const struct xdpath_port *p, const struct xdpath_socket_opts *o,
			    int err)
{
	bool told = p->xdp_features & XDPATH_XDP_ACT_XSK_ZEROCOPY;

	return xdpath_fail(o->diag, XDPATH_R_NO_ZEROCOPY, -err,
			   "%s queue %u: the driver%s%s %s (bind: %s, %s); use --mode copy or auto",
			   p->name, o->queue, p->driver[0] ? " " : "", p->driver,
			   told ? "advertises zero-copy and does not grant it here"
				: "does no zero-copy",
			   strerrorname_np(-err), strerror(-err));
}

static int bind_refused(const struct xdpath_port *p, const struct xdpath_socket_opts *o, int err)
{
	struct xdpath_holder h = {0};
	uint32_t queues = xdpath_port_queues(p);

	switch (err) {
	case -EBUSY:
		xdpath_queue_holder(p, o->queue, &h);
		if (h.pid)
			return xdpath_fail(o->diag, XDPATH_R_QUEUE_BUSY, EBUSY,
					   "%s queue %u: held by pid %d (%s); end it or use "
					   "another queue (-q)",
					   p->name, o->queue, h.pid, h.comm);
		return xdpath_fail(o->diag, XDPATH_R_QUEUE_BUSY, EBUSY,
				   "%s queue %u: held by a program that is not xdpath's, still so "
				   "after %u ms; end it, "
				   "use another queue (-q) or raise open.wait_ms",
				   p->name, o->queue, o->wait_ms);
	case -ENOMEM:
	case -ENOBUFS:
		return xdpath_fail(
			o->diag, XDPATH_R_MEMORY, -err,
			"%s queue %u: bind: %s; free memory, lower the ring sizes or use "
			"fewer queues (-q)",
			p->name, o->queue, strerror(-err));
	case -ENODEV:
		return xdpath_fail(o->diag, XDPATH_R_NO_DEVICE, ENODEV,
				   "%s: the interface is gone; `ip link` lists what is there",
				   p->name);
	case -ENETDOWN:
		return xdpath_fail(o->diag, XDPATH_R_DEVICE_DOWN, ENETDOWN,
				   "%s: the interface is down; `ip link set %s up`", p->name,
				   p->name);
	case -EPERM:
	case -EACCES:
		return xdpath_fail(
			o->diag, XDPATH_R_PERMISSION, -err,
			"%s queue %u: binding is not permitted; run as root or with CAP_NET_RAW",
			p->name, o->queue);
	case -EINVAL:
		if (o->queue >= queues)
			return xdpath_fail(o->diag, XDPATH_R_QUEUE_RANGE, EINVAL,
					   "%s queue %u: the device has queues 0 to %u; choose "
					   "among them (-q)",
					   p->name, o->queue, queues - 1);
		break;
	default: break;
	}
	if (o->mode == XDPATH_MODE_ZEROCOPY)
		return zerocopy_refused(p, o, err);
	return xdpath_fail(o->diag, XDPATH_R_REFUSED, -err,
			   "%s queue %u: bind for %s says \"%s\"; see `xdpath probe %s`", p->name,
			   o->queue, xdpath_mode_name(o->mode), strerror(-err), p->name);
}

/* A closed socket gives its queue back late (4-104 ms measured; some drivers reset for seconds). */
static int bind_wait(struct xdpath_socket *s, const struct xdpath_port *p,
		     const struct xdpath_socket_opts *o)
{
	const struct timespec pause = {.tv_nsec = RETRY_NS};
	uint64_t until = xdpath_now_ms() + o->wait_ms;
	bool sg = !o->single_frag && (!o->share || o->share->multi_frag);
	int err;

	while ((err = bind_once(s, p, o, sg)) < 0) {
		if (err == -EBUSY && xdpath_now_ms() < until)
			nanosleep(&pause, NULL);
		else if (sg && !o->share && (err == -EINVAL || err == -EOPNOTSUPP))
			sg = false; /* before 6.6, or a driver of single-fragment zero-copy */
		else
			return bind_refused(p, o, err);
	}
	s->multi_frag = sg;
	return 0;
}

/* What was obtained, from the kernel's mouth. */
static int read_back(struct xdpath_socket *s, const struct xdpath_port *p,
		     const struct xdpath_socket_opts *o)
{
	struct xdp_options got = {0};
	socklen_t len = sizeof(got);
	bool zc;

	if (getsockopt(s->fd, SOL_XDP, XDP_OPTIONS, &got, &len) < 0)
		return xdpath_fail(
			o->diag, XDPATH_R_KERNEL, errno,
			"%s queue %u: the mode cannot be read back: %s; see `xdpath probe`",
			p->name, o->queue, strerror(errno));
	zc = got.flags & XDP_OPTIONS_ZEROCOPY;
	if (zc != (o->mode == XDPATH_MODE_ZEROCOPY))
		return xdpath_fail(o->diag, XDPATH_R_NO_ZEROCOPY, EOPNOTSUPP,
				   "%s queue %u: asked for %s, the kernel bound it in %s mode; use "
				   "--mode copy or auto",
				   p->name, o->queue, xdpath_mode_name(o->mode),
				   zc ? "zero-copy" : "copy");
	s->mode = o->mode;
	return 0;
}

/* Most fragments of a packet the kernel sends: one page each behind the first. */
static uint32_t copy_mode_frags(void)
{
	unsigned int frags = 17;
	FILE *f = fopen("/proc/sys/net/core/max_skb_frags", "re"); /* only in the first namespace */

	if (f) {
		if (fscanf(f, "%u", &frags) != 1)
			frags = 17;
		fclose(f);
	}
	return frags + 1 < XDPATH_PKT_FRAGS_MAX ? frags + 1 : XDPATH_PKT_FRAGS_MAX;
}

static void set_limits(struct xdpath_socket *s, const struct xdpath_port *p,
		       const struct xdpath_socket_opts *o)
{
	uint32_t budget = o->tx_kick_budget;

	s->q.tx_max_len = p->mtu + XDPATH_ETH_MIN;
	s->q.tx_max_frags = 1;
	if (s->multi_frag)
		s->q.tx_max_frags =
			s->mode == XDPATH_MODE_ZEROCOPY ? p->zc_max_segs : copy_mode_frags();
	s->kick_budget = 32; /* the kernel's own */
	if (!budget || !s->q.tx.size || s->mode == XDPATH_MODE_ZEROCOPY)
		return;
	if (budget > s->q.tx.size)
		budget = s->q.tx.size;
	if (setsockopt(s->fd, SOL_XDP, XDP_MAX_TX_SKB_BUDGET, &budget, sizeof(budget)) == 0)
		s->kick_budget = budget;
}

static int set_up(struct xdpath_socket *s, const struct xdpath_port *p,
		  const struct xdpath_socket_opts *o)
{
	int err = 0;

	if (!o->no_rx && !o->no_quirks)
		err = xdpath_quirk_check(p, o->mode, xdpath_umem_rx_room(s->umem), o->diag);
	if (!err)
		err = create(s, o);
	if (!err)
		err = map_rings(s, o->diag);
	if (err)
		return err;
	xdpath_refill(&s->q); /* before bind: zero-copy drivers take frames while binding */
	err = bind_wait(s, p, o);
	if (!err)
		err = read_back(s, p, o);
	if (!err)
		set_limits(s, p, o);
	return err;
}

int xdpath_socket_open(struct xdpath_socket **out, const struct xdpath_port *p,
		       struct xdpath_umem *u, const struct xdpath_socket_opts *o)
{
	struct xdpath_socket *s;
	int err;

	*out = NULL;
	if (!o || xdpath_opts_check(o, o->sz, sizeof(*o)) || !o->frames || (o->no_rx && o->no_tx))
		return -EINVAL;
	_Static_assert(sizeof(*s) % XDPATH_CACHELINE == 0, "whole lines");
	s = aligned_alloc(XDPATH_CACHELINE, sizeof(*s));
	if (!s)
		return -ENOMEM;
	memset(s, 0, sizeof(*s));
	s->fd = -1;
	s->umem = u;
	s->queue_id = o->queue;
	snprintf(s->ifname, sizeof(s->ifname), "%s", p->name);
	s->q.frames = o->frames;
	s->q.umem = xdpath_umem_area(u);
	s->q.frame_mask = xdpath_umem_frame_size(u) - 1;
	s->q.rx.size = o->no_rx ? 0 : o->ring_rx ? o->ring_rx : RING_DEFAULT;
	s->q.tx.size = o->no_tx ? 0 : o->ring_tx ? o->ring_tx : RING_DEFAULT;
	s->q.fill.size = o->ring_fill ? o->ring_fill : RING_DEFAULT;
	/* zero-copy: the NIC keeps frames of its own besides */
	s->q.fill_most = o->mode == XDPATH_MODE_ZEROCOPY ? UINT32_MAX : s->q.rx.size;
	s->q.comp.size = o->ring_comp ? o->ring_comp : RING_DEFAULT;
	err = set_up(s, p, o);
	if (err) {
		xdpath_socket_close(s);
		return err;
	}
	*out = s;
	return 0;
}

void xdpath_socket_close(struct xdpath_socket *s)
{
	if (!s)
		return;
	for (int i = 0; i < 4; i++)
		if (s->maps[i].map)
			munmap(s->maps[i].map, s->maps[i].len);
	if (s->fd >= 0)
		close(s->fd);
	free(s);
}
