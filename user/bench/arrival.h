/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * When messages are due in an open loop: evenly, at random (Poisson), or in bursts. A pure function
 * of the seed: the same one gives the same times, whatever the machine does meanwhile. So a message
 * that could not go in time was late by a known amount.
 */
#ifndef BENCH_ARRIVAL_H
#define BENCH_ARRIVAL_H

#include "test.h"

struct arrival {
	enum test_arrival kind;
	double gap; /* mean time between two messages, in the caller's unit */
	double at;  /* of the next message */
	uint32_t burst, left;
	uint64_t random;
};

/* gap > 0; burst: messages that are due together, with ARRIVAL_BURST. `first`: when it begins. */
void arrival_init(struct arrival *a, enum test_arrival kind, double gap, uint32_t burst,
		  uint64_t seed, double first);
/* The time of the next message, and on to the one after it. Never less than the one before. */
double arrival_next(struct arrival *a);

#endif
