// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
/*
 * rx_burst, release, refill: bursts, packets of several fragments, and rings that hold rubbish.
 * Sending and completions are in pkt_tx_test.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "fake.h"

#define FIRST  8U
#define FRAMES 136U
#define MINE   (FRAMES - FIRST)
#define SIZE   64U
#define START  (UINT32_MAX - 20)

/* All tests start with a full fill ring, near the wrap of the indexes. */
static int setup(void **state)
{
	static struct fake k;

	*state = &k;
	if (fake_open(&k, &(struct fake_opts){.frames = FRAMES,
					      .first = FIRST,
					      .size = SIZE,
					      .start = START}) < 0)
		return -1;
	return xdpath_refill(&k.q) == SIZE ? 0 : -1;
}

/* Every test ends with an audit. */
static int teardown(void **state)
{
	struct fake *k = *state;
	const char *fault = fake_audit(k, NULL);

	if (fault)
		fprintf(stderr, "audit: %s\n", fault);
	if (k->f.wrong)
		fprintf(stderr, "audit: %llu wrong moves\n", (unsigned long long)k->f.wrong);
	fake_close(k);
	return fault || k->f.wrong ? -1 : 0;
}

/* A packet of n fragments of `len` bytes; with `open` its end is yet to come. */
static void receive(struct fake *k, uint32_t n, uint32_t len, bool open)
{
	for (uint32_t i = 0; i < n; i++)
		assert_true(fake_k_receive(k, len, open || i + 1 < n ? XDP_PKT_CONTD : 0));
}

static struct xdpath_ledger audit(struct fake *k)
{
	struct xdpath_ledger l;

	assert_null(fake_audit(k, &l));
	return l;
}

static void give_back(struct fake *k, const struct xdp_desc *d, uint32_t n)
{
	xdpath_release(&k->q, d, n);
	assert_int_equal(audit(k).rx, 0);
	xdpath_refill(&k->q);
}

static void test_bursts(void **state)
{
	struct fake *k = *state;
	struct xdp_desc d[XDPATH_BURST_ROOM];
	uint64_t packets = 0;

	assert_int_equal(xdpath_rx_burst(&k->q, d, 64), 0);
	for (uint32_t want = 0; want <= SIZE; want++) {
		uint32_t n;

		for (uint32_t i = 0; i < want; i++)
			receive(k, 1, 60 + i, false);
		n = xdpath_rx_burst(&k->q, d, want);
		assert_int_equal(n, want);
		for (uint32_t i = 0; i < n; i++)
			assert_int_equal(d[i].len, 60 + i);
		assert_int_equal(audit(k).rx, n);
		give_back(k, d, n);
		packets += n;
	}
	assert_int_equal(k->q.n.rx_packets, packets);
	assert_int_equal(k->q.rx.cons, k->rx.consumer);
	assert_int_equal(fake_k_pending(&k->fill), SIZE);
	assert_true(k->q.rx.cons < START); /* the index went over 2^32 */
}

static void test_burst_takes_no_more_than_asked(void **state)
{
	struct fake *k = *state;
	struct xdp_desc d[XDPATH_BURST_ROOM];

	for (uint32_t i = 0; i < 10; i++)
		receive(k, 1, 100 + i, false);
	assert_int_equal(xdpath_rx_burst(&k->q, d, 0), 0);
	assert_int_equal(xdpath_rx_burst(&k->q, d, 7), 7);
	assert_int_equal(xdpath_rx_burst(&k->q, d + 7, XDPATH_BURST_MAX), 3);
	for (uint32_t i = 0; i < 10; i++)
		assert_int_equal(d[i].len, 100 + i);
	assert_int_equal(k->q.n.rx_bytes, 1045);
	give_back(k, d, 10);
}

static void test_fragments(void **state)
{
	struct fake *k = *state;
	struct xdp_desc d[XDPATH_BURST_ROOM];
	uint32_t frags, packets = 0;
	const uint32_t expect[] = {1, 3, 18, 1, 2};

	for (uint32_t i = 0; i < 5; i++)
		receive(k, expect[i], 1000, false);
	assert_int_equal(xdpath_rx_burst(&k->q, d, XDPATH_BURST_MAX), 25);
	xdpath_for_each_packet (p, frags, d, 25)
		assert_int_equal(frags, expect[packets++]);
	assert_int_equal(packets, 5);
	assert_int_equal(k->q.n.rx_packets, 5);
	assert_int_equal(k->q.n.rx_bytes, 25000);
	give_back(k, d, 25);
}

/* A burst ends with the packet that reaches `max`, whole. */
static void test_burst_completes_its_last_packet(void **state)
{
	struct fake *k = *state;
	struct xdp_desc d[XDPATH_BURST_ROOM];

	receive(k, XDPATH_PKT_FRAGS_MAX, 10, false);
	receive(k, 1, 60, false);
	receive(k, 2, 60, false);
	assert_int_equal(xdpath_rx_burst(&k->q, d, 1), XDPATH_PKT_FRAGS_MAX);
	give_back(k, d, XDPATH_PKT_FRAGS_MAX);
	assert_int_equal(xdpath_rx_burst(&k->q, d, 2), 3);
	give_back(k, d, 3);
}

/* Half a packet stays in the ring untouched, also behind whole ones, until its end is there. */
static void test_half_packet(void **state)
{
	struct fake *k = *state;
	struct xdp_desc d[XDPATH_BURST_ROOM];

	receive(k, 1, 60, false);
	receive(k, 2, 500, true);
	assert_int_equal(xdpath_rx_burst(&k->q, d, 64), 1);
	assert_int_equal(k->rx.consumer, START + 1);
	assert_int_equal(audit(k).fill, SIZE - 1);
	give_back(k, d, 1);
	assert_int_equal(xdpath_rx_burst(&k->q, d, 64), 0);
	assert_int_equal(k->rx.consumer, START + 1);
	receive(k, 1, 7, false);
	assert_int_equal(xdpath_rx_burst(&k->q, d, 64), 3);
	assert_int_equal(xdpath_pkt_len(d, 3), 1007);
	assert_int_equal(k->q.n.rx_refused, 0);
	give_back(k, d, 3);
}

static void test_too_many_fragments(void **state)
{
	struct fake *k = *state;
	struct xdp_desc d[XDPATH_BURST_ROOM];

	receive(k, 1, 60, false);
	receive(k, XDPATH_PKT_FRAGS_MAX + 1, 10, false);
	receive(k, 1, 61, false);
	assert_int_equal(xdpath_rx_burst(&k->q, d, 64), 2);
	assert_int_equal(d[1].len, 61);
	assert_int_equal(k->q.n.rx_packets, 2);
	assert_int_equal(k->q.n.rx_refused, 1);
	assert_int_equal(k->q.n.rx_bad, 0);
	assert_int_equal(audit(k).rx, 2);
	give_back(k, d, 2);
}

/* Its end comes late, with the next packet right behind: neither blocks, nor is a tail handed out.
 */
static void test_too_many_fragments_in_parts(void **state)
{
	struct fake *k = *state;
	struct xdp_desc d[XDPATH_BURST_ROOM];

	receive(k, XDPATH_PKT_FRAGS_MAX - 1, 10, true);
	assert_int_equal(xdpath_rx_burst(&k->q, d, 64), 0);
	assert_int_equal(k->rx.consumer, START); /* it may yet be good */
	receive(k, 1, 10, true);
	assert_int_equal(xdpath_rx_burst(&k->q, d, 64), 0);
	assert_int_equal(k->rx.consumer, START + XDPATH_PKT_FRAGS_MAX);
	assert_int_equal(k->q.n.rx_refused, 1);
	for (int i = 0; i < 100; i++) {
		receive(k, 1, 10, true);
		assert_int_equal(xdpath_rx_burst(&k->q, d, 1), 0);
		xdpath_refill(&k->q);
	}
	receive(k, 1, 10, false);
	receive(k, 1, 77, false);
	assert_int_equal(xdpath_rx_burst(&k->q, d, 64), 1);
	assert_int_equal(d[0].len, 77);
	assert_int_equal(k->q.n.rx_refused, 1);
	give_back(k, d, 1);
}

/* A ring smaller than a packet may be: full of one packet without an end. */
static void test_packet_larger_than_ring(void **state)
{
	static struct fake s;
	struct xdp_desc d[XDPATH_BURST_ROOM];

	(void)state;
	assert_int_equal(fake_open(&s, &(struct fake_opts){.frames = 32, .size = 8}), 0);
	xdpath_refill(&s.q);
	receive(&s, 8, 10, true);
	assert_int_equal(xdpath_rx_burst(&s.q, d, 64), 0);
	assert_int_equal(s.rx.consumer, 8);
	xdpath_refill(&s.q);
	receive(&s, 1, 10, false);
	receive(&s, 1, 60, false);
	assert_int_equal(xdpath_rx_burst(&s.q, d, 64), 1);
	assert_int_equal(s.q.n.rx_refused, 1);
	give_back(&s, d, 1);
	fake_close(&s);
}

/* ---- what the ledger refuses ------------------------------------------------------------------
 */

static void test_bad_addresses(void **state)
{
	struct fake *k = *state;
	struct xdp_desc d[XDPATH_BURST_ROOM];
	const uint64_t bad[] = {
		UINT64_MAX - 1,
		(uint64_t)FRAMES * FAKE_FRAME,	       /* just past the UMEM */
		(FIRST - 1) * FAKE_FRAME,	       /* another cache's */
		(uint64_t)(FIRST + SIZE) * FAKE_FRAME, /* ours, and free */
		(uint64_t)1 << 63,
	};

	for (uint32_t i = 0; i < 5; i++) {
		receive(k, 1, 60 + i, false);
		fake_k_rx(k, bad[i], 60, 0);
	}
	assert_int_equal(xdpath_rx_burst(&k->q, d, 64), 5);
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(d[i].len, 60 + i);
	assert_int_equal(k->q.n.rx_bad, 5);
	assert_int_equal(k->q.n.rx_refused, 5);
	assert_int_equal(k->q.n.rx_packets, 5);
	give_back(k, d, 5);
}

/* The same frame a second time while the application has it: refused, and not freed under it. */
static void test_frame_twice(void **state)
{
	struct fake *k = *state;
	struct xdp_desc d[XDPATH_BURST_ROOM];

	receive(k, 1, 60, false);
	assert_int_equal(xdpath_rx_burst(&k->q, d, 64), 1);
	fake_k_rx(k, d[0].addr, 60, XDP_PKT_CONTD);
	receive(k, 1, 60, false);
	assert_int_equal(xdpath_rx_burst(&k->q, d + 1, 64), 0);
	assert_int_equal(k->q.n.rx_bad, 1);
	assert_int_equal(audit(k).rx, 1);
	give_back(k, d, 1);
}

/* A packet with one bad fragment goes whole; its good frames come back. */
static void test_bad_fragment(void **state)
{
	struct fake *k = *state;
	struct xdp_desc d[XDPATH_BURST_ROOM];
	uint32_t free = k->f.count;

	receive(k, 2, 60, true);
	fake_k_rx(k, UINT64_MAX, 60, XDP_PKT_CONTD);
	receive(k, 1, 60, false);
	receive(k, 1, 99, false);
	assert_int_equal(xdpath_rx_burst(&k->q, d, 64), 1);
	assert_int_equal(d[0].len, 99);
	assert_int_equal(k->q.n.rx_bad, 1);
	assert_int_equal(k->q.n.rx_refused, 1);
	assert_int_equal(k->f.count, free + 3);
	give_back(k, d, 1);
}

static void test_frame_twice_in_a_packet(void **state)
{
	struct fake *k = *state;
	struct xdp_desc d[XDPATH_BURST_ROOM];
	uint32_t free = k->f.count;
	uint64_t addr = fake_k_fill(k);

	fake_k_rx(k, addr, 60, XDP_PKT_CONTD);
	fake_k_rx(k, addr, 60, 0);
	assert_int_equal(xdpath_rx_burst(&k->q, d, 64), 0);
	assert_int_equal(k->q.n.rx_bad, 1);
	assert_int_equal(k->f.count, free + 1);
}

/* A length that leaves the frame would lead the application out of the UMEM. */
static void test_length(void **state)
{
	struct fake *k = *state;
	struct xdp_desc d[XDPATH_BURST_ROOM];
	uint32_t room = FAKE_FRAME - FAKE_HEADROOM, free = k->f.count;

	receive(k, 1, room, false);
	receive(k, 1, room + 1, false);
	receive(k, 1, UINT32_MAX, false);
	assert_int_equal(xdpath_rx_burst(&k->q, d, 64), 1);
	assert_int_equal(d[0].len, room);
	assert_int_equal(k->q.n.rx_bad, 2);
	assert_int_equal(k->q.n.rx_refused, 2);
	assert_int_equal(k->f.count, free + 2); /* the frames are good */
	give_back(k, d, 1);
}

/* Option bits of a later kernel are for the receiver; TX would refuse them. */
static void test_unknown_options(void **state)
{
	struct fake *k = *state;
	struct xdp_desc d[XDPATH_BURST_ROOM];

	assert_true(fake_k_receive(k, 60, 0x80));
	assert_int_equal(xdpath_rx_burst(&k->q, d, 64), 1);
	assert_true(fake_k_receive(k, 60, 0xfffe | XDP_PKT_CONTD));
	assert_true(fake_k_receive(k, 60, 0x80));
	assert_int_equal(xdpath_rx_burst(&k->q, d + 1, 64), 2);
	assert_int_equal(d[0].options, 0);
	assert_int_equal(d[1].options, XDP_PKT_CONTD);
	assert_int_equal(d[2].options, 0);
	give_back(k, d, 3);
}

/* A producer index gone wild: bounded by the burst, old entries refused, frames kept. */
static void test_wild_producer(void **state)
{
	struct fake *k = *state;
	struct xdp_desc d[XDPATH_BURST_ROOM];
	uint32_t total = 0;

	for (uint32_t i = 0; i < 10; i++)
		receive(k, 1, 60, false);
	xdpath_store_release(&k->rx.producer, START - 1); /* 2^32 - 1 entries */
	for (int i = 0; i < 50; i++) {
		uint32_t n = xdpath_rx_burst(&k->q, d + total, 32);

		assert_true(n <= 32);
		total += n;
	}
	assert_int_equal(total, 10);
	assert_int_equal(k->q.n.rx_bad, 50 * 32 - 10);
	give_back(k, d, total);
}

/* ---- release, refill --------------------------------------------------------------------------
 */

static void test_refill_fits(void **state)
{
	struct fake *k = *state;
	struct xdpath_ledger l = audit(k);

	assert_int_equal(l.fill, SIZE);
	assert_int_equal(l.free, MINE - SIZE);
	assert_int_equal(xdpath_refill(&k->q), 0); /* full */
	for (int i = 0; i < 3; i++)
		receive(k, 1, 60, false);
	assert_int_equal(xdpath_refill(&k->q), 3);
	assert_int_equal(audit(k).fill, SIZE + 3);
	for (uint32_t i = 0; i < SIZE - 3; i++)
		receive(k, 1, 60, false);
	assert_int_equal(xdpath_refill(&k->q), MINE - SIZE - 3); /* all that is left */
	assert_int_equal(k->f.count, 0);
	assert_int_equal(xdpath_refill(&k->q), 0);
}

/* A frame released twice in one call: the second is refused, what follows is released. */
static void test_release_twice(void **state)
{
	struct fake *k = *state;
	struct xdp_desc d[XDPATH_BURST_ROOM];
	uint32_t free = k->f.count;

#ifdef XDPATH_DEBUG
	skip(); /* a debug build aborts here: frame_test.c */
#endif
	for (int i = 0; i < 3; i++)
		receive(k, 1, 60, false);
	assert_int_equal(xdpath_rx_burst(&k->q, d, 64), 3);
	d[3] = d[2];
	d[2] = d[1];
	xdpath_release(&k->q, d, 4);
	assert_int_equal(k->f.wrong, 1);
	assert_int_equal(k->f.count, free + 3);
	assert_int_equal(audit(k).rx, 0);
	k->f.wrong = 0;
}

/* In copy mode the kernel never has more frames than the RX ring has slots, read or not. */
static void test_refill_lends_no_more_than_fill_most(void **state)
{
	struct fake *k = *state;
	struct xdp_desc out[SIZE + XDPATH_PKT_FRAGS_MAX];
	uint32_t *shared;

	k->q.fill_most = SIZE;
	for (uint32_t i = 0; i < 10; i++)
		receive(k, 1, 60, false);
	assert_int_equal(xdpath_refill(&k->q),
			 0); /* ten wait unread: the rest is in the fill ring */
	assert_int_equal(xdpath_rx_burst(&k->q, out, 4), 4);
	shared = k->q.fill.k_consumer;
	k->q.fill.k_consumer = NULL; /* what is lent fits the ring: nobody looks here */
	assert_int_equal(xdpath_refill(&k->q), 4); /* as many as were read */
	k->q.fill.k_consumer = shared;
	xdpath_release(&k->q, out, 4);
	assert_int_equal(audit(k).fill, SIZE);
	k->q.fill_most = SIZE / 2; /* less than it has: nothing, not 2^32 */
	assert_int_equal(xdpath_refill(&k->q), 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_refill_lends_no_more_than_fill_most),
		TEST(test_bursts),
		TEST(test_burst_takes_no_more_than_asked),
		TEST(test_fragments),
		TEST(test_burst_completes_its_last_packet),
		TEST(test_half_packet),
		TEST(test_too_many_fragments),
		TEST(test_too_many_fragments_in_parts),
		TEST(test_packet_larger_than_ring),
		TEST(test_bad_addresses),
		TEST(test_frame_twice),
		TEST(test_bad_fragment),
		TEST(test_frame_twice_in_a_packet),
		TEST(test_length),
		TEST(test_unknown_options),
		TEST(test_wild_producer),
		TEST(test_refill_fits),
		TEST(test_release_twice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
