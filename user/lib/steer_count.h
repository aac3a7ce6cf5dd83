/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/* Counters of rules: between steer_count.c and steer.c. */
#ifndef XDPATH_STEER_COUNT_H
#define XDPATH_STEER_COUNT_H

#include <xdpath/steer.h>

#include "steer_source.h"

struct steer_counts;

/* A view of the map `fd`, which stays the caller's. 0 or -ENOMEM. */
int xdpath_counts_open(struct steer_counts **out, int fd);
void xdpath_counts_close(struct steer_counts *c);
/* What stands at a place, summed over the CPUs. */
int xdpath_counts_at(struct steer_counts *c, uint16_t place, struct xdpath_rule_count *out);
/* Give each rule of `now` its counters: those it had in `old` (same id), or a place that no rule of
 * `old` counts at. */
int xdpath_counts_assign(struct steer_counts *c, const struct steer_source *old,
			 struct steer_source *now);

#endif
