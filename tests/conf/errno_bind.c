// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
/* What the kernel says to each wrong (and right) call, part two: bind, and calls on the socket. */
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "raw.h"

struct bind_case {
	int want;	/* errno */
	bool zc;	/* asks for zero-copy: a NIC that is tested in it grants it */
	bool by_device; /* a NIC may say EOPNOTSUPP */
	struct raw_opts o;
	bool down, metadata, sg;
	bool second;	   /* queue 0 is a first socket's */
	bool share, other; /* ... whose UMEM it shares; at NET_A */
};

static int bind_check(const void *arg)
{
	const struct bind_case *c = arg;
	int want = c->zc && conf->mode == CONF_ZC ? 0 : c->want, got;
	struct raw_opts o = c->o;
	struct raw first, r;

	if (c->metadata && !conf->k.sw_csum)
		return conf_skip("this kernel has no software checksum for TX");
	if (c->sg && !conf->k.sg)
		return conf_no_frags();
	if (c->zc && conf->nic && conf->mode != CONF_ZC)
		return conf_skip("is answered in zero-copy mode");
	attempt(net_make(1500));
	if (c->second && c->o.queue)
		attempt(net_queues(c->o.queue + 1));
	if (c->down)
		need(net_up(NET_B, false) == 0, "set down: %s", strerror(errno));
	if (c->second) {
		attempt(raw_need(&first, &(struct raw_opts){0}));
		o.once = true;
		o.post = RAW_NONE;
	}
	if (c->share)
		o.share = &first;
	if (c->other)
		o.dev = NET_A;
	got = raw_open(&r, &o);
	if (conf->nic && c->by_device) {
		want = got ? EOPNOTSUPP : 0;
		conf_note("%s", got ? "refused" : "taken");
	}
	need(got == -want, "%s: the kernel says %s, not %s", r.stage, strerror(-got),
	     strerror(want));
	need(got == 0 || strcmp(r.stage, "bind") == 0, "refused at %s already", r.stage);
	return CONF_OK;
}

static int bind_twice(const void *arg)
{
	struct raw r;
	int got;

	(void)arg;
	attempt(net_make(1500));
	attempt(raw_need(&r, &(struct raw_opts){0}));
	got = raw_bind(r.e.fd, (int)if_nametoindex(NET_B), 0, XDP_COPY, 0);
	need(got == -EBUSY, "%s", strerror(-got));
	return CONF_OK;
}

/* A closed owner: busy for a while, then free. The library waits as long as it is told to. */
static int bind_after_close(const void *arg)
{
	uint64_t begin, longest = 0;
	struct raw r;

	(void)arg;
	attempt(net_make(1500));
	for (int i = 0; i < 5; i++) {
		begin = conf_now_ms();
		attempt(raw_need(&r, &(struct raw_opts){0}));
		if (conf_now_ms() - begin > longest)
			longest = conf_now_ms() - begin;
		raw_close(&r);
	}
	conf_note("at most %llu ms busy", (unsigned long long)longest);
	return CONF_OK;
}

static int bind_foreign(const void *arg)
{
	int fd, file = open("/dev/null", O_RDONLY | O_CLOEXEC), udp, unbound, got, ifindex;

	(void)arg;
	attempt(net_make(1500));
	ifindex = (int)if_nametoindex(NET_B);
	udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	unbound = raw_socket();
	fd = raw_socket();
	need(raw_ring(fd, XDP_RX_RING, 64) == 0, "ring: %s", strerror(errno));
	got = raw_bind(fd, ifindex, 0, XDP_SHARED_UMEM, file);
	need(got == -ENOTSOCK, "a file: %s", strerror(-got));
	got = raw_bind(fd, ifindex, 0, XDP_SHARED_UMEM, udp);
	need(got == -ENOPROTOOPT, "a UDP socket: %s", strerror(-got));
	got = raw_bind(fd, ifindex, 0, XDP_SHARED_UMEM, unbound);
	need(got == -EBADF, "an unbound socket: %s", strerror(-got));
	return CONF_OK;
}

static int shared_with_umem(const void *arg)
{
	struct raw first;
	void *area = raw_area(1 << 20, false);
	int fd, got;

	(void)arg;
	attempt(net_make(1500));
	attempt(raw_need(&first, &(struct raw_opts){0}));
	fd = raw_socket();
	need(raw_reg(fd, area, 1 << 20, 4096, 0, 0, 0) == 0, "%s", strerror(errno));
	need(raw_ring(fd, XDP_RX_RING, 64) == 0, "%s", strerror(errno));
	got = raw_bind(fd, (int)if_nametoindex(NET_B), 0, XDP_SHARED_UMEM, first.e.fd);
	need(got == -EINVAL, "%s", strerror(-got));
	return CONF_OK;
}

/* ---- calls on the socket ---- */

static int says_send(int fd, int flags)
{
	return sendto(fd, NULL, 0, flags, NULL, 0) < 0 ? errno : 0;
}

static int says_recv(int fd)
{
	return recvfrom(fd, NULL, 0, MSG_DONTWAIT, NULL, NULL) < 0 ? errno : 0;
}

static int calls(const void *arg)
{
	struct raw both, only_rx, only_tx;
	int fd, got;

	(void)arg;
	attempt(net_make(1500));
	attempt(net_queues(3));
	fd = raw_socket();
	got = says_send(fd, MSG_DONTWAIT);
	need(got == ENXIO, "sendto, unbound: %s", strerror(got));
	got = says_recv(fd);
	need(got == ENXIO, "recvfrom, unbound: %s", strerror(got));
	attempt(raw_need(&both, &(struct raw_opts){0}));
	attempt(raw_need(&only_rx, &(struct raw_opts){.queue = 1, .tx = RAW_NONE}));
	attempt(raw_need(&only_tx, &(struct raw_opts){.queue = 2, .rx = RAW_NONE}));
	got = says_send(both.e.fd, MSG_DONTWAIT);
	need(got == 0, "sendto: %s", strerror(got));
	got = says_send(both.e.fd, 0);
	need(got == EOPNOTSUPP, "sendto that may wait: %s", strerror(got));
	got = says_send(only_rx.e.fd, MSG_DONTWAIT);
	need(got == ENOBUFS, "sendto without a TX ring: %s", strerror(got));
	got = says_recv(both.e.fd);
	need(got == 0, "recvfrom: %s", strerror(got));
	got = says_recv(only_tx.e.fd);
	need(got == ENOBUFS, "recvfrom without an RX ring: %s", strerror(got));
	need(net_up(NET_B, false) == 0, "set down");
	got = says_send(both.e.fd, MSG_DONTWAIT);
	need(got == ENETDOWN, "sendto, device down: %s", strerror(got));
	got = says_recv(both.e.fd);
	need(got == ENETDOWN, "recvfrom, device down: %s", strerror(got));
	return CONF_OK;
}

#define BIND_CASE(name_, ...)                                               \
	{                                                                   \
		.name = "BIND_" name_, .modes = CONF_ANY, .fn = bind_check, \
		.arg = &(const struct bind_case)                            \
		{                                                           \
			__VA_ARGS__                                         \
		}                                                           \
	}
#define SECOND(name, want_, ...) BIND_CASE(name, want_, .second = true, __VA_ARGS__)
#define SHARED(name, want_, ...) SECOND("SHARED_" name, want_, .share = true, __VA_ARGS__)
#define FLAGS(f)		 .o.bind = RAW_BIND | (f)

const struct conf_test errno_bind_tests[] = {
	BIND_CASE("NO_FLAGS", 0, FLAGS(0)),
	BIND_CASE("COPY", 0, FLAGS(XDP_COPY)),
	BIND_CASE("NEED_WAKEUP", 0, FLAGS(XDP_USE_NEED_WAKEUP)),
	BIND_CASE("SG", 0, FLAGS(XDP_USE_SG), .sg = true),
	BIND_CASE("COPY_SG_NEED_WAKEUP", 0, FLAGS(XDP_COPY | XDP_USE_SG | XDP_USE_NEED_WAKEUP),
		  .sg = true),
	BIND_CASE("UNALIGNED", 0, .o.umem_flags = XDP_UMEM_UNALIGNED_CHUNK_FLAG),
	BIND_CASE("SW_CSUM", 0, .o.umem_flags = RAW_UMEM_SW_CSUM | RAW_UMEM_TX_METADATA, .o.md = 16,
		  .metadata = true, .by_device = true),
	{.name = "BIND_LO",
	 .modes = CONF_ANY,
	 .fn = bind_check,
	 .arg = &(const struct bind_case){.o.dev = "lo"},
	 .not_zc = "lo has no zero-copy"},
	BIND_CASE("DEVICE_DOWN", 0, .down = true),
	BIND_CASE("ZEROCOPY", EOPNOTSUPP, FLAGS(XDP_ZEROCOPY), .zc = true),
	BIND_CASE("ZEROCOPY_SG", EOPNOTSUPP, FLAGS(XDP_ZEROCOPY | XDP_USE_SG), .sg = true,
		  .zc = true),
	BIND_CASE("COPY_ZEROCOPY", EINVAL, FLAGS(XDP_COPY | XDP_ZEROCOPY)),
	BIND_CASE("UNKNOWN_FLAG", EINVAL, FLAGS(1U << 5)),
	BIND_CASE("QUEUE_RANGE", EINVAL, .o.queue = NET_QUEUES),
	BIND_CASE("NO_RX_NO_TX", EINVAL, .o = {.rx = RAW_NONE, .tx = RAW_NONE}),
	BIND_CASE("NO_FILL", EINVAL, .o.fill = RAW_NONE),
	BIND_CASE("NO_COMP", EINVAL, .o.comp = RAW_NONE),
	BIND_CASE("NO_DEVICE", ENODEV, .o.ifindex = 9999),
	SECOND("QUEUE_OWNED", EBUSY, .o.queue = 0),
	SECOND("OTHER_QUEUE", 0, .o.queue = 1),
	SHARED("SAME_QUEUE", 0, .o.queue = 0),
	SHARED("SAME_QUEUE_OWN_RINGS", EINVAL, .o.own_rings = true),
	SHARED("OTHER_QUEUE", EINVAL, .o.queue = 1),
	SHARED("OTHER_QUEUE_OWN_RINGS", 0, .o = {.queue = 1, .own_rings = true}),
	SHARED("OTHER_DEVICE", EINVAL, .other = true),
	SHARED("OTHER_DEVICE_OWN_RINGS", 0, .other = true, .o.own_rings = true),
	SHARED("COPY", EINVAL, FLAGS(XDP_SHARED_UMEM | XDP_COPY)),
	SHARED("NEED_WAKEUP", EINVAL, FLAGS(XDP_SHARED_UMEM | XDP_USE_NEED_WAKEUP)),
	{.name = "BIND_SHARED_OWN_UMEM", .modes = CONF_ANY, .fn = shared_with_umem},
	{.name = "BIND_SHARED_FOREIGN",
	 .modes = CONF_ANY,
	 .fn = bind_foreign,
	 .what = "a file, a UDP socket, an unbound AF_XDP socket"},
	{.name = "BIND_TWICE", .modes = CONF_ANY, .fn = bind_twice},
	{.name = "BIND_AFTER_CLOSE", .modes = CONF_ANY, .fn = bind_after_close},
	{.name = "CALLS",
	 .modes = CONF_ANY,
	 .fn = calls,
	 .what = "sendto and recvfrom: unbound, one-way, waiting, device down"},
	{0},
};
