// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
/*
 * What the kernel says to each wrong (and right) call, part one: UMEM registration and rings. Our
 * validation and our messages are written from these answers.
 */
#include <errno.h>
#include <net/if.h>
#include <string.h>
#include <sys/socket.h>

#include "raw.h"

enum { HEADROOM_MOST = 1U << 30 }; /* plus n: so much more than the largest that is taken */

struct reg {
	int want; /* errno */
	uint32_t chunk, headroom, flags, md;
	uint64_t len;	/* 0: 1 MiB */
	uint32_t shift; /* of the area's start */
	bool metadata;	/* is about TX metadata: where the kernel has it */
};

static int reg_check(const void *arg)
{
	const struct reg *c = arg;
	uint8_t *area = raw_area(2 << 20, false);
	uint32_t most = c->chunk == 2048 ? conf->k.headroom_2k : conf->k.headroom_4k, headroom;
	int fd = raw_socket(), got;

	if (c->metadata && !conf->k.tx_metadata)
		return conf_skip("this kernel has no TX metadata");
	need(area && fd >= 0, "%s", strerror(errno));
	headroom = c->headroom >= HEADROOM_MOST ? most + c->headroom - HEADROOM_MOST : c->headroom;
	got = raw_reg(fd, area + c->shift, c->len ? c->len : 1 << 20, c->chunk, headroom, c->flags,
		      c->md);
	need(got == -c->want, "the kernel says %s, not %s", strerror(-got), strerror(c->want));
	return CONF_OK;
}

static int reg_twice(const void *arg)
{
	void *area = raw_area(1 << 20, false);
	int fd = raw_socket(), got;

	(void)arg;
	need(raw_reg(fd, area, 1 << 20, 4096, 0, 0, 0) == 0, "the first time");
	got = raw_reg(fd, area, 1 << 20, 4096, 0, 0, 0);
	need(got == -EBUSY, "%s", strerror(-got));
	return CONF_OK;
}

/* The struct as it was before it had flags. */
static int reg_old(const void *arg)
{
	struct raw_umem_reg reg = {.len = 1 << 20, .chunk_size = 4096, .flags = 0xffff};
	int fd = raw_socket();

	(void)arg;
	reg.addr = (uint64_t)(uintptr_t)raw_area(1 << 20, false);
	need(setsockopt(fd, SOL_XDP, XDP_UMEM_REG, &reg, 24) == 0, "%s", strerror(errno));
	return CONF_OK;
}

struct ring {
	int want, opt;
	uint32_t size;
	bool twice, bound;
};

static int ring_check(const void *arg)
{
	const struct ring *c = arg;
	struct raw r = {0};
	int fd, got;

	if (c->bound) {
		attempt(net_make(1500));
		attempt(raw_need(&r, &(struct raw_opts){.tx = RAW_NONE}));
		fd = r.e.fd;
	} else {
		fd = raw_socket();
	}
	if (c->twice)
		need(raw_ring(fd, c->opt, c->size) == 0, "the first time: %s", strerror(errno));
	got = raw_ring(fd, c->opt, c->size);
	need(got == -c->want, "the kernel says %s, not %s", strerror(-got), strerror(c->want));
	return CONF_OK;
}

static int reg_bound(const void *arg)
{
	struct raw r;
	int got;

	(void)arg;
	attempt(net_make(1500));
	attempt(raw_need(&r, &(struct raw_opts){0}));
	got = raw_reg(r.e.fd, r.e.area, r.size, 4096, 0, 0, 0);
	need(got == -EBUSY, "%s", strerror(-got));
	return CONF_OK;
}

/* Sizes and places come from the kernel: only their sense is checked. */
static int lengths(const void *arg)
{
	uint8_t buf[512];
	socklen_t len = sizeof(buf);
	struct xdp_mmap_offsets off;
	int fd = raw_socket();

	(void)arg;
	need(getsockopt(fd, SOL_XDP, XDP_STATISTICS, buf, &len) == 0 && len >= 24, "%u bytes", len);
	conf_note("statistics %u bytes, ", len);
	len = sizeof(off);
	need(getsockopt(fd, SOL_XDP, XDP_MMAP_OFFSETS, &off, &len) == 0 && len == sizeof(off),
	     "%u bytes", len);
	need(off.rx.producer != off.rx.consumer && off.rx.desc > off.rx.flags &&
		     off.fr.desc > off.fr.consumer,
	     "producer %llu consumer %llu flags %llu desc %llu", off.rx.producer, off.rx.consumer,
	     off.rx.flags, off.rx.desc);
	conf_note("ring offsets %u bytes: producer %llu, consumer %llu, flags %llu, desc %llu", len,
		  off.rx.producer, off.rx.consumer, off.rx.flags, off.rx.desc);
	return CONF_OK;
}

/* The library takes exactly the headroom that a recent kernel takes. */
static int lib_headroom(const void *arg)
{
	static const uint32_t frame[] = {4096, 2048};

	(void)arg;
	for (int i = 0; i < 2; i++) {
		uint32_t most = frame[i] - 256 - 320 - 128;
		uint32_t kernel = i ? conf->k.headroom_2k : conf->k.headroom_4k;
		struct xdpath_umem_opts o = XDPATH_OPTS_INIT(struct xdpath_umem_opts);
		struct xdpath_umem *u;

		o.frames = 64;
		o.frame_size = frame[i];
		o.hugepages = XDPATH_HUGE_OFF;
		o.headroom = most;
		need(kernel >= most, "the kernel takes %u of %u only", kernel, frame[i]);
		need(xdpath_umem_create(&u, &o) == 0, "headroom %u of %u", most, frame[i]);
		o.headroom = most + 1;
		need(xdpath_umem_create(&u, &o) == -EINVAL, "headroom %u of %u", most + 1,
		     frame[i]);
	}
	return CONF_OK;
}

#define CHECK(name_, fn_, type, ...)                                                         \
	{                                                                                    \
		.name = (name_), .modes = CONF_ANY, .fn = (fn_), .arg = &(const struct type) \
		{                                                                            \
			__VA_ARGS__                                                          \
		}                                                                            \
	}
#define REG(name, ...)	CHECK("REG_" name, reg_check, reg, __VA_ARGS__)
#define RING(name, ...) CHECK("RING_" name, ring_check, ring, __VA_ARGS__)
#define UNALIGNED	XDP_UMEM_UNALIGNED_CHUNK_FLAG

const struct conf_test errno_tests[] = {
	REG("CHUNK_2048", 0, .chunk = 2048),
	REG("CHUNK_4096", 0, .chunk = 4096),
	REG("CHUNK_1024", EINVAL, .chunk = 1024),
	REG("CHUNK_3000", EINVAL, .chunk = 3000),
	REG("CHUNK_8192", EINVAL, .chunk = 8192),
	REG("CHUNK_3000_UNALIGNED", 0, .chunk = 3000, .flags = UNALIGNED, .len = 3000 * 100),
	REG("CHUNK_2047_UNALIGNED", EINVAL, .chunk = 2047, .flags = UNALIGNED, .len = 2047 * 100),
	REG("AREA_OFF_PAGE", EINVAL, .chunk = 4096, .shift = 64),
	REG("LEN_NOT_WHOLE_CHUNKS", EINVAL, .chunk = 4096, .len = 4096 * 4 + 2048),
	REG("LEN_BELOW_CHUNK", EINVAL, .chunk = 4096, .len = 2048),
	REG("HEADROOM_LARGEST_4K", 0, .chunk = 4096, .headroom = HEADROOM_MOST),
	REG("HEADROOM_TOO_LARGE_4K", EINVAL, .chunk = 4096, .headroom = HEADROOM_MOST + 1),
	REG("HEADROOM_LARGEST_2K", 0, .chunk = 2048, .headroom = HEADROOM_MOST),
	REG("HEADROOM_TOO_LARGE_2K", EINVAL, .chunk = 2048, .headroom = HEADROOM_MOST + 1),
	REG("UNKNOWN_FLAG", EINVAL, .chunk = 4096, .flags = 1U << 15),
	REG("METADATA_16", 0, .chunk = 4096, .flags = RAW_UMEM_TX_METADATA, .md = 16,
	    .metadata = true),
	REG("METADATA_248", 0, .chunk = 4096, .flags = RAW_UMEM_TX_METADATA, .md = 248,
	    .metadata = true),
	REG("METADATA_256", EINVAL, .chunk = 4096, .flags = RAW_UMEM_TX_METADATA, .md = 256,
	    .metadata = true),
	REG("METADATA_20", EINVAL, .chunk = 4096, .flags = RAW_UMEM_TX_METADATA, .md = 20,
	    .metadata = true),
	REG("METADATA_WITHOUT_FLAG", 0, .chunk = 4096, .md = 20),
	{.name = "REG_TWICE", .modes = CONF_ANY, .fn = reg_twice},
	{.name = "REG_OLD_STRUCT", .modes = CONF_ANY, .fn = reg_old},
	{.name = "REG_AFTER_BIND", .modes = CONF_ANY, .fn = reg_bound},
	{.name = "REG_HEADROOM_LIB",
	 .modes = CONF_ANY,
	 .fn = lib_headroom,
	 .what = "the library takes exactly what the kernel does"},
	RING("SIZE_0", EINVAL, .opt = XDP_RX_RING, .size = 0),
	RING("SIZE_3", EINVAL, .opt = XDP_TX_RING, .size = 3),
	RING("TWICE", EINVAL, .opt = XDP_RX_RING, .size = 64, .twice = true),
	RING("FILL_TWICE", EINVAL, .opt = XDP_UMEM_FILL_RING, .size = 64, .twice = true),
	RING("FILL_BEFORE_UMEM", 0, .opt = XDP_UMEM_FILL_RING, .size = 64),
	RING("COMP_BEFORE_UMEM", 0, .opt = XDP_UMEM_COMPLETION_RING, .size = 64),
	RING("AFTER_BIND", EBUSY, .opt = XDP_TX_RING, .size = 64, .bound = true),
	{.name = "LENGTHS", .modes = CONF_ANY, .fn = lengths},
	{0},
};
