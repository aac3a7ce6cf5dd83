// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
/*
 * How sending behaves where one would not expect it, by copies and by zero-copy: characterisation,
 * by hand. Where kernels differ the expectation follows from what the probe found by simpler cases.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "raw.h"

#define C	       XDP_PKT_CONTD
#define UNKNOWN_OPTION 0x40U

static struct raw tx, rx;

static int open_pair(uint32_t mtu)
{
	const struct raw_opts to = {.several = conf->k.sg, .post = RAW_NONE};
	const struct raw_opts ro = {.several = conf->k.sg};

	return raw_pair(&tx, &rx, &to, &ro, mtu);
}

static int invalid_count(uint64_t want)
{
	struct end_stats st;

	attempt(end_stats(&tx.e, &st));
	need(st.tx_invalid == want, "tx_invalid_descs %llu, not %llu",
	     (unsigned long long)st.tx_invalid, (unsigned long long)want);
	return CONF_OK;
}

/* Descriptors still in the ring. Where the index is late a call shows what the one before did; in
 * zero-copy the driver takes them after the call. */
static uint32_t left(void)
{
	uint64_t until = conf_now_ms() + (conf->mode == CONF_ZC ? CONF_PATIENCE_MS : 0);

	if (conf->k.late_index)
		raw_kick_once(&tx);
	while (xdpath_prod_pending(&tx.tx) && conf_now_ms() < until)
		conf_pause();
	return xdpath_prod_pending(&tx.tx);
}

/* Wait for n packets, whatever is in them, and give their frames back; a moment longer for more. */
static int expect_packets(uint32_t n)
{
	uint64_t until = conf_now_ms() + (n ? CONF_PATIENCE_MS : conf->nic ? 100 : 20);
	struct xdp_desc d[64];
	uint32_t got = 0, k;

	while (got < n || n == 0) {
		uint32_t m = rx.e.recv(&rx.e, d, 64);

		xdpath_for_each_packet (p, k, d, m)
			got++;
		rx.e.give(&rx.e, d, m);
		if (conf_now_ms() >= until)
			break;
		conf_pause();
	}
	need(got == n, "%u packets came, not %u", got, n);
	return CONF_OK;
}

static int end_of_test(void)
{
	attempt(flow_drain(&tx.e));
	attempt(tx.e.audit(&tx.e));
	return rx.e.audit(&rx.e);
}

/* 1: consumed, counted, and where the kernel does so, completed with the address as it was. */
static int reclaim(const void *arg)
{
	const struct xdp_desc bad[] = {{.addr = 4096, .len = conf->k.zero_invalid ? 0 : 4097},
				       {.addr = (uint64_t)-2, .len = 64},
				       {.addr = 8192, .len = 9001},
				       {.addr = 12288, .len = 64, .options = UNKNOWN_OPTION},
				       {.addr = 1ULL << 40, .len = 64},
				       {.addr = 16384 + 4090, .len = 7}};

	(void)arg;
	attempt(open_pair(1500));
	for (uint32_t i = 0; i < 6; i++) {
		raw_submit(&tx, &bad[i], 1);
		need(raw_kick_once(&tx) == 0, "descriptor %u: %s", i, strerror(errno));
		need(left() == 0, "descriptor %u stays in the ring", i);
		attempt(invalid_count(i + 1));
		tx.e.reap(&tx.e);
		need(tx.out.n == (conf->k.reclaims_invalid ? 0 : i + 1), "descriptor %u: %u out", i,
		     tx.out.n);
	}
	if (!conf->k.reclaims_invalid)
		raw_forget(&tx, bad, 6);
	attempt(expect_packets(0));
	return end_of_test();
}

/* 2: three bad ones before a good one. */
static int bad_ends_call(const void *arg)
{
	const struct xdp_desc d[] = {{.addr = 0, .len = 64},
				     {.addr = 4096, .len = 9001},
				     {.addr = 8192, .len = 9001},
				     {.addr = 12288, .len = 9001},
				     {.addr = 4 * 4096, .len = 64}};
	uint32_t kicks = conf->k.bad_ends_call ? 4 : 1;

	(void)arg;
	attempt(open_pair(1500));
	raw_submit(&tx, d, 5);
	for (uint32_t i = 1; i < kicks; i++)
		need(raw_kick_once(&tx) == 0, "call %u: %s", i, strerror(errno));
	if (kicks > 1)
		attempt(expect_packets(1));
	need(raw_kick_once(&tx) == 0, "the last call: %s", strerror(errno));
	attempt(expect_packets(kicks > 1 ? 1 : 2));
	conf_note("%u calls", kicks);
	need(left() == 0, "the ring is not empty");
	if (!conf->k.reclaims_invalid)
		raw_forget(&tx, &d[1], 3);
	return end_of_test();
}

/* The library's kick does not stop there. */
static int kick_goes_on(const void *arg)
{
	uint64_t until = conf_now_ms() + CONF_PATIENCE_MS;
	struct api a;
	struct xdp_desc *ring;

	(void)arg;
	attempt(net_make(1500));
	attempt(api_open(&a, &(struct api_opts){.dev = NET_A}));
	ring = a.s->q.tx.entries;
	for (uint32_t i = 0; i < 100; i++, a.s->q.tx.prod++) /* past the validator */
		ring[a.s->q.tx.prod & a.s->q.tx.mask] =
			(struct xdp_desc){.addr = 0, .len = i % 3 ? 64 : 9001};
	xdpath_prod_submit(&a.s->q.tx);
	/* in zero-copy a call only wakes the driver */
	while (a.e.kick(&a.e) == 0 && conf->mode == CONF_ZC && xdpath_prod_pending(&a.s->q.tx) &&
	       conf_now_ms() < until)
		conf_pause();
	need(xdpath_prod_pending(&a.s->q.tx) == 0, "%u are left", xdpath_prod_pending(&a.s->q.tx));
	need(conf->nic || a.s->c.tx_kicks < 100, "%llu calls", (unsigned long long)a.s->c.tx_kicks);
	conf_note("%llu calls", (unsigned long long)a.s->c.tx_kicks);
	return CONF_OK;
}

/* 3: more than one call handles. */
static int budget(const void *arg)
{
	const uint32_t b = conf->k.tx_budget, n = 3 * b + 1;
	struct xdp_desc d;
	int err;

	(void)arg;
	if (b >= 400)
		return conf_skip("one sendto() of this kernel handles all that is there");
	attempt(open_pair(1500));
	for (uint32_t i = 0; i < n; i++) {
		d = (struct xdp_desc){.addr = (uint64_t)i * 4096, .len = 64};
		raw_submit(&tx, &d, 1);
	}
	for (uint32_t todo = n; todo > 0;) {
		bool more = todo > b;

		err = raw_kick_once(&tx);
		need(err == (more && conf->k.again_when_more ? -EAGAIN : 0), "%u to do: %s", todo,
		     strerror(-err));
		attempt(expect_packets(more ? b : todo));
		todo -= more ? b : todo;
	}
	need(left() == 0, "the ring is not empty");
	return end_of_test();
}

/* ... and the library's option for it, read back by what one call does. */
static int budget_set(const void *arg)
{
	const uint32_t want = 64, n = 200;
	uint32_t left_over;
	struct api a;

	(void)arg;
	if (!conf->k.budget_settable)
		return conf_skip("the budget is fixed here (XDP_MAX_TX_SKB_BUDGET)");
	attempt(net_make(1500));
	attempt(api_open(&a, &(struct api_opts){.dev = NET_A, .tx_budget = want}));
	need(a.s->kick_budget == want, "the library says %u", a.s->kick_budget);
	for (uint32_t i = 0; i < n; i++) {
		uint64_t addr = 0;
		struct xdp_desc d = {.len = 64};

		need(a.e.get(&a.e, &addr, 1) == 1, "no frame");
		d.addr = addr;
		need(a.e.send(&a.e, &d, 1), "packet %u", i);
	}
	sendto(a.e.fd, NULL, 0, MSG_DONTWAIT, NULL, 0);
	left_over = xdpath_prod_pending(&a.s->q.tx);
	/* a NIC may be busy before the budget is used up */
	need(left_over == n - want || (conf->nic && left_over > n - want), "%u left", left_over);
	need(a.e.kick(&a.e) == 0, "the rest");
	attempt(flow_drain(&a.e));
	return a.e.audit(&a.e);
}

/* One frame in many descriptors is free with the last completion, not before. */
static int same_frame(const void *arg)
{
	const struct flow f = {.len = 64};
	uint64_t addr = 0, until = conf_now_ms() + CONF_PATIENCE_MS;
	struct xdp_desc d[100];
	uint32_t free_before;
	struct xdpath_queue *q;
	struct api a;

	(void)arg;
	attempt(net_make(1500));
	attempt(api_open(&a, &(struct api_opts){.dev = NET_A}));
	q = &a.s->q;
	free_before = a.frames->count;
	need(a.e.get(&a.e, &addr, 1) == 1, "no frame");
	for (uint32_t i = 0; i < 100; i++)
		d[i] = (struct xdp_desc){.addr = addr + i, .len = 64};
	flow_write(&a.e, d, 1, &f, 0);
	need(xdpath_tx_burst(q, d, 100) == 100 && q->n.tx_packets == 100, "%llu taken",
	     (unsigned long long)q->n.tx_packets);
	need(a.e.kick(&a.e) == 0, "kick"); /* takes completions too, if it has to go on */
	while (a.e.kick(&a.e) == 0 && q->tx_outstanding > xdpath_cons_avail(&q->comp, 100))
		need(conf_now_ms() < until, "%u completions", xdpath_cons_avail(&q->comp, 100));
	xdpath_reap(q, q->tx_outstanding - 1);
	need(q->tx_outstanding == 1 && a.frames->count == free_before - 1, "free too early");
	need(xdpath_reap(q, 99) == 1 && a.frames->count == free_before, "not free");
	return a.e.audit(&a.e);
}

/* 4: EBUSY is not "try again": the packet is gone. */
static int busy_is_gone(const void *arg)
{
	/* the device takes four bytes more than the MTU, for a VLAN tag */
	const struct xdp_desc d[] = {{.addr = 0, .len = 13}, {.addr = 4096, .len = 1500 + 14 + 5}};
	uint32_t first = conf->k.short_refused ? 0 : 1;
	int err;

	(void)arg;
	attempt(open_pair(1500));
	for (uint32_t i = first; i < 2; i++) {
		raw_submit(&tx, &d[i], 1);
		err = raw_kick_once(&tx);
		need(err == -EBUSY, "%u bytes: %s", d[i].len, strerror(-err));
		need(left() == 0, "%u bytes: still in the ring", d[i].len);
		attempt(flow_drain(&tx.e));
	}
	attempt(invalid_count(0));
	attempt(expect_packets(0));
	return end_of_test();
}

/* 5: the completion is what was submitted; bit 0 is lost where the probe says so. */
static int verbatim(const void *arg)
{
	const uint32_t off[] = {0, 2, 64, 100, 1000, 4096 - 64, 1, 77};
	struct xdp_desc d;

	(void)arg;
	attempt(open_pair(1500));
	for (uint32_t i = 0; i < 8; i++) {
		d = (struct xdp_desc){.addr = 4096 * i + off[i], .len = 64};
		raw_submit(&tx, &d, 1);
		need(raw_kick_once(&tx) == 0, "offset %u", off[i]);
		attempt(flow_drain(&tx.e));
	}
	attempt(expect_packets(8));
	return end_of_test();
}

static void fragments(uint32_t n)
{
	struct xdp_desc d;

	for (uint32_t i = 0; i < n; i++) {
		d = (struct xdp_desc){.addr = (uint64_t)i * 4096,
				      .len = 64,
				      .options = i + 1 < n ? C : 0};
		raw_submit(&tx, &d, 1);
	}
	tx.e.kick(&tx.e);
}

/* 6: the most fragments go, one more is all invalid; the library's limit is the same. */
static int frags_limit(const void *arg)
{
	struct api a;

	(void)arg;
	if (!conf->k.sg)
		return conf_no_frags();
	attempt(open_pair(9000));
	fragments(conf->k.frags);
	attempt(expect_packets(1));
	attempt(invalid_count(0));
	attempt(flow_drain(&tx.e));
	fragments(conf->k.frags + 1);
	attempt(expect_packets(conf->k.drains_contd ? 0 : 1)); /* the last by itself */
	if (conf->k.drains_contd)
		attempt(invalid_count(conf->k.frags + 1));
	for (uint32_t i = 0; i < conf->k.frags && !conf->k.reclaims_lead; i++)
		raw_forget(&tx, &(struct xdp_desc){.addr = (uint64_t)i * 4096}, 1);
	attempt(flow_drain(&tx.e));
	attempt(end_of_test());
	raw_close(&tx);
	attempt(api_open(&a, &(struct api_opts){.dev = NET_A, .several = true}));
	conf_note("%u, by the library %u", conf->k.frags, a.s->q.tx_max_frags);
	/* a device that wants no linear part takes one fewer: nothing tells which does */
	need(a.s->q.tx_max_frags == conf->k.frags ||
		     (conf->nic && a.s->q.tx_max_frags == conf->k.frags + 1),
	     "the library's limit is %u", a.s->q.tx_max_frags);
	return CONF_OK;
}

/* 7: a descriptor that is never consumed, blocks the ring, and may be completed at each call. */
static int poisoned(const void *arg)
{
	const struct xdp_desc d = {.addr = 4096, .len = 64, .options = XDP_TX_METADATA};
	struct xdpath_ledger l = {0};
	struct xdp_desc *ring;
	uint64_t addr = 0;
	struct api a;
	uint32_t n;
	int err;

	(void)arg;
	attempt(open_pair(1500));
	raw_submit(&tx, &d, 1);
	err = raw_kick_once(&tx);
	if (conf->mode == CONF_ZC) {
		need(err == 0 && left() == 0, "%s", strerror(-err));
		attempt(expect_packets(1));
		attempt(invalid_count(0));
		conf_note("in zero-copy it is sent as any other");
		return end_of_test();
	}
	if (err != -EINVAL) {
		conf_note("here it is like any invalid one (%s)", strerror(-err));
		return invalid_count(1);
	}
	for (int i = 1; i < 12; i++)
		need(raw_kick_once(&tx) == -EINVAL, "call %d: %s", i, strerror(errno));
	need(xdpath_prod_pending(&tx.tx) == 1, "it is gone from the ring");
	n = tx.e.reap(&tx.e);
	need(n == 0 || n == 1 + tx.foreign, "%u completions", n);
	attempt(invalid_count(0));
	conf_note("12 calls, each EINVAL, completed %u times", n);
	raw_close(&tx);
	/* the library refuses it; were it in the ring all the same, the socket is dead at once */
	attempt(api_open(&a, &(struct api_opts){.dev = NET_A}));
	need(a.e.get(&a.e, &addr, 1) == 1, "no frame");
	need(xdpath_tx_burst(
		     &a.s->q,
		     &(struct xdp_desc){.addr = addr, .len = 64, .options = XDP_TX_METADATA},
		     1) == 1 &&
		     a.s->q.n.tx_invalid == 1 && xdpath_prod_pending(&a.s->q.tx) == 0,
	     "the library takes it");
	ring = a.s->q.tx.entries;
	ring[a.s->q.tx.prod++ & a.s->q.tx.mask] = d;
	xdpath_prod_submit(&a.s->q.tx);
	need(xdpath_socket_kick(a.s) == -EINVAL && a.s->fatal == -EINVAL, "fatal is %d",
	     a.s->fatal);
	need(xdpath_socket_kick(a.s) == -EINVAL && a.s->c.tx_kicks == 1, "it was kicked again");
	a.e.reap(&a.e); /* of a frame that was not sent: the ledger refuses it */
	xdpath_frames_audit(a.frames, &l);
	need(l.free + l.fill == l.total && l.free == a.frames->count, "free %u fill %u of %u",
	     l.free, l.fill, l.total);
	return CONF_OK;
}

/* 8: all that was submitted comes back, valid or not: completions are more than packets sent. */
static int all_come_back(const void *arg)
{
	struct xdp_desc d;
	uint32_t back = conf->k.reclaims_invalid ? 64 : 48;

	(void)arg;
	attempt(open_pair(1500));
	for (uint32_t i = 0; i < 64; i++) {
		d = (struct xdp_desc){.addr = (uint64_t)i * 4096, .len = i % 4 ? 64 : 5000};
		raw_submit(&tx, &d, 1);
	}
	need(tx.e.kick(&tx.e) == 0, "the ring is not emptied");
	attempt(expect_packets(48));
	for (uint64_t until = conf_now_ms() + 100; tx.out.n && conf_now_ms() < until;)
		tx.e.reap(&tx.e);
	need(tx.out.n == 64 - back, "%u of 64 came back", 64 - tx.out.n);
	attempt(invalid_count(16));
	for (uint32_t i = 0; i < 64 && !conf->k.reclaims_invalid; i += 4)
		raw_forget(&tx, &(struct xdp_desc){.addr = (uint64_t)i * 4096}, 1);
	return end_of_test();
}

#define TEST(name_, fn_, what_, ...)                                                          \
	{                                                                                     \
		.name = (name_), .modes = CONF_ANY, .fn = (fn_), .what = (what_), __VA_ARGS__ \
	}
#define THE_CALL .not_zc = "is about what one sendto() does; the driver takes descriptors after it"
#define LENGTHS	 .not_nic = "is about what a veth drops; what a NIC does with it is its own affair"

const struct conf_test kernel_tests[] = {
	TEST("TX_INVALID_RECLAIMED", reclaim, "consumed, counted, completed as they are"),
	TEST("TX_BAD_ENDS_CALL", bad_ends_call, "three bad descriptors among good ones", THE_CALL),
	TEST("TX_KICK_GOES_ON", kick_goes_on, "the library kicks until the ring is empty"),
	TEST("TX_BUDGET", budget, "descriptors of one sendto()", THE_CALL),
	TEST("TX_BUDGET_SET", budget_set, "the library's tx_kick_budget", THE_CALL),
	TEST("TX_SAME_FRAME", same_frame, "one frame in 100 descriptors, by the library"),
	TEST("TX_EBUSY_IS_GONE", busy_is_gone, "too short or too long: dropped and completed",
	     LENGTHS),
	TEST("TX_COMPLETION_ADDRESS", verbatim, "not rounded to the frame"),
	TEST("TX_FRAGS_LIMIT", frags_limit, "the most fragments of a packet"),
	TEST("TX_POISONED_HEAD", poisoned, "TX metadata on a UMEM without"),
	TEST("TX_ALL_COME_BACK", all_come_back, "valid and invalid ones mixed"),
	{0},
};
