/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * TX that stands still: when it is kicked again, how often, and what is told. The kernel is this
 * file: it answers sendto() and recvfrom(), and completes what the test says.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

#include "internal.h"

#include <cmocka.h>

#define MS 1000000ULL

static uint32_t sends, receives;
static int answer; /* errno of the next sendto(), 0: it is taken */

ssize_t sendto(int fd, const void *buf, size_t len, int flags, const struct sockaddr *to,
	       socklen_t size)
{
	(void)fd, (void)buf, (void)len, (void)flags, (void)to, (void)size;
	sends++;
	errno = answer;
	return answer ? -1 : 0;
}

ssize_t recvfrom(int fd, void *buf, size_t len, int flags, struct sockaddr *from, socklen_t *size)
{
	(void)fd, (void)buf, (void)len, (void)flags, (void)from, (void)size;
	receives++;
	errno = EAGAIN;
	return -1;
}

static void begin(struct xdpath_socket *s, enum xdpath_mode mode)
{
	memset(s, 0, sizeof(*s));
	s->mode = mode;
	sends = receives = 0;
	answer = 0;
}

/* Look every `step` from `from` to `to` (exclusive). */
static void look(struct xdpath_socket *s, uint64_t from, uint64_t to, uint64_t step)
{
	for (uint64_t t = from; t < to; t += step)
		xdpath_socket_watch_tx(s, t);
}

static void nothing_out_is_no_standstill(void **state)
{
	struct xdpath_socket s;

	(void)state;
	begin(&s, XDPATH_MODE_ZEROCOPY);
	look(&s, MS, 10000 * MS, 10 * MS);
	assert_int_equal(sends, 0);
	assert_int_equal(s.watch.stuck_ns, 0);
}

/* Frames that go out only after an hour of nothing have not stood still for an hour. */
static void time_counts_from_when_frames_are_out(void **state)
{
	struct xdpath_socket s;

	(void)state;
	begin(&s, XDPATH_MODE_ZEROCOPY);
	look(&s, MS, 3600000 * MS, 1000 * MS);
	s.q.tx_outstanding = 3;
	look(&s, 3600000 * MS, 3600100 * MS, 10 * MS);
	assert_int_equal(sends, 0);
	look(&s, 3600100 * MS, 3600101 * MS, MS);
	assert_int_equal(sends, 1);
	assert_int_equal(s.watch.stuck_ns, 100 * MS);
}

static void progress_is_no_standstill(void **state)
{
	struct xdpath_socket s;

	(void)state;
	begin(&s, XDPATH_MODE_COPY);
	s.q.tx_outstanding = 2048;
	for (uint64_t t = MS; t < 60000 * MS; t += 90 * MS) { /* one frame each 90 ms */
		s.q.n.tx_completed++;
		look(&s, t, t + 90 * MS, 10 * MS);
	}
	assert_int_equal(sends, 0);
}

/* At 100 ms, then every 100 ms, and in the end once a second: never a spin. */
static void standstill_is_kicked_ever_more_rarely(void **state)
{
	struct xdpath_socket s;

	(void)state;
	begin(&s, XDPATH_MODE_ZEROCOPY);
	s.q.tx_outstanding = 7;
	look(&s, MS, 101 * MS, MS);
	assert_int_equal(sends, 0);
	look(&s, 101 * MS, 102 * MS, MS);
	assert_int_equal(sends, 1);
	assert_int_equal(receives, 1); /* zero-copy: one NAPI may serve both ways */
	look(&s, 102 * MS, 1001 * MS, MS);
	assert_in_range(sends, 5, 8);
	assert_true(s.watch.stuck_ns >= 800 * MS);
	assert_int_equal(s.watch.frames, 7);
	look(&s, 1001 * MS, 61001 * MS, MS);
	assert_in_range(sends, 60, 72);
	look(&s, 61001 * MS, 661001 * MS, 10 * MS);
	assert_in_range(sends, 650, 680);
	assert_int_equal(s.c.tx_stuck_kicks, sends);
	assert_int_equal(s.fatal, 0);
}

static void it_ends_with_a_completion(void **state)
{
	struct xdpath_socket s;

	(void)state;
	begin(&s, XDPATH_MODE_ZEROCOPY);
	s.q.tx_outstanding = 7;
	look(&s, MS, 2001 * MS, 10 * MS);
	assert_true(s.watch.stuck_ns > 0);
	s.q.n.tx_completed++;
	sends = 0;
	look(&s, 2001 * MS, 2100 * MS, 10 * MS);
	assert_int_equal(sends, 0);
	assert_int_equal(s.watch.stuck_ns, 0);
	assert_int_equal(s.watch.frames, 0);
	look(&s, 2110 * MS, 2120 * MS, 10 * MS); /* still six out: from now on it counts again */
	assert_int_equal(sends, 1);
	assert_in_range(s.watch.stuck_ns, 100 * MS, 110 * MS);
}

static void without_a_link_nothing_is_expected(void **state)
{
	struct xdpath_socket s;

	(void)state;
	begin(&s, XDPATH_MODE_ZEROCOPY);
	s.q.tx_outstanding = 7;
	s.watch.link_down = true;
	look(&s, MS, 60000 * MS, 10 * MS);
	assert_int_equal(sends, 0);
	s.watch.link_down = false; /* it is back: time runs from here */
	look(&s, 60000 * MS, 60090 * MS, 10 * MS);
	assert_int_equal(sends, 0);
	look(&s, 60090 * MS, 60120 * MS, 10 * MS);
	assert_int_equal(sends, 1);
}

static void copy_mode_kicks_tx_only(void **state)
{
	struct xdpath_socket s;

	(void)state;
	begin(&s, XDPATH_MODE_COPY);
	s.q.tx_outstanding = 1;
	answer = EAGAIN;
	look(&s, MS, 402 * MS, 10 * MS);
	assert_int_equal(sends, 4);
	assert_int_equal(receives, 0);
	assert_int_equal(s.c.tx_again, 4);
}

/* A driver that has no more use for the socket says so: kept, and not asked again. */
static void a_dead_socket_is_left_alone(void **state)
{
	struct xdpath_socket s;

	(void)state;
	begin(&s, XDPATH_MODE_ZEROCOPY);
	s.q.tx_outstanding = 1;
	answer = EINVAL;
	look(&s, MS, 5000 * MS, 10 * MS);
	assert_int_equal(s.fatal, -EINVAL);
	assert_int_equal(sends, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_out_is_no_standstill),
		cmocka_unit_test(time_counts_from_when_frames_are_out),
		cmocka_unit_test(progress_is_no_standstill),
		cmocka_unit_test(standstill_is_kicked_ever_more_rarely),
		cmocka_unit_test(it_ends_with_a_completion),
		cmocka_unit_test(without_a_link_nothing_is_expected),
		cmocka_unit_test(copy_mode_kicks_tx_only),
		cmocka_unit_test(a_dead_socket_is_left_alone),
	};

	return cmocka_run_group_tests_name("watch", tests, NULL, NULL);
}
