/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/* The histogram's cold side; see hist.h. */
#include <math.h>
#include <string.h>

#include "hist.h"

void hist_init(struct hist *h)
{
	memset(h, 0, sizeof(*h));
	h->min = UINT64_MAX;
}

void hist_merge(struct hist *into, const struct hist *from)
{
	into->total += from->total;
	into->sum += from->sum;
	into->min = from->min < into->min ? from->min : into->min;
	into->max = from->max > into->max ? from->max : into->max;
	for (uint32_t b = 0; b < HIST_BUCKETS; b++)
		into->count[b] += from->count[b];
}

void hist_bounds(uint32_t b, uint64_t *lo, uint64_t *hi)
{
	uint32_t shift = b < HIST_SUB ? 0 : b / HIST_SUB - 1;

	*lo = b < HIST_SUB ? b : (uint64_t)(HIST_SUB + b % HIST_SUB) << shift;
	*hi = *lo + (1ULL << shift) - 1;
	if (b >= HIST_BUCKETS - 1)
		*hi = UINT64_MAX; /* whatever was longer */
}

/* How many values lie at or below: at least one. 99.9 % of 1000 are 999, whatever 0.999 is as a
 * double. */
static uint64_t rank_of(uint64_t total, double p)
{
	double r = ceil((double)total * p / 100 * (1 - 1e-14));

	if (!(r > 1))
		return 1;
	return r < (double)total ? (uint64_t)r : total;
}

uint64_t hist_percentile(const struct hist *h, double p)
{
	uint64_t left, lo, hi, mid;
	uint32_t b = 0;

	if (!h->total)
		return 0;
	left = rank_of(h->total, p);
	if (left == h->total)
		return h->max;
	while (b < HIST_BUCKETS - 1 && left > h->count[b])
		left -= h->count[b++];
	hist_bounds(b, &lo, &hi);
	mid = lo + (hi - lo) / 2;
	if (mid < h->min)
		return h->min;
	return mid < h->max ? mid : h->max;
}

double hist_mean(const struct hist *h)
{
	return h->total ? (double)h->sum / (double)h->total : 0;
}
