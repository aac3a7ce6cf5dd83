/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The XDP programs of the conformance suite; loaded by net.c, which sets the variables. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#define META_LEN 32

struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__uint(max_entries, 64);
	__type(key, __u32);
	__type(value, __u32);
} conf_xsks SEC(".maps");

__u64 half_count;
__u64 meta_count;
int tail_delta;
int tail_error;
int store_error;

static __always_inline int to_socket(__u32 slot)
{
	return (int)bpf_redirect_map(&conf_xsks, slot, XDP_DROP);
}

SEC("xdp.frags")
int conf_redirect(struct xdp_md *ctx)
{
	return to_socket(ctx->rx_queue_index);
}

/* Drops every second packet. */
SEC("xdp.frags")
int conf_half(struct xdp_md *ctx)
{
	return half_count++ % 2 ? XDP_DROP : to_socket(ctx->rx_queue_index);
}

/* Puts a running number in front of the packet. */
SEC("xdp.frags")
int conf_meta(struct xdp_md *ctx)
{
	__u64 *meta;

	if (bpf_xdp_adjust_meta(ctx, -META_LEN))
		return XDP_DROP;
	meta = (void *)(long)ctx->data_meta;
	if ((void *)meta + META_LEN > (void *)(long)ctx->data)
		return XDP_DROP;
	*meta = meta_count++;
	return to_socket(ctx->rx_queue_index);
}

/* The last byte of the destination address names the slot. */
SEC("xdp.frags")
int conf_by_mac(struct xdp_md *ctx)
{
	const __u8 *data = (const void *)(long)ctx->data;

	if ((const void *)(data + 14) > (const void *)(long)ctx->data_end)
		return XDP_DROP;
	return to_socket(data[5]);
}

/* Cuts or grows the packet's end; what is new there begins with four bytes 0xa5. */
SEC("xdp.frags")
int conf_tail(struct xdp_md *ctx)
{
	const __u8 mark[4] = {0xa5, 0xa5, 0xa5, 0xa5};
	__u32 len = (__u32)bpf_xdp_get_buff_len(ctx);
	int err = (int)bpf_xdp_adjust_tail(ctx, tail_delta);

	if (err)
		tail_error = err;
	else if (tail_delta >= (int)sizeof(mark))
		store_error = (int)bpf_xdp_store_bytes(ctx, len, (void *)mark, sizeof(mark));
	return to_socket(ctx->rx_queue_index);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
