/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * A list of rules: in the order in which they came, no two alike, each with an id of its own.
 *
 * Called by the command, steer.c and applications. The list owns its rules.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rule_list.h"

/* What makes two rules alike: priority and matches. Without holes, so that bytes can be compared.
 */
struct key {
	uint32_t prio, fields, queue;
	uint16_t ether, vlan, sport[2], dport[2];
	struct xdpath_prefix src, dst;
	uint8_t proto, flags, flags_mask, zero;
};

_Static_assert(sizeof(struct key) == 12 + 12 + 2 * 18 + 4, "a key has no holes");

static void key_of(const struct xdpath_rule *r, struct key *k)
{
	*k = (struct key){.prio = r->prio, .fields = r->fields};
	if (r->fields & XDPATH_RF_ETHER)
		k->ether = r->ether;
	if (r->fields & XDPATH_RF_VLAN)
		k->vlan = r->vlan;
	if (r->fields & XDPATH_RF_PROTO)
		k->proto = r->proto;
	if (r->fields & XDPATH_RF_SRC)
		k->src = r->src;
	if (r->fields & XDPATH_RF_DST)
		k->dst = r->dst;
	if (r->fields & XDPATH_RF_SPORT)
		memcpy(k->sport, r->sport, sizeof(k->sport));
	if (r->fields & XDPATH_RF_DPORT)
		memcpy(k->dport, r->dport, sizeof(k->dport));
	if (r->fields & XDPATH_RF_TCP_FLAGS) {
		k->flags = r->flags;
		k->flags_mask = r->flags_mask;
	}
	if (r->fields & XDPATH_RF_QUEUE)
		k->queue = r->queue;
}

static bool alike(const struct xdpath_rule *a, const struct xdpath_rule *b)
{
	struct key ka, kb;

	if (a->prio != b->prio || a->fields != b->fields)
		return false;
	key_of(a, &ka);
	key_of(b, &kb);
	return memcmp(&ka, &kb, sizeof(ka)) == 0 &&
	       (!(a->fields & XDPATH_RF_FILTER) || strcmp(a->filter, b->filter) == 0);
}

/* FNV-1a. */
static uint32_t mix(uint32_t h, const void *data, size_t n)
{
	for (const uint8_t *b = data; n--; b++)
		h = (h ^ *b) * 16777619U;
	return h;
}

static uint32_t hash_of(const struct xdpath_rule *r)
{
	struct key k;
	uint32_t h;

	key_of(r, &k);
	h = mix(2166136261U, &k, sizeof(k));
	return r->fields & XDPATH_RF_FILTER ? mix(h, r->filter, strlen(r->filter)) : h;
}

/* ... and in what they do. */
static bool same_action(const struct xdpath_rule *a, const struct xdpath_rule *b)
{
	return a->action == b->action && a->snap == b->snap && a->ifindex == b->ifindex;
}

/* what: "rule" of an id, or "line" of a file. */
static int told_alike(const char *what, const struct xdpath_rule *there,
		      const struct xdpath_rule *r, struct xdpath_diag *diag)
{
	bool same = same_action(there, r);
	char text[XDPATH_RULE_TEXT_MAX];

	xdpath_rule_format(r, text, sizeof(text));
	return xdpath_fail(diag, XDPATH_R_OPTIONS, EEXIST, "%.200s: %s %u %s; %s", text, what,
			   there->id, same ? "is the same" : "has the same matches and priority",
			   same ? "leave this one out"
				: "give this one another prio, or remove that one");
}

/* A hash table of a list's rules: index + 1; 0 is empty. */
struct table {
	const struct xdpath_rules *l;
	uint32_t *slot, slots;
};

static int make_table(struct table *t, const struct xdpath_rules *l, uint32_t n,
		      struct xdpath_diag *diag)
{
	t->l = l;
	t->slots = 64;
	while (t->slots < 2 * n)
		t->slots *= 2;
	t->slot = calloc(t->slots, sizeof(*t->slot));
	if (!t->slot)
		return xdpath_fail(diag, XDPATH_R_MEMORY, ENOMEM, "rules: no memory; free some");
	return 0;
}

/* The slot of the rule that is alike, or the empty one where it would be. */
static uint32_t *find(const struct table *t, const struct xdpath_rule *r)
{
	uint32_t h = hash_of(r) % t->slots;

	while (t->slot[h] && !alike(&t->l->rule[t->slot[h] - 1], r))
		h = (h + 1) % t->slots;
	return &t->slot[h];
}

int xdpath_rules_reserve(struct xdpath_rules *l, uint32_t n, struct xdpath_diag *diag)
{
	struct xdpath_rule *more;
	uint32_t room = l->room;

	if (l->n + n > XDPATH_RULES_MAX)
		return xdpath_fail(diag, XDPATH_R_OPTIONS, ENOSPC,
				   "more than %u rules; join some by prefixes and ranges",
				   XDPATH_RULES_MAX);
	while (room < l->n + n)
		room = room ? room * 2 : 16;
	if (room == l->room)
		return 0;
	more = realloc(l->rule, room * sizeof(*more));
	if (!more)
		return xdpath_fail(diag, XDPATH_R_MEMORY, ENOMEM, "rules: no memory; free some");
	l->rule = more;
	l->room = room;
	return 0;
}

static void append(struct xdpath_rules *l, struct xdpath_rule *r)
{
	l->next_id += l->next_id == 0; /* an empty list is all zeros, ids begin with 1 */
	r->id = l->next_id++;
	l->rule[l->n++] = *r;
	*r = (struct xdpath_rule){0};
}

int xdpath_rules_add(struct xdpath_rules *l, struct xdpath_rule *r, struct xdpath_diag *diag)
{
	int err;

	for (uint32_t i = 0; i < l->n; i++)
		if (alike(&l->rule[i], r))
			return told_alike("rule", &l->rule[i], r, diag);
	err = xdpath_rules_reserve(l, 1, diag);
	if (!err)
		append(l, r);
	return err;
}

int xdpath_rules_join(struct xdpath_rules *l, struct xdpath_rules *more, uint32_t *at,
		      struct xdpath_diag *diag)
{
	int err = xdpath_rules_reserve(l, more->n, diag);
	struct table t;

	if (!err)
		err = make_table(&t, l, l->n + more->n, diag);
	if (err)
		return err;
	if (more->n) /* behind the end: not yet part of it */
		memcpy(&l->rule[l->n], more->rule, more->n * sizeof(*l->rule));
	for (uint32_t i = 0; !err && i < l->n + more->n; i++) {
		uint32_t *slot = find(&t, &l->rule[i]);

		if (*slot) {
			*at = i - l->n;
			err = told_alike(*slot > l->n ? "line" : "rule", &l->rule[*slot - 1],
					 &l->rule[i], diag);
		}
		*slot = i + 1;
	}
	free(t.slot);
	for (uint32_t i = 0; !err && i < more->n; i++)
		append(l, &more->rule[i]);
	return err;
}

int xdpath_rules_replace(struct xdpath_rules *l, struct xdpath_rules *by, struct xdpath_diag *diag)
{
	struct xdpath_rules old = *l;
	struct table t;
	int err = make_table(&t, &old, old.n, diag);

	if (err)
		return err;
	for (uint32_t i = 0; i < old.n; i++)
		*find(&t, &old.rule[i]) = i + 1;
	*l = *by;
	*by = (struct xdpath_rules){0};
	l->next_id = old.next_id + (old.next_id == 0);
	for (uint32_t i = 0; i < l->n; i++) {
		uint32_t there = *find(&t, &l->rule[i]);
		bool stays = there && same_action(&old.rule[there - 1], &l->rule[i]);

		l->rule[i].id = stays ? old.rule[there - 1].id : l->next_id++;
	}
	free(t.slot);
	xdpath_rules_clear(&old);
	return 0;
}

bool xdpath_rules_same(const struct xdpath_rules *a, const struct xdpath_rules *b)
{
	bool same = a->n == b->n;

	for (uint32_t i = 0; same && i < a->n; i++)
		same = alike(&a->rule[i], &b->rule[i]) && same_action(&a->rule[i], &b->rule[i]);
	return same;
}

int xdpath_rules_del(struct xdpath_rules *l, uint32_t id)
{
	for (uint32_t i = 0; i < l->n; i++) {
		if (l->rule[i].id != id)
			continue;
		xdpath_rule_clear(&l->rule[i]);
		memmove(&l->rule[i], &l->rule[i + 1], (--l->n - i) * sizeof(l->rule[0]));
		return 0;
	}
	return -ENOENT;
}

void xdpath_rules_clear(struct xdpath_rules *l)
{
	if (!l)
		return;
	for (uint32_t i = 0; i < l->n; i++)
		xdpath_rule_clear(&l->rule[i]);
	free(l->rule);
	*l = (struct xdpath_rules){0};
}

static int by_turn(const void *a, const void *b, void *list)
{
	uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b, si, sj;
	const struct xdpath_rules *l = list;
	const struct xdpath_rule *ri = &l->rule[i], *rj = &l->rule[j];

	if (ri->prio != rj->prio)
		return ri->prio < rj->prio ? -1 : 1;
	si = xdpath_rule_specificity(ri);
	sj = xdpath_rule_specificity(rj);
	if (si != sj)
		return si > sj ? -1 : 1;
	return i < j ? -1 : i > j;
}

void xdpath_rules_order(const struct xdpath_rules *l, uint32_t *order)
{
	for (uint32_t i = 0; i < l->n; i++)
		order[i] = i;
	qsort_r(order, l->n, sizeof(*order), by_turn, (void *)l);
}
