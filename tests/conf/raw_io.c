// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
/*
 * What is done with a socket made by hand, and its books. A descriptor submitted goes into the bag
 * `out` and leaves it with its completion; a frame posted goes into `posted` and leaves it when it
 * is received. What comes back without having been in the bag is counted as foreign: the audit
 * then fails, so no frame comes back twice unseen.
 */
#include <errno.h>
#include <sys/socket.h>

#include "raw_io.h"

#define BAG_SIZE (sizeof(((struct raw_bag *)0)->v) / sizeof(uint64_t))

static void bag_put(struct raw_bag *b, uint64_t v)
{
	if (b->n < BAG_SIZE)
		b->v[(b->head + b->n) % BAG_SIZE] = v;
	b->n++; /* one too many shows in the audit */
}

/* Mostly the oldest is meant. */
static bool bag_take(struct raw_bag *b, uint64_t v)
{
	for (uint32_t i = 0; i < b->n && i < BAG_SIZE; i++) {
		uint64_t *p = &b->v[(b->head + i) % BAG_SIZE];

		if (*p != v)
			continue;
		*p = b->v[b->head];
		b->head = (b->head + 1) % BAG_SIZE;
		b->n--;
		return true;
	}
	return false;
}

/* The address a frame was posted by, from the one it is received by. */
static uint64_t posted_as(const struct raw *r, uint64_t addr)
{
	return r->e.unaligned ? addr & XSK_UNALIGNED_BUF_ADDR_MASK
			      : addr & ~(uint64_t)(r->e.chunk - 1);
}

void raw_post(struct raw *r, uint64_t addr)
{
	struct raw *b = r->books;
	uint64_t *ring = b->fill.entries;

	bag_put(&b->posted, addr);
	ring[b->fill.prod++ & b->fill.mask] = addr;
	xdpath_prod_submit(&b->fill);
}

void raw_submit(struct raw *r, const struct xdp_desc *d, uint32_t n)
{
	struct xdp_desc *ring = r->tx.entries;

	for (uint32_t i = 0; i < n; i++) {
		bag_put(&r->books->out, d[i].addr);
		ring[r->tx.prod++ & r->tx.mask] = d[i];
	}
	xdpath_prod_submit(&r->tx);
}

int raw_kick_once(struct raw *r)
{
	r->kicks++;
	return sendto(r->e.fd, NULL, 0, MSG_DONTWAIT, NULL, 0) < 0 ? -errno : 0;
}

void raw_forget(struct raw *r, const struct xdp_desc *d, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (!bag_take(&r->books->out, d[i].addr))
			r->foreign++;
	r->kept += n;
}

static uint32_t reap(struct end *e)
{
	struct raw *r = (struct raw *)e, *b = r->books;
	const uint64_t *ring = b->comp.entries;
	uint32_t n = b->comp.size ? xdpath_cons_avail(&b->comp, b->comp.size) : 0;

	for (uint32_t i = 0; i < n; i++) {
		uint64_t addr = xdpath_read_addr(&ring[b->comp.cons++ & b->comp.mask]);

		if (bag_take(&b->out, addr) ||
		    (!conf->k.odd_verbatim && bag_take(&b->out, addr | 1)))
			continue;
		r->foreign++;
		r->last_foreign = addr;
	}
	if (n)
		xdpath_cons_release(&b->comp);
	return n;
}

static int kick(struct end *e)
{
	struct raw *r = (struct raw *)e;
	uint64_t until = conf_now_ms() + CONF_PATIENCE_MS;

	while (xdpath_prod_pending(&r->tx)) {
		uint32_t before = xdpath_prod_pending(&r->tx);
		int err = raw_kick_once(r);

		if (err && err != -EAGAIN && err != -EBUSY && err != -ENOBUFS)
			return err;
		if (xdpath_prod_pending(&r->tx) == before) {
			if (conf_now_ms() >= until)
				return -ETIMEDOUT;
			if (!reap(e))
				conf_pause();
		}
	}
	return 0;
}

static uint32_t pending(struct end *e)
{
	return ((struct raw *)e)->books->out.n;
}

static uint32_t get(struct end *e, uint64_t *addr, uint32_t n)
{
	struct raw *r = (struct raw *)e;
	uint32_t used = r->books->out.n, most = (r->tx_last - r->tx_first) / r->tx_step;

	if (used + n > most)
		n = most - used;
	for (uint32_t i = 0; i < n; i++) {
		addr[i] = (uint64_t)r->tx_next * r->e.chunk;
		r->tx_next += r->tx_step;
		if (r->tx_next >= r->tx_last)
			r->tx_next = r->tx_first;
	}
	return n;
}

static bool send_all(struct end *e, const struct xdp_desc *d, uint32_t n)
{
	struct raw *r = (struct raw *)e;

	if (xdpath_prod_room(&r->tx, n) < n)
		return false;
	raw_submit(r, d, n);
	return true;
}

static uint32_t recv_some(struct end *e, struct xdp_desc *d, uint32_t max)
{
	struct raw *r = (struct raw *)e;
	const struct xdp_desc *ring = r->rx.entries;
	uint32_t n = xdpath_cons_avail(&r->rx, max), whole = 0;

	if (n == 0 && xdpath_prod_need_wakeup(&r->books->fill)) /* zero-copy: the NIC ran dry */
		recvfrom(r->e.fd, NULL, 0, MSG_DONTWAIT, NULL, NULL);
	n = n < max ? n : max;
	for (uint32_t i = 0; i < n; i++) {
		d[i] = xdpath_read_desc(&ring[(r->rx.cons + i) & r->rx.mask]);
		if (!(d[i].options & XDP_PKT_CONTD))
			whole = i + 1;
	}
	for (uint32_t i = 0; i < whole; i++)
		if (!bag_take(&r->books->posted, posted_as(r, d[i].addr))) {
			r->foreign++;
			r->last_foreign = d[i].addr;
		}
	r->rx.cons += whole;
	xdpath_cons_release(&r->rx);
	return whole;
}

static void give(struct end *e, const struct xdp_desc *d, uint32_t n)
{
	struct raw *r = (struct raw *)e;

	for (uint32_t i = 0; i < n; i++)
		raw_post(r, posted_as(r, d[i].addr));
}

static int audit(struct end *e)
{
	struct raw *r = (struct raw *)e, *b = r->books;
	uint32_t in_ring = b->fill.size ? xdpath_prod_pending(&b->fill) : 0;

	reap(e);
	need(r->foreign == 0, "%llu frames came back that were not out, 0x%llx last",
	     (unsigned long long)r->foreign, (unsigned long long)r->last_foreign);
	need(b->out.n == 0, "%u descriptors did not come back, 0x%llx first", b->out.n,
	     (unsigned long long)b->out.v[b->out.head]);
	/* what was dropped waits in the kernel's own list: fewer in the ring than posted is right
	 */
	need(in_ring <= b->posted.n, "%u in the fill ring, %u posted", in_ring, b->posted.n);
	return CONF_OK;
}

void raw_set_ops(struct end *e)
{
	e->get = get;
	e->send = send_all;
	e->kick = kick;
	e->reap = reap;
	e->pending = pending;
	e->recv = recv_some;
	e->give = give;
	e->audit = audit;
}
