// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
/*
 * A kernel that lies at random, and an application that sends what comes to hand: whatever the
 * rings hold, the books add up after each round and the application is never at fault. Most useful
 * with SAN=address,undefined.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "fake.h"

#define FIRST  8U
#define FRAMES 264U
#define SIZE   32U
#define ROUNDS 20000

static uint64_t seed;

/* A number below n; the sequence is that of its seed (xorshift). */
static uint32_t roll(uint32_t n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (uint32_t)(seed >> 33) % n;
}

static uint64_t any_address(void)
{
	switch (roll(4)) {
	case 0: return ((uint64_t)roll(UINT32_MAX) << 32) | roll(UINT32_MAX);
	case 1: return UINT64_MAX - roll(3);
	default: return (uint64_t)roll((FRAMES + 2) * FAKE_FRAME);
	}
}

static uint32_t any_length(void)
{
	static const uint32_t edges[] = {0, 1, 13, 14, 1514, 1515, 3840, 3841, 4096, UINT32_MAX};

	return roll(4) ? 60 + roll(1000) : edges[roll(10)];
}

static void kernel_turn(struct fake *k)
{
	for (uint32_t i = roll(SIZE); i > 0 && k->rx.producer - k->rx.consumer < SIZE; i--) {
		/* Long runs of fragments now and then. */
		uint32_t options = roll(100) < (k->rx.producer & 64 ? 97 : 10) ? XDP_PKT_CONTD : 0;

		if (roll(30) == 0)
			options |= 1U << roll(32);
		if (roll(20) == 0)
			fake_k_rx(k, any_address(), any_length(), options);
		else
			fake_k_receive(k, any_length(), options);
	}
	for (uint32_t i = roll(SIZE); i > 0 && k->comp.producer - k->comp.consumer < SIZE; i--)
		if (roll(20) == 0)
			fake_k_complete(k, any_address());
		else
			fake_k_send(k, NULL);
}

/* Fragments that a burst brought: each must be ours and lie in its frame. */
static void check_received(const struct fake *k, const struct xdp_desc *d, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		assert_true(xdpath_frame_is(&k->f, d[i].addr / FAKE_FRAME, XDPATH_RX));
		assert_true(d[i].addr % FAKE_FRAME + d[i].len <= FAKE_FRAME);
	}
	if (n > 0)
		assert_int_equal(d[n - 1].options, 0);
}

static void app_turn(struct fake *k)
{
	struct xdp_desc d[XDPATH_BURST_ROOM];
	uint64_t addr[4];
	uint32_t max = 1 + roll(40), n = xdpath_rx_burst(&k->q, d, max), done = 0;

	assert_true(n < max + XDPATH_PKT_FRAGS_MAX);
	check_received(k, d, n);
	if (roll(8) == 0) { /* what the kernel's rules refuse */
		uint32_t own = xdpath_frame_get(&k->f, addr, 4);

		for (uint32_t i = 0; i < own; i++, n++) {
			d[n].addr = addr[i] + roll(FAKE_FRAME);
			d[n].len = any_length();
			d[n].options = roll(2) ? XDP_PKT_CONTD : 1U << roll(32);
		}
	}
	if (roll(4) > 0)
		done = xdpath_tx_burst(&k->q, d, n);
	assert_true(done <= n);
	xdpath_release(&k->q, d + done, n - done);
	xdpath_reap(&k->q, roll(SIZE + 1));
	if (roll(3) > 0)
		xdpath_refill(&k->q);
}

static void run(uint64_t start)
{
	static struct fake k;

	seed = start;
	assert_int_equal(fake_open(&k, &(struct fake_opts){.frames = FRAMES,
							   .first = FIRST,
							   .size = SIZE,
							   .start = UINT32_MAX - 1000}),
			 0);
	for (int i = 0; i < ROUNDS; i++) {
		kernel_turn(&k);
		app_turn(&k);
		assert_null(fake_audit(&k, NULL));
		assert_int_equal(k.f.wrong, 0);
	}
	/* It was no idle run: each odd way was taken. */
	assert_true(k.q.n.rx_packets > ROUNDS);
	assert_true(k.q.n.rx_bad > 0 && k.q.n.rx_refused > 0 && k.q.n.comp_bad > 0);
	assert_true(k.q.n.tx_packets > ROUNDS / 8 && k.q.n.tx_invalid > 0);
	assert_true(k.q.n.tx_too_big > 0 && k.q.n.tx_too_short > 0);
	fake_close(&k);
}

static void test_random(void **state)
{
	(void)state;
	for (uint64_t s = 1; s <= 5; s++)
		run(s * 0x9e3779b97f4a7c15U);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_random)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
