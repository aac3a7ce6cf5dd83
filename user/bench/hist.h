/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * A histogram of times with a bounded relative error: every power of two is cut in HIST_SUB equal
 * parts, so a percentile is at most 1 in HIST_SUB off. Exact below HIST_SUB; total, sum, least and
 * greatest are exact always. Fixed size, no allocation; one writer, merge() after it stopped.
 */
#ifndef BENCH_HIST_H
#define BENCH_HIST_H

#include <stdint.h>

#define HIST_SUB_BITS 7
#define HIST_SUB      (1U << HIST_SUB_BITS)
#define HIST_OCTAVES  36 /* up to 2^42: 73 minutes in ns; longer ones count in the last bucket */
#define HIST_BUCKETS  (HIST_SUB * HIST_OCTAVES)

struct hist {
	uint64_t total, sum, min, max; /* min is UINT64_MAX while empty */
	uint64_t count[HIST_BUCKETS];
};

static inline uint32_t hist_bucket(uint64_t v)
{
	uint32_t shift, b;

	if (v < HIST_SUB)
		return (uint32_t)v;
	shift = 63U - (uint32_t)__builtin_clzll(v) - HIST_SUB_BITS;
	b = (shift + 1) * HIST_SUB + (uint32_t)((v >> shift) - HIST_SUB);
	return b < HIST_BUCKETS ? b : HIST_BUCKETS - 1;
}

static inline void hist_add(struct hist *h, uint64_t v)
{
	h->total++;
	h->sum += v;
	h->min = v < h->min ? v : h->min;
	h->max = v > h->max ? v : h->max;
	h->count[hist_bucket(v)]++;
}

void hist_init(struct hist *h);
void hist_merge(struct hist *into, const struct hist *from);
/* The value below or at which p percent (0..100) lie: the middle of its bucket, within min..max. 0
 * when empty. */
uint64_t hist_percentile(const struct hist *h, double p);
double hist_mean(const struct hist *h);
/* Least and greatest value of bucket b. */
void hist_bounds(uint32_t b, uint64_t *lo, uint64_t *hi);

#endif
