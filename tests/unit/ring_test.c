// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
/*
 * ring.h: indexes over 2^32, cached room, what is published when; and the memory model with a
 * second thread as the kernel (run it with SAN=thread).
 */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "fake.h"

#define SIZE  16U
#define START (UINT32_MAX - 4) /* all indexes pass 2^32 within the first lap */

static int setup(void **state)
{
	static struct fake k;

	*state = &k;
	return fake_open(&k, &(struct fake_opts){.frames = 64, .size = SIZE, .start = START});
}

static int teardown(void **state)
{
	fake_close(*state);
	return 0;
}

static void prod_wraps(struct xdpath_prod *r, struct fake_ring *k)
{
	uint32_t written = 0, read = 0;

	while (read < 5 * SIZE) {
		uint32_t n = xdpath_prod_room(r, SIZE);

		assert_int_equal(n, SIZE - (written - read));
		if (n > 7)
			n = 7;
		for (uint32_t i = 0; i < n; i++)
			((uint32_t *)r->entries)[r->prod++ & r->mask] = written++;
		xdpath_prod_submit(r);
		assert_int_equal(xdpath_prod_pending(r), written - read);
		for (uint32_t i = 0; i < 5 && read < written; i++, k->consumer++)
			assert_int_equal(((uint32_t *)k->entries)[k->consumer & k->mask], read++);
	}
	assert_true(r->prod < START);
}

static void cons_wraps(struct xdpath_cons *r, struct fake_ring *k)
{
	uint32_t written = 0, read = 0;

	while (read < 5 * SIZE) {
		for (uint32_t i = 0; i < 7 && k->producer - k->consumer < SIZE; i++, k->producer++)
			((uint32_t *)k->entries)[k->producer & k->mask] = written++;
		assert_int_equal(xdpath_cons_avail(r, SIZE), written - read);
		for (uint32_t i = 0; i < 5; i++)
			assert_int_equal(((const uint32_t *)r->entries)[r->cons++ & r->mask],
					 read++);
		xdpath_cons_release(r);
		assert_int_equal(k->consumer, r->cons);
	}
	assert_true(r->cons < START);
}

static void test_wrap_fill(void **state)
{
	struct fake *k = *state;

	prod_wraps(&k->q.fill, &k->fill);
}

static void test_wrap_tx(void **state)
{
	struct fake *k = *state;

	prod_wraps(&k->q.tx, &k->tx);
}

static void test_wrap_rx(void **state)
{
	struct fake *k = *state;

	cons_wraps(&k->q.rx, &k->rx);
}

static void test_wrap_comp(void **state)
{
	struct fake *k = *state;

	cons_wraps(&k->q.comp, &k->comp);
}

/* The shared index is looked at only when what is known does not do. */
static void test_room_is_cached(void **state)
{
	struct fake *k = *state;
	struct xdpath_prod *r = &k->q.tx;

	r->prod += SIZE - 2;
	xdpath_prod_submit(r);
	k->tx.consumer += 3;
	assert_int_equal(xdpath_prod_room(r, 0), 2);
	assert_int_equal(xdpath_prod_room(r, 2), 2);
	assert_int_equal(xdpath_prod_room(r, 3), 5);
	assert_int_equal(xdpath_prod_room(r, 2), 5);
	r->prod += 5;
	assert_int_equal(xdpath_prod_room(r, 1), 0);
}

static void test_avail_is_cached(void **state)
{
	struct fake *k = *state;
	struct xdpath_cons *r = &k->q.comp;

	assert_int_equal(xdpath_cons_avail(r, 1), 0);
	k->comp.producer += 4;
	assert_int_equal(xdpath_cons_avail(r, 1), 4);
	k->comp.producer += 4;
	assert_int_equal(xdpath_cons_avail(r, 4), 4);
	assert_int_equal(xdpath_cons_avail(r, 5), 8);
}

/* Nothing is the other side's before it is published. */
static void test_publish(void **state)
{
	struct fake *k = *state;

	k->q.fill.prod += 3;
	assert_int_equal(fake_k_pending(&k->fill), 0);
	xdpath_prod_submit(&k->q.fill);
	assert_int_equal(fake_k_pending(&k->fill), 3);
	k->rx.producer += 2;
	k->q.rx.cons += 2;
	assert_int_equal(k->rx.consumer, START);
	xdpath_cons_release(&k->q.rx);
	assert_int_equal(k->rx.consumer, START + 2);
}

static void test_need_wakeup(void **state)
{
	struct fake *k = *state;

	assert_false(xdpath_prod_need_wakeup(&k->q.tx));
	k->tx.flags = XDP_RING_NEED_WAKEUP;
	assert_true(xdpath_prod_need_wakeup(&k->q.tx));
	assert_false(xdpath_prod_need_wakeup(&k->q.fill));
}

/* ---- two threads ------------------------------------------------------------------------------
 */

#define PACKETS 100000U

struct kernel {
	struct fake *k;
	uint32_t out_of_order; /* of what came back on the TX ring */
};

static uint32_t *payload(struct fake *k, uint64_t addr)
{
	return (uint32_t *)(k->q.umem + addr);
}

/* The kernel: numbers what it receives, and wants to see the numbers again, in order. */
static void *kernel_thread(void *arg)
{
	struct kernel *me = arg;
	struct fake *k = me->k;
	uint32_t received = 0, sent = 0;

	while (sent < PACKETS) {
		uint32_t unread = k->rx.producer - xdpath_load_acquire(&k->rx.consumer);
		uint64_t addr = UINT64_MAX;

		if (received < PACKETS && unread < SIZE)
			addr = fake_k_fill(k);
		if (addr != UINT64_MAX) {
			*payload(k, addr + FAKE_HEADROOM) = received++;
			fake_k_rx(k, addr + FAKE_HEADROOM, 64, 0);
		}
		if (fake_k_pending(&k->tx) > 0 &&
		    k->comp.producer - xdpath_load_acquire(&k->comp.consumer) < SIZE) {
			const struct xdp_desc *d = k->tx.entries;

			d += k->tx.consumer & k->tx.mask;
			me->out_of_order += *payload(k, d->addr) != ~sent;
			sent++;
			fake_k_send(k, NULL);
		} else if (addr == UINT64_MAX) {
			sched_yield();
		}
	}
	return NULL;
}

static void test_two_threads(void **state)
{
	struct fake *k = *state;
	struct kernel kernel = {.k = k};
	struct xdp_desc d[XDPATH_BURST_ROOM];
	struct xdpath_ledger l = {0};
	uint32_t next = 0, done = 0, bad = 0;
	pthread_t t;

	assert_int_equal(pthread_create(&t, NULL, kernel_thread, &kernel), 0);
	while (done < PACKETS) {
		uint32_t n, sent = 0, reaped;

		xdpath_refill(&k->q);
		n = xdpath_rx_burst(&k->q, d, 1 + next % 9);
		for (uint32_t i = 0; i < n; i++) {
			uint32_t *p = xdpath_data(&k->q, &d[i]);

			bad += *p != next++;
			*p = ~*p;
		}
		do {
			sent += xdpath_tx_burst(&k->q, d + sent, n - sent);
			reaped = xdpath_reap(&k->q, SIZE);
			done += reaped;
		} while (sent < n);
		if (n == 0 && reaped == 0)
			sched_yield();
	}
	assert_int_equal(pthread_join(t, NULL), 0);
	assert_int_equal(bad, 0);
	assert_int_equal(kernel.out_of_order, 0);
	assert_int_equal(next, PACKETS);
	assert_int_equal(k->q.n.rx_bad + k->q.n.comp_bad + k->q.n.tx_invalid, 0);
	assert_int_equal(k->q.tx_outstanding, 0);
	xdpath_frames_audit(&k->f, &l);
	assert_int_equal(l.free + l.fill, l.total);
	assert_int_equal(l.wrong, 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_wrap_fill), TEST(test_wrap_tx),	 TEST(test_wrap_rx),
		TEST(test_wrap_comp), TEST(test_room_is_cached), TEST(test_avail_is_cached),
		TEST(test_publish),   TEST(test_need_wakeup),	 TEST(test_two_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
