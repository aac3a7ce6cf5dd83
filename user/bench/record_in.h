/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/* The parts of record.c: the host (record_machine.c), the device (record_device.c), the rules that
 * packets pass (record_rules.c). */
#ifndef BENCH_RECORD_IN_H
#define BENCH_RECORD_IN_H

#include "record.h"

/* Put `value` (taken over), or null and KEY_why when it is NULL. */
void record_put(json_t *o, const char *key, json_t *value, const char *why, ...)
	__attribute__((format(printf, 4, 5)));
/* First line of the file, without its newline, NULL if there is none; dir_fd as of openat(). */
json_t *record_line(int dir_fd, const char *path);
/* ... the number in it. */
json_t *record_number(const char *path);
bool record_read(int dir_fd, const char *path, char *buf, size_t size);

void record_machine(json_t *o);
void record_device(json_t *o, const char *dev);
void record_rules(json_t *o);

/*
 * The tree of /sys as this thread's network namespace has it: /sys itself shows the devices of the
 * namespace it was mounted in. A descriptor of its root, or -errno (-EPERM: not permitted).
 */
int record_sysfs(void);
/* "0-3,6" of "0000004f" or "00000001,00000000"; "" for an empty mask. False: no mask. */
bool record_mask_list(const char *mask, char *out, size_t size);

#endif
