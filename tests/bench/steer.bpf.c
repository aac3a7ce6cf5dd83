/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Before each run of the program under test, the next of many flows is written into the packet:
 * BPF_PROG_TEST_RUN's `repeat` alone would run one packet again and again. Loaded by steer.c, which
 * puts the program into `next`: a tail call adds about a nanosecond, and the baseline (`pass`) pays
 * it too.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "steer_flow.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, BENCH_FLOWS);
	__type(key, __u32);
	__type(value, struct bench_flow);
} flows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} turn SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} next SEC(".maps");

SEC("xdp.frags")
int bench_write(struct xdp_md *ctx)
{
	__u8 *p = (__u8 *)(long)ctx->data, *end = (__u8 *)(long)ctx->data_end;
	__u32 zero = 0, at, *t = bpf_map_lookup_elem(&turn, &zero);
	const struct bench_flow *f;

	if (!t || p + 42 > end)
		return XDP_ABORTED;
	at = *t;
	*t = at + 1 < BENCH_FLOWS ? at + 1 : 0;
	f = bpf_map_lookup_elem(&flows, &at);
	if (!f)
		return XDP_ABORTED;
	p[23] = f->proto;
	*(__u64 *)(p + 26) = f->addr;
	*(__u32 *)(p + 34) = f->ports;
	bpf_tail_call(ctx, &next, 0);
	return XDP_ABORTED;
}

SEC("xdp.frags")
int bench_pass(struct xdp_md *ctx)
{
	(void)ctx;
	return XDP_PASS;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
