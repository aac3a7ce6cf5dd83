/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * Frames built by hand, for parse_test.c and steer_test.c. A frame grows from the front; lengths in
 * IP headers are those of what the builder is told follows, right or wrong as the test wants it.
 */
#ifndef XDPATH_TEST_FRAMES_H
#define XDPATH_TEST_FRAMES_H

#include <stdint.h>
#include <string.h>

struct frame {
	uint8_t b[12000];
	uint32_t len;
};

static inline void put(struct frame *f, const void *data, uint32_t n)
{
	memcpy(f->b + f->len, data, n);
	f->len += n;
}

static inline void put_fill(struct frame *f, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		f->b[f->len++] = (uint8_t)(0x5a + i);
}

static inline void put16(struct frame *f, unsigned int v)
{
	f->b[f->len++] = (uint8_t)(v >> 8);
	f->b[f->len++] = (uint8_t)v;
}

/* Addresses, tags (0 ends them), type. */
static inline void put_ether(struct frame *f, unsigned int tpid1, unsigned int tpid2,
			     unsigned int type)
{
	static const uint8_t addresses[12] = {2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1};

	f->len = 0;
	put(f, addresses, sizeof(addresses));
	if (tpid1) {
		put16(f, tpid1);
		put16(f, 7);
	}
	if (tpid2) {
		put16(f, tpid2);
		put16(f, 8);
	}
	put16(f, type);
}

/* header: bytes of the header, options of no operation; payload: bytes it says follow. */
static inline void put_ipv4(struct frame *f, uint8_t proto, uint32_t header, uint32_t payload,
			    unsigned int fragment)
{
	static const uint8_t addresses[8] = {10, 77, 0, 1, 10, 77, 0, 2};

	f->b[f->len++] = (uint8_t)(0x40 | header / 4);
	f->b[f->len++] = 0;
	put16(f, header + payload);
	put16(f, 1);
	put16(f, fragment);
	f->b[f->len++] = 64;
	f->b[f->len++] = proto;
	put16(f, 0);
	put(f, addresses, sizeof(addresses));
	for (uint32_t i = 20; i < header; i++)
		f->b[f->len++] = 1;
}

static inline void put_ipv6(struct frame *f, uint8_t next, uint32_t payload)
{
	static const uint8_t address[16] = {0xfd, 0x77};

	put16(f, 0x6000);
	put16(f, 0);
	put16(f, payload);
	f->b[f->len++] = next;
	f->b[f->len++] = 255;
	put(f, address, sizeof(address));
	put(f, address, sizeof(address));
}

/* An extension header of 8 bytes and more * 8; padding inside. */
static inline void put_ext(struct frame *f, uint8_t next, uint8_t more)
{
	f->b[f->len++] = next;
	f->b[f->len++] = more;
	put_fill(f, 6 + more * 8U);
}

static inline void put_fragment(struct frame *f, uint8_t next, unsigned int offset_and_more)
{
	f->b[f->len++] = next;
	f->b[f->len++] = 0;
	put16(f, offset_and_more);
	put16(f, 0);
	put16(f, 9);
}

static inline void frame_arp(struct frame *f, unsigned int tpid1, unsigned int tpid2)
{
	put_ether(f, tpid1, tpid2, 0x0806);
	put_fill(f, 28);
}

static inline void frame_v4(struct frame *f, unsigned int tpid1, unsigned int tpid2, uint8_t proto)
{
	put_ether(f, tpid1, tpid2, 0x0800);
	put_ipv4(f, proto, 20, 16, 0);
	put_fill(f, 16);
}

static inline void frame_v6(struct frame *f, unsigned int tpid1, unsigned int tpid2, uint8_t proto)
{
	put_ether(f, tpid1, tpid2, 0x86dd);
	put_ipv6(f, proto, 16);
	put_fill(f, 16);
}

/* Behind a hop-by-hop header, as multicast listener reports and some ND come. */
static inline void frame_v6_hop(struct frame *f, unsigned int tpid1, unsigned int tpid2,
				uint8_t proto)
{
	put_ether(f, tpid1, tpid2, 0x86dd);
	put_ipv6(f, 0, 8 + 16);
	put_ext(f, proto, 0);
	put_fill(f, 16);
}

/* xorshift: the same frames in every run. */
static inline uint32_t frame_random(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return (uint32_t)(*seed >> 16);
}

/* A frame that is mostly right: random tags, headers and chain, then now and then a byte changed or
 * the end cut off. At least 14 bytes. */
static inline void frame_any(struct frame *f, uint64_t *seed)
{
	static const unsigned int tpid[] = {0, 0, 0, 0x8100, 0x88a8, 0x9100};
	static const uint8_t proto[] = {1, 6, 17, 58, 58, 50, 59, 0, 43, 44, 51, 60, 60};
	uint32_t r = frame_random(seed), exts = frame_random(seed) % 11;
	unsigned int tpid1 = tpid[r % 6], tpid2 = tpid1 ? tpid[r / 6 % 6] : 0;
	uint32_t len_at, size;

	if (r % 7 == 0) {
		frame_arp(f, tpid1, tpid2);
	} else if (r % 7 < 3) {
		put_ether(f, tpid1, tpid2, 0x0800);
		put_ipv4(f, proto[frame_random(seed) % 13], 20 + frame_random(seed) % 11 * 4, 24,
			 frame_random(seed) % 4 ? 0 : 0x2000);
		put_fill(f, 24 + frame_random(seed) % 40);
	} else {
		uint8_t last = proto[frame_random(seed) % 13];

		put_ether(f, tpid1, tpid2, 0x86dd);
		len_at = f->len + 4;
		put_ipv6(f, exts ? proto[7 + frame_random(seed) % 6] : last, 0);
		for (uint32_t i = 0; i < exts; i++) {
			uint8_t next = i + 1 < exts ? proto[7 + frame_random(seed) % 6] : last;

			if (frame_random(seed) % 5)
				put_ext(f, next, (uint8_t)(frame_random(seed) % 3));
			else
				put_fragment(f, next, frame_random(seed) % 2 ? 0 : 1);
		}
		put_fill(f, 24);
		/* Now and then less than its own headers need. */
		size = f->len - len_at - 36;
		size -= frame_random(seed) % 8 ? 0 : frame_random(seed) % size;
		f->b[len_at] = (uint8_t)(size >> 8);
		f->b[len_at + 1] = (uint8_t)size;
	}
	if (frame_random(seed) % 4 == 0)
		f->b[12 + frame_random(seed) % (f->len - 12)] = (uint8_t)frame_random(seed);
	if (frame_random(seed) % 4 == 0)
		f->len = 14 + frame_random(seed) % (f->len - 13);
}

#endif
