/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/* What bench prints: text tables in the seeds' shape, one JSON document, one self-contained HTML
 * page. All from the same runs. */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include <stdio.h>

#include "record.h"

struct bench_report {
	const struct test_spec *spec;
	const char *dev, *peer;
	const struct test_result *run; /* nruns of them */
	uint32_t nruns;
	bool stopped_early;	  /* -I reached its width, or a signal came */
	double confidence, width; /* -I, percent; 0 none */
	double reached;		  /* the half width reached, percent */
	json_t *local, *remote;	  /* record_host() of both ends; NULL: not told */
	const char *placement;	  /* what to call this one beside another; NULL: by its CPUs */
	const struct bench_report *next; /* the same test in another placement, for the same tables;
					  * NULL none */
};

void bench_report_text(const struct bench_report *b, FILE *f);
json_t *bench_report_json(const struct bench_report *b); /* as docs/bench.schema.json says */
int bench_report_html(const struct bench_report *b, const char *path); /* 0 or -errno */

#endif
