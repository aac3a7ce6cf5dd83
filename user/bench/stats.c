/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * Location and spread of a few runs, corrections for many comparisons and many looks; see stats.h.
 * The permutation test is in stats_paired.c. Out of memory gives NAN, or p = 1: nothing is found.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "stats.h"

#define RESAMPLES 2000U

double stats_mean(const double *x, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += x[i];
	return n ? sum / (double)n : NAN;
}

double stats_sd(const double *x, size_t n)
{
	double mean = stats_mean(x, n), sum = 0;

	if (n < 2)
		return 0;
	for (size_t i = 0; i < n; i++)
		sum += (x[i] - mean) * (x[i] - mean);
	return sqrt(sum / (double)(n - 1));
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* NULL when there is none, or no memory. */
static double *sorted_copy(const double *x, size_t n)
{
	double *s = n ? malloc(n * sizeof(*s)) : NULL;

	if (s) {
		memcpy(s, x, n * sizeof(*s));
		qsort(s, n, sizeof(*s), by_value);
	}
	return s;
}

double stats_median(const double *x, size_t n)
{
	double *s = sorted_copy(x, n), m = NAN;

	if (s)
		m = (s[(n - 1) / 2] + s[n / 2]) / 2;
	free(s);
	return m;
}

/* P(|T| <= t) of Student's t with v degrees of freedom: the finite sum for a whole v. */
static double t_within(double t, size_t v)
{
	double theta = atan(t / sqrt((double)v)), c2 = cos(theta) * cos(theta);
	double term = v % 2 ? cos(theta) : 1, sum = 0;

	for (size_t i = 1 + v % 2; i < v; i += 2) {
		sum += term;
		term *= c2 * (double)i / (double)(i + 1);
	}
	if (v % 2)
		return (theta + sin(theta) * sum) * M_2_PI;
	return sin(theta) * sum;
}

/* Above so many degrees of freedom the normal distribution is the same to five digits. */
#define T_NORMAL 100000U

static double within(double t, size_t v)
{
	return v > T_NORMAL ? erf(t * M_SQRT1_2) : t_within(t, v);
}

double stats_half_width(const double *x, size_t n, double conf)
{
	double lo = 0, hi = 1;

	if (n < 2 || !(conf < 1))
		return INFINITY;
	while (within(hi, n - 1) < conf && hi < 1e300)
		hi *= 2;
	for (int i = 0; i < 100; i++) {
		double mid = (lo + hi) / 2;

		if (within(mid, n - 1) < conf)
			lo = mid;
		else
			hi = mid;
	}
	return hi * stats_sd(x, n) / sqrt((double)n);
}

/* The median of one resample of n sorted values; times: room for n. */
static double resampled_median(const double *s, size_t n, uint32_t *times, uint64_t *random)
{
	size_t seen = 0, i = 0;
	double low;

	memset(times, 0, n * sizeof(*times));
	for (size_t k = 0; k < n; k++)
		times[stats_below(random, (uint32_t)n)]++;
	while (seen + times[i] <= (n - 1) / 2)
		seen += times[i++];
	low = s[i];
	while (seen + times[i] <= n / 2)
		seen += times[i++];
	return (low + s[i]) / 2;
}

struct interval stats_median_interval(const double *x, size_t n, double conf, uint64_t seed)
{
	struct interval r = {-INFINITY, INFINITY};
	double *s = sorted_copy(x, n), *m = malloc(RESAMPLES * sizeof(*m));
	uint32_t *times = malloc((n + 1) * sizeof(*times));
	size_t tail = (size_t)((1 - conf) / 2 * RESAMPLES);

	if (n > 1 && s && m && times && tail < RESAMPLES / 2) {
		for (size_t i = 0; i < RESAMPLES; i++)
			m[i] = resampled_median(s, n, times, &seed);
		qsort(m, RESAMPLES, sizeof(*m), by_value);
		r.lo = m[tail];
		r.hi = m[RESAMPLES - 1 - tail];
	}
	free(s);
	free(m);
	free(times);
	return r;
}

/* Step down from the least: the i-th least of n counts n - i + 1 times, and none less than the one
 * before it. */
void stats_holm(double *p, size_t n)
{
	double last = 0, *raw = n ? malloc(n * sizeof(*raw)) : NULL;

	if (raw)
		memcpy(raw, p, n * sizeof(*raw));
	for (size_t step = 0; raw && step < n; step++) {
		size_t least = 0;

		for (size_t i = 1; i < n; i++)
			if (raw[i] < raw[least])
				least = i;
		last = fmax(last, fmin(1, raw[least] * (double)(n - step)));
		p[least] = last;
		raw[least] = INFINITY; /* taken */
	}
	for (size_t i = 0; !raw && i < n; i++)
		p[i] = 1;
	free(raw);
}

/* The z that a normal variable exceeds with probability q, 0 < q <= 0.5. */
static double exceeded(double q)
{
	double lo = 0, hi = 40;

	for (int i = 0; i < 100; i++) {
		double mid = (lo + hi) / 2;

		if (erfc(mid * M_SQRT1_2) / 2 > q)
			lo = mid;
		else
			hi = mid;
	}
	return (lo + hi) / 2;
}

/* Spent so far when the share t of the runs is done; alpha / 2 on each side. */
static double spent(double alpha, double t)
{
	return t > 0 ? 2 * erfc(exceeded(alpha / 4) / sqrt(t) * M_SQRT1_2) : 0;
}

double stats_spend(double alpha, uint32_t k, uint32_t looks)
{
	if (k < 1 || k > looks || !(alpha > 0))
		return 0;
	return spent(alpha, (double)k / looks) - spent(alpha, (double)(k - 1) / looks);
}
