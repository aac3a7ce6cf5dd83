/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/* Rules into the set that the program reads (bpf/set.h): between ruleset*.c and steer.c. */
#ifndef XDPATH_RULESET_H
#define XDPATH_RULESET_H

#include <xdpath/rule.h>
#include <xdpath/shared.h>

#include "../../bpf/parse.h"
#include "../../bpf/set.h"
#include "internal.h"

/* Of a family: a table of 32768 places takes that many with ease. */
#define RULESET_ROWS 28000

/* One entry of a family's table: what a rule asks for, as mask and key. */
struct ruleset_row {
	struct xp_key mask, key;
	uint32_t rank;
	uint32_t
		shape; /* while they are found: how many rows of the same mask and key come first */
	bool mirror;
};

struct ruleset_rows {
	struct ruleset_row *row;
	uint32_t n, room;
};

/*
 * Fill a set of zeros. count[i]: the place of rule i's counters. -E2BIG: more shapes (the diagnosis
 * has the count), filters, mirrors or entries than a set holds; -ENOMEM.
 */
int xdpath_ruleset_build(struct xdpath_set *set, const struct xdpath_rules *rules,
			 const uint16_t *count, struct xdpath_diag *diag);

/* ruleset_rows.c: the rows of both families (0: IPv4 and others, 1: IPv6), and the port classes. */
int xdpath_ruleset_rows(struct xdpath_set *set, const struct xdpath_rules *rules,
			const uint32_t *order, struct ruleset_rows rows[2],
			struct xdpath_diag *diag);
/* ruleset_table.c: a family's hash table and tables of candidates; rows have their shapes. */
int xdpath_ruleset_table(struct xdpath_set *set, int family, const struct ruleset_rows *rows,
			 struct xdpath_diag *diag);
void xdpath_ruleset_near(struct xdpath_set *set, int family, const struct ruleset_rows *rows);

#endif
