// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
/* AF_XDP sockets made by hand: set-up. Called by the tests; what is done with them is in raw_io.c.
 */
#include <errno.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "raw_io.h"

#define HUGE_PAGE (2UL << 20)

int raw_socket(void)
{
	int fd = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);

	return fd < 0 ? -errno : fd;
}

int raw_reg(int fd, const void *area, uint64_t len, uint32_t chunk, uint32_t headroom,
	    uint32_t flags, uint32_t md)
{
	struct raw_umem_reg reg = {.addr = (uint64_t)(uintptr_t)area,
				   .len = len,
				   .chunk_size = chunk,
				   .headroom = headroom,
				   .flags = flags,
				   .tx_metadata_len = md};

	return setsockopt(fd, SOL_XDP, XDP_UMEM_REG, &reg, sizeof(reg)) < 0 ? -errno : 0;
}

int raw_ring(int fd, int opt, uint32_t size)
{
	return setsockopt(fd, SOL_XDP, opt, &size, sizeof(size)) < 0 ? -errno : 0;
}

int raw_bind(int fd, int ifindex, uint32_t queue, uint32_t flags, int shared_fd)
{
	struct sockaddr_xdp a = {.sxdp_family = AF_XDP,
				 .sxdp_flags = (uint16_t)flags,
				 .sxdp_ifindex = (uint32_t)ifindex,
				 .sxdp_queue_id = queue,
				 .sxdp_shared_umem_fd = (uint32_t)shared_fd};

	return bind(fd, (struct sockaddr *)(void *)&a, sizeof(a)) < 0 ? -errno : 0;
}

/* From the runner's pages, each part once in a test. */
static void *huge_area(size_t len)
{
	static size_t used;
	void *p;

	len = (len + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1);
	if (!conf->huge || len > conf->huge_size - used)
		return NULL;
	p = conf->huge + used;
	used += len;
	return p;
}

void *raw_area(size_t len, bool huge)
{
	void *p;

	if (huge)
		return huge_area(len);
	p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return p == MAP_FAILED ? NULL : p;
}

static uint32_t slots(uint32_t asked)
{
	return asked == RAW_NONE ? 0 : asked ? asked : 2048;
}

static int make_umem(struct raw *r, const struct raw_opts *o)
{
	uint32_t frames = o->frames ? o->frames : 1024;

	r->stage = "umem";
	r->size = (uint64_t)frames * r->e.chunk;
	r->mapped = (r->size + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1);
	r->e.area = raw_area(r->mapped, o->huge);
	if (!r->e.area)
		return -ENOMEM;
	r->owns_area = true;
	return raw_reg(r->e.fd, r->e.area, r->size, r->e.chunk, o->headroom, o->umem_flags, o->md);
}

static int size_rings(struct raw *r, const struct raw_opts *o)
{
	int err = 0;

	r->stage = "rings";
	r->fill.size = o->share && !o->own_rings ? 0 : slots(o->fill);
	r->comp.size = o->share && !o->own_rings ? 0 : slots(o->comp);
	r->rx.size = slots(o->rx);
	r->tx.size = slots(o->tx);
	if (r->fill.size)
		err = raw_ring(r->e.fd, XDP_UMEM_FILL_RING, r->fill.size);
	if (!err && r->comp.size)
		err = raw_ring(r->e.fd, XDP_UMEM_COMPLETION_RING, r->comp.size);
	if (!err && r->rx.size)
		err = raw_ring(r->e.fd, XDP_RX_RING, r->rx.size);
	if (!err && r->tx.size)
		err = raw_ring(r->e.fd, XDP_TX_RING, r->tx.size);
	return err;
}

static uint8_t *map_ring(struct raw *r, int which, uint64_t desc, size_t entries, off_t page)
{
	size_t len = desc + entries;
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, r->e.fd, page);

	if (p == MAP_FAILED)
		return NULL;
	r->maps[which].map = p;
	r->maps[which].len = len;
	return p;
}

#define SET_RING(ring, p, off)                                                    \
	do {                                                                      \
		(ring)->mask = (ring)->size - 1;                                  \
		(ring)->k_producer = (uint32_t *)(void *)((p) + (off)->producer); \
		(ring)->k_consumer = (uint32_t *)(void *)((p) + (off)->consumer); \
		(ring)->k_flags = (uint32_t *)(void *)((p) + (off)->flags);       \
		(ring)->entries = (p) + (off)->desc;                              \
	} while (0)

static int map_rings(struct raw *r)
{
	struct xdp_mmap_offsets off;
	socklen_t len = sizeof(off);
	uint8_t *p[4] = {NULL};

	r->stage = "map";
	if (getsockopt(r->e.fd, SOL_XDP, XDP_MMAP_OFFSETS, &off, &len) < 0)
		return -errno;
	if ((r->rx.size &&
	     !(p[0] = map_ring(r, 0, off.rx.desc, r->rx.size * sizeof(struct xdp_desc),
			       XDP_PGOFF_RX_RING))) ||
	    (r->tx.size &&
	     !(p[1] = map_ring(r, 1, off.tx.desc, r->tx.size * sizeof(struct xdp_desc),
			       XDP_PGOFF_TX_RING))) ||
	    (r->fill.size && !(p[2] = map_ring(r, 2, off.fr.desc, r->fill.size * sizeof(uint64_t),
					       (off_t)XDP_UMEM_PGOFF_FILL_RING))) ||
	    (r->comp.size && !(p[3] = map_ring(r, 3, off.cr.desc, r->comp.size * sizeof(uint64_t),
					       (off_t)XDP_UMEM_PGOFF_COMPLETION_RING))))
		return -errno;
	if (p[0])
		SET_RING(&r->rx, p[0], &off.rx);
	if (p[1])
		SET_RING(&r->tx, p[1], &off.tx);
	if (p[2])
		SET_RING(&r->fill, p[2], &off.fr);
	if (p[3])
		SET_RING(&r->comp, p[3], &off.cr);
	r->tx.limit = r->tx.size;
	r->fill.limit = r->fill.size;
	return 0;
}

/* The lower half of the UMEM receives, the upper half is for packets to send. */
static void deal_frames(struct raw *r, const struct raw_opts *o)
{
	uint32_t frames = (uint32_t)(r->size / r->e.chunk), post = o->post ? o->post : frames / 2;
	uint32_t step = o->post_step ? o->post_step : r->e.chunk;

	r->tx_first = r->tx_next = frames / 2;
	r->tx_last = frames;
	r->tx_step = 1;
	if (!r->rx.size && r->fill.size) { /* send only: all of it */
		r->tx_first = r->tx_next = 0;
		post = RAW_NONE;
	}
	if (post == RAW_NONE || !r->fill.size)
		return;
	for (uint32_t i = 0; i < post && xdpath_prod_room(&r->fill, 1); i++)
		raw_post(r, (uint64_t)i * step);
}

/* What was asked for is what the kernel says it is. */
static int read_back(const struct raw *r, uint32_t flags)
{
	struct xdp_options got = {0};
	socklen_t len = sizeof(got);

	if (getsockopt(r->e.fd, SOL_XDP, XDP_OPTIONS, &got, &len) < 0)
		return -errno;
	return flags & XDP_ZEROCOPY && !(got.flags & XDP_OPTIONS_ZEROCOPY) ? -EPROTO : 0;
}

static int bind_it(struct raw *r, const struct raw_opts *o)
{
	int ifindex = o->ifindex ? o->ifindex : (int)if_nametoindex(o->dev ? o->dev : NET_B);
	uint32_t flags = o->bind ? o->bind & ~RAW_BIND : raw_mode() | XDP_USE_NEED_WAKEUP;
	uint64_t until = conf_now_ms() + (o->once ? 0 : 1000);
	int err;

	r->stage = "bind";
	if (o->several)
		flags |= XDP_USE_SG;
	if (o->share && !o->bind)
		flags = XDP_SHARED_UMEM;
	do {
		err = raw_bind(r->e.fd, ifindex, o->queue, flags, o->share ? o->share->e.fd : 0);
		if (err == -EBUSY)
			conf_pause(); /* a closed socket gives its queue back late */
	} while (err == -EBUSY && conf_now_ms() < until);
	return err ? err : read_back(r, flags);
}

uint32_t raw_mode(void)
{
	return conf->mode == CONF_ZC ? XDP_ZEROCOPY : XDP_COPY;
}

int raw_need(struct raw *r, const struct raw_opts *o)
{
	int err = raw_open(r, o);

	need(err == 0, "%s: %s", r->stage, strerror(-err));
	return CONF_OK;
}

int raw_pair(struct raw *tx, struct raw *rx, const struct raw_opts *to, const struct raw_opts *ro,
	     uint32_t mtu)
{
	struct raw_opts o = *to;

	attempt(net_make(mtu));
	o.dev = NET_A;
	attempt(raw_need(tx, &o));
	attempt(raw_need(rx, ro));
	attempt(net_attach(NET_B, NET_REDIRECT));
	return net_socket(0, rx->e.fd);
}

int raw_open(struct raw *r, const struct raw_opts *o)
{
	int err = 0;

	memset(r, 0, sizeof(*r));
	raw_set_ops(&r->e);
	r->stage = "socket";
	r->books = o->share && !o->own_rings ? o->share : r;
	r->e.chunk = o->share ? o->share->e.chunk : o->chunk ? o->chunk : 4096;
	r->e.headroom = o->share ? o->share->e.headroom : o->headroom;
	r->e.unaligned =
		o->share ? o->share->e.unaligned : o->umem_flags & XDP_UMEM_UNALIGNED_CHUNK_FLAG;
	r->e.fd = raw_socket();
	if (r->e.fd < 0)
		return r->e.fd;
	if (o->share) {
		r->e.area = o->share->e.area;
		r->size = o->share->size;
	} else {
		err = make_umem(r, o);
	}
	if (!err)
		err = size_rings(r, o);
	if (!err)
		err = map_rings(r);
	if (!err)
		deal_frames(r, o);
	if (!err)
		err = bind_it(r, o);
	if (err)
		raw_close(r);
	return err;
}

void raw_close(struct raw *r)
{
	for (int i = 0; i < 4; i++)
		if (r->maps[i].map)
			munmap(r->maps[i].map, r->maps[i].len);
	if (r->e.fd >= 0)
		close(r->e.fd);
	r->e.fd = -1;
	if (r->owns_area)
		munmap(r->e.area, r->mapped);
	r->owns_area = false;
	memset(r->maps, 0, sizeof(r->maps));
}
