/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/* Threads, counters and ports of the engines; the frames' headers are in engine_heads.c. */
#include <errno.h>
#include <linux/filter.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "clock.h"
#include "engine_common.h"
#include "internal.h"

#define LOOK_TURNS 8U /* a lane that always has something to send looks for what came so often */

void *lines_alloc(size_t bytes)
{
	void *p;

	bytes = (bytes + XDPATH_CACHELINE - 1) & ~(size_t)(XDPATH_CACHELINE - 1);
	p = aligned_alloc(XDPATH_CACHELINE, bytes ? bytes : XDPATH_CACHELINE);
	if (p)
		memset(p, 0, bytes);
	return p;
}

struct lane *lanes_alloc(struct engine *e)
{
	e->lane = lines_alloc(e->path.lanes * sizeof(*e->lane));
	for (uint32_t i = 0; e->lane && i < e->path.lanes; i++) {
		e->lane[i].e = e;
		e->lane[i].id = i;
	}
	return e->lane;
}

void counters_add(const struct lane_counters *c, struct test_side *add)
{
	add->packets_in += xdpath_counted(&c->packets_in);
	add->bytes_in += xdpath_counted(&c->bytes_in);
	add->packets_out += xdpath_counted(&c->packets_out);
	add->bytes_out += xdpath_counted(&c->bytes_out);
	add->lost.rx_other += xdpath_counted(&c->rx_other);
	add->lost.tx_dropped += xdpath_counted(&c->tx_dropped);
	add->tx_kicks += xdpath_counted(&c->tx_kicks);
	add->rx_kicks += xdpath_counted(&c->rx_kicks);
	add->sleeps += xdpath_counted(&c->sleeps);
	add->syscalls += xdpath_counted(&c->syscalls);
}

/* ---- ports ---------------------------------------------------------------------------------- */

static socklen_t address(const struct engine_path *p, bool local, uint16_t port,
			 struct sockaddr_storage *out)
{
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)out;
	struct sockaddr_in *v4 = (struct sockaddr_in *)out;

	memset(out, 0, sizeof(*out));
	out->ss_family = (sa_family_t)p->family;
	if (p->family == AF_INET6) {
		v6->sin6_port = htons(port);
		v6->sin6_addr = local ? p->local.v6 : p->remote.v6;
		if (IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr))
			v6->sin6_scope_id = p->ifindex;
		return sizeof(*v6);
	}
	v4->sin_port = htons(port);
	v4->sin_addr = local ? p->local.v4 : p->remote.v4;
	return sizeof(*v4);
}

socklen_t path_local(const struct engine_path *p, uint16_t port, struct sockaddr_storage *out)
{
	return address(p, true, port, out);
}

socklen_t path_remote(const struct engine_path *p, uint16_t port, struct sockaddr_storage *out)
{
	return address(p, false, port, out);
}

int ports_socket(const struct engine_path *p, uint16_t port, bool reuse)
{
	struct sockaddr_storage a;
	socklen_t len = path_local(p, port, &a);
	int fd = socket(p->family, SOCK_DGRAM | SOCK_CLOEXEC, 0), one = 1, err;

	if (fd < 0)
		return -errno;
	if ((reuse && setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one))) ||
	    setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, p->dev, (socklen_t)strlen(p->dev) + 1) ||
	    bind(fd, (struct sockaddr *)&a, len)) {
		err = errno;
		close(fd);
		return -err;
	}
	return fd;
}

void ports_release(int *fds, uint32_t n)
{
	for (uint32_t i = 0; fds && i < n; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	free(fds);
}

int ports_hold(const struct engine_path *p, int **fds, uint32_t *n, struct xdpath_diag *d)
{
	struct sock_filter none = BPF_STMT(BPF_RET | BPF_K, 0);
	struct sock_fprog drop = {.len = 1, .filter = &none};
	uint32_t want = p->is_server ? 1 : p->flows,
		 first = p->is_server ? p->server_port : p->client_base;
	int *all = calloc(want, sizeof(*all)), err = 0;

	if (!all)
		return xdpath_fail(d, XDPATH_R_MEMORY, ENOMEM,
				   "%s: no memory for %u flows; free some or use fewer (-n)",
				   p->dev, want);
	for (*n = 0; !err && *n < want; ++*n) {
		all[*n] = ports_socket(p, (uint16_t)(first + *n), false);
		if (all[*n] < 0)
			err = all[*n];
		else if (setsockopt(all[*n], SOL_SOCKET, SO_ATTACH_FILTER, &drop, sizeof(drop)))
			err = -errno;
	}
	if (err) {
		xdpath_fail(d, XDPATH_R_REFUSED, -err, "%s: UDP port %u: %s; %s", p->dev,
			    first + *n - 1, strerror(-err),
			    err == -EMFILE
				    ? "raise `ulimit -n` or use fewer flows (-n)"
				    : "end what uses it (`ss -lnup`) or choose another --port");
		ports_release(all, *n);
		*n = 0;
		return err;
	}
	*fds = all;
	return 0;
}

/* ---- threads -------------------------------------------------------------------------------- */

static uint64_t wait_ns(const struct lane *l)
{
	uint64_t now;

	if (!l->wake_at_ns)
		return UINT64_MAX;
	now = xdpath_now_ns();
	return l->wake_at_ns > now ? l->wake_at_ns - now : 0;
}

struct lane_start {
	struct lane_threads *t;
	struct lane *l;
};

static void *lane_main(void *arg)
{
	struct lane_start *start = arg;
	struct lane_threads *t = start->t;
	struct lane *l = start->l;
	uint32_t busy = 0;

	free(start);
	prctl(PR_SET_TIMERSLACK, 1UL); /* a timed sleep ends when it was asked to */
	while (!__atomic_load_n(&t->stop, __ATOMIC_ACQUIRE)) {
		if (t->turn(t->ctx, l) == 0) {
			t->wait(l, t->spin ? 0 : wait_ns(l));
			busy = 0;
		} else if (++busy % LOOK_TURNS == 0) {
			t->wait(l, 0);
		}
	}
	return NULL;
}

int lanes_open(struct engine *e, struct lane_threads *t)
{
	uint32_t n = e->path.lanes;

	t->id = calloc(n, sizeof(*t->id));
	t->wake = calloc(n, sizeof(*t->wake));
	if (!t->id || !t->wake)
		return -ENOMEM;
	memset(t->wake, 0xff, n * sizeof(*t->wake));
	t->spin = e->knobs && e->knobs->poll_mode == XDPATH_POLL_SPIN;
	for (uint32_t i = 0; i < n; i++) {
		t->wake[i] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		if (t->wake[i] < 0)
			return -errno;
	}
	return 0;
}

static int start_lane(struct engine *e, struct lane_threads *t, uint32_t i)
{
	struct lane_start *start = malloc(sizeof(*start));
	pthread_attr_t attr;
	char name[24];
	int err;

	if (!start)
		return -ENOMEM;
	*start = (struct lane_start){.t = t, .l = &e->lane[i]};
	pthread_attr_init(&attr);
	err = xdpath_thread_pin(e->cpus, i, &attr);
	if (!err)
		err = -pthread_create(&t->id[i], &attr, lane_main, start);
	pthread_attr_destroy(&attr);
	if (err) {
		free(start);
		return err;
	}
	snprintf(name, sizeof(name), "xdpath-w%u", i);
	pthread_setname_np(t->id[i], name);
	return 0;
}

int lanes_start(struct engine *e, struct lane_threads *t)
{
	int err = 0;

	for (t->running = 0; t->running < e->path.lanes; t->running++) {
		err = start_lane(e, t, t->running);
		if (err)
			break;
	}
	if (err)
		lanes_stop(e, t);
	return err;
}

void lanes_nudge(const struct engine *e, const struct lane_threads *t)
{
	uint64_t one = 1;

	for (uint32_t i = 0; i < e->path.lanes; i++)
		if (write(t->wake[i], &one, sizeof(one)) < 0 && errno != EAGAIN)
			return;
}

void lanes_stop(const struct engine *e, struct lane_threads *t)
{
	__atomic_store_n(&t->stop, true, __ATOMIC_RELEASE);
	if (t->running)
		lanes_nudge(e, t);
	for (uint32_t i = 0; i < t->running; i++)
		pthread_join(t->id[i], NULL);
	t->running = 0;
}

void lanes_close(const struct engine *e, struct lane_threads *t)
{
	for (uint32_t i = 0; t->wake && i < e->path.lanes; i++)
		if (t->wake[i] >= 0)
			close(t->wake[i]);
	free(t->id);
	free(t->wake);
	t->id = NULL;
	t->wake = NULL;
}
