/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * Under what conditions it was measured, as one JSON object. Called once at each end before the
 * runs. What cannot be told is null, and why stands beside it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "record_in.h"

void record_put(json_t *o, const char *key, json_t *value, const char *why, ...)
{
	char name[64], text[256];
	va_list ap;

	if (value) {
		json_object_set_new(o, key, value);
		return;
	}
	va_start(ap, why);
	vsnprintf(text, sizeof(text), why, ap);
	va_end(ap);
	snprintf(name, sizeof(name), "%s_why", key);
	json_object_set_new(o, key, json_null());
	json_object_set_new(o, name, json_string(text));
}

bool record_read(int dir_fd, const char *path, char *buf, size_t size)
{
	int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return false;
	n = read(fd, buf, size - 1);
	close(fd);
	if (n < 0)
		return false;
	buf[n] = '\0';
	return true;
}

json_t *record_line(int dir_fd, const char *path)
{
	char line[256];

	if (!record_read(dir_fd, path, line, sizeof(line)))
		return NULL;
	line[strcspn(line, "\n")] = '\0';
	return json_string(line);
}

json_t *record_number(const char *path)
{
	char line[64], *end;
	long long v;

	if (!record_read(AT_FDCWD, path, line, sizeof(line)))
		return NULL;
	v = strtoll(line, &end, 10);
	return end == line ? NULL : json_integer(v);
}

static json_t *date(void)
{
	time_t now = time(NULL);
	char text[32];
	struct tm tm;

	if (!gmtime_r(&now, &tm) || !strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm))
		return NULL;
	return json_string(text);
}

/* A fifth of a second before the runs: long enough to see a neighbour, too short to annoy. */
static void record_load(json_t *o)
{
	struct timespec nap = {.tv_nsec = 200000000};
	struct usage_meter *m;
	struct usage u;
	double load[3], other;
	int err;

	if (getloadavg(load, 3) == 3)
		json_object_set_new(o, "load", json_pack("[fff]", load[0], load[1], load[2]));
	else
		record_put(o, "load", NULL, "/proc/loadavg is not to be read");
	err = usage_begin(&m, NULL, false);
	if (err) {
		record_put(o, "other_load_cpus", NULL, "CPU time: %s", strerror(-err));
		return;
	}
	nanosleep(&nap, NULL);
	usage_end(m, &u);
	other = (u.busy_total - u.threads) / u.seconds;
	json_object_set_new(o, "other_load_cpus", json_real(other > 0 ? other : 0));
	json_object_set_new(o, "cpu_source", json_string(usage_source_name(u.source)));
}

json_t *record_host(const char *dev, const struct xdpath_knobs *knobs)
{
	json_t *o = json_object();

	if (!o)
		return NULL;
	json_object_set_new(o, "version", json_string(XDPATH_VERSION));
	record_put(o, "date", date(), "no clock");
	record_machine(o);
	record_device(o, dev);
	record_rules(o);
	record_load(o);
	record_put(o, "knobs", knobs ? knobs_to_json(knobs, true) : NULL,
		   "not used by this engine");
	return o;
}
