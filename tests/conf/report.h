/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/* What the runner tells: TAP on standard output, a table in a file. Used by main.c. */
#ifndef CONF_REPORT_H
#define CONF_REPORT_H

#include <stdio.h>

#include "conf.h"

#define REPORT_ROWS_MAX 256U
#define REPORT_COLUMNS	4U

/* One line of the table: a test in all its modes. */
struct report_row {
	const struct conf_test *t;
	const char *verdict[REPORT_COLUMNS];
	char note[600];
};

struct report {
	FILE *markdown; /* NULL: no table */
	uint32_t passed, failed, skipped;
	uint64_t begin_ms;
	uint32_t modes; /* the columns of the table: enum conf_mode, or-ed */
	uint32_t nrows;
	struct report_row row[REPORT_ROWS_MAX];
};

void report_start(struct report *r, uint32_t tests, uint32_t modes);
/* What was found out about the kernel; mode names what it holds for. */
void report_kernel(struct report *r, enum conf_mode mode);
void report_verdict(struct report *r, const struct conf_test *t, enum conf_mode mode, int verdict,
		    uint64_t ms);
/* The exit status. */
int report_end(struct report *r);

#endif
