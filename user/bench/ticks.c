/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * Is the processor's counter fit to measure with? Three must say so: the processor (it runs at one
 * rate, whatever the clock's frequency), the kernel (its own clock is made from it, so it has found
 * nothing against it), and two measurements of its rate that agree.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "ticks.h"

#define CALIBRATE_NS 20000000ULL
#define AGREE	     200e-6 /* of each other */

struct ticks_scale ticks_scale = {.ns_per = 1ULL << 32, .per_ns = 1};

#if defined(__x86_64__)

static bool counter_is_even(void)
{
	unsigned int a, b, c, d = 0;

	return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & 1U << 8);
}

static bool kernel_uses_it(void)
{
	FILE *f = fopen("/sys/devices/system/clocksource/clocksource0/current_clocksource", "re");
	char name[32] = "";

	if (!f)
		return false;
	if (!fgets(name, sizeof(name), f))
		name[0] = '\0';
	fclose(f);
	name[strcspn(name, "\n")] = '\0';
	return !strcmp(name, "tsc") || !strcmp(name, "kvm-clock");
}

/* A pair of stamps as close together as can be: of several tries the one with the least between. */
static void pair(uint64_t *ns, uint64_t *tick)
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < 16; i++) {
		uint64_t before = __rdtsc(), t = xdpath_now_ns(), after = __rdtsc();

		if (after - before >= best)
			continue;
		best = after - before;
		*ns = t;
		*tick = before + best / 2;
	}
}

static double rate(void)
{
	uint64_t ns[2] = {0}, tick[2] = {0};

	pair(&ns[0], &tick[0]);
	while (xdpath_now_ns() - ns[0] < CALIBRATE_NS)
		_mm_pause();
	pair(&ns[1], &tick[1]);
	return (double)(tick[1] - tick[0]) / (double)(ns[1] - ns[0]);
}

#endif

void ticks_init(void)
{
#if defined(__x86_64__)
	double first, second;

	if (ticks_scale.counter || !counter_is_even() || !kernel_uses_it())
		return;
	first = rate();
	second = rate();
	if (first <= 0 || fabs(first - second) > AGREE * first)
		return;
	ticks_scale.per_ns = (first + second) / 2;
	ticks_scale.ns_per = (uint64_t)(4294967296.0 / ticks_scale.per_ns);
	ticks_scale.counter = true;
#endif
}
