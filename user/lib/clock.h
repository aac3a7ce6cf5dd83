/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/* CLOCK_MONOTONIC, for the library and the command: not adjusted when the time of day is. */
#ifndef XDPATH_CLOCK_H
#define XDPATH_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t xdpath_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static inline uint64_t xdpath_now_ms(void)
{
	return xdpath_now_ns() / 1000000;
}

#endif
