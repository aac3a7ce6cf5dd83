// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
/*
 * tx_burst and reap: the kernel's rules one by one at their limits, frames in several descriptors,
 * full rings, and completion rings that hold rubbish. Receiving is in pkt_test.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "fake.h"

#define FIRST  8U
#define FRAMES 264U
#define MINE   (FRAMES - FIRST)
#define SIZE   32U
#define START  (UINT32_MAX - 20)
#define MAX    1514U /* longest untagged frame */
#define MORE   XDP_PKT_CONTD

static int setup(void **state)
{
	static struct fake k;

	*state = &k;
	return fake_open(&k, &(struct fake_opts){.frames = FRAMES,
						 .first = FIRST,
						 .size = SIZE,
						 .start = START});
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

static struct xdpath_ledger audit(struct fake *k)
{
	struct xdpath_ledger l;

	assert_null(fake_audit(k, &l));
	return l;
}

/* A fragment in a frame of its own, from `at` in it. */
static struct xdp_desc frag(struct fake *k, uint32_t at, uint32_t len, uint32_t options)
{
	uint64_t addr = 0;

	assert_int_equal(xdpath_frame_get(&k->f, &addr, 1), 1);
	return (struct xdp_desc){.addr = addr + at, .len = len, .options = options};
}

/* The whole burst is off our hands, sent or refused, and the kernel sees what was sent. */
static void send_all(struct fake *k, const struct xdp_desc *d, uint32_t n, uint32_t sent)
{
	uint32_t before = fake_k_pending(&k->tx);

	assert_int_equal(xdpath_tx_burst(&k->q, d, n), n);
	assert_int_equal(fake_k_pending(&k->tx), before + sent);
	assert_int_equal(audit(k).held, 0);
}

/* The kernel sends all and completes it; all of it is reaped. */
static void drain(struct fake *k)
{
	while (fake_k_send(k, NULL))
		if (k->comp.producer - k->comp.consumer == SIZE)
			assert_int_equal(xdpath_reap(&k->q, SIZE), SIZE);
	xdpath_reap(&k->q, SIZE);
	assert_int_equal(audit(k).free, MINE);
	assert_int_equal(k->q.tx_outstanding, 0);
	assert_int_equal(k->q.n.comp_bad, 0);
}

/* One packet of one fragment: sent, or refused under exactly this counter. */
static void one(struct fake *k, struct xdp_desc d, const uint64_t *refused)
{
	struct xdpath_queue_counters *n = &k->q.n;
	uint64_t sum = n->tx_packets + n->tx_invalid + n->tx_too_big + n->tx_too_short;
	uint64_t before = *refused;

	send_all(k, &d, 1, refused == &n->tx_packets);
	assert_int_equal(*refused, before + 1);
	assert_int_equal(n->tx_packets + n->tx_invalid + n->tx_too_big + n->tx_too_short, sum + 1);
	drain(k);
}

static void test_length_rules(void **state)
{
	struct fake *k = *state;
	struct xdpath_queue_counters *n = &k->q.n;

	one(k, frag(k, 256, 0, 0), &n->tx_invalid);
	one(k, frag(k, 0, 0, 0), &n->tx_invalid);
	one(k, frag(k, 256, 1, 0), &n->tx_too_short);
	one(k, frag(k, 256, 13, 0), &n->tx_too_short);
	one(k, frag(k, 256, 14, 0), &n->tx_packets);
	one(k, frag(k, 256, MAX, 0), &n->tx_packets);
	one(k, frag(k, 256, MAX + 1, 0), &n->tx_too_big);
	one(k, frag(k, 256, UINT32_MAX, 0), &n->tx_invalid);
	assert_int_equal(n->tx_bytes, 14 + MAX);
}

static void test_frame_end(void **state)
{
	struct fake *k = *state;
	struct xdpath_queue_counters *n = &k->q.n;

	one(k, frag(k, FAKE_FRAME - 60, 60, 0), &n->tx_packets);
	one(k, frag(k, FAKE_FRAME - 60, 61, 0), &n->tx_invalid);
	k->q.tx_max_len = 9014;
	one(k, frag(k, 0, FAKE_FRAME, 0), &n->tx_packets);
	one(k, frag(k, 0, FAKE_FRAME + 1, 0), &n->tx_invalid);
	one(k, frag(k, 1, FAKE_FRAME, 0), &n->tx_invalid);
	one(k, frag(k, FAKE_FRAME - 1, UINT32_MAX, 0), &n->tx_invalid);
}

static void test_option_bits(void **state)
{
	struct fake *k = *state;
	struct xdpath_queue_counters *n = &k->q.n;

	one(k, frag(k, 256, 60, XDP_TX_METADATA), &n->tx_invalid);
	for (uint32_t bit = 2; bit < 32; bit++)
		one(k, frag(k, 256, 60, 1U << bit), &n->tx_invalid);
}

/* Each tag may go 4 bytes beyond, and only where there is a tag. */
static void test_tags(void **state)
{
	struct fake *k = *state;
	struct xdpath_queue_counters *n = &k->q.n;
	static const struct {
		uint16_t type[3];
		uint32_t room;
	} cases[] = {
		{{0x0800, 0x8100, 0x8100}, 0}, {{0x8100, 0x0800, 0x8100}, 4},
		{{0x88a8, 0x0800, 0}, 4},      {{0x88a8, 0x8100, 0x0800}, 8},
		{{0x8100, 0x8100, 0x8100}, 8}, {{0x9100, 0x8100, 0}, 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (uint32_t over = 0; over < 2; over++) {
			struct xdp_desc d = frag(k, 256, MAX + cases[i].room + over, 0);
			uint8_t *p = xdpath_data(&k->q, &d);

			for (int t = 0; t < 3; t++) {
				p[12 + 4 * t] = (uint8_t)(cases[i].type[t] >> 8);
				p[13 + 4 * t] = (uint8_t)cases[i].type[t];
			}
			one(k, d, over ? &n->tx_too_big : &n->tx_packets);
		}
}

/* Tags are looked for in the first fragment only, and not past its end. */
static void test_tags_in_fragments(void **state)
{
	struct fake *k = *state;
	struct xdp_desc d[2] = {frag(k, 256, 17, MORE), frag(k, 256, MAX + 4 - 17, 0)};
	uint8_t *p = xdpath_data(&k->q, &d[0]);

	p[12] = p[16] = 0x81;
	p[13] = p[17] = 0;
	send_all(k, d, 2, 2);
	drain(k);
	d[0] = frag(k, FAKE_FRAME - 13, 13, MORE);
	d[1] = frag(k, 256, MAX + 4 - 13, 0);
	p = xdpath_data(&k->q, &d[0]);
	p[12] = 0x81; /* half of a type at the frame's end */
	send_all(k, d, 2, 0);
	assert_int_equal(k->q.n.tx_too_big, 1);
	drain(k);
}

/* What the application does not own: free, the kernel's, another cache's, past the UMEM. */
static void test_foreign_frames(void **state)
{
	struct fake *k = *state;
	const uint64_t bad[] = {FIRST * FAKE_FRAME,	     (FIRST + 1) * FAKE_FRAME,
				(FIRST - 1) * FAKE_FRAME,    (uint64_t)FRAMES * FAKE_FRAME,
				UINT64_MAX - FAKE_FRAME + 1, (uint64_t)1 << 48};
	struct xdp_desc d[6];

#ifdef XDPATH_DEBUG
	skip(); /* a debug build aborts here */
#endif
	k->f.owner[FIRST + 1] = XDPATH_FILL;
	k->f.stack[k->f.count - 2] = k->f.stack[k->f.count - 1];
	k->f.count--;
	for (int i = 0; i < 6; i++)
		d[i] = (struct xdp_desc){.addr = bad[i], .len = 60};
	send_all(k, d, 6, 0);
	assert_int_equal(k->q.n.tx_invalid, 6);
	assert_int_equal(k->f.wrong, 6);
	k->f.wrong = 0;
}

static void test_fragments(void **state)
{
	struct fake *k = *state;
	struct xdp_desc d[XDPATH_PKT_FRAGS_MAX + 1];

	for (uint32_t n = 1; n <= XDPATH_PKT_FRAGS_MAX + 1; n++) {
		bool sent = n <= XDPATH_PKT_FRAGS_MAX;

		for (uint32_t i = 0; i < n; i++)
			d[i] = frag(k, 256, 20, i + 1 < n ? MORE : 0);
		send_all(k, d, n, sent ? n : 0);
		for (uint32_t i = 0; sent && i < n; i++) {
			struct xdp_desc got;

			assert_true(fake_k_send(k, &got));
			assert_memory_equal(&got, &d[i], sizeof(got));
		}
		drain(k);
	}
	assert_int_equal(k->q.n.tx_packets, XDPATH_PKT_FRAGS_MAX);
	assert_int_equal(k->q.n.tx_too_big, 1);
	k->q.tx_max_frags = 2;
	for (uint32_t i = 0; i < 3; i++)
		d[i] = frag(k, 256, 20, i < 2 ? MORE : 0);
	send_all(k, d, 3, 0);
	assert_int_equal(k->q.n.tx_too_big, 2);
}

/* The rules hold for the packet's whole length, and for each fragment. */
static void test_fragment_rules(void **state)
{
	struct fake *k = *state;
	struct xdpath_queue_counters *n = &k->q.n;
	struct {
		uint32_t len[3];
		const uint64_t *counter;
	} cases[] = {
		{{1, 12, 1}, &n->tx_packets},	   {{1, 11, 1}, &n->tx_too_short},
		{{14, 1400, 100}, &n->tx_packets}, {{14, 1400, 101}, &n->tx_too_big},
		{{60, 0, 60}, &n->tx_invalid},	   {{60, 60, 0}, &n->tx_invalid},
		{{60, 3841, 60}, &n->tx_invalid},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t before = *cases[i].counter;
		struct xdp_desc d[4];

		for (int j = 0; j < 3; j++)
			d[j] = frag(k, 256, cases[i].len[j], j < 2 ? MORE : 0);
		d[3] = frag(k, 256, 60, 0); /* the next packet is not affected */
		send_all(k, d, 4, cases[i].counter == &n->tx_packets ? 4 : 1);
		assert_int_equal(*cases[i].counter - before,
				 cases[i].counter == &n->tx_packets ? 2 : 1);
		drain(k);
	}
}

/* A burst may not end inside a packet. */
static void test_open_tail(void **state)
{
	struct fake *k = *state;
	struct xdp_desc d[4] = {frag(k, 256, 60, 0), frag(k, 256, 60, MORE), frag(k, 256, 60, 0),
				frag(k, 256, 60, MORE)};

	send_all(k, d, 4, 3);
	assert_int_equal(k->q.n.tx_packets, 2);
	assert_int_equal(k->q.n.tx_invalid, 1);
	drain(k);
}

/* ---- full rings -------------------------------------------------------------------------------
 */

static void test_ring_full(void **state)
{
	struct fake *k = *state;
	struct xdp_desc d[SIZE + 2];

	for (uint32_t i = 0; i < SIZE + 2; i++)
		d[i] = frag(k, 256, 60, 0);
	assert_int_equal(xdpath_tx_burst(&k->q, d, 0), 0);
	assert_int_equal(xdpath_tx_burst(&k->q, d, SIZE + 2), SIZE);
	assert_int_equal(xdpath_tx_burst(&k->q, d + SIZE, 2), 0);
	assert_int_equal(audit(k).held, 2);
	assert_int_equal(k->q.tx_outstanding, SIZE);
	assert_int_equal(k->q.tx_unkicked, SIZE);
	assert_true(fake_k_send(k, NULL));
	assert_int_equal(xdpath_tx_room(&k->q, 1), 1);
	assert_int_equal(xdpath_tx_burst(&k->q, d + SIZE, 2), 1);
	assert_true(fake_k_send(k, NULL));
	assert_int_equal(xdpath_tx_burst(&k->q, d + SIZE + 1, 1), 1);
	drain(k);
}

/* Room for a part of a packet is no room: it stays with the caller, whole. */
static void test_ring_full_inside_a_packet(void **state)
{
	struct fake *k = *state;
	struct xdp_desc d[SIZE + 1];

	for (uint32_t i = 0; i < SIZE + 1; i++)
		d[i] = frag(k, 256, 60, i % 3 < 2 && i < SIZE - 1 ? MORE : 0);
	/* Ten packets of three, one of two, one of one: the last does not fit. */
	assert_int_equal(xdpath_tx_burst(&k->q, d, SIZE + 1), SIZE);
	assert_true(fake_k_send(k, NULL) && fake_k_send(k, NULL));
	assert_int_equal(xdpath_tx_burst(&k->q, d + SIZE, 1), 1);
	for (uint32_t i = 0; i < 3; i++)
		d[i] = frag(k, 256, 60, i < 2 ? MORE : 0);
	assert_int_equal(xdpath_tx_burst(&k->q, d, 3), 0);
	assert_int_equal(audit(k).held, 3);
	assert_int_equal(fake_k_pending(&k->tx), SIZE - 1);
	assert_true(fake_k_send(k, NULL) && fake_k_send(k, NULL));
	assert_int_equal(xdpath_tx_burst(&k->q, d, 3), 3);
	drain(k);
}

/* It would never fit: refused, not waited for. */
static void test_packet_larger_than_ring(void **state)
{
	static struct fake s;
	struct xdp_desc d[9];

	(void)state;
	assert_int_equal(fake_open(&s, &(struct fake_opts){.frames = 32, .size = 8}), 0);
	for (uint32_t i = 0; i < 9; i++)
		d[i] = frag(&s, 256, 60, i < 8 ? MORE : 0);
	send_all(&s, d, 9, 0);
	assert_int_equal(s.q.n.tx_too_big, 1);
	fake_close(&s);
}

/* ---- a frame in several descriptors -----------------------------------------------------------
 */

static void test_references(void **state)
{
	struct fake *k = *state;
	struct xdp_desc shared = frag(k, 1024, 100, 0);
	uint32_t descs = 0;

	/* A header each, one payload for all; in several bursts. */
	for (int i = 0; i < 6; i++) {
		struct xdp_desc d[4] = {frag(k, 256, 42, MORE), shared, frag(k, 256, 42, MORE),
					shared};

		send_all(k, d, 4, 4);
		descs += 4;
	}
	assert_int_equal(k->f.owner[shared.addr / FAKE_FRAME], XDPATH_TX + 12);
	assert_int_equal(audit(k).tx, 13);
	for (uint32_t i = 0; i + 1 < descs; i++) {
		fake_k_send(k, NULL);
		assert_int_equal(xdpath_reap(&k->q, SIZE), 1);
		assert_true(k->f.owner[shared.addr / FAKE_FRAME] > XDPATH_TX);
	}
	assert_int_equal(audit(k).tx, 1);
	assert_int_equal(k->q.tx_outstanding, 1);
	drain(k);
	assert_int_equal(k->q.n.tx_completed, descs);
}

/* 127 references are all that the ledger's byte counts. */
static void test_most_references(void **state)
{
	struct fake *k = *state;
	struct xdp_desc shared = frag(k, 256, 60, 0), d[3];
	uint64_t frame = shared.addr / FAKE_FRAME;
	uint32_t free = k->f.count;

	for (uint32_t i = 0; i < XDPATH_TX_REFS_MAX - 1; i++) {
		if (fake_k_pending(&k->tx) == SIZE)
			k->tx.consumer = k->tx.producer; /* taken, not completed yet */
		send_all(k, &shared, 1, 1);
	}
	k->tx.consumer = k->tx.producer;
	/* The packet needs two and only one is left: nothing of it stays behind. */
	d[0] = frag(k, 256, 60, MORE);
	d[1] = d[2] = shared;
	d[1].options = MORE;
	send_all(k, d, 3, 0);
	assert_int_equal(k->q.n.tx_invalid, 1);
	assert_int_equal(k->f.owner[frame], XDPATH_TX + XDPATH_TX_REFS_MAX - 1);
	assert_int_equal(k->f.count, free);
	send_all(k, &shared, 1, 1);
	send_all(k, &shared, 1, 0);
	assert_int_equal(k->q.n.tx_invalid, 2);
	for (uint32_t i = 0; i < XDPATH_TX_REFS_MAX; i++) {
		assert_int_equal(audit(k).tx, 1);
		fake_k_complete(k, shared.addr);
		assert_int_equal(xdpath_reap(&k->q, SIZE), 1);
	}
	k->tx.consumer = k->tx.producer;
	drain(k);
}

/* A refused packet that names a frame twice frees it once; one in TX stays there. */
static void test_refused_packet_with_shared_frames(void **state)
{
	struct fake *k = *state;
	struct xdp_desc shared = frag(k, 256, 60, 0), own = frag(k, 256, 60, MORE);
	struct xdp_desc d[4] = {own, shared, own, frag(k, 256, 0, 0)};

	assert_int_equal(xdpath_tx_burst(&k->q, &shared, 1), 1);
	d[1].options = MORE;
	send_all(k, d, 4, 0);
	assert_int_equal(k->q.n.tx_invalid, 1);
	assert_int_equal(audit(k).tx, 1);
	assert_int_equal(audit(k).free, MINE - 1);
	drain(k);
}

/* ---- completions ------------------------------------------------------------------------------
 */

static void test_reap_takes_no_more_than_asked(void **state)
{
	struct fake *k = *state;

	for (int i = 0; i < 10; i++) {
		struct xdp_desc d = frag(k, 256, 60, 0);

		send_all(k, &d, 1, 1);
		fake_k_send(k, NULL);
	}
	assert_int_equal(xdpath_reap(&k->q, 0), 0);
	assert_int_equal(xdpath_reap(&k->q, 7), 7);
	assert_int_equal(k->comp.consumer, START + 7);
	assert_int_equal(xdpath_reap(&k->q, 7), 3);
	assert_int_equal(xdpath_reap(&k->q, 7), 0);
	drain(k);
}

static void test_bad_completions(void **state)
{
	struct fake *k = *state;
	struct xdp_desc d = frag(k, 256, 60, 0), held = frag(k, 256, 60, 0);
	const uint64_t bad[] = {
		UINT64_MAX - 1, /* 0xff..fe, as seen */
		(uint64_t)FRAMES * FAKE_FRAME,
		(FIRST - 1) * FAKE_FRAME,
		k->f.stack[0], /* free */
		held.addr,     /* the application's */
		(uint64_t)1 << 63,
	};

	assert_int_equal(xdpath_tx_burst(&k->q, &d, 1), 1);
	for (int i = 0; i < 6; i++)
		fake_k_complete(k, bad[i]);
	assert_true(fake_k_send(k, NULL));
	fake_k_complete(k, d.addr); /* a second time */
	assert_int_equal(xdpath_reap(&k->q, SIZE), 8);
	assert_int_equal(k->q.n.comp_bad, 7);
	assert_int_equal(k->q.n.tx_completed, 1);
	assert_int_equal(k->q.tx_outstanding, 0);
	assert_int_equal(audit(k).held, 1);
	xdpath_frame_put(&k->f, held.addr);
}

/* Another queue's completion ring may name our frames: freed once, and nothing goes below zero. */
static void test_wild_completions(void **state)
{
	struct fake *k = *state;
	struct xdp_desc d = frag(k, 256, 60, 0);

	send_all(k, &d, 1, 1);
	k->q.tx_outstanding = 0;
	fake_k_send(k, NULL);
	xdpath_store_release(&k->comp.producer, START - 1); /* 2^32 - 1 entries */
	for (int i = 0; i < 20; i++)
		assert_int_equal(xdpath_reap(&k->q, SIZE), SIZE);
	assert_int_equal(k->q.n.comp_bad, 20 * SIZE - 1);
	assert_int_equal(k->q.tx_outstanding, 0);
	assert_int_equal(audit(k).free, MINE);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_length_rules),
		TEST(test_frame_end),
		TEST(test_option_bits),
		TEST(test_tags),
		TEST(test_tags_in_fragments),
		TEST(test_foreign_frames),
		TEST(test_fragments),
		TEST(test_fragment_rules),
		TEST(test_open_tail),
		TEST(test_ring_full),
		TEST(test_ring_full_inside_a_packet),
		TEST(test_packet_larger_than_ring),
		TEST(test_references),
		TEST(test_most_references),
		TEST(test_refused_packet_with_shared_frames),
		TEST(test_reap_takes_no_more_than_asked),
		TEST(test_bad_completions),
		TEST(test_wild_completions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
