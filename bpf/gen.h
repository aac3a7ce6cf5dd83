/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * What a generated frame looks like and when it is due. Compiles for BPF (gen.bpf.c) and as plain C
 * (user/cmd), so that both engines of `source` send the same bytes: frame number `seq` is a pure
 * function of the plan, the number and the time.
 */
#ifndef XDPATH_GEN_H
#define XDPATH_GEN_H

#include <linux/types.h>

#define GEN_ETH	       14
#define GEN_TAG	       4
#define GEN_IP4	       20
#define GEN_IP6	       40
#define GEN_UDP	       8
#define GEN_STAMP      16 /* sequence number and time, see user/cmd/packet.h */
#define GEN_HEAD       88 /* headers and stamp, 82 at most, in whole 64-bit words */
#define GEN_SIZES      12 /* a pattern of sizes, one round of it */
#define GEN_SIZES_ROOM 16

#define GEN_PORT_FIRST 1024U /* where source ports go on after 65535 */
#define GEN_PORT_SPAN  (65536U - GEN_PORT_FIRST)

#define GEN_FRACTION 20 /* bits below the nanosecond in a gap */

/* What a stall left undone is caught up at four times the rate (2^2), not in one burst. */
#define GEN_CATCH_UP 2

#define gen_inline static inline __attribute__((always_inline))

/* All that the frames have in common. */
struct gen_plan {
	__u8 head[GEN_HEAD] __attribute__((aligned(8))); /* headers; zero where a frame writes */
	__u32 ip_sum;	  /* one's complement sum of the IPv4 header's constant words */
	__u32 udp_sum;	  /* ... of the pseudo header's and the UDP header's */
	__u32 v6;	  /* 1: IPv6 */
	__u32 tagged;	  /* 1: an 802.1Q tag stands before the EtherType */
	__u32 sport;	  /* of flow 0 */
	__u32 flows;	  /* 1..GEN_PORT_SPAN, one source port each, in turn */
	__u32 size_first; /* sizes first .. first + span - 1, in turn */
	__u32 size_span;  /* 0: the pattern below */
	__u32 size_longest;
	__u32 sizes[GEN_SIZES_ROOM];
	__u32 reserved;
};

/* When the next frame is due. A gap is kept in 2^-20 ns, so that a rate holds over hours. */
struct gen_pace {
	__u64 gap;	/* between frames; 0 and 0: as fast as can be */
	__u64 gap_byte; /* and for each byte of a frame, for a rate in bits per second */
	__u64 next_ns;	/* CLOCK_MONOTONIC */
	__u64 fraction; /* of next_ns */
};

gen_inline __u32 gen_size(const struct gen_plan *p, __u64 seq)
{
	__u32 i;

	if (p->size_span == 1)
		return p->size_first;
	if (p->size_span)
		return p->size_first + (__u32)(seq % p->size_span);
	i = (__u32)(seq % GEN_SIZES);
	/* The verifier does not follow a remainder; a mask it does, if the compiler leaves it
	 * there. */
	__asm__("" : "+r"(i));
	return p->sizes[i & (GEN_SIZES_ROOM - 1)];
}

gen_inline __u32 gen_sport(const struct gen_plan *p, __u64 seq)
{
	__u32 port = p->sport;

	if (p->flows > 1)
		port += (__u32)(seq % p->flows);
	return port > 65535 ? port - GEN_PORT_SPAN : port;
}

/* The gap after a frame of `size` bytes. */
gen_inline __u64 gen_pace_gap(const struct gen_pace *t, __u32 size)
{
	return t->gap + t->gap_byte * size;
}

gen_inline void gen_pace_step(struct gen_pace *t, __u64 gap)
{
	t->fraction += gap & ((1ULL << GEN_FRACTION) - 1);
	t->next_ns += (gap >> GEN_FRACTION) + (t->fraction >> GEN_FRACTION);
	t->fraction &= (1ULL << GEN_FRACTION) - 1;
}

gen_inline void gen_put16(__u8 *p, __u32 v)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	*(__u16 *)p = __builtin_bswap16((__u16)v);
#else
	*(__u16 *)p = (__u16)v;
#endif
}

/* As two words of four bytes: the stamp stands at an even offset, not at a multiple of eight. */
gen_inline void gen_put64(__u8 *p, __u64 v)
{
	gen_put16(p, (__u32)(v >> 48));
	gen_put16(p + 2, (__u32)(v >> 32));
	gen_put16(p + 4, (__u32)(v >> 16));
	gen_put16(p + 6, (__u32)v);
}

gen_inline __u32 gen_sum64(__u64 v)
{
	return (__u32)(v >> 48) + (__u32)(v >> 32 & 0xffff) + (__u32)(v >> 16 & 0xffff) +
	       (__u32)(v & 0xffff);
}

gen_inline __u32 gen_fold(__u32 sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return ~sum & 0xffff;
}

/*
 * Write what is particular to frame number `seq` into `head`, GEN_HEAD bytes that hold the plan's
 * head or an earlier frame's. The payload past the stamp is zero and adds nothing to the sum. `l3`
 * and `v6` repeat the plan as constants, so that the BPF verifier sees fixed offsets.
 */
gen_inline void gen_stamp(__u8 *head, const struct gen_plan *p, __u32 l3, __u32 v6, __u32 size,
			  __u64 seq, __u64 now)
{
	__u32 l4 = l3 + (v6 ? GEN_IP6 : GEN_IP4), udp = size - l4, payload = udp - GEN_UDP;
	__u32 sport = gen_sport(p, seq), sum;

	if (payload < 8)
		seq = 0;
	if (payload < GEN_STAMP)
		now = 0;
	if (v6) {
		gen_put16(head + l3 + 4, udp);
	} else {
		gen_put16(head + l3 + 2, size - l3);
		gen_put16(head + l3 + 10, gen_fold(p->ip_sum + size - l3));
	}
	gen_put16(head + l4, sport);
	gen_put16(head + l4 + 4, udp);
	gen_put64(head + l4 + GEN_UDP, seq);
	gen_put64(head + l4 + GEN_UDP + 8, now);
	/* The length counts twice: in the pseudo header and in the UDP header. */
	sum = gen_fold(p->udp_sum + sport + 2 * udp + gen_sum64(seq) + gen_sum64(now));
	gen_put16(head + l4 + 6, sum ? sum : 0xffff);
}

/* ---- the live engine's maps ---- */

#define GEN_LATE_NS  1000000000ULL /* frames later than this are given up, not sent in a burst */
#define GEN_GRACE_NS 20000000ULL   /* past the end, for frames that were due before it */

/* Map gen_config, ARRAY[1]; written before the run, read only by the program. */
struct gen_config {
	struct gen_plan plan;
	__u64 count;	   /* frames to send; 0: no limit */
	__u64 duration_ns; /* 0: no limit */
	__u32 ifindex;	   /* device that sends */
	__u32 reserved;
};

/* Map gen_state, ARRAY[1], mmapable; written by the program, pace.gap and gap_byte by user space.
 */
struct gen_state {
	__u8 head[GEN_HEAD] __attribute__((aligned(8)));
	struct gen_pace pace;
	__u64 started;	   /* 1 once the program ran */
	__u64 first_ns;	   /* time of the first frame */
	__u64 last_ns;	   /* and of the last */
	__u64 earliest_ns; /* the next frame goes out at this time at the earliest */
	__u64 frames;	   /* redirected to the device; also the next sequence number */
	__u64 bytes;
	__u64 sent;    /* of frames: the device took them */
	__u64 dropped; /* the device was asked and refused: its ring is full, or it is down */
	__u64 pending; /* redirected and not yet seen at the device */
	__u64 resize_failed;
	__u64 task; /* that runs the program */
	__u64 done; /* 1: count or duration reached */
};

#endif
