/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * A family's tables: rows into buckets of two, each row in one of two buckets that its hash names;
 * and which shapes may hold a rule for a port or an address. Called by ruleset.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ruleset.h"

enum { KICKS = 500, SEEDS = 8 };

/* One attempt. A place holds a row's number + 1. */
struct placing {
	const struct ruleset_rows *rows;
	uint64_t *hash;
	uint32_t (*place)[2];
	bool *spilled;
	uint32_t mask;
	uint64_t seed;
	int v6;
};

static bool put_in(struct placing *p, uint32_t bucket, uint32_t row)
{
	for (int i = 0; i < 2; i++)
		if (!p->place[bucket][i]) {
			p->place[bucket][i] = row + 1;
			return true;
		}
	return false;
}

/* Into its first bucket, or its second; or there instead of another, that goes on looking. */
static bool place_row(struct placing *p, uint32_t row, uint64_t *random)
{
	for (int kick = 0; kick < KICKS; kick++) {
		uint32_t first = set_first(p->hash[row]) & p->mask;
		uint32_t second = set_second(p->hash[row]) & p->mask, at, other;

		if (put_in(p, first, row))
			return true;
		*random = *random * 6364136223846793005ULL + 1442695040888963407ULL;
		at = *random >> 63 ? first : second;
		if (put_in(p, second, row)) {
			p->spilled[first] = true;
			return true;
		}
		if (at == second)
			p->spilled[first] = true;
		other = p->place[at][*random >> 62 & 1] - 1;
		p->place[at][*random >> 62 & 1] = row + 1;
		row = other;
	}
	return false;
}

static bool place_all(struct placing *p)
{
	uint64_t random = p->seed;

	memset(p->place, 0, sizeof(*p->place) * (p->mask + 1));
	memset(p->spilled, 0, p->mask + 1);
	for (uint32_t i = 0; i < p->rows->n; i++) {
		const struct ruleset_row *r = &p->rows->row[i];

		p->hash[i] = p->v6 ? set_hash6(p->seed, r->shape + 1, r->key.meta, r->key.ports,
					       r->key.addr)
				   : set_hash4(p->seed, r->shape + 1, r->key.meta, r->key.ports,
					       r->key.addr[0]);
	}
	for (uint32_t i = 0; i < p->rows->n; i++)
		if (!place_row(p, i, &random))
			return false;
	return true;
}

static void write_out(struct xdpath_set *set, const struct placing *p)
{
	static const struct ruleset_row none;

	for (uint32_t i = 0; i < 2 * (p->mask + 1); i++) {
		uint32_t row = p->place[i / 2][i % 2];
		const struct ruleset_row *r = row ? &p->rows->row[row - 1] : &none;
		const struct set_rule *rule = &set->rule[r->rank];
		uint64_t what = 0;

		if (row)
			what = SET_WHAT(r->rank, rule->count, rule->action) | (r->shape + 1);
		if (i % 2 == 0 && p->spilled[i / 2])
			what |= SET_SPILLED;
		if (p->v6) {
			struct set_entry6 e = {r->key.meta, r->key.ports, {0}, what, 0};

			memcpy(e.addr, r->key.addr, sizeof(e.addr));
			set->v6[i / 2][i % 2] = e;
		} else {
			set->v4[i / 2][i % 2] = (struct set_entry4){r->key.meta, r->key.ports,
								    r->key.addr[0], what};
		}
	}
	set->family[p->v6].seed = p->seed;
	set->family[p->v6].mask = p->mask;
}

static int place(struct xdpath_set *set, struct placing *p)
{
	uint32_t buckets = 8;

	/* Six of ten places taken: nearly all rows stand in their first bucket. */
	while (buckets < SET_BUCKETS && buckets * 12 < p->rows->n * 10)
		buckets *= 2;
	for (; buckets <= SET_BUCKETS; buckets *= 2)
		for (int i = 1; i <= SEEDS; i++) {
			p->seed = SET_MIX4 * (uint64_t)i;
			p->mask = buckets - 1;
			if (place_all(p)) {
				write_out(set, p);
				return 0;
			}
		}
	return -E2BIG;
}

int xdpath_ruleset_table(struct xdpath_set *set, int family, const struct ruleset_rows *rows,
			 struct xdpath_diag *diag)
{
	struct placing p = {.rows = rows, .v6 = family};
	int err = -ENOMEM;

	p.hash = calloc(rows->n + 1, sizeof(*p.hash));
	p.place = calloc(SET_BUCKETS, sizeof(*p.place));
	p.spilled = calloc(SET_BUCKETS, sizeof(*p.spilled));
	if (p.hash && p.place && p.spilled)
		err = place(set, &p);
	free(p.hash);
	free(p.place);
	free(p.spilled);
	if (err == -E2BIG)
		return xdpath_fail(diag, XDPATH_R_OPTIONS, E2BIG,
				   "rules: %u table entries for IPv%d do not fit; use fewer rules, "
				   "or port ranges that overlap less",
				   rows->n, family ? 6 : 4);
	return err ? xdpath_fail(diag, XDPATH_R_MEMORY, ENOMEM, "rules: no memory; free some") : 0;
}

/* ---- candidates ---- */

/* How a table sees a row: `wild` if the row's mask does not fix what the table looks at. */
struct view {
	bool wild;
	uint64_t value;
};

static struct view view_address(const struct ruleset_row *r, int v6, uint32_t dst, uint32_t i)
{
	const __u64 *mask = r->mask.addr, *key = r->key.addr;
	const __u64 ones[2] = {~0ULL, ~0ULL};

	if (!v6)
		return (struct view){
			set_cut4(mask[0], dst, i) != set_cut4(~0ULL, dst, i),
			set_cut4(key[0], dst, i),
		};
	mask += dst ? 2 : 0;
	key += dst ? 2 : 0;
	if (i == 2)
		return (struct view){mask[0] != ~0ULL || mask[1] != ~0ULL, set_cut6(key, i)};
	return (struct view){set_cut6(mask, i) != set_cut6(ones, i), set_cut6(key, i)};
}

/* A table of candidates, the bit of one shape in it. */
struct near {
	__u64 *word;
	uint32_t n;
	uint64_t bit;
	bool *all; /* all words have it */
};

static void near_all(const struct near *t)
{
	for (uint32_t i = 0; !*t->all && i < t->n; i++)
		t->word[i] |= t->bit;
	*t->all = true;
}

/* Ports from..to; of so many that all words, or nearly all, have the bit: all. */
static void near_ports(const struct near *t, uint32_t from, uint32_t to)
{
	if (to - from >= SET_NEAR)
		near_all(t);
	for (uint32_t port = from; !*t->all && port <= to; port++)
		t->word[set_near_at(port)] |= t->bit;
}

/* shift: of the port in the ports' word; its class stands 32 bits higher. */
static void near_port(const struct near *t, const struct ruleset_row *r, uint32_t shift,
		      const uint16_t *class)
{
	uint32_t port = r->key.ports >> shift & 0xffff, mask = r->mask.ports >> shift & 0xffff;
	uint32_t value = r->key.ports >> (shift + 32) & 0xffff, from = 0, to;

	if (*t->all)
		return;
	if (mask) {
		near_ports(t, port, port | (~mask & 0xffff));
		return;
	}
	if (!(r->mask.ports >> (shift + 32) & 0xffff)) {
		near_all(t);
		return;
	}
	for (uint32_t step = 32768; step; step /= 2) /* classes ascend with the ports */
		if (class[from + step - 1] < value)
			from += step;
	for (to = from; to < UINT16_MAX && class[to + 1] == value; to++)
		;
	near_ports(t, from, to);
}

static void near_address(const struct near *t, const struct ruleset_row *r, int v6, uint32_t i)
{
	struct view v = view_address(r, v6, i / 3, i % 3);

	if (v.wild)
		near_all(t);
	else
		t->word[set_near_at(v.value)] |= t->bit;
}

void xdpath_ruleset_near(struct xdpath_set *set, int family, const struct ruleset_rows *rows)
{
	struct set_family *f = &set->family[family];
	bool all[SET_SHAPES][SET_NEAR_TABLES + 1] = {{false}};

	f->near = 1;
	for (uint32_t n = 0; n < rows->n; n++) {
		const struct ruleset_row *r = &rows->row[n];
		struct near t = {.n = SET_NEAR, .bit = 1ULL << r->shape, .all = all[r->shape]};

		t.word = f->table[SET_NEAR_SPORT];
		near_port(&t, r, 0, set->sport_class);
		t.word = f->table[SET_NEAR_DPORT];
		t.all++;
		near_port(&t, r, 16, set->dport_class);
		for (uint32_t i = 0; i < 6; i++) {
			t.word = f->table[SET_NEAR_SRC + i];
			t.all++;
			near_address(&t, r, family, i);
		}
		t.word = f->proto;
		t.n = 256;
		t.all++;
		if (r->mask.meta >> 48 & 0xff)
			t.word[r->key.meta >> 48 & 0xff] |= t.bit;
		else
			near_all(&t);
	}
}
