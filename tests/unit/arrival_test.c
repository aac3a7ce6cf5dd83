/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/* When messages of an open loop are due: the rate, the shape, and that a seed decides all. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "../../user/bench/arrival.h"

#include <cmocka.h> /* last: it has a macro fail() */

#define N   200000
#define GAP 1234.5

static void even_is_even(void **state)
{
	struct arrival a;

	(void)state;
	arrival_init(&a, ARRIVAL_EVEN, GAP, 0, 1, 100);
	for (int i = 0; i < N; i++)
		assert_true(fabs(arrival_next(&a) - (100 + i * GAP)) < 1e-3);
}

static void bursts_come_together_and_keep_the_rate(void **state)
{
	struct arrival a;

	(void)state;
	arrival_init(&a, ARRIVAL_BURST, GAP, 32, 1, 0);
	for (int i = 0; i < 32 * 1000; i++)
		assert_true(fabs(arrival_next(&a) - i / 32 * 32 * GAP) < 1e-3);
}

/* Gaps of a Poisson process: mean and deviation are both the gap, e^-1 of them are longer. */
static void poisson_is_poisson(void **state)
{
	double last, sum = 0, squares = 0;
	struct arrival a;
	int longer = 0;

	(void)state;
	arrival_init(&a, ARRIVAL_POISSON, GAP, 0, 42, 0);
	last = arrival_next(&a);
	assert_true(last > 0);
	for (int i = 0; i < N; i++) {
		double at = arrival_next(&a), gap = at - last;

		assert_true(gap >= 0);
		sum += gap;
		squares += gap * gap;
		longer += gap > GAP;
		last = at;
	}
	/* 5 standard errors of each */
	assert_true(fabs(sum / N - GAP) < 5 * GAP / sqrt(N));
	assert_true(fabs(sqrt(squares / N - sum / N * sum / N) - GAP) < 5 * GAP * sqrt(2.0 / N));
	assert_true(fabs((double)longer / N - exp(-1)) < 5 * sqrt(exp(-1) * (1 - exp(-1)) / N));
}

static void the_seed_decides(void **state)
{
	struct arrival a, b, c;
	int same = 0;

	(void)state;
	arrival_init(&a, ARRIVAL_POISSON, GAP, 0, 7, 0);
	arrival_init(&b, ARRIVAL_POISSON, GAP, 0, 7, 0);
	arrival_init(&c, ARRIVAL_POISSON, GAP, 0, 8, 0);
	for (int i = 0; i < 1000; i++) {
		double x = arrival_next(&a), y = arrival_next(&b), z = arrival_next(&c);

		assert_true(!(x < y) && !(x > y));
		same += fabs(x - z) < 1e-9;
	}
	assert_int_equal(same, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(even_is_even),
		cmocka_unit_test(bursts_come_together_and_keep_the_rate),
		cmocka_unit_test(poisson_is_poisson),
		cmocka_unit_test(the_seed_decides),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
