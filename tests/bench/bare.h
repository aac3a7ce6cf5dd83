/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * AF_XDP without our library: socket, rings, a five-instruction XDP program. Shared by bare.c (the
 * floor) and rtt.c (the client); each process opens its sockets once and leaves the undoing to its
 * end: the program is held by a link, and that by a descriptor.
 *
 * All rings of a socket and its share of the UMEM have N entries, and a frame is in one place at a
 * time: no ring can ever run over, so none is asked for room.
 */
#ifndef BENCH_BARE_H
#define BENCH_BARE_H

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/if_link.h>
#include <linux/if_xdp.h>
#include <net/if.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef N
#define N 2048U
#endif
#define FRAME 4096U
#define BATCH 64U

#ifndef XDP_MAX_TX_SKB_BUDGET /* 6.17 */
#define XDP_MAX_TX_SKB_BUDGET 9
#endif

struct ring {
	uint32_t *producer, *consumer;
	uint32_t at; /* our own index: of the next entry we write, or read */
	union {
		struct xdp_desc *desc;
		uint64_t *addr;
	};
};

struct xsk {
	int fd;
	struct ring rx, tx, fill, comp;
};

static uint8_t *area; /* N frames for each socket, and one more */
static volatile sig_atomic_t stop;

static inline void need(int ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(1);
}

static inline uint32_t readable(const struct ring *r)
{
	return __atomic_load_n(r->producer, __ATOMIC_ACQUIRE) - r->at;
}

static inline void publish(uint32_t *index, uint32_t v)
{
	__atomic_store_n(index, v, __ATOMIC_RELEASE);
}

static inline void kick(const struct xsk *x)
{
	do
		sendto(x->fd, NULL, 0, MSG_DONTWAIT, NULL, 0);
	while (__atomic_load_n(x->tx.consumer, __ATOMIC_ACQUIRE) != x->tx.at && !stop);
}

static inline void map_ring(int fd, int opt, off_t at, const struct xdp_ring_offset *o,
			    size_t entry, struct ring *r)
{
	const uint32_t n = N;
	uint8_t *p;

	need(!setsockopt(fd, SOL_XDP, opt, &n, sizeof(n)), "ring");
	p = mmap(NULL, o->desc + N * entry, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd,
		 at);
	need(p != MAP_FAILED, "mmap ring");
	r->producer = (uint32_t *)(void *)(p + o->producer);
	r->consumer = (uint32_t *)(void *)(p + o->consumer);
	r->addr = (uint64_t *)(void *)(p + o->desc);
}

static inline void attach(int ifindex, int fd)
{
	const struct bpf_insn to_socket[] = {
		{.code = BPF_LDX | BPF_W | BPF_MEM, .dst_reg = 2, .src_reg = 1, .off = 16},
		{.code = BPF_LD | BPF_DW | BPF_IMM, .dst_reg = 1, .src_reg = BPF_PSEUDO_MAP_FD},
		{0},
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 3, .imm = XDP_PASS},
		{.code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_redirect_map},
		{.code = BPF_JMP | BPF_EXIT},
	};
	struct bpf_insn code[sizeof(to_socket) / sizeof(to_socket[0])];
	LIBBPF_OPTS(bpf_link_create_opts, native, .flags = XDP_FLAGS_DRV_MODE);
	int map = bpf_map_create(BPF_MAP_TYPE_XSKMAP, "bare", 4, 4, 1, NULL), queue = 0, prog;

	need(map >= 0 && !bpf_map_update_elem(map, &queue, &fd, 0), "XSKMAP");
	memcpy(code, to_socket, sizeof(code));
	code[1].imm = map;
	prog = bpf_prog_load(BPF_PROG_TYPE_XDP, "bare", "GPL", code, sizeof(code) / sizeof(code[0]),
			     NULL);
	need(prog >= 0, "XDP program");
	need(bpf_link_create(prog, ifindex, BPF_XDP, &native) >= 0, "attach");
}

/* Queue 0 of a device; with `first`, on the UMEM of that socket, using the i-th share of it. */
static inline void open_xsk(struct xsk *x, const char *dev, const struct xsk *first, uint32_t i)
{
	struct xdp_umem_reg umem = {.chunk_size = FRAME};
	struct sockaddr_xdp sa = {.sxdp_family = AF_XDP, .sxdp_flags = XDP_USE_NEED_WAKEUP};
	struct xdp_mmap_offsets o;
	socklen_t len = sizeof(o);
	const int budget = BATCH;

	x->fd = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);
	need(x->fd >= 0, "socket");
	if (!first) {
		umem.len = (2 * N + 1) * FRAME;
		area = mmap(NULL, umem.len, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
		need(area != MAP_FAILED, "UMEM");
		umem.addr = (uintptr_t)area;
		need(!setsockopt(x->fd, SOL_XDP, XDP_UMEM_REG, &umem, sizeof(umem)), "UMEM_REG");
	} else {
		sa.sxdp_flags = XDP_SHARED_UMEM;
		sa.sxdp_shared_umem_fd = (uint32_t)first->fd;
	}
	need(!getsockopt(x->fd, SOL_XDP, XDP_MMAP_OFFSETS, &o, &len), "offsets");
	map_ring(x->fd, XDP_RX_RING, XDP_PGOFF_RX_RING, &o.rx, sizeof(struct xdp_desc), &x->rx);
	map_ring(x->fd, XDP_TX_RING, XDP_PGOFF_TX_RING, &o.tx, sizeof(struct xdp_desc), &x->tx);
	map_ring(x->fd, XDP_UMEM_FILL_RING, XDP_UMEM_PGOFF_FILL_RING, &o.fr, 8, &x->fill);
	map_ring(x->fd, XDP_UMEM_COMPLETION_RING, (off_t)XDP_UMEM_PGOFF_COMPLETION_RING, &o.cr, 8,
		 &x->comp);
	for (uint64_t f = 0; f < N; f++)
		x->fill.addr[x->fill.at++] = (i * N + f) * FRAME;
	publish(x->fill.producer, x->fill.at);
	/* older kernels send 32 a call: kick() then needs two */
	setsockopt(x->fd, SOL_XDP, XDP_MAX_TX_SKB_BUDGET, &budget, sizeof(budget));
	sa.sxdp_ifindex = if_nametoindex(dev);
	/* the kernel lets go of a former socket some time after its end */
	for (int tries = 400; bind(x->fd, (struct sockaddr *)&sa, sizeof(sa)); tries--) {
		need(errno == EBUSY && tries, "bind");
		usleep(5000);
	}
	attach((int)sa.sxdp_ifindex, x->fd);
}

#endif
