/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/* Pieces to messages: any order, repeated, missing, lying; what is given up is counted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "../../user/bench/reassembly.h"

#include <cmocka.h> /* last: it has a macro fail() */

static const struct cut cut = {.piece = 1456, .len = 14000}; /* 10 pieces, the last of 896 */

static uint32_t size_at(const struct cut *c, uint32_t at)
{
	return c->len - at < c->piece ? c->len - at : c->piece;
}

static enum piece_verdict take(struct reassembly *r, uint32_t seq, uint32_t i, uint64_t now,
			       struct test_losses *lost)
{
	uint32_t at = i * cut.piece;

	return reassembly_take(r, &cut, seq, at, size_at(&cut, at), now, lost);
}

static void any_order_makes_it_whole_once(void **state)
{
	static const uint32_t orders[][10] = {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9},
					      {9, 8, 7, 6, 5, 4, 3, 2, 1, 0},
					      {3, 9, 0, 7, 1, 8, 2, 6, 4, 5}};

	(void)state;
	for (size_t o = 0; o < 3; o++) {
		struct test_losses lost = {0};
		struct reassembly r = {0};

		for (uint32_t i = 0; i < 10; i++)
			assert_int_equal(take(&r, 5, orders[o][i], 1, &lost),
					 i < 9 ? PIECE_MORE : PIECE_WHOLE);
		assert_int_equal(r.nopen, 0);
		assert_int_equal(lost.incomplete + lost.late, 0);
		assert_int_equal(lost.reordered, o == 0 ? 0 : o == 1 ? 9 : 8);
	}
}

static void a_piece_again_is_not_counted_twice(void **state)
{
	struct test_losses lost = {0};
	struct reassembly r = {0};

	(void)state;
	for (uint32_t i = 0; i < 9; i++) {
		assert_int_equal(take(&r, 1, i, 1, &lost), PIECE_MORE);
		assert_int_equal(take(&r, 1, i, 1, &lost), PIECE_AGAIN);
	}
	assert_int_equal(take(&r, 1, 9, 1, &lost), PIECE_WHOLE);
	assert_int_equal(lost.late, 9);
}

static void lies_are_refused(void **state)
{
	static const uint32_t bad[][2] = {{1, 1456},	 {1456, 1455},	{14000, 0}, {13104, 897},
					  {13104, 1456}, {0xffffff, 1}, {0, 14000}, {1456 * 9, 0}};
	struct test_losses lost = {0};
	struct reassembly r = {0};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (bad[i][1] != 14000)
			assert_int_equal(reassembly_take(&r, &cut, 3, bad[i][0], bad[i][1], 1,
							 &lost),
					 PIECE_WRONG);
	assert_int_equal(r.nopen, 0);
	assert_int_equal(lost.late, 7);
}

/* Numbers go round, and a place in the table is another message's after four. */
static void an_older_message_gives_way(void **state)
{
	struct test_losses lost = {0};
	struct reassembly r = {0};
	uint32_t seq = UINT32_MAX - 1;

	(void)state;
	assert_int_equal(take(&r, seq, 0, 1, &lost), PIECE_MORE);
	assert_int_equal(take(&r, seq + REASSEMBLY_OPEN, 0, 1, &lost), PIECE_MORE);
	assert_int_equal(lost.incomplete, 1);
	assert_int_equal(take(&r, seq, 1, 1, &lost), PIECE_AGAIN);
	assert_int_equal(lost.late, 1);
	assert_int_equal(lost.reordered, 1);
	for (uint32_t i = 1; i < 10; i++)
		assert_int_equal(take(&r, seq + REASSEMBLY_OPEN, i, 1, &lost),
				 i < 9 ? PIECE_MORE : PIECE_WHOLE);
	assert_int_equal(lost.incomplete, 1);
	assert_int_equal(r.nopen, 0);
}

static void what_is_not_whole_in_time_is_lost(void **state)
{
	struct test_losses lost = {0};
	struct reassembly r = {0};

	(void)state;
	assert_int_equal(take(&r, 1, 0, 100, &lost), PIECE_MORE);
	assert_int_equal(take(&r, 2, 0, 300, &lost), PIECE_MORE);
	assert_int_equal(r.nopen, 2);
	reassembly_expire(&r, 100, &lost);
	assert_int_equal(lost.incomplete, 0);
	reassembly_expire(&r, 101, &lost);
	assert_int_equal(lost.incomplete, 1);
	assert_int_equal(r.nopen, 1);
	/* begun anew, it needs all its pieces */
	for (uint32_t i = 1; i < 10; i++)
		assert_int_equal(take(&r, 1, i, 400, &lost), PIECE_MORE);
	assert_int_equal(take(&r, 1, 0, 400, &lost), PIECE_WHOLE);
}

/* The largest message in the smallest datagrams still fits the table. */
static void the_extremes_fit(void **state)
{
	static const struct cut cuts[] = {{PIECE_MIN, MSG_SIZE_MAX},
					  {532, 65536},
					  {1, 1},
					  {1456, 1},
					  {1456, 1456},
					  {1456, 1457}};

	(void)state;
	for (size_t k = 0; k < sizeof(cuts) / sizeof(cuts[0]); k++) {
		struct test_losses lost = {0};
		struct reassembly r = {0};
		uint32_t whole = 0;

		for (uint32_t at = 0; at < cuts[k].len; at += cuts[k].piece)
			whole += reassembly_take(&r, &cuts[k], 0, at, size_at(&cuts[k], at), 1,
						 &lost) == PIECE_WHOLE;
		assert_int_equal(whole, 1);
		assert_int_equal(lost.late + lost.reordered, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_order_makes_it_whole_once),
		cmocka_unit_test(a_piece_again_is_not_counted_twice),
		cmocka_unit_test(lies_are_refused),
		cmocka_unit_test(an_older_message_gives_way),
		cmocka_unit_test(what_is_not_whole_in_time_is_lost),
		cmocka_unit_test(the_extremes_fit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
