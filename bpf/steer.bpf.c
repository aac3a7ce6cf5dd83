/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The steering program: which frames reach the AF_XDP socket of their queue, which the kernel
 * keeps, and what else rules say.
 *
 * Loaded by user/lib/prog.c or by any other XDP loader. All configuration lies in maps, so that it
 * can be found and changed by whoever finds the program; zeros in them mean that the kernel keeps
 * everything. What finds no socket goes to the kernel; only a rule drops.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <xdp/xdp_helpers.h>

#include <xdpath/shared.h>
#include "match.h"

/* Beside other programs (libxdp's dispatcher): early, and what is passed goes on to the next. */
struct {
	__uint(priority, 20);
	__uint(XDP_PASS, 1);
} XDP_RUN_CONFIG(xdpath_steer);

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, XDPATH_LAYOUT);
	__type(key, __u32);
	__type(value, struct xdpath_meta);
} xdpath_meta SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct xdpath_config);
} xdpath_config SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, XDPATH_V_ENTRIES);
	__type(key, __u32);
	__type(value, struct xdpath_verdict_count);
} xdpath_stats SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__uint(max_entries, XDPATH_QUEUES);
	__type(key, __u32);
	__type(value, __u32);
} xsks_map SEC(".maps");

/* Mapped by who builds it; so its buckets start cache lines, too. */
struct rule_set {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, 4);
	__uint(value_size, sizeof(struct xdpath_set));
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, XDPATH_SET_SLOTS);
	__uint(key_size, 4);
	__array(values, struct rule_set);
} xdpath_rules SEC(".maps");

/* For user space only: of any length. */
struct rule_source {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE | BPF_F_INNER_MAP);
	__uint(max_entries, 1);
	__uint(key_size, 4);
	__uint(value_size, XDPATH_SOURCE_PAGE);
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, XDPATH_SOURCE_SLOTS);
	__uint(key_size, 4);
	__array(values, struct rule_source);
} xdpath_source SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, XDPATH_COUNT_PAGES);
	__uint(key_size, 4);
	__uint(value_size, sizeof(struct xdpath_count_page));
} xdpath_counts SEC(".maps");

/* Of any size: it costs memory only once a rule mirrors. */
struct ring {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__uint(key_size, 4);
	__array(values, struct ring);
} xdpath_mirror SEC(".maps");

static __always_inline void count(__u32 verdict, __u32 len)
{
	struct xdpath_verdict_count *v = bpf_map_lookup_elem(&xdpath_stats, &verdict);

	if (v) {
		v->packets++;
		v->bytes += len;
	}
}

static __always_inline void count_rule(__u64 what, __u32 len)
{
	__u32 page = SET_COUNT(what) / XDPATH_COUNT_PAGE;
	__u64 at = SET_COUNT(what) % XDPATH_COUNT_PAGE;
	struct xdpath_count_page *p = bpf_map_lookup_elem(&xdpath_counts, &page);

	asm volatile("" : "+r"(at));
	at &= XDPATH_COUNT_PAGE - 1;
	if (p) {
		p->count[at].packets++;
		p->count[at].bytes += len;
	}
}

/* clang may test a copy of the register that is then used: the mask holds for both. */
static __always_inline const struct set_rule *rule_at(const struct xdpath_set *set, __u64 rank)
{
	rank &= 0x3fff;
	asm volatile("" : "+r"(rank));
	return rank < SET_RULES ? &set->rule[rank] : (void *)0;
}

static __always_inline __u32 filter_rank(const struct xdpath_set *set, __u64 n)
{
	n &= SET_FILTERS - 1;
	asm volatile("" : "+r"(n));
	return set->filter_rank[n];
}

/* ---- functions that the verifier takes one by one ---- */

/* Reserved for filters, see XDPATH_FILTER_MAGIC. */
__noinline int xp_filter(struct xdp_md *ctx, __u32 from)
{
	register int found asm("r0");

	/* The verifier knows that the jump is taken: what it jumps over goes at once. Jumps to the
	 * next instruction would be taken out one by one, each time with a pass over the program.
	 */
	asm volatile("%0 = %1\n\t"
		     "if %0 >= %1 goto +%2\n\t"
		     ".rept %2\n\t"
		     "goto +0\n\t"
		     ".endr"
		     : "=r"(found)
		     : "i"(XDPATH_FILTER_MAGIC), "i"(XDPATH_FILTER_INSNS - 2), "r"(ctx), "r"(from)
		     : "memory");
	return found;
}

static __always_inline struct xp_frame frame_of(struct xdp_md *ctx, __u32 len)
{
	return (struct xp_frame){
		.data = (const __u8 *)(long)ctx->data,
		.end = (const __u8 *)(long)ctx->data_end,
		.whole = len,
		.ctx = ctx,
	};
}

/* The frame's key: 4 or 6 for the family to search, 0 if it is not understood. */
__noinline int xp_key(struct xdp_md *ctx, struct xp_key *k, __u32 len)
{
	struct xp_frame f = frame_of(ctx, len);
	struct xp_headers h;

	if (!k || xp_key_of(&f, ctx->rx_queue_index, &h, k) != XP_OK)
		return 0;
	return h.ip == 6 ? 6 : 4;
}

/* ARP, ND and ICMP are what keeps the host reachable; what is not understood might be one of them.
 */
__noinline int xp_kernel_keeps(struct xdp_md *ctx, __u32 len)
{
	struct xp_frame f = frame_of(ctx, len);
	struct xp_headers h;
	const __u8 *pos;

	if (xp_headers_of(&f, &pos, &h) != XP_OK)
		return 1;
	if (h.ethertype == XP_ETH_ARP)
		return 1;
	return (h.ip == 4 && h.proto == XP_PROTO_ICMP) || (h.ip == 6 && h.proto == XP_PROTO_ICMPV6);
}

/* size is a constant and a power of two. The mask tells older kernels that there is a byte to copy,
 * and no more than size. */
static __always_inline int copy_sized(struct xdp_md *ctx, void *ring, __u32 size, __u64 kept,
				      const struct xdpath_copy *head)
{
	struct xdpath_copy *c = bpf_ringbuf_reserve(ring, sizeof(*c) + size, 0);

	if (!c)
		return 0;
	*c = *head;
	kept = (kept - 1) & (size - 1);
	asm volatile("" : "+r"(kept));
	if (bpf_xdp_load_bytes(ctx, 0, c + 1, kept + 1)) {
		bpf_ringbuf_discard(c, 0);
		return 0;
	}
	bpf_ringbuf_submit(c, 0);
	return 1;
}

/* 1: a copy of the frame is in the ring buffer. */
static __always_inline int copy(struct xdp_md *ctx, const struct set_rule *r, __u32 len)
{
	__u32 zero = 0, kept = len < r->value ? len : r->value;
	void *ring = bpf_map_lookup_elem(&xdpath_mirror, &zero);
	struct xdpath_copy head = {
		.time_ns = bpf_ktime_get_ns(),
		.ifindex = ctx->ingress_ifindex,
		.queue = ctx->rx_queue_index,
		.length = len,
		.kept = kept,
		.rule = r->id,
	};

	if (!ring)
		return 0;
	if (kept <= 128)
		return copy_sized(ctx, ring, 128, kept, &head);
	if (kept <= 512)
		return copy_sized(ctx, ring, 512, kept, &head);
	return copy_sized(ctx, ring, 2048, kept, &head);
}

/* What the best filter says, if it is better than `what`: from filter number `from` on. */
__noinline __u64 xp_ask_filters(struct xdp_md *ctx, struct xdpath_set *set, __u32 from, __u64 what)
{
	const struct set_rule *r;
	__u32 n, rank;

	if (!set || from >= set->nfilters || filter_rank(set, from) >= SET_RANK(what))
		return what;
	n = xp_filter(ctx, from) - 1;
	if (n >= set->nfilters)
		return what;
	rank = filter_rank(set, n);
	r = rule_at(set, rank);
	return r && rank < SET_RANK(what) ? SET_WHAT(rank, r->count, r->action) : what;
}

/* Do what a mirror rule says. The filter to go on with if the rule is one, else 0. */
__noinline __u32 xp_mirror(struct xdp_md *ctx, struct xdpath_set *set, __u64 what)
{
	__u32 len = bpf_xdp_get_buff_len(ctx);
	const struct set_rule *r = set ? rule_at(set, SET_RANK(what)) : (void *)0;

	if (!r)
		return 0;
	count_rule(what, len);
	count(copy(ctx, r, len) ? XDPATH_V_COPIED : XDPATH_V_UNCOPIED, len);
	return r->filter;
}

/* ---- the verdict ---- */

/* A packet on its way through the rules. */
struct passage {
	struct xdp_md *ctx;
	struct xdpath_set *set;
	struct hunt h;
	__u64 what; /* the rule found says */
	__u32 family;
	__u32 filter; /* to go on with */
};

static __always_inline void find_rule(struct passage *p)
{
	p->what = best_rule(p->set, &p->h, p->family);
	if (p->set->nfilters)
		p->what = xp_ask_filters(p->ctx, p->set, p->filter, p->what);
}

/* What was found is a mirror: do it and find the next. 1 ends it. */
static long go_on(__u32 i, struct passage *p)
{
	__u32 filter = xp_mirror(p->ctx, p->set, p->what);

	(void)i;
	if (filter)
		p->filter = filter;
	p->h.from = SET_RANK(p->what) + 1;
	find_rule(p);
	return SET_DO(p->what) != SET_MIRROR;
}

/* What a rule says, XDPATH_V_COUNT if none says anything; *action is what to return. */
static __always_inline __u32 by_rules(struct xdp_md *ctx, struct xdpath_set *set, __u32 len,
				      int *action, int *understood)
{
	struct passage p = {.ctx = ctx, .set = set};
	const struct set_rule *r;

	p.family = xp_key(ctx, &p.h.k, len);
	*understood = p.family != 0;
	if (!p.family)
		return XDPATH_V_COUNT;
	find_rule(&p);
	/* Rare, so a loop by a helper may cost: written out, 7.x takes long to verify it. */
	if (SET_DO(p.what) == SET_MIRROR)
		bpf_loop(SET_MIRRORS, go_on, &p, 0);
	if (p.what == SET_NOTHING)
		return XDPATH_V_COUNT;
	count_rule(p.what, len);
	switch (SET_DO(p.what)) {
	case SET_XSK: return XDPATH_V_XSK;
	case SET_DROP: *action = XDP_DROP; return XDPATH_V_DROP;
	case SET_TX: *action = XDP_TX; return XDPATH_V_TX;
	case SET_REDIRECT:
		r = rule_at(set, SET_RANK(p.what));
		if (r)
			*action = bpf_redirect(r->value, 0);
		return XDPATH_V_REDIRECT;
	default: return XDPATH_V_PASS;
	}
}

/* What becomes of a frame that no rule decides. */
static __always_inline __u32 by_default(struct xdp_md *ctx, __u32 len)
{
	__u32 zero = 0;
	const struct xdpath_config *c = bpf_map_lookup_elem(&xdpath_config, &zero);

	if (!c)
		return XDPATH_V_PASS;
	switch (c->steer) {
	case XDPATH_STEER_L2: return XDPATH_V_XSK;
	case XDPATH_STEER_ALL: return xp_kernel_keeps(ctx, len) ? XDPATH_V_KEPT : XDPATH_V_XSK;
	default: return XDPATH_V_PASS;
	}
}

/* The rules in force. Asked for once in a packet: the next answer may be another set. */
static __always_inline struct xdpath_set *rules_in_force(void)
{
	__u32 slot, zero = 0;
	void *set;

	asm volatile("%0 = %1" : "=r"(slot) : "i"(XDPATH_SLOT_MAGIC));
	slot &= 1;
	set = bpf_map_lookup_elem(&xdpath_rules, &slot);
	return set ? bpf_map_lookup_elem(set, &zero) : (void *)0;
}

SEC("xdp.frags")
int xdpath_steer(struct xdp_md *ctx)
{
	__u32 len = bpf_xdp_get_buff_len(ctx), verdict = XDPATH_V_COUNT;
	struct xdpath_set *set = rules_in_force();
	int action = XDP_PASS, understood = 1;

	/* The kernel lists only maps that the code names, and by these the program is known. */
	asm volatile("" : : "r"(&xdpath_meta), "r"(&xdpath_source));

	if (set)
		verdict = by_rules(ctx, set, len, &action, &understood);
	if (verdict == XDPATH_V_COUNT) {
		verdict = by_default(ctx, len);
		if (verdict == XDPATH_V_PASS && !understood)
			verdict = XDPATH_V_KEPT;
	}
	if (verdict == XDPATH_V_XSK) {
		/* The flags name what an empty slot and a queue past the map's end are to do. */
		action = bpf_redirect_map(&xsks_map, ctx->rx_queue_index, XDP_PASS);
		if (action != XDP_REDIRECT)
			verdict = XDPATH_V_NO_SOCKET;
	}
	count(verdict, len);
	return action;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
