/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * The kernel's UDP sockets, used as a careful program would: a connected socket per flow at the
 * client, one per lane at the server (SO_REUSEPORT), bound to the device; epoll, and many datagrams
 * a call. A full way out makes the sender wait in the call.
 */
#include <errno.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/uio.h>
#include <unistd.h>

#include "engine_common.h"
#include "internal.h"

#define SOCKET_BYTES (4 << 20)
#define WAKE	     UINT64_MAX /* in an event: the lane's eventfd */

struct udp_lane {
	struct lane_counters n;
	int epoll;
	struct epoll_event ready[LANE_BURST];
	uint32_t nready, next; /* of ready; what is past `next` is still to be read */
	uint8_t *rx_memory, *zeros;
	uint32_t stride;
	struct mmsghdr rx[LANE_BURST], tx[LANE_BURST];
	struct iovec rx_iov[LANE_BURST], tx_iov[LANE_BURST][2];
	struct sockaddr_storage from[LANE_BURST];
	struct msg_hdr head[LANE_BURST];
} __attribute__((aligned(XDPATH_CACHELINE)));

struct udp {
	struct lane_threads t;
	struct udp_lane *lane;
	int *fd; /* of flows at the client, of lanes at the server */
	uint32_t nfd;
	struct sockaddr_storage *to; /* server: each flow's client */
	socklen_t to_len;
};

static struct udp *udp_of(const struct engine *e)
{
	return e->priv;
}

static struct udp_lane *lane_of(const struct lane *l)
{
	return l->priv;
}

/* ---- opening -------------------------------------------------------------------------------- */

/* More than an ordinary user may have where we may; else what there is. */
static void big_buffers(int fd)
{
	int bytes = SOCKET_BYTES;

	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)))
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes)))
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
}

static int open_socket(const struct engine *e, uint32_t i)
{
	const struct engine_path *p = &e->path;
	struct timeval patience = {.tv_usec = 100000};
	int fd = ports_socket(p, p->is_server ? p->server_port : (uint16_t)(p->client_base + i),
			      p->is_server),
	    whole = IP_PMTUDISC_DO, err; /* IPv6 has the same number */
	struct sockaddr_storage a;

	if (fd < 0)
		return fd;
	big_buffers(fd);
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	/* a datagram above the MTU is refused here, not cut up on the way */
	if (p->family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, &whole, sizeof(whole));
	else
		setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &whole, sizeof(whole));
	if (!p->is_server &&
	    connect(fd, (struct sockaddr *)&a, path_remote(p, p->server_port, &a))) {
		err = errno;
		close(fd);
		return -err;
	}
	return fd;
}

static int watch(int epoll, int fd, uint64_t what)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.u64 = what};

	return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

static void lane_buffers(const struct engine *e, struct udp_lane *u)
{
	for (uint32_t i = 0; i < LANE_BURST; i++) {
		u->rx_iov[i].iov_base = u->rx_memory + (size_t)i * u->stride;
		u->rx_iov[i].iov_len = u->stride;
		u->rx[i].msg_hdr.msg_iov = &u->rx_iov[i];
		u->rx[i].msg_hdr.msg_iovlen = 1;
		if (e->path.is_server)
			u->rx[i].msg_hdr.msg_name = &u->from[i];
		u->tx_iov[i][0].iov_base = &u->head[i];
		u->tx_iov[i][0].iov_len = sizeof(u->head[i]);
		u->tx_iov[i][1].iov_base = u->zeros;
		u->tx[i].msg_hdr.msg_iov = u->tx_iov[i];
		u->tx[i].msg_hdr.msg_iovlen = 2;
	}
}

static int open_lane(struct engine *e, uint32_t i)
{
	struct udp *u = udp_of(e);
	struct udp_lane *ul = &u->lane[i];
	int err;

	e->lane[i].priv = ul;
	ul->stride = (e->path.mtu + XDPATH_CACHELINE - 1) & ~(XDPATH_CACHELINE - 1U);
	ul->rx_memory = lines_alloc((size_t)LANE_BURST * ul->stride);
	ul->zeros = lines_alloc(ul->stride);
	if (!ul->rx_memory || !ul->zeros)
		return -ENOMEM;
	lane_buffers(e, ul);
	ul->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (ul->epoll < 0)
		return -errno;
	err = watch(ul->epoll, u->t.wake[i], WAKE);
	if (e->path.is_server && !err)
		return watch(ul->epoll, u->fd[i], i);
	for (uint32_t f = i; !err && f < u->nfd; f += e->path.lanes)
		err = watch(ul->epoll, u->fd[f], f);
	return err;
}

static int open_sockets(struct engine *e, struct xdpath_diag *d)
{
	struct udp *u = udp_of(e);
	const struct engine_path *p = &e->path;

	u->nfd = p->is_server ? p->lanes : p->flows;
	u->fd = calloc(u->nfd, sizeof(*u->fd));
	if (!u->fd)
		return -ENOMEM;
	memset(u->fd, 0xff, u->nfd * sizeof(*u->fd));
	for (uint32_t i = 0; i < u->nfd; i++) {
		u->fd[i] = open_socket(e, i);
		if (u->fd[i] < 0)
			return xdpath_fail(
				d, XDPATH_R_REFUSED, -u->fd[i], "%s: UDP port %u: %s; %s", p->dev,
				p->is_server ? p->server_port : p->client_base + i,
				strerror(-u->fd[i]),
				u->fd[i] == -EMFILE
					? "raise `ulimit -n` or use fewer flows (-n)"
					: "end what uses it (`ss -lnup`) or choose another --port");
	}
	if (!p->is_server)
		return 0;
	u->to = calloc(p->flows, sizeof(*u->to));
	for (uint32_t f = 0; u->to && f < p->flows; f++)
		u->to_len = path_remote(p, (uint16_t)(p->client_base + f), &u->to[f]);
	return u->to ? 0 : -ENOMEM;
}

static void udp_close(struct engine *e);
static void udp_wait(struct lane *l, uint64_t ns);

static int udp_open(struct engine *e, struct xdpath_diag *d)
{
	struct udp *u = e->priv = calloc(1, sizeof(*u));
	int err = -ENOMEM;

	if (u && lanes_alloc(e)) {
		u->t.wait = udp_wait;
		e->mode_name = "kernel";
		u->lane = lines_alloc(e->path.lanes * sizeof(*u->lane));
		for (uint32_t i = 0; u->lane && i < e->path.lanes; i++)
			u->lane[i].epoll = -1;
		err = u->lane ? lanes_open(e, &u->t) : -ENOMEM;
		if (!err)
			err = open_sockets(e, d);
		for (uint32_t i = 0; !err && i < e->path.lanes; i++)
			err = open_lane(e, i);
	}
	if (!err)
		return 0;
	if (!d->text[0])
		xdpath_fail(d, XDPATH_R_MEMORY, -err,
			    "%s: setting up the UDP sockets: %s; use fewer flows (-n) or workers",
			    e->path.dev, strerror(-err));
	udp_close(e);
	return err;
}

static void udp_close(struct engine *e)
{
	struct udp *u = udp_of(e);

	for (uint32_t i = 0; u && u->lane && i < e->path.lanes; i++) {
		if (u->lane[i].epoll >= 0)
			close(u->lane[i].epoll);
		free(u->lane[i].rx_memory);
		free(u->lane[i].zeros);
	}
	if (u) {
		ports_release(u->fd, u->nfd);
		lanes_close(e, &u->t);
		free(u->lane);
		free(u->to);
	}
	free(u);
	free(e->lane);
	e->priv = NULL;
	e->lane = NULL;
}

/* ---- running -------------------------------------------------------------------------------- */

static void udp_wait(struct lane *l, uint64_t ns)
{
	struct udp_lane *u = lane_of(l);
	struct timespec ts = {.tv_sec = (time_t)(ns / 1000000000),
			      .tv_nsec = (long)(ns % 1000000000)};
	uint64_t nudges;
	int n;

	n = epoll_pwait2(u->epoll, u->ready, LANE_BURST, ns == UINT64_MAX ? NULL : &ts, NULL);
	xdpath_count(&u->n.syscalls, 1);
	xdpath_count(&u->n.sleeps, ns != 0);
	u->nready = u->next = 0;
	for (int i = 0; i < n; i++)
		if (u->ready[i].data.u64 != WAKE)
			u->ready[u->nready++] = u->ready[i];
		else if (read(udp_of(l->e)->t.wake[l->id], &nudges, sizeof(nudges)) < 0)
			continue; /* another wait has taken it */
}

/* Up to `room` datagrams of one socket into the buffers from `at` on; how many came. */
static uint32_t read_socket(struct lane *l, int fd, uint32_t at, uint32_t room)
{
	struct udp_lane *u = lane_of(l);
	int n;

	for (uint32_t i = at; l->e->path.is_server && i < at + room; i++)
		u->rx[i].msg_hdr.msg_namelen = sizeof(u->from[i]);
	n = recvmmsg(fd, &u->rx[at], room, MSG_DONTWAIT, NULL);
	xdpath_count(&u->n.syscalls, 1);
	return n > 0 ? (uint32_t)n : 0;
}

/* The flow of a datagram at the server, by the port it came from; past the last: none. */
static uint32_t flow_of(const struct engine_path *p, const struct sockaddr_storage *a)
{
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)a;
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)a;

	if (a->ss_family == AF_INET6)
		return memcmp(&v6->sin6_addr, &p->remote.v6, 16) == 0
			       ? ntohs(v6->sin6_port) - p->client_base
			       : UINT32_MAX;
	return v4->sin_addr.s_addr == p->remote.v4.s_addr ? ntohs(v4->sin_port) - p->client_base
							  : UINT32_MAX;
}

static uint32_t udp_rx(struct lane *l, struct rx_slot *s)
{
	const struct engine_path *p = &l->e->path;
	struct udp_lane *u = lane_of(l);
	uint32_t at = 0, n = 0, heads = heads_len(p);
	uint64_t bytes = 0, other = 0;

	while (u->next < u->nready && at < LANE_BURST) {
		uint32_t which = (uint32_t)u->ready[u->next].data.u64, room = LANE_BURST - at;
		uint32_t got = read_socket(l, udp_of(l->e)->fd[which], at, room);

		for (uint32_t i = at; i < at + got; i++) {
			uint32_t flow = p->is_server ? flow_of(p, &u->from[i]) : which;

			if (flow >= p->flows || u->rx[i].msg_len < sizeof(struct msg_hdr)) {
				other++;
				continue;
			}
			s[n].msg = u->rx_iov[i].iov_base;
			s[n].len = u->rx[i].msg_len - (uint32_t)sizeof(struct msg_hdr);
			s[n++].flow = flow;
			bytes += heads + u->rx[i].msg_len;
		}
		at += got;
		if (got < room) /* it has no more */
			u->next++;
	}
	xdpath_count(&u->n.packets_in, n);
	xdpath_count(&u->n.bytes_in, bytes);
	xdpath_count(&u->n.rx_other, other);
	return n;
}

static void udp_rx_done(struct lane *l)
{
	(void)l; /* the buffers are used again by the next rx */
}

static uint32_t udp_tx_slots(struct lane *l, struct tx_slot *s, uint32_t n)
{
	struct udp_lane *u = lane_of(l);

	for (uint32_t i = 0; i < n; i++)
		s[i].msg = &u->head[i];
	return n;
}

/* One call's worth: slots [at, at + n), all on one socket. What does not go is dropped. */
static uint32_t send_some(struct udp_lane *u, int fd, uint32_t at, uint32_t n)
{
	uint32_t gone = 0, failures = 0;

	while (gone < n && failures < 2) {
		int r = sendmmsg(fd, &u->tx[at + gone], n - gone, 0);

		xdpath_count(&u->n.syscalls, 1);
		xdpath_count(&u->n.tx_kicks, 1);
		if (r > 0)
			gone += (uint32_t)r;
		else
			failures++; /* an ICMP answer to an earlier one is told once: try again */
	}
	xdpath_count(&u->n.tx_dropped, n - gone);
	return gone;
}

static uint32_t udp_tx(struct lane *l, struct tx_slot *s, uint32_t n)
{
	const struct engine_path *p = &l->e->path;
	struct udp_lane *u = lane_of(l);
	struct udp *all = udp_of(l->e);
	uint64_t bytes = 0;
	uint32_t gone = 0;

	for (uint32_t i = 0; i < n; i++) {
		u->tx_iov[i][1].iov_len = s[i].len;
		if (p->is_server) {
			u->tx[i].msg_hdr.msg_name = &all->to[s[i].flow];
			u->tx[i].msg_hdr.msg_namelen = all->to_len;
		}
	}
	for (uint32_t i = 0, k; i < n; i = k) {
		uint32_t sent;

		for (k = i + 1; k < n && (p->is_server || s[k].flow == s[i].flow);)
			k++;
		sent = send_some(u, all->fd[p->is_server ? l->id : s[i].flow], i, k - i);
		for (uint32_t j = i; j < i + sent; j++)
			bytes += heads_len(p) + sizeof(struct msg_hdr) + s[j].len;
		gone += sent;
	}
	xdpath_count(&u->n.packets_out, gone);
	xdpath_count(&u->n.bytes_out, bytes);
	return gone;
}

static int udp_start(struct engine *e, uint32_t (*turn)(void *ctx, struct lane *l), void *ctx)
{
	struct udp *u = udp_of(e);

	u->t.turn = turn;
	u->t.ctx = ctx;
	return lanes_start(e, &u->t);
}

static void udp_nudge(struct engine *e)
{
	lanes_nudge(e, &udp_of(e)->t);
}

static void udp_stop(struct engine *e)
{
	lanes_stop(e, &udp_of(e)->t);
}

static void udp_totals(const struct engine *e, struct test_side *add)
{
	const struct udp *u = udp_of(e);

	for (uint32_t i = 0; i < e->path.lanes; i++)
		counters_add(&u->lane[i].n, add);
	for (uint32_t i = 0; i < u->nfd; i++) {
		uint32_t info[SK_MEMINFO_VARS] = {0};
		socklen_t len = sizeof(info);

		if (getsockopt(u->fd[i], SOL_SOCKET, SO_MEMINFO, info, &len) == 0)
			add->lost.rx_ring_full += info[SK_MEMINFO_DROPS];
		add->sock_recv = info[SK_MEMINFO_RCVBUF];
		add->sock_send = info[SK_MEMINFO_SNDBUF];
	}
}

const struct engine_ops engine_udp = {
	.name = "udp",
	.open = udp_open,
	.start = udp_start,
	.nudge = udp_nudge,
	.stop = udp_stop,
	.close = udp_close,
	.totals = udp_totals,
	.rx = udp_rx,
	.rx_done = udp_rx_done,
	.tx_slots = udp_tx_slots,
	.tx = udp_tx,
};
