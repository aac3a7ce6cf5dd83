// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
/*
 * Where rings and packets meet badly: a packet of several fragments at a ring's end, rings smaller
 * than a packet, packets not written to their end; and sockets of one direction. (Indexes near 2^32
 * are tests/unit/ring_test.c's: the kernel's cannot be set.)
 */
#include <errno.h>
#include <string.h>

#include "raw.h"

#define JUMBO 9000U /* three fragments, sent and received */

static struct api tx, rx;
static struct xdpath_prog *prog;

static int open_jumbo(const struct api_opts *to, const struct api_opts *ro)
{
	struct api_opts o = *to;

	if (!conf->k.sg)
		return conf_no_frags();
	attempt(net_make(JUMBO));
	o.dev = NET_A;
	o.several = true;
	attempt(api_open(&tx, &o));
	o = *ro;
	o.several = true;
	attempt(api_open(&rx, &o));
	return api_steer(&prog, &rx, 0);
}

static int wait_lost(uint64_t lost)
{
	uint64_t until = conf_now_ms() + CONF_PATIENCE_MS;
	struct end_stats st;

	for (;;) {
		attempt(end_stats(&rx.e, &st));
		if (st.rx_full + st.rx_dropped == lost)
			return CONF_OK;
		need(conf_now_ms() < until, "rx_ring_full %llu and rx_dropped %llu, not %llu",
		     (unsigned long long)st.rx_full, (unsigned long long)st.rx_dropped,
		     (unsigned long long)lost);
		conf_pause();
	}
}

/* Two packets fill 6 slots of 8; of a third nothing is ever seen. Bursts of any size are whole. */
static int rx_edge(const void *arg)
{
	const struct flow f = {.len = JUMBO};
	struct xdp_desc d[XDPATH_BURST_ROOM];
	uint32_t number, n, next = 0;

	(void)arg;
	attempt(open_jumbo(&(struct api_opts){0}, &(struct api_opts){.rx = 8}));
	for (uint32_t round = 0; round < 100; round++) {
		uint64_t until = conf_now_ms() + CONF_PATIENCE_MS;

		attempt(flow_send(&tx.e, &f, next, 3));
		attempt(wait_lost(round + 1));
		while (xdpath_cons_avail(&rx.s->q.rx, 8) < 6) /* counted first, published later */
			need(conf_now_ms() < until, "round %u: two packets are not there", round);
		for (uint32_t i = 0; i < 2; i++) {
			n = xdpath_rx_burst(&rx.s->q, d, 1 + round % 3);
			need(n == 3 && xdpath_pkt_frags(d, n) == 3, "round %u: %u fragments", round,
			     n);
			attempt(flow_check(&rx.e, d, n, &f, &number));
			need(number == next + i, "packet %u came, not %u", number, next + i);
			rx.e.give(&rx.e, d, n);
		}
		n = xdpath_rx_burst(&rx.s->q, d, 8);
		need(n == 0, "round %u: %u fragments of a lost packet", round, n);
		attempt(flow_drain(&tx.e));
		next += 3;
	}
	attempt(tx.e.audit(&tx.e));
	return rx.e.audit(&rx.e);
}

/*
 * Received packets of which the library is shown all but the last one or two fragments: its ring's
 * producer index is ours for a while. What is not whole stays where it is.
 */
static int rx_partial(const void *arg)
{
	const struct flow f = {.len = JUMBO};
	struct xdp_desc d[XDPATH_BURST_ROOM];
	struct xdpath_cons *r;
	uint32_t number, n, shown, *kernels;

	(void)arg;
	attempt(open_jumbo(&(struct api_opts){0}, &(struct api_opts){.rx = 16}));
	r = &rx.s->q.rx;
	kernels = r->k_producer;
	for (uint32_t round = 0; round < 50; round++) {
		uint64_t until = conf_now_ms() + CONF_PATIENCE_MS;

		attempt(flow_send(&tx.e, &f, 2 * round, 2));
		while (xdpath_load_acquire(kernels) - r->cons < 6)
			need(conf_now_ms() < until, "round %u: no packets", round);
		shown = r->cons;
		r->k_producer = &shown;
		for (uint32_t more = 1; more <= 6; more++) {
			shown++;
			n = xdpath_rx_burst(&rx.s->q, d, 1 + round % 5);
			need(n == (more % 3 ? 0 : 3), "round %u: of %u fragments %u came", round,
			     more, n);
			if (n == 0)
				continue;
			attempt(flow_check(&rx.e, d, n, &f, &number));
			need(number == 2 * round + more / 3 - 1, "packet %u came", number);
			rx.e.give(&rx.e, d, n);
		}
		r->k_producer = kernels;
		attempt(flow_drain(&tx.e));
	}
	attempt(tx.e.audit(&tx.e));
	return rx.e.audit(&rx.e);
}

/* A ring of two: three fragments never fit, small packets do. */
static int rx_tiny(const void *arg)
{
	const struct flow large = {.len = JUMBO}, small = {.count = 64, .len = 64, .batch = 2};

	(void)arg;
	attempt(open_jumbo(&(struct api_opts){0}, &(struct api_opts){.rx = 2}));
	for (uint32_t i = 0; i < 10; i++) {
		attempt(flow_send(&tx.e, &large, i, 1));
		attempt(wait_lost(i + 1));
	}
	attempt(flow_drain(&tx.e));
	return flow_run(&tx.e, &rx.e, &small);
}

/* What the TX ring can never hold is refused, not waited for. */
static int tx_tiny(const void *arg)
{
	const struct flow f = {.count = 64, .len = 8000, .batch = 1};
	struct xdp_desc d[3];
	uint64_t addr[3];

	(void)arg;
	attempt(open_jumbo(&(struct api_opts){.tx = 2}, &(struct api_opts){0}));
	need(tx.e.get(&tx.e, addr, 3) == 3, "no frames");
	for (int i = 0; i < 3; i++)
		d[i] = (struct xdp_desc){.addr = addr[i],
					 .len = 2000,
					 .options = i < 2 ? XDP_PKT_CONTD : 0};
	need(xdpath_tx_burst(&tx.s->q, d, 3) == 3, "it stays with the caller");
	need(tx.s->q.n.tx_too_big == 1, "too_big %llu", (unsigned long long)tx.s->q.n.tx_too_big);
	need(xdpath_prod_pending(&tx.s->q.tx) == 0, "part of it is in the ring");
	return flow_run(&tx.e, &rx.e, &f); /* two fragments each */
}

/* The library lets no packet without an end into the ring. */
static int tx_partial_lib(const void *arg)
{
	const struct flow f = {.count = 64, .len = 64};
	struct xdp_desc d[3];
	uint64_t addr[3];

	(void)arg;
	attempt(open_jumbo(&(struct api_opts){0}, &(struct api_opts){0}));
	need(tx.e.get(&tx.e, addr, 3) == 3, "no frames");
	for (int i = 0; i < 3; i++) /* a whole packet, then half of one */
		d[i] = (struct xdp_desc){.addr = addr[i],
					 .len = 64,
					 .options = i ? XDP_PKT_CONTD : 0};
	flow_write(&tx.e, d, 1, &f, 0);
	need(xdpath_tx_burst(&tx.s->q, d, 3) == 3, "it stays with the caller");
	need(tx.s->q.n.tx_invalid == 1 && xdpath_prod_pending(&tx.s->q.tx) == 1,
	     "invalid %llu, %u in the ring", (unsigned long long)tx.s->q.n.tx_invalid,
	     xdpath_prod_pending(&tx.s->q.tx));
	need(tx.e.kick(&tx.e) == 0, "kick");
	{
		struct flow_seen s = {0};

		attempt(flow_wait(&tx.e, &rx.e, &f, &s, 1));
	}
	attempt(flow_drain(&tx.e));
	return flow_run(&tx.e, &rx.e, &f);
}

/* By hand: the kernel keeps what it has and waits for the rest. */
static int tx_partial(const void *arg)
{
	const struct raw_opts o = {.several = true};
	const struct flow f = {.len = JUMBO};
	struct flow_seen seen = {0};
	struct xdp_desc d[3];
	struct raw t, r;

	(void)arg;
	if (!conf->k.sg)
		return conf_no_frags();
	attempt(raw_pair(&t, &r, &o, &o, JUMBO));
	for (uint32_t i = 0; i < 3; i++)
		d[i] = (struct xdp_desc){.addr = (uint64_t)(600 + i) * 4096,
					 .len = JUMBO / 3,
					 .options = i < 2 ? XDP_PKT_CONTD : 0};
	for (uint32_t round = 0; round < 10; round++) {
		flow_write(&t.e, d, 3, &f, round);
		raw_submit(&t, d, 2);
		need(t.e.kick(&t.e) == 0, "the first two fragments");
		for (int i = 0; i < 20; i++) {
			conf_pause();
			attempt(flow_recv(&r.e, &f, &seen));
		}
		need(seen.got == round, "a packet without its end came");
		raw_submit(&t, &d[2], 1);
		need(t.e.kick(&t.e) == 0, "the third fragment");
		attempt(flow_wait(&t.e, &r.e, &f, &seen, round + 1));
		attempt(flow_drain(&t.e));
	}
	attempt(t.e.audit(&t.e));
	return r.e.audit(&r.e);
}

/* One-way sockets; the ring that is not there is empty, or full, and costs nothing. */
static int one_way(const void *arg)
{
	const struct flow f = {.count = 1024, .len = 64};
	struct xdp_desc d[XDPATH_BURST_ROOM];
	struct xdp_desc one = {.len = 64};
	uint64_t addr = 0;

	(void)arg;
	attempt(net_make(1500));
	attempt(api_open(&tx, &(struct api_opts){.dev = NET_A, .no_rx = true}));
	attempt(api_open(&rx, &(struct api_opts){.no_tx = true}));
	attempt(api_steer(&prog, &rx, 0));
	attempt(flow_run(&tx.e, &rx.e, &f));
	need(xdpath_rx_burst(&tx.s->q, d, 64) == 0, "the sender receives");
	need(rx.e.get(&rx.e, &addr, 1) == 1, "no frame");
	one.addr = addr;
	need(xdpath_tx_burst(&rx.s->q, &one, 1) == 0, "the receiver sends");
	need(xdpath_socket_kick(rx.s) == 0 && rx.s->c.tx_kicks == 0, "a kick without a TX ring");
	xdpath_release(&rx.s->q, &one, 1);
	return rx.e.audit(&rx.e);
}

static int hugepages(const void *arg)
{
	const struct flow f = {.count = 1024, .len = 64};
	const struct api_opts o = {.frames = 512, .fill = 256, .huge = true};
	struct api_opts to = o;

	(void)arg;
	if (!conf->k.hugepages)
		return conf_skip("no 2 MiB pages could be reserved (vm.nr_hugepages)");
	attempt(net_make(1500));
	to.dev = NET_A;
	attempt(api_open(&tx, &to));
	attempt(api_open(&rx, &o));
	need(xdpath_umem_page_size(rx.umem) == 2U << 20, "pages of %u bytes",
	     xdpath_umem_page_size(rx.umem));
	attempt(api_steer(&prog, &rx, 0));
	return flow_run(&tx.e, &rx.e, &f);
}

#define TEST(name_, fn_, what_)                                                   \
	{                                                                         \
		.name = (name_), .modes = CONF_BOTH, .fn = (fn_), .what = (what_) \
	}

const struct conf_test ring_tests[] = {
	TEST("RX_RING_END", rx_edge, "a packet that does not fit whole is not begun"),
	TEST("RX_PARTIAL", rx_partial, "a packet without its end is not handed out"),
	TEST("RX_RING_BELOW_PACKET", rx_tiny, "RX ring of 2, packets of 3 fragments"),
	TEST("TX_RING_BELOW_PACKET", tx_tiny, "TX ring of 2, packets of 3 fragments"),
	TEST("TX_PARTIAL", tx_partial, "the kernel waits for a packet's end"),
	TEST("TX_PARTIAL_LIB", tx_partial_lib, "the library does not begin such a packet"),
	TEST("ONE_WAY", one_way, "TX-only to RX-only"),
	TEST("HUGEPAGES", hugepages, "the library's UMEM on 2 MiB pages"),
	{0},
};
