/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/* What the runner tells: TAP on standard output, a table in a file. Used by main.c. */
#ifndef CONF_REPORT_H
#define CONF_REPORT_H

#include <stdio.h>

#include "conf.h"

struct report {
	FILE *markdown; /* NULL: no table */
	uint32_t passed, failed, skipped;
	uint64_t begin_ms;
	char note[600]; /* of the row being written */
	char verdict[3][16];
	const struct conf_test *row;
};

void report_start(struct report *r, uint32_t tests);
void report_begin(struct report *r, const struct conf_test *t);
void report_verdict(struct report *r, const struct conf_test *t, enum conf_mode mode, int verdict,
		    uint64_t ms);
/* The exit status. */
int report_end(struct report *r);

#endif
