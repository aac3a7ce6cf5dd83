// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
/*
 * The rows of the reference table that are streams: each is a line of set-up, packets and
 * expectation, run by run_row(). All through the library's public calls.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "end.h"

#define JUMBO 9000U

enum row_prog { ROW_LIB, ROW_OWN }; /* the library's steering program, or one of the suite's */

struct row {
	enum row_prog whose;
	enum net_prog prog;
	uint32_t frame_size, headroom, mtu, fill;
	int32_t tail; /* what the program adds or cuts */
	bool leaks;   /* in native mode; on NICs in generic mode too */
	bool both_ways;
	struct flow f;
};

static int connect_row(const struct row *r, const struct api *a, struct xdpath_prog **lib)
{
	if (r->whose == ROW_LIB)
		return api_steer(lib, a, 0);
	attempt(net_attach(a->port.name, r->prog));
	if (r->tail)
		net_set_tail(r->tail);
	return net_socket(0, a->e.fd);
}

/* Growing and cutting may not be had in this mode: then that was the answer, not a failure. */
static int judge_tail(const struct row *r, int verdict)
{
	if (r->tail && net_tail_error())
		return conf_skip("bpf_xdp_adjust_tail(%d) says \"%s\" here", r->tail,
				 strerror(-net_tail_error()));
	return verdict;
}

static int run_row(const void *arg)
{
	const struct row *r = arg;
	struct flow f = r->f;
	struct api tx, rx;
	struct api_opts o = {.frame_size = r->frame_size, .several = r->mtu == JUMBO};
	struct xdpath_prog *lib = NULL, *back = NULL;
	int verdict;

	if (o.several && !conf->k.sg)
		return conf_no_frags();
	if (r->leaks && (conf->mode == CONF_DRV || conf->nic) && !conf->all)
		return conf_skip("the kernel does not give a cut fragment back to its page pool, "
				 "which stays behind (seen on 6.18 and 7.3); --all runs it");
	attempt(net_make(r->mtu ? r->mtu : 1500));
	o.dev = NET_A;
	attempt(api_open(&tx, &o));
	o.dev = NULL;
	o.headroom = r->headroom;
	o.fill = r->fill;
	attempt(api_open(&rx, &o));
	attempt(connect_row(r, &rx, &lib));
	f.count = f.count ? f.count : 4096;
	f.len = f.len ? f.len : 64;
	f.grown = r->tail;
	verdict = judge_tail(r, flow_run(&tx.e, &rx.e, &f));
	if (verdict != CONF_OK || !r->both_ways)
		return verdict;
	attempt(connect_row(r, &tx, &back));
	return flow_run(&rx.e, &tx.e, &f);
}

/* Nobody sends: poll must sleep its time out. */
static int poll_rx_empty(const void *arg)
{
	struct pollfd p = {.events = POLLIN};
	struct xdpath_prog *g = NULL;
	struct api rx;
	uint64_t begin;
	int n;

	(void)arg;
	attempt(net_make(1500));
	attempt(api_open(&rx, &(struct api_opts){.no_tx = true}));
	attempt(api_steer(&g, &rx, 0));
	p.fd = rx.e.fd;
	begin = conf_now_ms();
	n = poll(&p, 1, 300);
	need(n == 0, "poll says %d, events 0x%x", n, p.revents);
	need(conf_now_ms() - begin >= 299, "after %llu ms",
	     (unsigned long long)(conf_now_ms() - begin));
	return rx.e.audit(&rx.e);
}

/* Completions are never taken: the completion ring fills, then the TX ring, then poll waits. */
static int poll_tx_full(const void *arg)
{
	const struct api_opts o = {.dev = NET_A, .frame_size = 2048, .frames = 8192, .no_rx = true};
	const struct flow f = {.len = 64};
	struct pollfd p = {.events = POLLOUT};
	uint32_t sent = 0, comp, slots;
	struct api tx;
	int n = 1;

	(void)arg;
	attempt(net_make(1500));
	attempt(api_open(&tx, &o));
	p.fd = tx.e.fd;
	comp = tx.s->q.comp.size;
	slots = tx.s->q.tx.size;
	while (n == 1 && sent < 8192 - 64) {
		for (; xdpath_tx_room(&tx.s->q, 1) > 0 && sent < 8192 - 64; sent++) {
			struct xdp_desc d = {.len = 64};
			uint64_t addr = 0;

			need(tx.e.get(&tx.e, &addr, 1) == 1, "no frame %u", sent);
			d.addr = addr;
			flow_write(&tx.e, &d, 1, &f, sent);
			need(tx.e.send(&tx.e, &d, 1), "packet %u not taken", sent);
		}
		n = poll(&p, 1, conf->nic ? 1000 : 300);
	}
	need(n == 0, "poll says %d after %u packets", n, sent);
	/* a ring is writable when half of it is free; a driver empties it while it is filled */
	need(sent <= comp + slots && sent > comp + (conf->mode == CONF_ZC ? slots / 2 : slots - 1),
	     "%u packets were taken", sent);
	need(xdpath_reap(&tx.s->q, sent) == comp, "not all completed");
	n = poll(&p, 1, 1000); /* room for completions: it goes on */
	need(n == 1 && p.revents & POLLOUT, "poll says %d, events 0x%x", n, p.revents);
	need(tx.e.kick(&tx.e) == 0, "the rest is not sent");
	attempt(flow_drain(&tx.e));
	return tx.e.audit(&tx.e);
}

static int teardown(const void *arg)
{
	const struct flow f = {.count = 4096, .len = 64};

	(void)arg;
	attempt(net_make(1500));
	for (int i = 0; i < 10; i++) {
		struct xdpath_prog *g = NULL;
		struct api tx, rx;

		attempt(api_open(&tx, &(struct api_opts){.dev = NET_A, .no_rx = true}));
		attempt(api_open(&rx, &(struct api_opts){.no_tx = true}));
		attempt(api_steer(&g, &rx, 0));
		attempt(flow_run(&tx.e, &rx.e, &f));
		need(xdpath_prog_clear_socket(g, 0) == 0, "round %d: the slot", i);
		xdpath_prog_close(g);
		api_close(&tx);
		api_close(&rx);
	}
	return CONF_OK;
}

/* The NICs' own rings at their smallest or largest; then batches of one and of nearly a ring. */
static int hw_rings(const void *arg)
{
	const bool largest = arg != NULL;
	struct api_opts o = {.frames = 4096};
	struct flow f = {.count = 4096, .len = 64};
	struct xdpath_prog *g = NULL;
	struct nic_rings r = {0};
	struct api tx, rx;
	int err;

	if (!conf->nic || nic_rings(NET_B, &r) || !r.tx_max)
		return conf_skip("needs a NIC whose rings can be set (ethtool -G)");
	err = largest ? nic_set_rings(r.rx_max, r.tx_max) : nic_set_rings(128, 64);
	if (err)
		return conf_skip("the driver does not set its rings: %s", strerror(-err));
	need(nic_rings(NET_B, &r) == 0, "%s is gone", NET_B);
	attempt(net_make(1500));
	if (largest)
		o = (struct api_opts){
			.frames = 16384, .rx = 8192, .tx = 8192, .fill = 8192, .comp = 8192};
	attempt(api_open(&rx, &o));
	o.dev = NET_A;
	attempt(api_open(&tx, &o));
	attempt(api_steer(&g, &rx, 0));
	conf_note("rx %u tx %u", r.rx, r.tx);
	f.batch = !largest ? 1 : r.rx > 2048 ? 2048 : r.rx / 2;
	attempt(flow_run(&tx.e, &rx.e, &f));
	f.batch = (r.tx < r.rx ? r.tx : r.rx) - (largest ? 8 : 1); /* what the receiver can hold */
	f.count = largest ? 8192 : f.count;
	return flow_run(&tx.e, &rx.e, &f);
}

#define ROW(number, name_, what_, ...)                                                 \
	{                                                                              \
		.row = (number), .name = (name_), .modes = CONF_BOTH, .what = (what_), \
		.fn = run_row, .arg = &(const struct row)                              \
		{                                                                      \
			__VA_ARGS__                                                    \
		}                                                                      \
	}
#define OWN(which) .whose = ROW_OWN, .prog = (which)

const struct conf_test rows_tests[] = {
	ROW(1, "SEND_RECEIVE", "4096 packets of 64 bytes", .mtu = 0),
	ROW(2, "SEND_RECEIVE_2K_FRAME", "2048-byte frames", .frame_size = 2048),
	ROW(3, "SEND_RECEIVE_SINGLE_PKT", "one packet does not wait for a batch", .f.count = 1),
	ROW(4, "POLL_RX", "poll(POLLIN) before each look", .f.poll_rx = true),
	ROW(5, "POLL_TX", "poll(POLLOUT) alone sends", .f.poll_tx = true),
	{.row = 6,
	 .name = "POLL_RXQ_EMPTY",
	 .modes = CONF_BOTH,
	 .fn = poll_rx_empty,
	 .what = "poll times out when nothing comes"},
	{.row = 7,
	 .name = "POLL_TXQ_FULL",
	 .modes = CONF_BOTH,
	 .fn = poll_tx_full,
	 .what = "poll times out when completions are not taken"},
	ROW(12, "UMEM_HEADROOM", "headroom 128: data at 384", .headroom = 128, .f.data_at = 384),
	{.row = 13,
	 .name = "TEARDOWN",
	 .modes = CONF_BOTH,
	 .fn = teardown,
	 .what = "10 times opened, used, closed",
	 .seconds = 60},
	ROW(14, "BIDIRECTIONAL", "there, then back", .both_ways = true),
	ROW(20, "XDP_DROP_HALF", "a program drops every second packet", OWN(NET_HALF),
	    .f.arrives = flow_even),
	ROW(22, "XDP_METADATA_COPY", "32 bytes before the data", OWN(NET_META), .f.meta = true),
	ROW(23, "XDP_METADATA_COPY_MULTI_BUFF", "the same on a socket for several fragments",
	    OWN(NET_META), .mtu = JUMBO, .f.meta = true),
	ROW(24, "SEND_RECEIVE_9K_PACKETS", "4096 packets of 9000 bytes", .mtu = JUMBO,
	    .f.len = 9000),
	ROW(30, "XDP_ADJUST_TAIL_SHRINK", "128 bytes less 4", OWN(NET_TAIL), .tail = -4,
	    .f = {.count = 64, .len = 128}),
	ROW(31, "XDP_ADJUST_TAIL_SHRINK_MULTI_BUFF", "6144 bytes less 4096", OWN(NET_TAIL),
	    .mtu = JUMBO, .tail = -4096, .leaks = true, .f = {.count = 64, .len = 6144}),
	ROW(31, "XDP_ADJUST_TAIL_SHRINK_FRAGMENT", "6144 bytes less 1000: no fragment goes whole",
	    OWN(NET_TAIL), .mtu = JUMBO, .tail = -1000, .f = {.count = 64, .len = 6144}),
	ROW(32, "XDP_ADJUST_TAIL_GROW", "100 bytes and 4", OWN(NET_TAIL), .tail = 4,
	    .f = {.count = 64, .len = 100}),
	ROW(33, "XDP_ADJUST_TAIL_GROW_MULTI_BUFF", "6144 bytes and 448", OWN(NET_TAIL),
	    .mtu = JUMBO, .tail = 448, .f = {.count = 64, .len = 6144}),
	{.row = 34,
	 .name = "HW_SW_MIN_RING_SIZE",
	 .modes = CONF_BOTH,
	 .fn = hw_rings,
	 .what = "the NIC's smallest rings, batches of 1 and nearly a ring",
	 .seconds = 20},
	{.row = 35,
	 .name = "HW_SW_MAX_RING_SIZE",
	 .modes = CONF_BOTH,
	 .fn = hw_rings,
	 .arg = "largest",
	 .what = "the NIC's largest rings, batches of 2048 and nearly a ring",
	 .seconds = 20},
	{0},
};
