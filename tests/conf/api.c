// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
/* Ends that are the library's: UMEM, frames and socket by its public calls, nothing else. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "end.h"

static struct api *api_of(struct end *e)
{
	return (struct api *)e;
}

static uint32_t get(struct end *e, uint64_t *addr, uint32_t n)
{
	return xdpath_frame_get(api_of(e)->frames, addr, n);
}

static bool send_all(struct end *e, const struct xdp_desc *d, uint32_t n)
{
	struct xdpath_queue *q = &api_of(e)->s->q;

	return xdpath_tx_room(q, n) >= n && xdpath_tx_burst(q, d, n) == n;
}

static int kick(struct end *e)
{
	uint64_t until = conf_now_ms() + CONF_PATIENCE_MS;
	int err;

	while ((err = xdpath_socket_kick(api_of(e)->s)) == -EAGAIN && conf_now_ms() < until)
		conf_pause();
	return err;
}

static uint32_t reap(struct end *e)
{
	struct xdpath_queue *q = &api_of(e)->s->q;

	return xdpath_reap(q, q->comp.size);
}

static uint32_t pending(struct end *e)
{
	return api_of(e)->s->q.tx_outstanding;
}

static uint32_t recv_some(struct end *e, struct xdp_desc *d, uint32_t max)
{
	struct xdpath_socket *s = api_of(e)->s;
	uint32_t n = xdpath_rx_burst(&s->q, d, max);

	if (n == 0 && xdpath_prod_need_wakeup(&s->q.fill)) /* zero-copy: the NIC ran dry */
		xdpath_socket_kick_rx(s);
	return n;
}

static void give(struct end *e, const struct xdp_desc *d, uint32_t n)
{
	xdpath_release(&api_of(e)->s->q, d, n);
	xdpath_refill(&api_of(e)->s->q);
}

static int audit(struct end *e)
{
	const struct api *a = api_of(e);
	struct xdpath_ledger l = {0};

	reap(e);
	xdpath_frames_audit(a->frames, &l);
	need(l.free + l.fill + l.rx + l.held + l.tx == l.total,
	     "free %u fill %u rx %u held %u tx %u of %u", l.free, l.fill, l.rx, l.held, l.tx,
	     l.total);
	need(l.wrong == 0, "the ledger refused %llu moves", (unsigned long long)l.wrong);
	need(l.rx + l.held + l.tx == 0, "rx %u held %u tx %u at the end", l.rx, l.held, l.tx);
	need(l.free == a->frames->count, "free %u, in the cache %u", l.free, a->frames->count);
	need(a->s->q.n.rx_bad + a->s->q.n.comp_bad == 0, "rx_bad %llu comp_bad %llu",
	     (unsigned long long)a->s->q.n.rx_bad, (unsigned long long)a->s->q.n.comp_bad);
	return CONF_OK;
}

static int make_umem(struct api *a, const struct api_opts *o)
{
	struct xdpath_umem_opts uo = XDPATH_OPTS_INIT(struct xdpath_umem_opts);

	uo.frames = o->umem_frames ? o->umem_frames : o->frames ? o->frames : 4096;
	uo.frame_size = o->frame_size;
	uo.headroom = o->headroom;
	uo.hugepages = o->huge ? XDPATH_HUGE_ON : XDPATH_HUGE_OFF;
	uo.diag = &a->diag;
	a->owns_umem = true;
	return xdpath_umem_create(&a->umem, &uo);
}

int api_open(struct api *a, const struct api_opts *o)
{
	struct xdpath_socket_opts so = XDPATH_OPTS_INIT(struct xdpath_socket_opts);
	struct api *first = o->share ? api_of(o->share) : NULL;
	int err;

	memset(a, 0, sizeof(*a));
	err = xdpath_port_query(&a->port, o->dev ? o->dev : NET_B, &a->diag);
	if (!err && !first)
		err = make_umem(a, o);
	if (err == -ENOMEM && o->huge)
		return conf_skip("somebody took the spare 2 MiB pages: %s", a->diag.text);
	need(err == 0, "%s", a->diag.text);
	if (first)
		a->umem = first->umem;
	err = xdpath_umem_carve(a->umem, o->frames ? o->frames : 4096, &a->frames);
	need(err == 0, "no %u frames left: %s", o->frames, strerror(-err));
	so.queue = o->queue;
	so.mode = end_mode();
	so.ring_rx = o->rx;
	so.ring_tx = o->tx;
	so.ring_fill = o->no_rx ? 64 : o->fill; /* or it takes the frames to send from */
	so.ring_comp = o->comp;
	so.no_rx = o->no_rx;
	so.no_tx = o->no_tx;
	so.tx_kick_budget = o->tx_budget;
	so.single_frag = !o->several;
	so.wait_ms = 1000;
	so.no_quirks = true; /* the driver itself is looked at */
	so.frames = a->frames;
	so.share = first ? first->s : NULL;
	so.diag = &a->diag;
	err = xdpath_socket_open(&a->s, &a->port, a->umem, &so);
	need(err == 0, "%s", a->diag.text);
	a->e = (struct end){.fd = a->s->fd,
			    .area = xdpath_umem_area(a->umem),
			    .chunk = xdpath_umem_frame_size(a->umem),
			    .headroom = xdpath_umem_headroom(a->umem),
			    .get = get,
			    .send = send_all,
			    .kick = kick,
			    .reap = reap,
			    .pending = pending,
			    .recv = recv_some,
			    .give = give,
			    .audit = audit};
	return CONF_OK;
}

void api_close(struct api *a)
{
	xdpath_socket_close(a->s);
	if (a->owns_umem)
		xdpath_umem_destroy(a->umem);
	a->s = NULL;
	a->umem = NULL;
}

int api_steer(struct xdpath_prog **g, const struct api *a, uint32_t queue)
{
	struct xdpath_prog_opts po = XDPATH_OPTS_INIT(struct xdpath_prog_opts);
	struct xdpath_diag d = {0};
	int err;

	po.attach = end_attach();
	po.steer = XDPATH_STEER_L2;
	po.diag = &d;
	if (!*g) {
		err = xdpath_prog_open(g, &a->port, &po);
		need(err == 0, "%s", d.text);
	}
	err = xdpath_prog_set_socket(*g, queue, a->s->fd);
	need(err == 0, "slot %u: %s", queue, strerror(-err));
	return CONF_OK;
}

int end_stats(const struct end *e, struct end_stats *st)
{
	struct xdp_statistics k = {0};
	socklen_t len = sizeof(k);

	need(getsockopt(e->fd, SOL_XDP, XDP_STATISTICS, &k, &len) == 0, "%s", strerror(errno));
	*st = (struct end_stats){.rx_dropped = k.rx_dropped,
				 .rx_invalid = k.rx_invalid_descs,
				 .tx_invalid = k.tx_invalid_descs,
				 .rx_full = k.rx_ring_full,
				 .fill_empty = k.rx_fill_ring_empty_descs};
	return CONF_OK;
}
