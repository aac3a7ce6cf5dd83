/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * A list of rules into the set that the program reads. Called by steer.c, which owns the memory:
 * usually a map's value, so nothing is written twice.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ruleset.h"

/* With fewer shapes than this, looking into all of them is cheaper than asking which. */
enum { NEAR_FROM = 5 };

static int no_memory(struct xdpath_diag *diag)
{
	return xdpath_fail(diag, XDPATH_R_MEMORY, ENOMEM, "rules: no memory; free some");
}

static int by_mask(const void *a, const void *b)
{
	const struct ruleset_row *x = a, *y = b;
	int d = memcmp(&x->mask, &y->mask, sizeof(x->mask));

	if (!d)
		d = memcmp(&x->key, &y->key, sizeof(x->key));
	return d ? d : (x->rank > y->rank) - (x->rank < y->rank);
}

/*
 * Rows of the same mask and key: what stands behind a rule that decides is never reached, and goes.
 * What stands behind a mirror is, but a table holds one row for a key: it gets a shape of its own.
 */
static void drop_unreached(struct ruleset_rows *rows)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < rows->n; i++) {
		struct ruleset_row *r = &rows->row[i], *last = kept ? &rows->row[kept - 1] : NULL;

		if (last && !memcmp(&last->mask, &r->mask, sizeof(r->mask)) &&
		    !memcmp(&last->key, &r->key, sizeof(r->key))) {
			if (!last->mirror)
				continue;
			r->shape = last->shape + 1;
		}
		rows->row[kept++] = *r;
	}
	rows->n = kept;
}

/* A shape while they are counted. */
struct found {
	struct xp_key mask;
	uint32_t depth, best, number; /* number: in the order in which they were found */
};

static int by_best(const void *a, const void *b)
{
	const struct found *x = a, *y = b;

	return (x->best > y->best) - (x->best < y->best);
}

/* Shapes of rows that are sorted by mask; each row's shape becomes a number among them. */
static uint32_t find_shapes(struct ruleset_rows *rows, struct found *out)
{
	uint32_t n = 0, begin = 0;

	for (uint32_t i = 0; i < rows->n; i++) {
		struct ruleset_row *r = &rows->row[i];
		uint32_t s;

		if (i && memcmp(&rows->row[i - 1].mask, &r->mask, sizeof(r->mask)) != 0)
			begin = n;
		for (s = begin; s < n && out[s].depth != r->shape; s++)
			;
		if (s == n)
			out[n++] = (struct found){r->mask, r->shape, r->rank, s};
		if (r->rank < out[s].best)
			out[s].best = r->rank;
		r->shape = s;
	}
	return n;
}

static int put_shapes(struct set_family *f, struct ruleset_rows *rows, int family,
		      struct xdpath_diag *diag)
{
	struct found *found = calloc(rows->n + 1, sizeof(*found));
	uint32_t n, to[SET_SHAPES];

	if (!found)
		return no_memory(diag);
	n = find_shapes(rows, found);
	if (n > SET_SHAPES) {
		free(found);
		return xdpath_fail(
			diag, XDPATH_R_OPTIONS, E2BIG,
			"rules: %u distinct mask shapes for IPv%d, %d at most; let rules "
			"name the same fields and prefix lengths more often",
			n, family ? 6 : 4, SET_SHAPES);
	}
	qsort(found, n, sizeof(*found), by_best);
	for (uint32_t i = 0; i < n; i++) {
		struct set_shape *s = &f->shape[i];

		to[found[i].number] = i;
		s->meta = found[i].mask.meta;
		s->ports = found[i].mask.ports;
		memcpy(s->addr, found[i].mask.addr, sizeof(s->addr));
		s->best = found[i].best;
		f->all |= 1ULL << i;
	}
	f->nshapes = n;
	for (uint32_t i = 0; i < rows->n; i++)
		rows->row[i].shape = to[rows->row[i].shape];
	free(found);
	return 0;
}

static int put_family(struct xdpath_set *set, struct ruleset_rows *rows, int family,
		      struct xdpath_diag *diag)
{
	int err;

	if (rows->n)
		qsort(rows->row, rows->n, sizeof(*rows->row), by_mask);
	drop_unreached(rows);
	err = put_shapes(&set->family[family], rows, family, diag);
	if (!err)
		err = xdpath_ruleset_table(set, family, rows, diag);
	if (!err && set->family[family].nshapes >= NEAR_FROM)
		xdpath_ruleset_near(set, family, rows);
	return err;
}

static int too_many(struct xdpath_diag *diag, const char *what, uint32_t n, uint32_t most)
{
	return xdpath_fail(diag, XDPATH_R_OPTIONS, E2BIG, "rules: %u %s, %u at most; use fewer", n,
			   what, most);
}

/* What each rank says. */
static int put_rules(struct xdpath_set *set, const struct xdpath_rules *l, const uint32_t *order,
		     const uint16_t *count, struct xdpath_diag *diag)
{
	for (uint32_t i = 0; i < SET_FILTERS; i++)
		set->filter_rank[i] = SET_NONE;
	for (uint32_t rank = 0; rank < l->n; rank++) {
		const struct xdpath_rule *r = &l->rule[order[rank]];
		struct set_rule *to = &set->rule[rank];

		*to = (struct set_rule){.id = r->id,
					.action = (uint16_t)r->action,
					.count = count[order[rank]]};
		if (r->action == XDPATH_RA_REDIRECT)
			to->value = (uint32_t)r->ifindex;
		if (r->action == XDPATH_RA_MIRROR) {
			to->value =
				r->snap && r->snap < XDPATH_SNAP_MAX ? r->snap : XDPATH_SNAP_MAX;
			set->nmirrors++;
		}
		if (!(r->fields & XDPATH_RF_FILTER))
			continue;
		if (set->nfilters < SET_FILTERS)
			set->filter_rank[set->nfilters] = rank;
		to->filter = ++set->nfilters;
	}
	set->nrules = l->n;
	if (set->nfilters > SET_FILTERS)
		return too_many(diag, "filters", set->nfilters, SET_FILTERS);
	if (set->nmirrors > SET_MIRRORS)
		return too_many(diag, "mirror rules", set->nmirrors, SET_MIRRORS);
	return 0;
}

int xdpath_ruleset_build(struct xdpath_set *set, const struct xdpath_rules *rules,
			 const uint16_t *count, struct xdpath_diag *diag)
{
	struct ruleset_rows rows[2] = {{0}};
	uint32_t *order;
	int err;

	if (rules->n > SET_RULES)
		return too_many(diag, "rules", rules->n, SET_RULES);
	order = calloc(rules->n + 1, sizeof(*order));
	if (!order)
		return no_memory(diag);
	for (uint32_t i = 0; i < 64; i++)
		set->lowest[set_lowest_at(1ULL << i)] = (uint8_t)i;
	xdpath_rules_order(rules, order);
	err = put_rules(set, rules, order, count, diag);
	if (!err)
		err = xdpath_ruleset_rows(set, rules, order, rows, diag);
	for (int family = 0; !err && family < 2; family++)
		err = put_family(set, &rows[family], family, diag);
	free(rows[0].row);
	free(rows[1].row);
	free(order);
	return err;
}
