/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * The sign-flip permutation test and the interval that belongs to it.
 *
 * Flipping the signs of a set F of the differences makes their sum at least as great as it is just
 * when the sum over F is at most 0. So the one-sided p counts the sets with such a sum, the empty
 * one among them; moving all d by c compares the sets' means with c, and the interval's ends are
 * means in sorted order.
 */
#include <math.h>
#include <stdlib.h>

#include "stats.h"

#define EXACT 16U
#define SETS  65536U /* the empty one too */

/* Sums over all subsets of eight differences each: a set's sum takes n / 8 additions. */
struct sets {
	size_t n, bytes;
	uint64_t random;
	uint32_t count; /* of sets, without the empty one that always counts */
	double (*sum)[256];
};

static bool sets_open(struct sets *s, const double *d, size_t n, uint64_t seed)
{
	*s = (struct sets){.n = n, .bytes = (n + 7) / 8, .random = seed};
	s->count = (n > EXACT ? SETS : 1U << n) - 1;
	s->sum = calloc(s->bytes + 1, sizeof(*s->sum));
	for (size_t b = 0; s->sum && b < s->bytes; b++) {
		for (unsigned int m = 1; m < 256; m++) {
			size_t i = b * 8 + (size_t)__builtin_ctz(m);

			s->sum[b][m] = s->sum[b][m & (m - 1)] + (i < n ? d[i] : 0);
		}
	}
	return s->sum;
}

/* The k-th set (from 1): its sum, and how many are in it (NULL: never mind). Each k once, in order.
 */
static inline double sets_next(struct sets *s, uint32_t k, uint32_t *size)
{
	uint64_t bits = k;
	double sum = 0;

	if (size)
		*size = s->n > EXACT ? 0 : (uint32_t)__builtin_popcount(k);
	for (size_t b = 0; b < s->bytes; b++) {
		if (s->n > EXACT && b % 8 == 0) {
			bits = stats_random(&s->random);
			if (s->n - b * 8 < 64)
				bits &= (1ULL << (s->n - b * 8)) - 1;
			if (size)
				*size += (uint32_t)__builtin_popcountll(bits);
		}
		sum += s->sum[b][bits & 255];
		bits >>= 8;
	}
	return sum;
}

double stats_paired_p(const double *d, size_t n, uint64_t seed)
{
	double total = 0, scale = 0, p;
	uint32_t most = 1;
	struct sets s;

	for (size_t i = 0; i < n; i++) {
		total += d[i];
		scale += fabs(d[i]);
	}
	scale *= 1e-12; /* sums that are equal but for rounding are equal */
	if (fabs(total) <= scale || !sets_open(&s, d, n, seed))
		return 1;
	for (uint32_t k = 1; k <= s.count; k++) {
		double sum = sets_next(&s, k, NULL);

		most += (total > 0 ? sum : -sum) <= scale;
	}
	free(s.sum);
	p = 2.0 * most / ((double)s.count + 1);
	return p < 1 ? p : 1;
}

/* The least `room` of many values: a heap with the greatest of them on top. */
struct least {
	double *x;
	uint32_t room, n;
};

static void sift_down(struct least *l, double v)
{
	uint32_t at = 0, child;

	while ((child = 2 * at + 1) < l->n) {
		if (child + 1 < l->n && l->x[child + 1] > l->x[child])
			child++;
		if (l->x[child] <= v)
			break;
		l->x[at] = l->x[child];
		at = child;
	}
	l->x[at] = v;
}

static void sift_up(struct least *l, double v)
{
	uint32_t at = l->n++;

	for (; at && l->x[(at - 1) / 2] < v; at = (at - 1) / 2)
		l->x[at] = l->x[(at - 1) / 2];
	l->x[at] = v;
}

static inline void offer(struct least *l, double v)
{
	if (l->n < l->room)
		sift_up(l, v);
	else if (v < l->x[0])
		sift_down(l, v);
}

/* Where so many sets are passed that p is above alpha: the `room`-th least and greatest mean. The
 * empty sets count on both sides. */
static void ends(struct sets *s, struct least *lo, struct least *hi)
{
	for (uint32_t k = 1; k <= s->count; k++) {
		uint32_t size;
		double sum = sets_next(s, k, &size);

		offer(lo, size ? sum / size : -INFINITY);
		offer(hi, size ? -sum / size : -INFINITY);
	}
}

struct interval stats_paired_interval(const double *d, size_t n, double alpha, uint64_t seed)
{
	struct interval r = {-INFINITY, INFINITY};
	struct least lo = {0}, hi = {0};
	struct sets s;

	if (!sets_open(&s, d, n, seed))
		return r;
	lo.room = hi.room = (uint32_t)floor(fmin(alpha, 1) / 2 * ((double)s.count + 1));
	lo.x = calloc(2 * (size_t)lo.room + 1, sizeof(*lo.x));
	if (lo.x && lo.room && lo.room <= s.count) {
		hi.x = lo.x + lo.room;
		ends(&s, &lo, &hi);
		r = (struct interval){lo.x[0], -hi.x[0]};
	}
	free(lo.x);
	free(s.sum);
	return r;
}
