/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * AF_PACKET: raw frames through the kernel's device layer, filtered by a classic BPF program for
 * the test's ports. The kernel's own UDP sees each datagram as well; sockets that drop all hold the
 * ports there, so that it answers nothing.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "engine_common.h"
#include "internal.h"

#define SOCKET_BYTES (4 << 20)

struct packet_lane {
	struct lane_counters n;
	int fd;
	bool dry;	/* the last look found less than it could take */
	uint64_t drops; /* as counted by the kernel, which forgets them when asked */
	uint8_t *rx_memory, *tx_memory;
	uint32_t stride;
	struct mmsghdr rx[LANE_BURST], tx[LANE_BURST];
	struct iovec rx_iov[LANE_BURST], tx_iov[LANE_BURST];
} __attribute__((aligned(XDPATH_CACHELINE)));

struct packet {
	struct lane_threads t;
	struct packet_lane *lane;
	struct flow_head *heads;
	int *hold;
	uint32_t nhold;
};

static struct packet *packet_of(const struct engine *e)
{
	return e->priv;
}

/* ---- opening -------------------------------------------------------------------------------- */

/* Whole UDP datagrams without IP options between the test's ports; all else is cut to nothing. */
static int attach_filter(int fd, const struct engine_path *p)
{
	bool v6 = p->family == AF_INET6;
	uint32_t ports = ETH_BYTES + heads_ip(p), server = p->is_server ? ports + 2 : ports,
		 client = p->is_server ? ports : ports + 2, last = p->client_base + p->flows - 1;
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, v6 ? 20 : 23),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_UDP, 0, 8),
		/* v4: no options, no piece; v6: its first byte's half, and nothing */
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, v6 ? 14 : 20),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, v6 ? 0x9000 : 0x3fff, 6, 0),
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, server),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, p->server_port, 0, 4),
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, client),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, p->client_base, 0, 2),
		BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, last, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, 0x40000),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	struct sock_fprog prog = {.len = sizeof(code) / sizeof(code[0]), .filter = code};

	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof(prog)) ? -errno : 0;
}

static void options(int fd)
{
	int bytes = SOCKET_BYTES, one = 1;
	struct timeval patience = {.tv_usec = 100000};

	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)))
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes)))
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	/* what we send ourselves is none of our business; the filter would not let it in either */
	setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof(one));
}

static int open_socket(const struct engine *e)
{
	const struct engine_path *p = &e->path;
	struct sockaddr_ll a = {.sll_family = AF_PACKET, .sll_ifindex = (int)p->ifindex};
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0), err = 0,
	    fanout = (int)(p->client_base | PACKET_FANOUT_HASH << 16);

	if (fd < 0)
		return -errno;
	a.sll_protocol = htons(p->family == AF_INET6 ? ETH_P_IPV6 : ETH_P_IP);
	options(fd);
	err = attach_filter(fd, p);
	if (!err && bind(fd, (struct sockaddr *)&a, sizeof(a)))
		err = -errno;
	/* a flow stays on one lane */
	if (!err && p->lanes > 1 &&
	    setsockopt(fd, SOL_PACKET, PACKET_FANOUT, &fanout, sizeof(fanout)))
		err = -errno;
	if (!err)
		return fd;
	close(fd);
	return err;
}

static int open_lane(struct engine *e, uint32_t i, struct xdpath_diag *d)
{
	struct packet_lane *pl = &packet_of(e)->lane[i];

	e->lane[i].priv = pl;
	pl->stride = (e->path.mtu + ETH_BYTES + XDPATH_CACHELINE - 1) & ~(XDPATH_CACHELINE - 1U);
	pl->rx_memory = lines_alloc((size_t)LANE_BURST * pl->stride);
	pl->tx_memory = lines_alloc((size_t)LANE_BURST * pl->stride);
	if (!pl->rx_memory || !pl->tx_memory)
		return -ENOMEM;
	for (uint32_t k = 0; k < LANE_BURST; k++) {
		pl->rx_iov[k].iov_base = pl->rx_memory + (size_t)k * pl->stride;
		pl->rx_iov[k].iov_len = pl->stride;
		pl->rx[k].msg_hdr.msg_iov = &pl->rx_iov[k];
		pl->rx[k].msg_hdr.msg_iovlen = 1;
		pl->tx_iov[k].iov_base = pl->tx_memory + (size_t)k * pl->stride;
		pl->tx[k].msg_hdr.msg_iov = &pl->tx_iov[k];
		pl->tx[k].msg_hdr.msg_iovlen = 1;
	}
	pl->fd = open_socket(e);
	if (pl->fd < 0)
		return xdpath_fail(d, pl->fd == -EPERM ? XDPATH_R_PERMISSION : XDPATH_R_REFUSED,
				   -pl->fd, "%s: AF_PACKET socket: %s; %s", e->path.dev,
				   strerror(-pl->fd),
				   pl->fd == -EPERM ? "run as root" : "use another --engine");
	return 0;
}

static void packet_close(struct engine *e)
{
	struct packet *p = packet_of(e);

	for (uint32_t i = 0; p && p->lane && i < e->path.lanes; i++) {
		if (p->lane[i].fd >= 0)
			close(p->lane[i].fd);
		free(p->lane[i].rx_memory);
		free(p->lane[i].tx_memory);
	}
	if (p) {
		ports_release(p->hold, p->nhold);
		lanes_close(e, &p->t);
		free(p->lane);
		free(p->heads);
	}
	free(p);
	free(e->lane);
	e->priv = NULL;
	e->lane = NULL;
}

static void packet_wait(struct lane *l, uint64_t ns);

static int packet_open(struct engine *e, struct xdpath_diag *d)
{
	struct packet *p = e->priv = calloc(1, sizeof(*p));
	int err = -ENOMEM;

	e->mode_name = "kernel";
	if (p && lanes_alloc(e)) {
		p->t.wait = packet_wait;
		p->heads = heads_make(&e->path);
		p->lane = lines_alloc(e->path.lanes * sizeof(*p->lane));
		for (uint32_t i = 0; p->lane && i < e->path.lanes; i++)
			p->lane[i].fd = -1;
		if (p->heads && p->lane)
			err = lanes_open(e, &p->t);
		if (!err)
			err = ports_hold(&e->path, &p->hold, &p->nhold, d);
		for (uint32_t i = 0; !err && i < e->path.lanes; i++)
			err = open_lane(e, i, d);
	}
	if (!err)
		return 0;
	if (!d->text[0])
		xdpath_fail(d, XDPATH_R_MEMORY, -err,
			    "%s: setting up the packet sockets: %s; use fewer workers", e->path.dev,
			    strerror(-err));
	packet_close(e);
	return err;
}

/* ---- running -------------------------------------------------------------------------------- */

static void packet_wait(struct lane *l, uint64_t ns)
{
	struct packet_lane *p = l->priv;
	int wake = packet_of(l->e)->t.wake[l->id];
	struct pollfd fd[2] = {{.fd = p->fd, .events = POLLIN}, {.fd = wake, .events = POLLIN}};
	struct timespec ts = {.tv_sec = (time_t)(ns / 1000000000),
			      .tv_nsec = (long)(ns % 1000000000)};
	uint64_t nudges;

	p->dry = false;
	if (ns == 0)
		return; /* the next rx looks by itself */
	ppoll(fd, 2, ns == UINT64_MAX ? NULL : &ts, NULL);
	xdpath_count(&p->n.syscalls, 1);
	xdpath_count(&p->n.sleeps, 1);
	if ((fd[1].revents & POLLIN) && read(wake, &nudges, sizeof(nudges)) < 0)
		return; /* it was read empty before */
}

static uint32_t packet_rx(struct lane *l, struct rx_slot *s)
{
	struct packet_lane *p = l->priv;
	uint64_t bytes = 0, other = 0;
	uint32_t n = 0;
	int got;

	if (p->dry)
		return 0;
	got = recvmmsg(p->fd, p->rx, LANE_BURST, MSG_DONTWAIT, NULL);
	xdpath_count(&p->n.syscalls, 1);
	p->dry = got < (int)LANE_BURST;
	for (int i = 0; i < got; i++) {
		if (!heads_parse(&l->e->path, p->rx_iov[i].iov_base, p->rx[i].msg_len,
				 p->rx[i].msg_len, &s[n])) {
			other++;
			continue;
		}
		bytes += p->rx[i].msg_len;
		n++;
	}
	xdpath_count(&p->n.packets_in, n);
	xdpath_count(&p->n.bytes_in, bytes);
	xdpath_count(&p->n.rx_other, other);
	return n;
}

static void packet_rx_done(struct lane *l)
{
	(void)l; /* the buffers are used again by the next rx */
}

static uint32_t packet_tx_slots(struct lane *l, struct tx_slot *s, uint32_t n)
{
	struct packet_lane *p = l->priv;
	uint32_t heads = heads_len(&l->e->path);

	for (uint32_t i = 0; i < n; i++)
		s[i].msg = (struct msg_hdr *)(p->tx_memory + (size_t)i * p->stride + heads);
	return n;
}

static uint32_t packet_tx(struct lane *l, struct tx_slot *s, uint32_t n)
{
	struct packet_lane *p = l->priv;
	const struct packet *all = packet_of(l->e);
	uint32_t gone = 0, failures = 0;
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < n; i++) /* behind the test's header the memory is zero for good */
		p->tx_iov[i].iov_len = heads_write(&l->e->path, &all->heads[s[i].flow],
						   p->tx_iov[i].iov_base, s[i].len);
	while (gone < n && failures < 2) {
		int r = sendmmsg(p->fd, &p->tx[gone], n - gone, 0);

		xdpath_count(&p->n.syscalls, 1);
		xdpath_count(&p->n.tx_kicks, 1);
		for (int i = 0; i < r; i++)
			bytes += p->tx_iov[gone + (uint32_t)i].iov_len;
		if (r > 0)
			gone += (uint32_t)r;
		else
			failures++;
	}
	xdpath_count(&p->n.packets_out, gone);
	xdpath_count(&p->n.bytes_out, bytes);
	xdpath_count(&p->n.tx_dropped, n - gone);
	return gone;
}

static int packet_start(struct engine *e, uint32_t (*turn)(void *ctx, struct lane *l), void *ctx)
{
	struct packet *p = packet_of(e);

	p->t.turn = turn;
	p->t.ctx = ctx;
	return lanes_start(e, &p->t);
}

static void packet_nudge(struct engine *e)
{
	lanes_nudge(e, &packet_of(e)->t);
}

static void packet_stop(struct engine *e)
{
	lanes_stop(e, &packet_of(e)->t);
}

static void packet_totals(const struct engine *e, struct test_side *add)
{
	struct packet *p = packet_of(e);

	for (uint32_t i = 0; i < e->path.lanes; i++) {
		struct packet_lane *pl = &p->lane[i];
		struct tpacket_stats st = {0};
		socklen_t len = sizeof(st);
		int bytes;

		counters_add(&pl->n, add);
		if (getsockopt(pl->fd, SOL_PACKET, PACKET_STATISTICS, &st, &len) == 0)
			pl->drops += st.tp_drops; /* the control thread alone asks */
		add->lost.rx_ring_full += pl->drops;
		len = sizeof(bytes);
		if (getsockopt(pl->fd, SOL_SOCKET, SO_RCVBUF, &bytes, &len) == 0)
			add->sock_recv = (uint64_t)bytes;
		if (getsockopt(pl->fd, SOL_SOCKET, SO_SNDBUF, &bytes, &len) == 0)
			add->sock_send = (uint64_t)bytes;
	}
}

const struct engine_ops engine_packet = {
	.name = "packet",
	.open = packet_open,
	.start = packet_start,
	.nudge = packet_nudge,
	.stop = packet_stop,
	.close = packet_close,
	.totals = packet_totals,
	.rx = packet_rx,
	.rx_done = packet_rx_done,
	.tx_slots = packet_tx_slots,
	.tx = packet_tx,
};
