/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/* The times at which messages are due; see arrival.h. */
#include <math.h>

#include "arrival.h"

/* SplitMix64's step: every seed is a good one, neighbours too. */
static uint64_t draw(struct arrival *a)
{
	uint64_t z = a->random += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

/* In (0, 1]: the logarithm of it is finite. */
static double draw_unit(struct arrival *a)
{
	return ((double)(draw(a) >> 11) + 1.0) * (1.0 / 9007199254740992.0);
}

void arrival_init(struct arrival *a, enum test_arrival kind, double gap, uint32_t burst,
		  uint64_t seed, double first)
{
	a->kind = kind;
	a->gap = gap;
	a->at = first;
	a->burst = burst ? burst : 1;
	a->left = a->burst;
	a->random = seed;
	if (kind == ARRIVAL_POISSON) /* else all lanes would begin with a message together */
		a->at -= gap * log(draw_unit(a));
}

double arrival_next(struct arrival *a)
{
	double at = a->at;

	switch (a->kind) {
	case ARRIVAL_POISSON: a->at -= a->gap * log(draw_unit(a)); break;
	case ARRIVAL_BURST:
		if (--a->left == 0) {
			a->left = a->burst;
			a->at += a->gap * a->burst;
		}
		break;
	case ARRIVAL_CLOSED:
	case ARRIVAL_EVEN: a->at += a->gap; break;
	}
	return at;
}
