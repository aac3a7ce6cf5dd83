/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The steering program: which frames reach the AF_XDP socket of their queue, which the kernel
 * keeps.
 *
 * Loaded by user/lib/prog.c or by any other XDP loader. All configuration lies in maps, so that it
 * can be found and changed by whoever finds the program. It drops nothing itself: what finds no
 * socket goes to the kernel.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <xdp/xdp_helpers.h>

#include <xdpath/shared.h>
#include "parse.h"

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
	__uint(max_entries, XDPATH_V_COUNT);
	__type(key, __u32);
	__type(value, struct xdpath_verdict_count);
} xdpath_stats SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__uint(max_entries, XDPATH_QUEUES);
	__type(key, __u32);
	__type(value, __u32);
} xsks_map SEC(".maps");

/* ARP, ND and ICMP are what keeps the host reachable; what is not understood might be one of them.
 */
static __always_inline int kernel_keeps(struct xdp_md *ctx, __u32 len)
{
	const void *data = (const void *)(long)ctx->data;
	const void *end = (const void *)(long)ctx->data_end;
	struct xp_headers h;

	if (xp_parse(data, end, len, &h) != XP_OK)
		return 1;
	if (h.ethertype == XP_ETH_ARP)
		return 1;
	return (h.ip == 4 && h.proto == XP_PROTO_ICMP) || (h.ip == 6 && h.proto == XP_PROTO_ICMPV6);
}

/* What shall become of the frame. Everything that decides belongs in here: rules too. */
static __always_inline enum xdpath_verdict steer_verdict(struct xdp_md *ctx, __u32 len)
{
	__u32 zero = 0;
	const struct xdpath_config *c = bpf_map_lookup_elem(&xdpath_config, &zero);

	if (!c)
		return XDPATH_V_PASS;
	switch (c->steer) {
	case XDPATH_STEER_L2: return XDPATH_V_XSK;
	case XDPATH_STEER_ALL: return kernel_keeps(ctx, len) ? XDPATH_V_KEPT : XDPATH_V_XSK;
	default: return XDPATH_V_PASS;
	}
}

static __always_inline void count(__u32 verdict, __u32 len)
{
	struct xdpath_verdict_count *v = bpf_map_lookup_elem(&xdpath_stats, &verdict);

	if (v) {
		v->packets++;
		v->bytes += len;
	}
}

SEC("xdp.frags")
int xdpath_steer(struct xdp_md *ctx)
{
	__u32 len = bpf_xdp_get_buff_len(ctx);
	__u32 verdict = steer_verdict(ctx, len);
	int action = XDP_PASS;

	/* The kernel lists only maps that the code names, and by this one the program is known. */
	asm volatile("" : : "r"(&xdpath_meta));

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
