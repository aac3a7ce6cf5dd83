/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * The counters of `perf stat`, by perf_event_open(). Called by usage.c.
 *
 * The whole machine's where that is permitted, because what a packet costs is spent on other CPUs
 * too; else our own threads'. The task clock is our own always: a CPU's is the time that passed.
 * More events than the processor has counters for take turns: the share says how long each one
 * counted, and the value is scaled by it.
 */
#include <dirent.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "usage_in.h"

struct event {
	const char *name;
	uint32_t type;
	uint64_t config;
	bool own; /* of our own threads only */
};

static const struct event events[] = {
	{"task-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, true},
	{"context-switches", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES, false},
	{"cpu-migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS, false},
	{"page-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, false},
	{"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, false},
	{"stalled-cycles-frontend", PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_FRONTEND,
	 false},
	{"stalled-cycles-backend", PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_BACKEND, false},
	{"instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, false},
	{"branches", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS, false},
	{"branch-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES, false},
	{"cache-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES, false},
};

#define EVENTS (sizeof(events) / sizeof(events[0]))
_Static_assert(EVENTS <= USAGE_COUNTERS_MAX, "all have room in struct usage");

#define PLACES_MAX 256U /* CPUs, or threads, that one event is opened for */

struct usage_perf {
	struct counter {
		int err; /* negative: why there is none */
		bool machine;
		uint32_t n;
		int fd[PLACES_MAX];
	} counter[EVENTS];
	uint32_t ncpus, ntids;
	int cpu[PLACES_MAX];
	pid_t tid[PLACES_MAX];
};

static int open_event(const struct event *e, pid_t pid, int cpu)
{
	struct perf_event_attr a = {.size = sizeof(a)};
	int fd;

	a.type = e->type;
	a.config = e->config;
	a.disabled = 1;
	a.inherit = cpu < 0; /* threads made later count too */
	a.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	fd = (int)syscall(SYS_perf_event_open, &a, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static void close_all(struct counter *c)
{
	while (c->n)
		close(c->fd[--c->n]);
}

/* One place after another; all or none. A thread that ended meanwhile is no failure. */
static int open_places(struct counter *c, const struct event *e, const struct usage_perf *p,
		       bool machine)
{
	uint32_t places = machine ? p->ncpus : p->ntids;

	c->machine = machine;
	for (uint32_t i = 0; i < places; i++) {
		int fd = open_event(e, machine ? -1 : p->tid[i], machine ? p->cpu[i] : -1);

		if (fd == -ESRCH)
			continue;
		if (fd < 0) {
			close_all(c);
			return fd;
		}
		c->fd[c->n++] = fd;
	}
	return c->n ? 0 : -ESRCH;
}

static void find_threads(struct usage_perf *p)
{
	DIR *d = opendir("/proc/self/task");
	struct dirent *e;

	while (d && (e = readdir(d)) && p->ntids < PLACES_MAX)
		if (e->d_name[0] != '.')
			p->tid[p->ntids++] = (pid_t)strtol(e->d_name, NULL, 10);
	if (d)
		closedir(d);
}

struct usage_perf *usage_perf_begin(uint32_t cpus, const bool *here)
{
	struct usage_perf *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	for (uint32_t i = 0; i < cpus && i < PLACES_MAX; i++)
		if (here[i])
			p->cpu[p->ncpus++] = (int)i;
	find_threads(p);
	for (size_t i = 0; i < EVENTS; i++) {
		struct counter *c = &p->counter[i];

		c->err = events[i].own ? -EPERM : open_places(c, &events[i], p, true);
		if (c->err == -EPERM || c->err == -EACCES || c->err == -EMFILE)
			c->err = open_places(c, &events[i], p, false);
	}
	return p;
}

static void tell_all(struct usage_perf *p, unsigned long request)
{
	for (size_t i = 0; i < EVENTS; i++)
		for (uint32_t j = 0; j < p->counter[i].n; j++)
			ioctl(p->counter[i].fd[j], request, 0);
}

void usage_perf_start(struct usage_perf *p)
{
	tell_all(p, PERF_EVENT_IOC_ENABLE);
}

void usage_perf_stop(struct usage_perf *p)
{
	tell_all(p, PERF_EVENT_IOC_DISABLE);
}

static const char *why_not(int err)
{
	switch (-err) {
	case ENOENT:
	case EOPNOTSUPP:
	case ENODEV: return "no such counter on this processor (or guest)";
	case EACCES:
	case EPERM: return "not permitted: kernel.perf_event_paranoid";
	case EMFILE:
	case ENFILE: return "too many open files: raise `ulimit -n`";
	case ENOSYS: return "this kernel has no perf events";
	case EBUSY: return "the counter is taken by someone else";
	default: return strerror(-err);
	}
}

/* What the kernel answers, by read_format. */
struct reading {
	uint64_t value, enabled, running;
};

static void read_counter(struct counter *c, struct usage_counter *out)
{
	uint64_t enabled = 0, running = 0;
	double value = 0;

	for (uint32_t i = 0; i < c->n; i++) {
		struct reading r;

		if (read(c->fd[i], &r, sizeof(r)) != (ssize_t)sizeof(r) || !r.running)
			continue;
		value += (double)r.value * (double)r.enabled / (double)r.running;
		enabled += r.enabled;
		running += r.running;
	}
	out->supported = !c->err && running > 0;
	if (c->err)
		snprintf(out->why, sizeof(out->why), "%s", why_not(c->err));
	else if (!running)
		snprintf(out->why, sizeof(out->why), "it never had its turn to count");
	out->value = (uint64_t)value;
	out->share = enabled ? (double)running / (double)enabled : 0;
	out->machine = c->machine;
}

void usage_perf_end(struct usage_perf *p, struct usage *out)
{
	if (!p)
		return;
	for (size_t i = 0; i < EVENTS; i++) {
		if (out) {
			struct usage_counter *u = &out->counter[out->counters++];

			snprintf(u->name, sizeof(u->name), "%s", events[i].name);
			read_counter(&p->counter[i], u);
		}
		close_all(&p->counter[i]);
	}
	free(p);
}
