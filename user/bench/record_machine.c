/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * The machine for the record: kernel, processor, clock, frequency governor, mitigations, time
 * stolen by the hypervisor. Called by record.c.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "record_in.h"

#define CPU_DIR "/sys/devices/system/cpu"

/* The value of the first such line of /proc/cpuinfo, NULL if there is none. */
static char *cpuinfo(const char *key)
{
	FILE *f = fopen("/proc/cpuinfo", "re");
	size_t size = 0, len = strlen(key);
	char *line = NULL, *ret = NULL;

	while (f && !ret && getline(&line, &size, f) > 0) {
		char *colon = strchr(line, ':');

		if (strncmp(line, key, len) != 0 || !colon)
			continue;
		colon[strcspn(colon, "\n")] = '\0';
		ret = strdup(colon + 1 + (colon[1] == ' '));
	}
	if (f)
		fclose(f);
	free(line);
	return ret;
}

static void record_cpu(json_t *o)
{
	char *model = cpuinfo("model name"), *flags = cpuinfo("flags");
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	record_put(o, "cpu_model", model ? json_string(model) : NULL,
		   "/proc/cpuinfo names none on this architecture");
	record_put(o, "cpus", cpus > 0 ? json_integer(cpus) : NULL, "not told");
	record_put(o, "virtual_machine",
		   flags ? json_boolean(strstr(flags, " hypervisor") != NULL) : NULL,
		   "/proc/cpuinfo does not tell on this architecture");
	record_put(o, "smt", record_number(CPU_DIR "/smt/active"), "not told by " CPU_DIR);
	record_put(o, "isolated_cpus", record_line(AT_FDCWD, CPU_DIR "/isolated"),
		   "not told by " CPU_DIR);
	free(model);
	free(flags);
}

/* "performance"; of several the first with "and others". */
static json_t *governor(void)
{
	char path[128], one[64], first[64] = "";
	bool mixed = false;

	for (uint32_t i = 0; i < USAGE_CPUS_MAX; i++) {
		snprintf(path, sizeof(path), CPU_DIR "/cpu%u/cpufreq/scaling_governor", i);
		if (!record_read(AT_FDCWD, path, one, sizeof(one)))
			continue;
		one[strcspn(one, "\n")] = '\0';
		if (!first[0])
			snprintf(first, sizeof(first), "%s", one);
		else
			mixed |= strcmp(first, one) != 0;
	}
	if (!first[0])
		return NULL;
	return mixed ? json_sprintf("%s and others", first) : json_string(first);
}

/* Only what the processor is affected by; the rest says nothing. */
static json_t *mitigations(void)
{
	DIR *d = opendir(CPU_DIR "/vulnerabilities");
	json_t *o = d ? json_object() : NULL;
	struct dirent *e;
	char line[256];

	while (d && (e = readdir(d))) {
		if (e->d_name[0] == '.' || !record_read(dirfd(d), e->d_name, line, sizeof(line)))
			continue;
		line[strcspn(line, "\n")] = '\0';
		if (strcmp(line, "Not affected") != 0)
			json_object_set_new(o, e->d_name, json_string(line));
	}
	if (d)
		closedir(d);
	return o;
}

/* Percent of all CPU time since boot; sampled by the tick. */
static json_t *steal(void)
{
	unsigned long long v[8], all = 0;
	char buf[256];

	if (!record_read(AT_FDCWD, "/proc/stat", buf, sizeof(buf)) ||
	    sscanf(buf, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &v[0], &v[1], &v[2], &v[3],
		   &v[4], &v[5], &v[6], &v[7]) != 8)
		return NULL;
	for (size_t i = 0; i < 8; i++)
		all += v[i];
	return json_real(all ? 100.0 * (double)v[7] / (double)all : 0);
}

void record_machine(json_t *o)
{
	struct utsname u;

	record_put(o, "kernel", uname(&u) ? NULL : json_string(u.release), "uname failed");
	record_put(o, "kernel_build", uname(&u) ? NULL : json_string(u.version), "uname failed");
	record_put(o, "architecture", uname(&u) ? NULL : json_string(u.machine), "uname failed");
	record_put(o, "boot_id", record_line(AT_FDCWD, "/proc/sys/kernel/random/boot_id"),
		   "not told by /proc");
	record_cpu(o);
	record_put(o, "clocksource",
		   record_line(AT_FDCWD,
			       "/sys/devices/system/clocksource/clocksource0/current_clocksource"),
		   "not told by /sys");
	record_put(o, "governor", governor(),
		   "no CPU frequency driver here (usual in a virtual machine)");
	record_put(o, "idle_driver", record_line(AT_FDCWD, CPU_DIR "/cpuidle/current_driver"),
		   "not told by " CPU_DIR);
	record_put(o, "mitigations", mitigations(), "not told by " CPU_DIR);
	record_put(o, "steal_percent_since_boot", steal(), "/proc/stat is not to be read");
}
