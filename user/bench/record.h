/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * Under what conditions it was measured: everything the seeds' threads found decisive. Read once
 * before the runs; goes into text, JSON and HTML reports, and from the far end over the session.
 */
#ifndef BENCH_RECORD_H
#define BENCH_RECORD_H

#include <jansson.h>

#include "test.h"

/* A new object: kernel, cpu_model, cpus, clocksource, governor, driver, bus, queues, rings,
 * offloads, xps, rps, rfs, netfilter_rules, irq_cpus, load, steal, knobs, version, date. Absent
 * ones are null, with the reason beside them. */
json_t *record_host(const char *dev, const struct xdpath_knobs *knobs);

/* KEY: "VALUE" of all knobs, or of those that are not the default. */
json_t *knobs_to_json(const struct xdpath_knobs *k, bool all);

/* One end's account as JSON and back (for the session and the report); names are stable, units in
 * them. from: 0 or -EINVAL. */
json_t *side_to_json(const struct test_side *s);
int side_from_json(const json_t *j, struct test_side *s);
json_t *usage_to_json(const struct usage *u);
int usage_from_json(const json_t *j, struct usage *u);

#endif
