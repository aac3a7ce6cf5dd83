/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Bounded header parsers: Ethernet, VLAN tags, IPv4, IPv6 with its extension headers.
 *
 * Included by the XDP programs and, as plain C, by user space. Nothing at or past `end` is read, no
 * loop is open, nothing is allocated or kept. One source serves both only because of two macros:
 * the verifier learns a pointer's range when it is moved first and compared then, while in C a
 * pointer past the end may wrap, so there it is compared first.
 */
#ifndef XDPATH_PARSE_H
#define XDPATH_PARSE_H

#include <linux/types.h>

#define XP_INLINE static inline __attribute__((always_inline))

#define XP_VLANS_MAX 2 /* tags followed */
#define XP_EXTS_MAX  8 /* IPv6 extension headers followed */

enum xp_ethertype {
	XP_ETH_IPV4 = 0x0800,
	XP_ETH_ARP = 0x0806,
	XP_ETH_VLAN = 0x8100,
	XP_ETH_IPV6 = 0x86dd,
	XP_ETH_QINQ = 0x88a8,
	XP_ETH_QINQ_OLD = 0x9100,
};

enum xp_proto {
	XP_PROTO_HOPOPTS = 0,
	XP_PROTO_ICMP = 1,
	XP_PROTO_ROUTING = 43,
	XP_PROTO_FRAGMENT = 44,
	XP_PROTO_AH = 51,
	XP_PROTO_ICMPV6 = 58,
	XP_PROTO_DSTOPTS = 60,
};

enum xp_status {
	XP_OK = 0,
	XP_SHORT = 1, /* the frame ends before a header does, or before the IP packet does */
	XP_BAD = 2,   /* a header contradicts itself */
	XP_DEEP = 3,  /* more tags or extension headers than are followed */
};

struct xp_headers {
	__u16 ethertype; /* behind the VLAN tags, host order */
	__u16 l3;	 /* offset of what follows the Ethernet header and its tags */
	__u16 l4;	 /* offset of what follows the IP headers; 0 unless ip is set and XP_OK */
	__u8 vlans;
	__u8 ip;       /* 4, 6, or 0 for anything else */
	__u8 proto;    /* the upper protocol; valid with ip and XP_OK */
	__u8 fragment; /* 1: a piece of an IP packet, the first one too */
};

#ifdef __bpf__
/* n bytes (a constant) lie between p and end. */
#define XP_HAS(p, n, end) ((p) + (n) <= (end))
/*
 * Move p by n, at most mask; true if it is not past end. The empty asm keeps clang from testing a
 * copy of the register that is then added.
 */
#define XP_ADV(p, n, mask, end)                 \
	({                                      \
		__u64 xp_n_ = (n);              \
		xp_n_ &= (mask);                \
		asm volatile("" : "+r"(xp_n_)); \
		(p) += xp_n_;                   \
		(p) <= (end);                   \
	})
#else
#define XP_HAS(p, n, end) ((n) <= (end) - (p))
#define XP_ADV(p, n, mask, end)                               \
	({                                                    \
		__u64 xp_n_ = (__u64)(n) & (mask);            \
		int xp_fits_ = xp_n_ <= (__u64)((end) - (p)); \
		(p) += xp_fits_ ? xp_n_ : 0;                  \
		xp_fits_;                                     \
	})
#endif

/* Two bytes in network order. In C the frame may stand at any address; in BPF fields are even. */
XP_INLINE __u16 xp_be16(const __u8 *p)
{
#if defined(__bpf__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	return __builtin_bswap16(*(const __u16 *)p);
#else
	return (__u16)(p[0] << 8 | p[1]);
#endif
}

XP_INLINE int xp_is_vlan(__u16 ethertype)
{
	return ethertype == XP_ETH_VLAN || ethertype == XP_ETH_QINQ || ethertype == XP_ETH_QINQ_OLD;
}

/*
 * A header that says its own length and what follows it: those that the kernel takes for extension
 * headers too. A set of bits, not a switch: the verifier walks each case on its own.
 */
XP_INLINE int xp_is_ext(__u8 proto)
{
	const __u64 exts = 1ULL << XP_PROTO_HOPOPTS | 1ULL << XP_PROTO_ROUTING |
			   1ULL << XP_PROTO_FRAGMENT | 1ULL << XP_PROTO_AH |
			   1ULL << XP_PROTO_DSTOPTS;

	return proto < 64 && exts >> proto & 1;
}

/* Ethernet header and tags; leaves *pos behind them. */
XP_INLINE enum xp_status xp_ether(const __u8 **pos, const __u8 *end, struct xp_headers *h)
{
	const __u8 *p = *pos;

	if (!XP_HAS(p, 14, end))
		return XP_SHORT;
	h->ethertype = xp_be16(p + 12);
	h->l3 = 14;
	p += 14;
#ifdef __bpf__
#pragma unroll
#endif
	for (int i = 0; i < XP_VLANS_MAX; i++) {
		if (!xp_is_vlan(h->ethertype))
			break;
		if (!XP_HAS(p, 4, end))
			return XP_SHORT;
		h->ethertype = xp_be16(p + 2);
		h->l3 += 4;
		h->vlans++;
		p += 4;
	}
	*pos = p;
	return xp_is_vlan(h->ethertype) ? XP_DEEP : XP_OK;
}

/* room: bytes from the IP header to the frame's end, all fragments of the frame counted. */
XP_INLINE enum xp_status xp_ipv4(const __u8 **pos, const __u8 *end, __u32 room,
				 struct xp_headers *h)
{
	const __u8 *p = *pos;
	__u32 header, total;

	if (!XP_HAS(p, 20, end))
		return XP_SHORT;
	header = (p[0] & 0xf) * 4U;
	total = xp_be16(p + 2);
	if (p[0] >> 4 != 4 || header < 20 || total < header)
		return XP_BAD;
	if (total > room)
		return XP_SHORT;
	h->fragment = (xp_be16(p + 6) & 0x3fff) != 0; /* "more fragments" or an offset */
	h->proto = p[9];
	if (!XP_ADV(p, header, 0x3f, end))
		return XP_SHORT;
	*pos = p;
	return XP_OK;
}

/* 1 or 0 without a branch: each branch in a loop multiplies the paths that the verifier walks. */
XP_INLINE __u32 xp_same(__u64 a, __u64 b)
{
	a ^= b;
	asm volatile("" : "+r"(a));
	return (a - 1) >> 63;
}

/*
 * Extension headers behind a fragment header are not followed: only the first piece has them, and
 * the pieces of a packet shall be judged alike.
 */
XP_INLINE enum xp_status xp_ipv6(const __u8 **pos, const __u8 *end, __u32 room,
				 struct xp_headers *h)
{
	const __u8 *p = *pos;
	__u32 left, piece = 0;
	__u8 proto;

	if (!XP_HAS(p, 40, end))
		return XP_SHORT;
	if (p[0] >> 4 != 6)
		return XP_BAD;
	left = xp_be16(p + 4);
	if (left + 40 > room)
		return XP_SHORT;
	if (!left) /* a jumbogram gives its length elsewhere */
		left = room - 40;
	proto = p[6];
	p += 40;
#ifdef __bpf__
#pragma unroll
#endif
	for (int i = 0; i < XP_EXTS_MAX; i++) {
		__u32 fragment, unit; /* unit: of the length field, in bytes */

		if (!xp_is_ext(proto))
			break;
		if (piece)
			return XP_DEEP;
		if (!XP_HAS(p, 8, end))
			return XP_SHORT;
		fragment = xp_same(proto, XP_PROTO_FRAGMENT);
		unit = 8 - 8 * fragment - 4 * xp_same(proto, XP_PROTO_AH);
		/* An offset or "more": else the whole packet is in the one piece. */
		piece = (xp_be16(p + 2) & 0xfff9) * fragment;
		proto = p[0];
		if (!XP_ADV(p, p[1] * unit + 8, 0xffc, end))
			return XP_SHORT;
	}
	h->fragment = piece != 0;
	if (xp_is_ext(proto))
		return XP_DEEP;
	if ((__u32)(p - *pos) > left + 40) /* the headers outgrow the packet */
		return XP_BAD;
	h->proto = proto;
	*pos = p;
	return XP_OK;
}

/*
 * Parse the frame whose first fragment is data..end; whole is its length in bytes with all further
 * fragments (at least end - data). A frame that is not IP is XP_OK with ip 0.
 */
XP_INLINE enum xp_status xp_parse(const void *data, const void *end, __u32 whole,
				  struct xp_headers *h)
{
	const __u8 *p = data;
	enum xp_status st;

	*h = (struct xp_headers){0};
	st = xp_ether(&p, end, h);
	if (st != XP_OK)
		return st;
	if (h->ethertype == XP_ETH_IPV4) {
		h->ip = 4;
		st = xp_ipv4(&p, end, whole - h->l3, h);
	} else if (h->ethertype == XP_ETH_IPV6) {
		h->ip = 6;
		st = xp_ipv6(&p, end, whole - h->l3, h);
	}
	if (h->ip && st == XP_OK)
		h->l4 = (__u16)(p - (const __u8 *)data);
	return st;
}

#endif
