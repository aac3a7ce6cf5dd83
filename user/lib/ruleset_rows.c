/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * What each rule asks for, as mask and key over the words of a frame (struct xp_key). Called by
 * ruleset.c; the rows belong to the caller.
 *
 * A rule without addresses has a row in both families. A range of ports becomes one row for each of
 * the classes in it or, where that is too many, for each of its prefixes.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rule_words.h"
#include "ruleset.h"

enum {
	NEEDS_IP = XDPATH_RF_PROTO | XDPATH_RF_SRC | XDPATH_RF_DST | XDPATH_RF_SPORT |
		   XDPATH_RF_DPORT | XDPATH_RF_TCP_FLAGS,
	NEEDS_PORTS = XDPATH_RF_SPORT | XDPATH_RF_DPORT | XDPATH_RF_TCP_FLAGS,
};

/* Whether any frame of the family can match: rules may contradict themselves. */
static bool can_match(const struct xdpath_rule *r, int v6)
{
	uint8_t family = v6 ? 6 : 4;
	uint16_t ether = v6 ? XP_ETH_IPV6 : XP_ETH_IPV4;

	if ((r->fields & XDPATH_RF_SRC && r->src.family != family) ||
	    (r->fields & XDPATH_RF_DST && r->dst.family != family))
		return false;
	if (r->fields & XDPATH_RF_ETHER) {
		if ((v6 || r->fields & NEEDS_IP) && r->ether != ether)
			return false;
		if (!v6 && r->ether == XP_ETH_IPV6)
			return false;
	}
	if (r->fields & XDPATH_RF_PROTO) {
		if (r->fields & NEEDS_PORTS && !xdpath_rule_proto_has_ports(r->proto))
			return false;
		if (r->fields & XDPATH_RF_TCP_FLAGS && r->proto != XP_PROTO_TCP)
			return false;
	}
	if (r->fields & XDPATH_RF_TCP_FLAGS && r->flags & ~r->flags_mask)
		return false;
	return !(r->fields & XDPATH_RF_QUEUE) || r->queue <= UINT16_MAX;
}

static void put_prefix(struct ruleset_row *row, size_t at, const struct xdpath_prefix *p)
{
	uint8_t mask[16] = {0};

	for (uint32_t bit = 0; bit < p->len; bit++)
		mask[bit / 8] |= 0x80 >> bit % 8;
	memcpy((uint8_t *)row->mask.addr + at, mask, p->family == 4 ? 4 : 16);
	memcpy((uint8_t *)row->key.addr + at, p->addr, p->family == 4 ? 4 : 16);
}

/* All but ranges of ports. */
static void put_fields(struct ruleset_row *row, const struct xdpath_rule *r, int v6)
{
	uint16_t ether = 0, vlan = 0, vlan_mask = 0, queue = 0;
	uint8_t proto = 0, flags = 0;
	uint32_t f = r->fields;

	/* What the family or the need for IP says already is not asked for again. */
	if (f & XDPATH_RF_ETHER && !v6 && !(f & NEEDS_IP))
		ether = UINT16_MAX;
	if (f & XDPATH_RF_VLAN) {
		vlan_mask |= 0xfff | XP_KEY_TAGGED;
		vlan |= r->vlan | XP_KEY_TAGGED;
	}
	if (f & NEEDS_IP && !v6)
		vlan_mask |= XP_KEY_IP;
	if (f & NEEDS_PORTS)
		vlan_mask |= XP_KEY_PORTS;
	vlan |= vlan_mask & (XP_KEY_IP | XP_KEY_PORTS);
	if (f & XDPATH_RF_QUEUE)
		queue = UINT16_MAX;
	if (f & (XDPATH_RF_PROTO | XDPATH_RF_TCP_FLAGS))
		proto = UINT8_MAX;
	if (f & XDPATH_RF_TCP_FLAGS)
		flags = r->flags_mask;
	row->mask.meta = xp_meta(ether, vlan_mask, queue, proto, flags);
	row->key.meta = xp_meta(r->ether, vlan, (uint16_t)r->queue,
				f & XDPATH_RF_TCP_FLAGS ? XP_PROTO_TCP : r->proto, r->flags) &
			row->mask.meta;
	if (f & XDPATH_RF_SRC)
		put_prefix(row, 0, &r->src);
	if (f & XDPATH_RF_DST)
		put_prefix(row, v6 ? 16 : 4, &r->dst);
}

/* ---- ports ---- */

static bool is_range(const uint16_t port[2])
{
	return port[0] != port[1] && !(port[0] == 0 && port[1] == UINT16_MAX);
}

static void mark(uint8_t *begins, const uint16_t port[2])
{
	if (!is_range(port))
		return;
	begins[port[0]] = 1;
	if (port[1] != UINT16_MAX)
		begins[port[1] + 1] = 1;
}

static int find_classes(struct xdpath_set *set, const struct xdpath_rules *l)
{
	uint8_t *begins = calloc(2, 65536);

	if (!begins)
		return -ENOMEM;
	for (uint32_t i = 0; i < l->n; i++) {
		const struct xdpath_rule *r = &l->rule[i];

		if (r->fields & XDPATH_RF_SPORT)
			mark(begins, r->sport);
		if (r->fields & XDPATH_RF_DPORT)
			mark(begins + 65536, r->dport);
	}
	set->ranges = memchr(begins, 1, (size_t)2 * 65536) != NULL;
	for (uint32_t p = 0, s = 0, d = 0; set->ranges && p < 65536; p++) {
		s += begins[p];
		d += begins[65536 + p];
		set->sport_class[p] = (uint16_t)s;
		set->dport_class[p] = (uint16_t)d;
	}
	free(begins);
	return 0;
}

/*
 * What a rule wants of a port, as masks and values over the ports' word: one value, a class after
 * the other, or a prefix after the other.
 */
struct wish {
	uint32_t shift;	      /* of the port in the word; its class stands 32 bits higher */
	uint32_t first, last; /* ports, or classes */
	bool given, classes;
};

static struct wish wish_of(bool given, const uint16_t port[2], const uint16_t *class,
			   uint32_t shift, bool classes)
{
	struct wish w = {.shift = shift, .first = port[0], .last = port[1]};

	w.given = given && !(port[0] == 0 && port[1] == UINT16_MAX);
	if (!w.given) {
		w.first = w.last = 0;
	} else if (classes && is_range(port)) {
		w.classes = true;
		w.first = class[port[0]];
		w.last = class[port[1]];
	}
	return w;
}

/* The next mask and value from *at on; false at the end. */
static bool next_wish(const struct wish *w, uint32_t *at, uint64_t *mask, uint64_t *value)
{
	uint32_t shift = w->shift + (w->classes ? 32 : 0), size = 1;

	if (*at > w->last)
		return false;
	/* the largest prefix that begins here and does not reach past the end */
	while (w->given && !w->classes && !(*at & size) && *at + 2 * size - 1 <= w->last)
		size *= 2;
	*mask = w->given ? (uint64_t)(0x10000 - size) << shift : 0;
	*value = (uint64_t)*at << shift;
	*at += size;
	return true;
}

static int add_row(struct ruleset_rows *rows, const struct ruleset_row *row)
{
	struct ruleset_row *more;
	uint32_t room = rows->room ? rows->room * 2 : 64;

	if (rows->n == RULESET_ROWS)
		return -E2BIG;
	if (rows->n == rows->room) {
		more = realloc(rows->row, room * sizeof(*more));
		if (!more)
			return -ENOMEM;
		rows->row = more;
		rows->room = room;
	}
	rows->row[rows->n++] = *row;
	return 0;
}

static int add_rule(const struct xdpath_set *set, const struct xdpath_rule *r, uint32_t rank,
		    int v6, struct ruleset_rows *rows)
{
	struct wish s =
		wish_of(r->fields & XDPATH_RF_SPORT, r->sport, set->sport_class, 0, set->ranges);
	struct wish d =
		wish_of(r->fields & XDPATH_RF_DPORT, r->dport, set->dport_class, 16, set->ranges);
	struct ruleset_row row = {.rank = rank, .mirror = r->action == XDPATH_RA_MIRROR};
	uint64_t sm, sv, dm, dv;
	int err = 0;

	put_fields(&row, r, v6);
	for (uint32_t i = s.first; !err && next_wish(&s, &i, &sm, &sv);)
		for (uint32_t j = d.first; !err && next_wish(&d, &j, &dm, &dv);) {
			row.mask.ports = sm | dm;
			row.key.ports = sv | dv;
			err = add_row(rows, &row);
		}
	return err;
}

static int add_rules(const struct xdpath_set *set, const struct xdpath_rules *rules,
		     const uint32_t *order, struct ruleset_rows rows[2])
{
	int err = 0;

	rows[0].n = rows[1].n = 0;
	for (uint32_t rank = 0; !err && rank < rules->n; rank++) {
		const struct xdpath_rule *r = &rules->rule[order[rank]];

		for (int v6 = 0; !err && v6 < 2; v6++)
			if (!(r->fields & XDPATH_RF_FILTER) && can_match(r, v6))
				err = add_rule(set, r, rank, v6, &rows[v6]);
	}
	return err;
}

int xdpath_ruleset_rows(struct xdpath_set *set, const struct xdpath_rules *rules,
			const uint32_t *order, struct ruleset_rows rows[2],
			struct xdpath_diag *diag)
{
	int err = find_classes(set, rules);

	if (!err)
		err = add_rules(set, rules, order, rows);
	/* Ranges that cut each other into many classes: prefixes are fewer rows, but more shapes.
	 */
	if (err == -E2BIG && set->ranges) {
		set->ranges = 0;
		err = add_rules(set, rules, order, rows);
	}
	if (err == -E2BIG)
		return xdpath_fail(diag, XDPATH_R_OPTIONS, E2BIG,
				   "rules: with their port ranges they need more than %d table "
				   "entries; use fewer ranges, or some that overlap less",
				   RULESET_ROWS);
	return err ? xdpath_fail(diag, XDPATH_R_MEMORY, ENOMEM, "rules: no memory; free some") : 0;
}
