/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * A set of rules as the program reads it: one value of an array map, built by user/lib/ruleset.c
 * and never changed once packets may see it. Compiles for both.
 *
 * Rules that look at the same bits of a frame are of one shape: a mask over struct xp_key. A
 * frame's key under a shape's mask is looked up in a hash table; so a packet costs one look-up for
 * each shape, however many rules there are. Rules are known by their rank, the place in the order
 * in which they are tried; shapes are sorted by the rank of their best rule, and the search ends
 * where no better one can follow. With many shapes, tables of bits say which of them may hold a
 * rule for a port or an address: the AND of a packet's nine words are its candidates.
 *
 * A range of ports is taken apart into classes, stretches of ports that no range divides; or, if
 * those are too many, into prefixes.
 *
 * IPv4 and all that is not IP share a family, IPv6 has its own; a rule without addresses is in
 * both.
 */
#ifndef XDPATH_SET_H
#define XDPATH_SET_H

#include <linux/types.h>

#define SET_RULES   10000 /* XDPATH_RULES_MAX */
#define SET_SHAPES  64	  /* in a family */
#define SET_BUCKETS 16384 /* in a family, at most; a power of two */
#define SET_NEAR    4096  /* words in a table of candidates */
#define SET_FILTERS 256
#define SET_MIRRORS 16 /* mirror rules: each may match the same packet */
#define SET_NONE    0xffffffffU

/*
 * What an entry says, in a word that sorts by rank: with it most packets need not look at the rule
 * itself, which is a line of cache saved.
 */
#define SET_USED 0xffULL /* shape + 1; 0 is a free place */
#define SET_SPILLED                                                                   \
	0x100ULL /* of a bucket's first entry: some that belong there stand elsewhere \
		  */
#define SET_NOTHING  (~0ULL)
#define SET_RANK(w)  ((__u32)((w) >> 32))
#define SET_COUNT(w) ((__u32)((w) >> 16 & 0xffff))
#define SET_DO(w)    ((__u32)((w) >> 9 & 7))
#define SET_WHAT(rank, count, action) \
	((__u64)(rank) << 32 | (__u64)(count) << 16 | (__u64)(action) << 9)

#define set_inline static inline __attribute__((always_inline))

struct set_shape {
	__u64 meta, ports, addr[4]; /* as in struct xp_key */
	__u32 best;		    /* rank */
	__u32 reserved[3];
};

enum set_near {
	SET_NEAR_SPORT = 0,
	SET_NEAR_DPORT,
	SET_NEAR_SRC, /* three cuts, the shortest prefix first */
	SET_NEAR_DST = SET_NEAR_SRC + 3,
	SET_NEAR_TABLES = SET_NEAR_DST + 3,
};

struct set_family {
	__u64 seed;
	__u64 all;  /* a bit for each shape */
	__u32 mask; /* buckets in use, less one */
	__u32 near; /* 1: the tables below hold */
	__u32 nshapes;
	__u32 reserved[9];
	struct set_shape shape[SET_SHAPES];
	__u64 proto[256];
	__u64 table[SET_NEAR_TABLES][SET_NEAR];
};

struct set_entry4 {
	__u64 meta, ports, addr, what;
};

struct set_entry6 {
	__u64 meta, ports, addr[4], what, reserved;
};

/* As in enum xdpath_rule_action. */
enum set_action {
	SET_XSK = 0,
	SET_PASS = 1,
	SET_DROP = 2,
	SET_TX = 3,
	SET_REDIRECT = 4,
	SET_MIRROR = 5,
};

struct set_rule {
	__u32 id;
	__u16 action; /* enum set_action */
	__u16 count;  /* place among the counters */
	__u32 value;  /* redirect: ifindex; mirror: bytes kept */
	__u32 filter; /* 1 + number among the filters */
};

struct xdpath_set {
	__u32 nrules, nfilters, nmirrors;
	__u32 ranges; /* 1: the classes below are asked for */
	__u32 source; /* slot of xdpath_source that holds the same rules as written */
	__u32 reserved;
	__u64 generation; /* ... and which are the same only if this is */
	__u64 reserved2[4];
	__u8 lowest[64]; /* see set_lowest() */
	struct set_family family[2];
	__u16 sport_class[65536], dport_class[65536];
	__u32 filter_rank[SET_FILTERS];
	struct set_rule rule[SET_RULES];
	struct set_entry4 v4[SET_BUCKETS][2];
	struct set_entry6 v6[SET_BUCKETS][2];
};

/* The kernel's limit for one value is 4 MB on 6.1. */
_Static_assert(sizeof(struct xdpath_set) <= 4 << 20, "a set fits into one value");
_Static_assert(__builtin_offsetof(struct xdpath_set, v4) % 64 == 0, "buckets start a cache line");
_Static_assert(sizeof(struct set_family) % 64 == 0, "so do shapes");

#define XDPATH_SET_SLOTS    2 /* of xdpath_rules, see XDPATH_SLOT_MAGIC */
#define XDPATH_SOURCE_SLOTS 4 /* of xdpath_source: one in use for each set, one being written */
#define XDPATH_SOURCE_PAGE  4096

/* Counters of rules: twice as many as rules, so that a new set's do not touch the old one's. */
#define XDPATH_COUNT_PAGE  64
#define XDPATH_COUNT_PAGES 320

struct xdpath_count_page {
	struct {
		__u64 packets, bytes;
	} count[XDPATH_COUNT_PAGE];
};

_Static_assert(XDPATH_COUNT_PAGE *XDPATH_COUNT_PAGES >= 2 * SET_RULES, "counters for two sets");

#define SET_MIX0 0x9e3779b97f4a7c15ULL
#define SET_MIX1 0xc2b2ae3d27d4eb4fULL
#define SET_MIX2 0xd6e8feb86659fd93ULL
#define SET_MIX3 0xff51afd7ed558ccdULL
#define SET_MIX4 0xa0761d6478bd642fULL
#define SET_MIX5 0xe7037ed1a0b428dbULL

set_inline __u64 set_hash_end(__u64 h)
{
	h ^= h >> 32;
	h *= SET_MIX3;
	return h ^ h >> 29;
}

/* Two buckets are taken from it: see set_first() and set_second(). */
set_inline __u64 set_hash4(__u64 seed, __u32 tag, __u64 meta, __u64 ports, __u64 addr)
{
	return set_hash_end((meta ^ seed) * SET_MIX0 ^ (ports + tag) * SET_MIX1 ^ addr * SET_MIX2);
}

set_inline __u64 set_hash6(__u64 seed, __u32 tag, __u64 meta, __u64 ports, const __u64 *addr)
{
	return set_hash_end((meta ^ seed) * SET_MIX0 ^ (ports + tag) * SET_MIX1 ^
			    (addr[0] ^ addr[1] * SET_MIX5) * SET_MIX2 ^
			    (addr[2] ^ addr[3] * SET_MIX2) * SET_MIX4);
}

set_inline __u32 set_first(__u64 hash)
{
	return hash >> 48;
}

set_inline __u32 set_second(__u64 hash)
{
	return hash >> 32 & 0xffff;
}

/* n bytes of a word as it stands in memory, from the first one on. */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define SET_BYTES(at, n) ((~0ULL >> (64 - 8 * (n))) << 8 * (at))
#else
#define SET_BYTES(at, n) ((~0ULL << (64 - 8 * (n))) >> 8 * (at))
#endif

/* Bits of an address that each table looks at. */
#define SET_CUT4(i) (16 + 8 * (i))
#define SET_CUT6(i) (32 << (i))

/* What table i looks at in an address, reduced to one word. */
set_inline __u64 set_cut4(__u64 addr, __u32 dst, __u32 i)
{
	return addr & SET_BYTES(dst ? 4 : 0, 2 + i);
}

set_inline __u64 set_cut6(const __u64 *addr, __u32 i)
{
	if (i == 0)
		return addr[0] & SET_BYTES(0, 4);
	return i == 1 ? addr[0] : addr[0] ^ addr[1] * SET_MIX5;
}

/* Word of a table of candidates for a value. */
set_inline __u32 set_near_at(__u64 value)
{
	value ^= value >> 32;
	return value * SET_MIX0 >> 52;
}

/* Number of the lowest bit set: BPF has no instruction for it. */
set_inline __u32 set_lowest_at(__u64 bits)
{
	return (bits & -bits) * 0x03f79d71b4cb0a89ULL >> 58;
}

#endif
