// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The live engine of `source`: run over and over by BPF_PROG_TEST_RUN on live frames, each run
 * either sends one frame out of a device or lets it go. Loaded by user/cmd/source_live.c, which
 * owns the maps. Every header and the stamp are written anew each time: the kernel hands the same
 * pages out again as the receiver left them, and fills them from the template only once. The
 * payload past the stamp is the template's zeros, as long as no receiver writes there in place.
 *
 * The program runs on one thread, so plain counters do.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "gen.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct gen_config);
} gen_config SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct gen_state);
} gen_state SEC(".maps");

static __always_inline void start(const struct gen_config *c, struct gen_state *s, __u64 now)
{
	__builtin_memcpy(s->head, c->plan.head, GEN_HEAD);
	s->pace.next_ns = now;
	s->first_ns = now;
	s->last_ns = now;
	s->task = bpf_get_current_task();
	s->started = 1;
}

/* True if a frame is to go out now. Marks the end when it has come. */
static __always_inline int due(const struct gen_config *c, struct gen_state *s, __u64 now)
{
	__u64 end = s->first_ns + c->duration_ns, paced = s->pace.gap | s->pace.gap_byte;

	if (c->count && s->frames >= c->count) {
		s->done = 1;
		return 0;
	}
	/* A paced run owes every frame that was due before its end, a stall at the end or not. */
	if (c->duration_ns &&
	    (paced ? s->pace.next_ns >= end || now >= end + GEN_GRACE_NS : now >= end)) {
		s->done = 1;
		return 0;
	}
	if (!paced)
		return 1;
	if (now < s->pace.next_ns || now < s->earliest_ns)
		return 0;
	if (now - s->pace.next_ns > GEN_LATE_NS)
		s->pace.next_ns = now - GEN_LATE_NS;
	return 1;
}

static __always_inline void stamp(const struct gen_plan *p, __u8 *head, __u32 size, __u64 seq,
				  __u64 now)
{
	if (p->v6) {
		if (p->tagged)
			gen_stamp(head, p, GEN_ETH + GEN_TAG, 1, size, seq, now);
		else
			gen_stamp(head, p, GEN_ETH, 1, size, seq, now);
	} else {
		if (p->tagged)
			gen_stamp(head, p, GEN_ETH + GEN_TAG, 0, size, seq, now);
		else
			gen_stamp(head, p, GEN_ETH, 0, size, seq, now);
	}
}

/* The head into the frame; past the frame's end the head holds zeros only. */
static __always_inline void write_head(const struct xdp_md *ctx, const __u8 *head)
{
	__u8 *data = (__u8 *)(long)ctx->data, *end = (__u8 *)(long)ctx->data_end;

	if (data + GEN_HEAD <= end) {
		__builtin_memcpy(data, head, GEN_HEAD);
		return;
	}
#pragma unroll
	for (int i = 0; i < GEN_HEAD; i += 2) {
		if (data + i + 2 > end) {
			if (data + i + 1 <= end)
				data[i] = head[i]; /* an earlier, longer frame's stamp was here */
			return;
		}
		*(__u16 *)(data + i) = *(const __u16 *)(head + i);
	}
}

SEC("xdp")
int xdpath_gen(struct xdp_md *ctx)
{
	__u32 key = 0, size;
	const struct gen_config *c = bpf_map_lookup_elem(&gen_config, &key);
	struct gen_state *s = bpf_map_lookup_elem(&gen_state, &key);
	__u64 now, seq, gap;

	if (!c || !s || s->done)
		return XDP_DROP;
	now = bpf_ktime_get_ns();
	if (!s->started)
		start(c, s, now);
	if (!due(c, s, now))
		return XDP_DROP;
	seq = s->frames;
	size = gen_size(&c->plan, seq);
	if (size != c->plan.size_longest &&
	    bpf_xdp_adjust_tail(ctx, (int)size - (int)c->plan.size_longest)) {
		s->resize_failed++;
		return XDP_DROP;
	}
	stamp(&c->plan, s->head, size, seq, now);
	write_head(ctx, s->head);
	gap = gen_pace_gap(&s->pace, size);
	gen_pace_step(&s->pace, gap);
	s->earliest_ns = now + (gap >> (GEN_FRACTION + GEN_CATCH_UP));
	s->frames = seq + 1;
	s->bytes += size;
	s->last_ns = now;
	s->pending++;
	return bpf_redirect(c->ifindex, 0);
}

/*
 * What became of the redirected frames: a redirect is only queued, and the device is asked at the
 * end of the batch, on the same task with softirqs off. Nothing else can come between.
 */
SEC("raw_tracepoint/xdp_devmap_xmit")
int xdpath_gen_sent(struct bpf_raw_tracepoint_args *ctx)
{
	__u32 key = 0, sent = (__u32)ctx->args[2], dropped = (__u32)ctx->args[3];
	struct gen_state *s = bpf_map_lookup_elem(&gen_state, &key);

	if (!s || !s->pending || s->task != bpf_get_current_task())
		return 0;
	s->sent += sent;
	s->dropped += dropped;
	s->pending -= sent + dropped < s->pending ? sent + dropped : s->pending;
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
