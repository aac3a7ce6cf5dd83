/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * The parts of usage.c, one file each: idle times (usage_cpu.c), the soaker (usage_soak.c),
 * interrupts and softirqs (usage_irq.c), performance counters (usage_perf.c). Each can be read from
 * another root folder, so that tests give machines that are not at hand.
 */
#ifndef BENCH_USAGE_IN_H
#define BENCH_USAGE_IN_H

#include <time.h>

#include "usage.h"

#if defined(__x86_64__) || defined(__i386__)
#define USAGE_HAVE_TSC 1
static inline uint64_t usage_ticks(void)
{
	return __builtin_ia32_rdtsc();
}
#else /* no counter that runs like CPU cycles: nanoseconds */
#define USAGE_HAVE_TSC 0
static inline uint64_t usage_ticks(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_RAW, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}
#endif

/* /proc/stat: seconds since boot. */
struct usage_stat {
	uint32_t cpus, online;
	bool here[USAGE_CPUS_MAX];
	double idle[USAGE_CPUS_MAX]; /* with iowait */
	double user, system, softirq, irq, steal;
};
int usage_stat_read(struct usage_stat *s, const char *root);
/* The kernel times its idle loop (root only): the idle column of /proc/stat is no sample then. */
bool usage_nohz(const char *root);
/* Seconds in idle states per CPU since boot; -ENOENT: no such states. */
int usage_cpuidle_read(double *idle, uint32_t cpus, const char *root);
/* Run on each CPU for a moment: an idle CPU's time is only counted once it wakes up. */
void usage_wake_cpus(uint32_t cpus);

struct usage_soaker;
/* One thread per CPU of `here`, up to cpus. -EOPNOTSUPP: no clock fine enough. */
int usage_soak_begin(struct usage_soaker **out, const bool *here, uint32_t cpus);
/* Ticks left over per CPU so far, and CPU seconds that the soaker itself took. */
void usage_soak_read(const struct usage_soaker *s, uint64_t *left, double *own);
void usage_soak_end(struct usage_soaker *s); /* NULL is fine */

/* Interrupt numbers of a device (dev in this thread's network namespace); how many, 0 none. */
uint32_t usage_irqs(const char *dev, uint32_t *irq, uint32_t most);
/* Those at this bus address or with these names; the part of it that needs no device. */
uint32_t usage_irqs_at(const char *dev, const char *bus, uint32_t *irq, uint32_t most,
		       const char *root);
/* Interrupts so far of those numbers, all CPUs. */
uint64_t usage_irq_count(const uint32_t *irq, uint32_t n, const char *root);
/* Runs of NET_RX and NET_TX so far, all CPUs; 0 or -errno. */
int usage_softirqs(uint64_t *rx, uint64_t *tx, const char *root);

struct usage_perf;
/* Open the counters, stopped; NULL: no memory. A counter that cannot be had is kept with why. */
struct usage_perf *usage_perf_begin(uint32_t cpus, const bool *here);
void usage_perf_start(struct usage_perf *p);
void usage_perf_stop(struct usage_perf *p);
/* The values go to out; p is freed. NULL out: only free; NULL p is fine. */
void usage_perf_end(struct usage_perf *p, struct usage *out);

#endif
