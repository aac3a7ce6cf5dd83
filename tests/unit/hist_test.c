/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/* The histogram of times: how far a percentile may be off, what is exact, and its ends. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "hist.h"

#define VALUES 50000U

static const double percents[] = {0,  0.01, 1,	5,    10,    25,     50, 75,
				  90, 95,   99, 99.9, 99.99, 99.999, 100};

#define PERCENTS (sizeof(percents) / sizeof(percents[0]))

static struct hist *new_hist(void)
{
	struct hist *h = malloc(sizeof(*h));

	assert_non_null(h);
	hist_init(h);
	return h;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static double unit(uint64_t *random)
{
	*random = *random * 6364136223846793005ULL + 1442695040888963407ULL;
	return (double)(*random >> 11) / 9007199254740992.0;
}

/* As latencies come: even, exponential, a long tail, two humps, a few values only, all octaves. */
static uint64_t drawn(int kind, uint64_t *random)
{
	double u = unit(random);

	switch (kind) {
	case 0: return (uint64_t)(u * 1e6);
	case 1: return (uint64_t)(-log(1 - u) * 20000);
	case 2: return (uint64_t)(3000 / pow(1 - u, 1.5));
	case 3: return u < 0.7 ? (uint64_t)(9000 + u * 1000) : (uint64_t)(2e6 + u * 1e6);
	case 4: return (uint64_t)(u * 5) * 127;
	default: return (uint64_t)exp2(u * 41.9);
	}
}

/* The value of that rank in the sorted values, counted in whole numbers: percents have at most
 * three decimals. */
static uint64_t exact(const uint64_t *sorted, uint64_t n, double percent)
{
	uint64_t thousandths = (uint64_t)lround(percent * 1000);
	uint64_t rank = (n * thousandths + 99999) / 100000;

	return sorted[rank ? rank - 1 : 0];
}

static void check_distribution(int kind)
{
	uint64_t *v = calloc(VALUES, sizeof(*v)), random = 7 + (uint64_t)kind, sum = 0;
	struct hist *h = new_hist();

	assert_non_null(v);
	for (uint32_t i = 0; i < VALUES; i++) {
		v[i] = drawn(kind, &random);
		sum += v[i];
		hist_add(h, v[i]);
	}
	qsort(v, VALUES, sizeof(*v), by_value);
	for (size_t i = 0; i < PERCENTS; i++) {
		double want = (double)exact(v, VALUES, percents[i]);
		double got = (double)hist_percentile(h, percents[i]);

		if (fabs(got - want) * HIST_SUB > want)
			fail_msg("distribution %d, %g %%: %.0f, exactly %.0f", kind, percents[i],
				 got, want);
	}
	assert_int_equal(h->total, VALUES);
	assert_int_equal(h->min, v[0]);
	assert_int_equal(h->max, v[VALUES - 1]);
	assert_int_equal(hist_percentile(h, 100), v[VALUES - 1]);
	assert_true(hist_mean(h) == (double)sum / VALUES);
	free(h);
	free(v);
}

static void test_error_bound(void **state)
{
	(void)state;
	for (int kind = 0; kind <= 5; kind++)
		check_distribution(kind);
}

/* Every value below HIST_SUB has a bucket of its own. */
static void test_exact_below_sub(void **state)
{
	struct hist *h = new_hist();

	(void)state;
	for (uint64_t v = 0; v < HIST_SUB; v++)
		hist_add(h, v);
	for (uint32_t i = 1; i <= HIST_SUB; i++)
		assert_int_equal(hist_percentile(h, 100.0 * i / HIST_SUB), i - 1);
	free(h);
}

/* The buckets follow one another without a gap, and each value falls between its bucket's ends. */
static void test_buckets_are_contiguous(void **state)
{
	uint64_t lo, hi, next = 0;

	(void)state;
	for (uint32_t b = 0; b < HIST_BUCKETS; b++) {
		hist_bounds(b, &lo, &hi);
		assert_int_equal(lo, next);
		assert_int_equal(hist_bucket(lo), b);
		assert_int_equal(hist_bucket(hi), b);
		if (b < HIST_BUCKETS - 1)
			assert_true((hi - lo) * HIST_SUB <= lo);
		next = hi + 1;
	}
	assert_int_equal(next, 0); /* the last one takes all the rest */
}

static void test_overflow(void **state)
{
	struct hist *h = new_hist();
	uint64_t lo, hi;

	(void)state;
	hist_bounds(HIST_BUCKETS - 1, &lo, &hi);
	assert_true(lo > 1ULL << 41 && lo < 1ULL << 42);
	hist_add(h, 5);
	hist_add(h, 1ULL << 42);
	hist_add(h, 1ULL << 60);
	assert_int_equal(h->count[HIST_BUCKETS - 1], 2);
	assert_int_equal(hist_percentile(h, 30), 5);
	/* how long is not known, but not shorter than this and not longer than the longest */
	assert_true(hist_percentile(h, 50) >= lo && hist_percentile(h, 50) <= h->max);
	assert_int_equal(hist_percentile(h, 100), 1ULL << 60);
	free(h);
}

static void test_extremes(void **state)
{
	struct hist *h = new_hist();

	(void)state;
	hist_add(h, 1000003);
	assert_int_equal(hist_percentile(h, 0), 1000003);
	assert_int_equal(hist_percentile(h, 50), 1000003);
	assert_int_equal(hist_percentile(h, 100), 1000003);
	hist_add(h, 1000007); /* the same bucket: never outside what was seen */
	assert_in_range(hist_percentile(h, 1), 1000003, 1000007);
	assert_int_equal(hist_percentile(h, 100), 1000007);
	/* what is no percentage is taken as the nearest one */
	assert_int_equal(hist_percentile(h, -5), hist_percentile(h, 0));
	assert_int_equal(hist_percentile(h, 250), 1000007);
	free(h);
}

/* 99.9 % of 41000 values are 40959 of them, not 40960: 99.9 has no exact double. */
static void test_ranks(void **state)
{
	struct hist *h = new_hist();

	(void)state;
	for (uint64_t v = 0; v < 40959; v++)
		hist_add(h, 1);
	for (uint64_t v = 0; v < 41; v++)
		hist_add(h, 100);
	assert_int_equal(hist_percentile(h, 99.9), 1);
	assert_int_equal(hist_percentile(h, 99.9001), 100);
	free(h);
}

static void test_merge(void **state)
{
	struct hist *a = new_hist(), *b = new_hist(), *both = new_hist(), *none = new_hist();
	uint64_t random = 3;

	(void)state;
	for (uint32_t i = 0; i < 2000; i++) {
		uint64_t v = drawn(i % 2 ? 1 : 3, &random);

		hist_add(i % 2 ? a : b, v);
		hist_add(both, v);
	}
	hist_merge(a, none);
	hist_merge(none, b); /* into an empty one, too */
	assert_memory_equal(none, b, sizeof(*b));
	hist_merge(a, none);
	assert_memory_equal(a, both, sizeof(*a));
	assert_int_equal(a->total, 2000);
	free(a);
	free(b);
	free(both);
	free(none);
}

static void test_empty(void **state)
{
	struct hist *h = new_hist(), *other = new_hist();

	(void)state;
	assert_int_equal(hist_percentile(h, 50), 0);
	assert_int_equal(hist_percentile(h, 100), 0);
	assert_true(hist_mean(h) == 0);
	hist_merge(h, other);
	assert_int_equal(h->total, 0);
	assert_int_equal(h->min, UINT64_MAX);
	hist_add(h, 0);
	assert_int_equal(hist_percentile(h, 50), 0);
	assert_int_equal(h->min, 0);
	free(h);
	free(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_error_bound),
		cmocka_unit_test(test_exact_below_sub),
		cmocka_unit_test(test_buckets_are_contiguous),
		cmocka_unit_test(test_overflow),
		cmocka_unit_test(test_extremes),
		cmocka_unit_test(test_ranks),
		cmocka_unit_test(test_merge),
		cmocka_unit_test(test_empty),
	};

	return cmocka_run_group_tests_name("hist", tests, NULL, NULL);
}
