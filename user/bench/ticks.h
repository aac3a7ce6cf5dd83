/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * Time stamps cheap enough to take for every message: the processor's own counter where it runs
 * evenly, CLOCK_MONOTONIC else. Differences only; how long a tick is was measured at ticks_init().
 */
#ifndef BENCH_TICKS_H
#define BENCH_TICKS_H

#include <stdbool.h>
#include <stdint.h>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include "clock.h"

struct ticks_scale {
	bool counter;	 /* the processor's counter; else ticks are ns */
	uint64_t ns_per; /* ns of a tick, times 2^32 */
	double per_ns;	 /* ticks of a ns */
};

extern struct ticks_scale ticks_scale;

/* Find out, once, before any thread takes a stamp. Takes 40 ms where there is a counter to try. */
void ticks_init(void);

static inline uint64_t ticks_now(void)
{
#if defined(__x86_64__)
	if (__builtin_expect(ticks_scale.counter, 1))
		return __rdtsc();
#endif
	return xdpath_now_ns();
}

static inline uint64_t ticks_to_ns(uint64_t ticks)
{
	return (uint64_t)(((unsigned __int128)ticks * ticks_scale.ns_per) >> 32);
}

static inline uint64_t ticks_from_ns(double ns)
{
	return (uint64_t)(ns * ticks_scale.per_ns);
}

#endif
