// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
/*
 * frame.h and frame.c: the cache, the ledger, and what they refuse. Refused moves are counted in a
 * release build and abort in a debug build: both are looked at, each in its own build.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "fake.h"

#define FIRST  8U
#define FRAMES 32U
#define MINE   (FRAMES - FIRST)

#ifdef XDPATH_DEBUG
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* In a child, whose complaint on stderr is not ours to show. */
#define assert_refused(f, call)                                          \
	do {                                                             \
		pid_t pid = fork();                                      \
		int st = 0;                                              \
                                                                         \
		if (pid == 0) {                                          \
			signal(SIGABRT, SIG_DFL);                        \
			if (!freopen("/dev/null", "w", stderr))          \
				_exit(1);                                \
			call;                                            \
			_exit(0);                                        \
		}                                                        \
		assert_int_equal(waitpid(pid, &st, 0), pid);             \
		assert_true(WIFSIGNALED(st) && WTERMSIG(st) == SIGABRT); \
	} while (0)
#else
#define assert_refused(f, call)                           \
	do {                                              \
		uint64_t before = (f)->wrong;             \
                                                          \
		call;                                     \
		assert_int_equal((f)->wrong, before + 1); \
	} while (0)
#endif

static int setup(void **state)
{
	static struct fake k;

	*state = &k;
	return fake_open(&k, &(struct fake_opts){.frames = FRAMES, .first = FIRST, .size = 16});
}

/* Every test ends with an audit: all frames have an owner, and the stack is what is free. */
static int teardown(void **state)
{
	struct fake *k = *state;
	const char *fault = fake_audit(k, NULL);

	if (fault)
		fprintf(stderr, "audit: %s\n", fault);
	fake_close(k);
	return fault ? -1 : 0;
}

static void test_get_put(void **state)
{
	struct fake *k = *state;
	struct xdpath_ledger l;
	uint64_t a[FRAMES];

	assert_int_equal(xdpath_frame_get(&k->f, a, 3), 3);
	assert_int_equal(a[0], FIRST * FAKE_FRAME);
	assert_int_equal(a[2], (FIRST + 2) * FAKE_FRAME);
	assert_null(fake_audit(k, &l));
	assert_int_equal(l.held, 3);
	assert_int_equal(l.free, MINE - 3);
	/* Last in, first out; any address inside the frame will do. */
	xdpath_frame_put(&k->f, a[1] + FAKE_FRAME - 1);
	xdpath_frame_put(&k->f, a[0] + 1);
	assert_int_equal(xdpath_frame_get(&k->f, a, 2), 2);
	assert_int_equal(a[0], FIRST * FAKE_FRAME);
	assert_int_equal(a[1], (FIRST + 1) * FAKE_FRAME);
}

static void test_get_more_than_there_is(void **state)
{
	struct fake *k = *state;
	uint64_t a[FRAMES + 1];

	assert_int_equal(xdpath_frame_get(&k->f, a, 0), 0);
	assert_int_equal(xdpath_frame_get(&k->f, a, FRAMES + 1), MINE);
	assert_int_equal(xdpath_frame_get(&k->f, a, 1), 0);
	assert_int_equal(k->f.count, 0);
}

static void test_release_twice(void **state)
{
	struct fake *k = *state;
	uint64_t a = 0;

	xdpath_frame_get(&k->f, &a, 1);
	xdpath_frame_put(&k->f, a);
	assert_refused(&k->f, xdpath_frame_put(&k->f, a));
	assert_int_equal(k->f.count, MINE);
}

static void test_foreign_frames(void **state)
{
	struct fake *k = *state;

	/* Of another cache, though the application "owns" it there; past the UMEM; rubbish. */
	k->f.owner[FIRST - 1] = XDPATH_HELD;
	assert_refused(&k->f, xdpath_frame_put(&k->f, (FIRST - 1) * FAKE_FRAME));
	k->f.owner[FIRST - 1] = XDPATH_FREE;
	assert_refused(&k->f, xdpath_frame_put(&k->f, (uint64_t)FRAMES * FAKE_FRAME));
	assert_refused(&k->f, xdpath_frame_put(&k->f, UINT64_MAX - 1));
	assert_refused(&k->f, xdpath_frame_hold(&k->f, UINT64_MAX));
}

static void test_hold(void **state)
{
	struct fake *k = *state;
	struct xdpath_ledger l;
	struct xdp_desc d[XDPATH_BURST_ROOM];

	assert_int_equal(xdpath_refill(&k->q), 16);
	assert_true(fake_k_receive(k, 60, 0));
	assert_refused(&k->f, xdpath_frame_hold(&k->f, FIRST * FAKE_FRAME)); /* the kernel's */
	assert_int_equal(xdpath_rx_burst(&k->q, d, 1), 1);
	xdpath_frame_hold(&k->f, d[0].addr);
	assert_null(fake_audit(k, &l));
	assert_int_equal(l.held, 1);
	assert_int_equal(l.rx, 0);
	xdpath_frame_put(&k->f, d[0].addr);
	assert_refused(&k->f, xdpath_frame_hold(&k->f, d[0].addr));
}

static void test_audit(void **state)
{
	struct fake *k = *state;
	struct xdpath_ledger l = {.total = 100, .free = 1, .fill = 2, .rx = 3, .held = 4, .tx = 5};
	uint8_t *o = k->f.owner + FIRST;

	o[0] = XDPATH_FILL;
	o[1] = o[2] = XDPATH_RX;
	o[3] = o[4] = o[5] = XDPATH_HELD;
	o[6] = XDPATH_TX + 1;
	o[7] = XDPATH_TX + XDPATH_TX_REFS_MAX;
	k->f.owner[0] = XDPATH_RX;	/* another cache's */
	xdpath_frames_audit(&k->f, &l); /* adds to what is there */
	assert_int_equal(l.total, 100 + MINE);
	assert_int_equal(l.free, 1 + MINE - 8);
	assert_int_equal(l.fill, 2 + 1);
	assert_int_equal(l.rx, 3 + 2);
	assert_int_equal(l.held, 4 + 3);
	assert_int_equal(l.tx, 5 + 2);
	memset(k->f.owner, 0, FRAMES);
}

/* A byte that is no owner is in no count: the sum does not add up. */
static void test_audit_shows_damage(void **state)
{
	struct fake *k = *state;

	k->f.owner[FIRST] = 0x40;
	assert_string_equal(fake_audit(k, NULL), "owners do not add up to all frames");
	k->f.owner[FIRST] = XDPATH_FILL;
	assert_string_equal(fake_audit(k, NULL), "the stack is not what is free");
	k->f.owner[FIRST] = XDPATH_FREE;
	k->f.stack[1] = k->f.stack[0];
	assert_string_equal(fake_audit(k, NULL), "a frame is in the stack twice");
	k->f.stack[1] = k->f.stack[0] - FAKE_FRAME;
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_get_put),
		TEST(test_get_more_than_there_is),
		TEST(test_release_twice),
		TEST(test_foreign_frames),
		TEST(test_hold),
		TEST(test_audit),
		TEST(test_audit_shows_damage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
