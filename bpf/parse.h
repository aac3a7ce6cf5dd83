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
	XP_PROTO_TCP = 6,
	XP_PROTO_UDP = 17,
	XP_PROTO_ROUTING = 43,
	XP_PROTO_FRAGMENT = 44,
	XP_PROTO_AH = 51,
	XP_PROTO_ICMPV6 = 58,
	XP_PROTO_DSTOPTS = 60,
	XP_PROTO_SCTP = 132,
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
	__u16 vlan;	 /* id of the outermost tag, if vlans */
	__u8 vlans;
	__u8 ip;       /* 4, 6, or 0 for anything else */
	__u8 proto;    /* the upper protocol; valid with ip and XP_OK */
	__u8 fragment; /* 1: a piece of an IP packet, the first one too */
	__u8 later;    /* 1: not the first one: no upper header in it */
	__u32 rest;    /* bytes of the IP packet from l4 on */
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
		if (i == 0)
			h->vlan = xp_be16(p) & 0xfff;
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
	h->later = (xp_be16(p + 6) & 0x1fff) != 0;
	h->proto = p[9];
	h->rest = total - header;
	h->l4 = h->l3 + header;
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
 * One extension header, at offset `at`, of protocol number `proto`: the offset of what follows it,
 * that one's number from bit 16 on, and from bit 32 on the bits that are set if it says that this
 * is a piece of a packet (an offset or "more"; else the whole packet is in the one piece). 0: the
 * frame ends before.
 */
XP_INLINE __u64 xp_ext_at(const __u8 *data, const __u8 *end, __u64 at, __u8 proto)
{
	const __u8 *p = data;
	__u32 fragment = xp_same(proto, XP_PROTO_FRAGMENT);
	__u32 unit = 8 - 8 * fragment - 4 * xp_same(proto, XP_PROTO_AH); /* of the length, bytes */
	__u32 piece, size;

	if (!XP_ADV(p, at, 0x7fff, end) || !XP_HAS(p, 8, end))
		return 0;
	proto = p[0];
	piece = (xp_be16(p + 2) & 0xfff9) * fragment;
	size = p[1] * unit + 8;
	if (!XP_ADV(p, size, 0xffc, end))
		return 0;
	return at + size + ((__u64)proto << 16) + ((__u64)piece << 32);
}

/*
 * A frame: data..end is its first fragment; whole is its length in bytes with all further fragments
 * (at least end - data). ctx is BPF's.
 */
struct xp_frame {
	const __u8 *data, *end;
	__u32 whole;
	void *ctx;
};

#ifdef __bpf__
/* A function of its own: what is known after it does not depend on the way through it, and the
 * verifier's ways do not multiply with each header. */
__noinline __u64 xp_ext(struct xdp_md *ctx, __u32 at, __u32 proto)
{
	return xp_ext_at((const __u8 *)(long)ctx->data, (const __u8 *)(long)ctx->data_end, at,
			 (__u8)proto);
}
#define XP_EXT(f, at, proto) xp_ext((f)->ctx, at, proto)
#else
#define XP_EXT(f, at, proto) xp_ext_at((f)->data, (f)->end, at, proto)
#endif

/*
 * Extension headers behind a fragment header are not followed: only the first piece has them, and
 * the pieces of a packet shall be judged alike.
 */
XP_INLINE enum xp_status xp_ipv6(const struct xp_frame *f, const __u8 **pos, struct xp_headers *h)
{
	const __u8 *p = *pos;
	__u32 left, piece = 0, headers, room = f->whole - h->l3;
	__u64 at = h->l3 + 40, next;
	__u8 proto;

	if (!XP_HAS(p, 40, f->end))
		return XP_SHORT;
	if (p[0] >> 4 != 6)
		return XP_BAD;
	left = xp_be16(p + 4);
	if (left + 40 > room)
		return XP_SHORT;
	if (!left) /* a jumbogram gives its length elsewhere */
		left = room - 40;
	proto = p[6];
#ifdef __bpf__
#pragma unroll
#endif
	for (int i = 0; i < XP_EXTS_MAX; i++) {
		if (!xp_is_ext(proto))
			break;
		if (piece)
			return XP_DEEP;
		next = XP_EXT(f, at, proto);
		if (!next)
			return XP_SHORT;
		at = next & 0xffff;
		proto = next >> 16 & 0xff;
		piece = next >> 32;
	}
	h->fragment = piece != 0;
	h->later = piece > 1;
	if (xp_is_ext(proto))
		return XP_DEEP;
	headers = at - h->l3;
	if (headers > left + 40) /* they outgrow the packet */
		return XP_BAD;
	h->rest = left + 40 - headers;
	h->proto = proto;
	p = f->data;
	if (!XP_ADV(p, at, 0x7fff, f->end))
		return XP_SHORT;
	*pos = p;
	h->l4 = at;
	return XP_OK;
}

/* A frame that is not IP is XP_OK with ip 0. *pos: what follows the headers. */
XP_INLINE enum xp_status xp_headers_of(const struct xp_frame *f, const __u8 **pos,
				       struct xp_headers *h)
{
	enum xp_status st;

	*h = (struct xp_headers){0};
	*pos = f->data;
	st = xp_ether(pos, f->end, h);
	if (st != XP_OK)
		return st;
	if (h->ethertype == XP_ETH_IPV4) {
		h->ip = 4;
		return xp_ipv4(pos, f->end, f->whole - h->l3, h);
	}
	if (h->ethertype == XP_ETH_IPV6) {
		h->ip = 6;
		return xp_ipv6(f, pos, h);
	}
	return XP_OK;
}

#ifndef __bpf__
/* The same for C. */
XP_INLINE enum xp_status xp_parse(const void *data, const void *end, __u32 whole,
				  struct xp_headers *h)
{
	const struct xp_frame f = {.data = data, .end = end, .whole = whole};
	const __u8 *pos;

	return xp_headers_of(&f, &pos, h);
}
#endif

/* ---- what rules ask of a frame ---- */

/* In the 16 bits of a key that hold the VLAN id. */
#define XP_KEY_TAGGED 0x1000U
#define XP_KEY_IP     0x2000U
#define XP_KEY_PORTS  0x4000U /* an upper header with ports is there, and in TCP's case flags */

/*
 * All of it in words, so that a mask picks what a rule asks for. Addresses are as they stand in the
 * frame; absent fields are zero.
 */
struct xp_key {
	__u64 meta;    /* see xp_meta() */
	__u64 ports;   /* source | destination << 16; the upper half is the matcher's */
	__u64 addr[4]; /* IPv4: source and destination in the first word; IPv6: two words each */
};

XP_INLINE __u64 xp_meta(__u16 ethertype, __u16 vlan, __u16 queue, __u8 proto, __u8 flags)
{
	return ethertype | (__u64)vlan << 16 | (__u64)queue << 32 | (__u64)proto << 48 |
	       (__u64)flags << 56;
}

XP_INLINE __u64 xp_word(const __u8 *p)
{
#ifdef __bpf__
	return *(const __u64 *)p;
#else
	__u64 v;

	__builtin_memcpy(&v, p, sizeof(v));
	return v;
#endif
}

/* Ports and flags of the protocols that have them. A header that is not whole is XP_SHORT. */
XP_INLINE enum xp_status xp_upper(const __u8 *p, const __u8 *end, const struct xp_headers *h,
				  struct xp_key *k, __u8 *flags)
{
	if (h->proto == XP_PROTO_TCP) {
		if (h->rest < 20 || !XP_HAS(p, 20, end))
			return XP_SHORT;
		*flags = p[13];
	} else if (h->proto == XP_PROTO_UDP) {
		if (h->rest < 8 || !XP_HAS(p, 8, end))
			return XP_SHORT;
	} else if (h->proto == XP_PROTO_SCTP) {
		if (h->rest < 12 || !XP_HAS(p, 12, end))
			return XP_SHORT;
	} else {
		return XP_OK;
	}
	k->ports = xp_be16(p) | (__u64)xp_be16(p + 2) << 16;
	return XP_OK;
}

/* The key of a frame that came in on `queue`; headers in *h. */
XP_INLINE enum xp_status xp_key_of(const struct xp_frame *f, __u32 queue, struct xp_headers *h,
				   struct xp_key *k)
{
	const __u8 *p, *ip;
	enum xp_status st = xp_headers_of(f, &p, h);
	__u16 vlan = 0;
	__u8 flags = 0;

	*k = (struct xp_key){0};
	if (st != XP_OK)
		return st;
	ip = f->data + h->l3;
	if (h->ip == 4) {
		if (!XP_HAS(ip, 20, f->end)) /* known, but not to the verifier */
			return XP_SHORT;
		k->addr[0] = xp_word(ip + 12);
	} else if (h->ip == 6) {
		if (!XP_HAS(ip, 40, f->end))
			return XP_SHORT;
		k->addr[0] = xp_word(ip + 8);
		k->addr[1] = xp_word(ip + 16);
		k->addr[2] = xp_word(ip + 24);
		k->addr[3] = xp_word(ip + 32);
	}
	if (h->vlans)
		vlan = h->vlan | XP_KEY_TAGGED;
	if (h->ip) {
		vlan |= XP_KEY_IP;
		if (!h->later) {
			st = xp_upper(p, f->end, h, k, &flags);
			if (h->proto == XP_PROTO_TCP || h->proto == XP_PROTO_UDP ||
			    h->proto == XP_PROTO_SCTP)
				vlan |= XP_KEY_PORTS;
		}
	}
	k->meta = xp_meta(h->ethertype, vlan, (__u16)queue, h->proto, flags);
	return st;
}

#endif
