/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The best rule of a set for a frame's key. Included by steer.bpf.c.
 *
 * Straight code, no loops: Linux 6.1 refuses a loop whose head is reached by falling into it, and
 * whether that is so is the compiler's choice. The searches are functions of their own, so that the
 * verifier walks each once and not once for each way through the parser.
 */
#ifndef XDPATH_MATCH_H
#define XDPATH_MATCH_H

#include "parse.h"
#include "set.h"

/* Shapes that may hold a rule for the key, a bit for each. v6 is a constant. */
XP_INLINE __u64 candidates(const struct set_family *f, const struct xp_key *k, int v6)
{
	__u64 c = f->all;

	if (!f->near)
		return c;
	c &= f->proto[k->meta >> 48 & 0xff];
	c &= f->table[SET_NEAR_SPORT][set_near_at(k->ports & 0xffff)];
	c &= f->table[SET_NEAR_DPORT][set_near_at(k->ports >> 16 & 0xffff)];
#pragma unroll
	for (__u32 i = 0; i < 3; i++) {
		__u64 src = v6 ? set_cut6(k->addr, i) : set_cut4(k->addr[0], 0, i);
		__u64 dst = v6 ? set_cut6(k->addr + 2, i) : set_cut4(k->addr[0], 1, i);

		c &= f->table[SET_NEAR_SRC + i][set_near_at(src)];
		c &= f->table[SET_NEAR_DST + i][set_near_at(dst)];
	}
	return c;
}

/* The ports' word with their classes in its upper half. */
XP_INLINE __u64 with_classes(const struct xdpath_set *set, __u64 ports)
{
	if (!set->ranges)
		return ports;
	return ports | (__u64)set->sport_class[ports & 0xffff] << 32 |
	       (__u64)set->dport_class[ports >> 16 & 0xffff] << 48;
}

XP_INLINE int is4(const struct set_entry4 *e, __u64 meta, __u64 ports, __u64 addr, __u32 tag)
{
	return !((e->meta ^ meta) | (e->ports ^ ports) | (e->addr ^ addr) |
		 ((e->what ^ tag) & SET_USED));
}

XP_INLINE __u64 look_up4(const struct xdpath_set *set, const struct set_family *f,
			 const struct set_shape *s, __u32 tag, const struct xp_key *k)
{
	__u64 meta = k->meta & s->meta, ports = k->ports & s->ports, addr = k->addr[0] & s->addr[0],
	      hash;
	const struct set_entry4 *e;

	hash = set_hash4(f->seed, tag, meta, ports, addr);
	e = set->v4[set_first(hash) & f->mask & (SET_BUCKETS - 1)];
	if (is4(e, meta, ports, addr, tag))
		return e->what;
	if (is4(e + 1, meta, ports, addr, tag))
		return e[1].what;
	if (!(e->what & SET_SPILLED))
		return SET_NOTHING;
	e = set->v4[set_second(hash) & f->mask & (SET_BUCKETS - 1)];
	if (is4(e, meta, ports, addr, tag))
		return e->what;
	return is4(e + 1, meta, ports, addr, tag) ? e[1].what : SET_NOTHING;
}

XP_INLINE int is6(const struct set_entry6 *e, __u64 meta, __u64 ports, const __u64 *addr, __u32 tag)
{
	return !((e->meta ^ meta) | (e->ports ^ ports) | (e->addr[0] ^ addr[0]) |
		 (e->addr[1] ^ addr[1]) | (e->addr[2] ^ addr[2]) | (e->addr[3] ^ addr[3]) |
		 ((e->what ^ tag) & SET_USED));
}

XP_INLINE __u64 look_up6(const struct xdpath_set *set, const struct set_family *f,
			 const struct set_shape *s, __u32 tag, const struct xp_key *k)
{
	__u64 meta = k->meta & s->meta, ports = k->ports & s->ports, hash;
	__u64 addr[4] = {k->addr[0] & s->addr[0], k->addr[1] & s->addr[1], k->addr[2] & s->addr[2],
			 k->addr[3] & s->addr[3]};
	const struct set_entry6 *e;

	hash = set_hash6(f->seed, tag, meta, ports, addr);
	e = set->v6[set_first(hash) & f->mask & (SET_BUCKETS - 1)];
	if (is6(e, meta, ports, addr, tag))
		return e->what;
	if (is6(e + 1, meta, ports, addr, tag))
		return e[1].what;
	if (!(e->what & SET_SPILLED))
		return SET_NOTHING;
	e = set->v6[set_second(hash) & f->mask & (SET_BUCKETS - 1)];
	if (is6(e, meta, ports, addr, tag))
		return e->what;
	return is6(e + 1, meta, ports, addr, tag) ? e[1].what : SET_NOTHING;
}

/* A search under way. It stands in the caller's frame: stacks are small. */
struct hunt {
	struct xp_key k;
	__u64 left; /* candidates not yet looked at */
	__u64 best; /* what the best rule so far says */
	__u64 from; /* rank */
};

/* Look at the next candidate. 0: the search is over. v6 is a constant. */
XP_INLINE int next_shape(const struct xdpath_set *set, const struct xp_key *k, struct hunt *h,
			 int v6)
{
	const struct set_family *f = &set->family[v6];
	const struct set_shape *s;
	__u64 what;
	__u32 n;

	if (!h->left)
		return 0;
	n = set->lowest[set_lowest_at(h->left)] & (SET_SHAPES - 1);
	h->left &= h->left - 1;
	s = &f->shape[n];
	if (s->best >= SET_RANK(h->best))
		return 0;
	what = v6 ? look_up6(set, f, s, n + 1, k) : look_up4(set, f, s, n + 1, k);
	if (what < h->best && what >> 32 >= h->from)
		h->best = what;
	return 1;
}

#define NEXT_2	(next_shape(set, &h->k, &own, v6) && next_shape(set, &h->k, &own, v6))
#define NEXT_4	(NEXT_2 && NEXT_2)
#define NEXT_10 (NEXT_4 && NEXT_4 && NEXT_2)

/* Ten shapes more. 0: the search is over. */
XP_INLINE int more(const struct xdpath_set *set, struct hunt *h, int v6)
{
	struct hunt own = {.left = h->left, .from = h->from, .best = h->best};
	int on = NEXT_10;

	h->left = own.left;
	h->best = own.best;
	return on;
}

__noinline int xp_more4(struct xdpath_set *set, struct hunt *h)
{
	return set && h ? more(set, h, 0) : 0;
}

__noinline int xp_more6(struct xdpath_set *set, struct hunt *h)
{
	return set && h ? more(set, h, 1) : 0;
}

/* h->best: the rule of least rank >= h->from that matches, SET_NOTHING if none does. 1 if shapes
 * are left to be looked at. v6 is a constant. */
XP_INLINE int search(const struct xdpath_set *set, struct hunt *h, int v6)
{
	struct hunt own = {.from = h->from, .best = SET_NOTHING};
	int on;

	own.left = candidates(&set->family[v6], &h->k, v6);
	h->k.ports = with_classes(set, h->k.ports);
	on = NEXT_4;
	h->left = own.left;
	h->best = own.best;
	return on && own.left;
}

__noinline int xp_search4(struct xdpath_set *set, struct hunt *h)
{
	return set && h ? search(set, h, 0) : 0;
}

__noinline int xp_search6(struct xdpath_set *set, struct hunt *h)
{
	return set && h ? search(set, h, 1) : 0;
}

_Static_assert(4 + 6 * 10 == SET_SHAPES, "all shapes are looked at");

/* What the rule of least rank >= h->from says that matches, SET_NOTHING if none does. */
XP_INLINE __u64 best_rule(struct xdpath_set *set, struct hunt *h, int family)
{
	if (family == 6)
		(void)(xp_search6(set, h) && xp_more6(set, h) && xp_more6(set, h) &&
		       xp_more6(set, h) && xp_more6(set, h) && xp_more6(set, h) &&
		       xp_more6(set, h));
	else
		(void)(xp_search4(set, h) && xp_more4(set, h) && xp_more4(set, h) &&
		       xp_more4(set, h) && xp_more4(set, h) && xp_more4(set, h) &&
		       xp_more4(set, h));
	return h->best;
}

#endif
