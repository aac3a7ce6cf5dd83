/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/* What rule_list.c does for the library alone. */
#ifndef XDPATH_RULE_LIST_H
#define XDPATH_RULE_LIST_H

#include <xdpath/rule.h>

#include "internal.h"

/*
 * Append all rules of `more`, or none; its ids are lines of a file. In time linear in both. When
 * one has its like, *at is its index in `more` (else left alone).
 */
int xdpath_rules_join(struct xdpath_rules *l, struct xdpath_rules *more, uint32_t *at,
		      struct xdpath_diag *diag);
/* Room for n more. -ENOSPC past XDPATH_RULES_MAX, -ENOMEM. */
int xdpath_rules_reserve(struct xdpath_rules *l, uint32_t n, struct xdpath_diag *diag);
/* Both hold the same rules in the same order, whatever their ids. */
bool xdpath_rules_same(const struct xdpath_rules *a, const struct xdpath_rules *b);

#endif
