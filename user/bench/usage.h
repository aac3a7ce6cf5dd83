/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * What a run cost its machine, between usage_begin() and usage_end(): the CPUs as a whole, our own
 * threads, the kernel's interrupts and polls, the processor's own counters.
 */
#ifndef BENCH_USAGE_H
#define BENCH_USAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define USAGE_CPUS_MAX	   256U
#define USAGE_COUNTERS_MAX 16U

/* How CPU busy time was found. Best first; what the machine lacks is said. */
enum usage_source {
	USAGE_CPUIDLE, /* 1 - idle residency (/sys/devices/system/cpu/cpuN/cpuidle) */
	USAGE_SOAKER,  /* a SCHED_IDLE thread per CPU eats what is left */
	USAGE_STAT,    /* /proc/stat, sampled by the tick */
	USAGE_NOHZ     /* idle time as a tickless kernel times it, second best: /proc/stat's idle
			  column is not sampled there; steps of 10 ms */
};

struct usage_counter {
	char name[24];	/* "cycles", "context-switches" */
	bool supported; /* else why is why */
	char why[48];
	uint64_t value; /* scaled by 1 / share; task-clock in ns */
	double share;	/* 0..1: of the time it was counting */
	bool machine;	/* of the whole machine, else of our own threads */
};

struct usage {
	enum usage_source source;
	uint32_t cpus;	 /* the highest number plus one, at most USAGE_CPUS_MAX */
	uint32_t online; /* how many of them there are now */
	double seconds;
	double busy[USAGE_CPUS_MAX]; /* CPU seconds in use, per CPU */
	double busy_total;	     /* their sum: what the machine paid */
	double threads;		     /* CPU seconds of our own process (schedstat) */
	/* tick-sampled split of the whole machine, CPU seconds; marked as sampled wherever printed
	 */
	double user, system, softirq, irq, steal;
	double tsc_hz;			   /* cycles = CPU seconds x this; 0 unknown */
	uint64_t interrupts;		   /* of the device where it has any, else -1 */
	uint64_t softirqs_rx, softirqs_tx; /* NET_RX, NET_TX: polls, all CPUs */
	uint32_t counters;
	struct usage_counter counter[USAGE_COUNTERS_MAX];
};

struct usage_meter;

/* `dev`: whose interrupts are counted, NULL: none. `soak`: CPU busy time by the soaker (a
 * cross-check; it takes the idle states away). The soaker is also taken where the machine has
 * nothing better. 0, or -errno: -EOPNOTSUPP soak without a fine clock, -ENOMEM, -EAGAIN (threads).
 */
int usage_begin(struct usage_meter **m, const char *dev, bool soak);
/* Fills *out; m is freed. NULL out: only free. NULL m is fine. */
void usage_end(struct usage_meter *m, struct usage *out);

/* "cpuidle", "soaker", "stat", "nohz"; and what it means in words. */
const char *usage_source_name(enum usage_source s);
const char *usage_source_text(enum usage_source s);

#endif
