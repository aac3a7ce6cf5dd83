/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * How long each CPU was idle: idle states' residency, and /proc/stat. Called by usage.c.
 *
 * Only the user, system, softirq, irq and steal columns of /proc/stat are always sampled by the
 * tick. On a tickless kernel idle and iowait are timed on the way in and out of the idle loop,
 * interrupts and softirqs taken out.
 */
#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "usage_in.h"

static void stat_cpu(struct usage_stat *s, uint32_t cpu, double idle)
{
	if (cpu >= USAGE_CPUS_MAX)
		return;
	s->here[cpu] = true;
	s->idle[cpu] = idle;
	s->online++;
	if (cpu >= s->cpus)
		s->cpus = cpu + 1;
}

int usage_stat_read(struct usage_stat *s, const char *root)
{
	double hz = (double)sysconf(_SC_CLK_TCK);
	unsigned long long v[8];
	char path[256], line[512];
	FILE *f;

	memset(s, 0, sizeof(*s));
	snprintf(path, sizeof(path), "%s/proc/stat", root);
	f = fopen(path, "re");
	if (!f)
		return -errno;
	while (fgets(line, sizeof(line), f) && strncmp(line, "cpu", 3) == 0) {
		char *numbers = strchr(line, ' ');

		if (!numbers || sscanf(numbers, "%llu %llu %llu %llu %llu %llu %llu %llu", &v[0],
				       &v[1], &v[2], &v[3], &v[4], &v[5], &v[6], &v[7]) != 8)
			continue;
		if (line[3] == ' ') { /* all CPUs; user with nice */
			s->user = (double)(v[0] + v[1]) / hz;
			s->system = (double)v[2] / hz;
			s->irq = (double)v[5] / hz;
			s->softirq = (double)v[6] / hz;
			s->steal = (double)v[7] / hz;
		} else {
			stat_cpu(s, (uint32_t)strtoul(line + 3, NULL, 10),
				 (double)(v[3] + v[4]) / hz);
		}
	}
	fclose(f);
	return s->cpus ? 0 : -ENODATA;
}

/* `.nohz : 1` since 6.10, `.nohz_mode : 1` (or 2, by high resolution timers) before. */
bool usage_nohz(const char *root)
{
	char path[256], line[256];
	bool ret = false;
	FILE *f;

	snprintf(path, sizeof(path), "%s/proc/timer_list", root);
	f = fopen(path, "re");
	if (!f)
		return false;
	while (!ret && fgets(line, sizeof(line), f)) {
		const char *at = strstr(line, ".nohz"), *value = at ? strchr(at, ':') : NULL;

		ret = value && strtoul(value + 1, NULL, 10) > 0;
	}
	fclose(f);
	return ret;
}

static bool read_number(const char *path, unsigned long long *out)
{
	FILE *f = fopen(path, "re");
	bool ret;

	if (!f)
		return false;
	ret = fscanf(f, "%llu", out) == 1;
	fclose(f);
	return ret;
}

/* Microseconds of one CPU in all its states; false: it has none. */
static bool residency(const char *root, uint32_t cpu, double *seconds)
{
	char dir[256], path[320];
	unsigned long long us;
	uint32_t state = 0;

	*seconds = 0;
	snprintf(dir, sizeof(dir), "%s/sys/devices/system/cpu/cpu%u/cpuidle", root, cpu);
	for (;; state++) {
		snprintf(path, sizeof(path), "%s/state%u/time", dir, state);
		if (!read_number(path, &us))
			return state > 0;
		*seconds += (double)us / 1e6;
	}
}

int usage_cpuidle_read(double *idle, uint32_t cpus, const char *root)
{
	bool any = false;

	for (uint32_t i = 0; i < cpus; i++)
		any |= residency(root, i, &idle[i]);
	return any ? 0 : -ENOENT;
}

void usage_wake_cpus(uint32_t cpus)
{
	cpu_set_t before, one;

	if (sched_getaffinity(0, sizeof(before), &before))
		return;
	for (uint32_t i = 0; i < cpus && i < CPU_SETSIZE; i++) {
		CPU_ZERO(&one);
		CPU_SET(i, &one);
		sched_setaffinity(0, sizeof(one), &one); /* offline, or not ours: no matter */
	}
	sched_setaffinity(0, sizeof(before), &before);
}
