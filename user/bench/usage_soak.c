/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * The soaker: a thread per CPU of the lowest class (SCHED_IDLE) that looks at the clock again and
 * again. What passes between two looks at once was left over; a longer gap means that someone else
 * had the CPU: a task, an interrupt, a softirq, the hypervisor. Its schedstat would not do: without
 * IRQ time accounting an interrupt is charged to the task it interrupts, here the soaker.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include <xdpath/base.h>

#include "usage_in.h"

#define GAP_NS 500 /* a look takes 10-50 ns, the shortest interrupt about a microsecond */

struct soak_cpu {
	uint64_t left; /* ticks; written by the thread only */
	uint64_t gap;  /* ticks */
	bool stop, made;
	uint32_t cpu;
	pthread_t thread;
} __attribute__((aligned(XDPATH_CACHELINE)));

struct usage_soaker {
	uint32_t cpus;
	struct soak_cpu cpu[];
};

static void *soak(void *arg)
{
	struct sched_param lowest = {0};
	struct soak_cpu *c = arg;
	uint64_t now, last = usage_ticks(), left = 0;

	pthread_setname_np(pthread_self(), "xdpath-soaker");
	pthread_setschedparam(pthread_self(), SCHED_IDLE, &lowest);
	while (!__atomic_load_n(&c->stop, __ATOMIC_RELAXED)) {
		now = usage_ticks();
		if (now - last < c->gap) {
			left += now - last;
			__atomic_store_n(&c->left, left, __ATOMIC_RELAXED);
		}
		last = now;
	}
	return NULL;
}

/* Ticks of GAP_NS; 0 where a look at the clock takes too long for that. */
static uint64_t gap_ticks(void)
{
	uint64_t first = usage_ticks(), last = first, now, least = UINT64_MAX;
	struct timespec a, b;
	double ns;

	clock_gettime(CLOCK_MONOTONIC, &a);
	do { /* for a millisecond; the CPU may be taken away all that time, and more */
		for (int i = 0; i < 100; i++) {
			now = usage_ticks();
			if (now > last && now - last < least)
				least = now - last;
			last = now;
		}
		clock_gettime(CLOCK_MONOTONIC, &b);
		ns = (double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec);
	} while (ns < 1e6);
	ns = GAP_NS * (double)(last - first) / ns;
	return (double)least < ns / 2 ? (uint64_t)ns : 0;
}

static int start(struct soak_cpu *c)
{
	pthread_attr_t attr;
	cpu_set_t one;
	int err;

	CPU_ZERO(&one);
	CPU_SET(c->cpu, &one);
	err = pthread_attr_init(&attr);
	if (err)
		return -err;
	pthread_attr_setaffinity_np(&attr, sizeof(one), &one);
	err = pthread_create(&c->thread, &attr, soak, c);
	pthread_attr_destroy(&attr);
	c->made = !err;
	return -err;
}

int usage_soak_begin(struct usage_soaker **out, const bool *here, uint32_t cpus)
{
	size_t size = sizeof(struct usage_soaker) + cpus * sizeof(struct soak_cpu);
	struct usage_soaker *s;
	sigset_t all, before;
	uint64_t gap = gap_ticks();
	int err = 0;

	*out = NULL;
	if (!gap)
		return -EOPNOTSUPP;
	s = aligned_alloc(XDPATH_CACHELINE,
			  (size + XDPATH_CACHELINE - 1) / XDPATH_CACHELINE * XDPATH_CACHELINE);
	if (!s)
		return -ENOMEM;
	memset(s, 0, size);
	s->cpus = cpus;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are not for these threads */
	for (uint32_t i = 0; i < cpus && !err; i++) {
		s->cpu[i].cpu = i;
		s->cpu[i].gap = gap;
		if (here[i])
			err = start(&s->cpu[i]);
		if (err == -EINVAL) /* not ours to run on: nothing is left over there */
			err = 0;
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (err)
		usage_soak_end(s);
	else
		*out = s;
	return err;
}

void usage_soak_read(const struct usage_soaker *s, uint64_t *left, double *own)
{
	struct timespec ts;
	clockid_t id;

	*own = 0;
	for (uint32_t i = 0; i < s->cpus; i++) {
		left[i] = __atomic_load_n(&s->cpu[i].left, __ATOMIC_RELAXED);
		if (s->cpu[i].made && !pthread_getcpuclockid(s->cpu[i].thread, &id) &&
		    !clock_gettime(id, &ts))
			*own += (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
	}
}

void usage_soak_end(struct usage_soaker *s)
{
	struct sched_param normal = {0};

	if (!s)
		return;
	for (uint32_t i = 0; i < s->cpus; i++) {
		__atomic_store_n(&s->cpu[i].stop, true, __ATOMIC_RELAXED);
		if (s->cpu[i].made) /* or it would wait for a busy CPU before it sees the end */
			pthread_setschedparam(s->cpu[i].thread, SCHED_OTHER, &normal);
	}
	for (uint32_t i = 0; i < s->cpus; i++)
		if (s->cpu[i].made)
			pthread_join(s->cpu[i].thread, NULL);
	free(s);
}
