/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * What a refused bind means, errno by errno, and the quirk table before it. The kernel's AF_XDP is
 * this file: its sockets are sparse files that can be mapped, and bind() says what the test wants.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "quirk.h"

#include <cmocka.h>

static int bind_says; /* errno, 0: bound */
static uint32_t binds;
static bool bound_zerocopy; /* what XDP_OPTIONS tells */

int socket(int domain, int type, int protocol)
{
	int fd;

	if (domain != AF_XDP)
		return (int)syscall(SYS_socket, domain, type, protocol);
	fd = memfd_create("xsk", MFD_CLOEXEC);
	if (fd >= 0 && ftruncate(fd, (off_t)XDP_UMEM_PGOFF_COMPLETION_RING + (1 << 20)) < 0)
		return -1;
	return fd;
}

int setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	if (level == SOL_XDP)
		return 0;
	return (int)syscall(SYS_setsockopt, fd, level, name, value, len);
}

int getsockopt(int fd, int level, int name, void *restrict value, socklen_t *restrict len)
{
	if (level != SOL_XDP)
		return (int)syscall(SYS_getsockopt, fd, level, name, value, len);
	if (name == XDP_MMAP_OFFSETS) {
		const struct xdp_ring_offset ring = {0, 64, 192, 128};
		const struct xdp_mmap_offsets all = {ring, ring, ring, ring};

		memcpy(value, &all, sizeof(all));
	} else if (name == XDP_OPTIONS) {
		const struct xdp_options o = {bound_zerocopy ? XDP_OPTIONS_ZEROCOPY : 0};

		memcpy(value, &o, sizeof(o));
	}
	return 0;
}

int bind(int fd, const struct sockaddr *addr, socklen_t len)
{
	if (addr->sa_family != AF_XDP)
		return (int)syscall(SYS_bind, fd, addr, len);
	binds++;
	errno = bind_says;
	return bind_says ? -1 : 0;
}

/* A port that says it can zero-copy, and one socket opened on it. */
static int open_on(const struct xdpath_port *p, struct xdpath_socket_opts so, uint32_t frame_size,
		   struct xdpath_diag *d)
{
	struct xdpath_umem_opts uo = XDPATH_OPTS_INIT(struct xdpath_umem_opts);
	struct xdpath_umem *u;
	struct xdpath_socket *s;
	int err;

	uo.frames = 1024;
	uo.frame_size = frame_size;
	uo.hugepages = XDPATH_HUGE_OFF;
	assert_int_equal(xdpath_umem_create(&u, &uo), 0);
	assert_int_equal(xdpath_umem_carve(u, 1024, &so.frames), 0);
	so.ring_rx = so.ring_tx = so.ring_fill = so.ring_comp = 64;
	so.single_frag = true;
	so.diag = d;
	*d = (struct xdpath_diag){0};
	binds = 0;
	err = xdpath_socket_open(&s, p, u, &so);
	assert_true(fcntl(STDIN_FILENO, F_GETFD) >= 0); /* a refusal closes nobody else's */
	xdpath_socket_close(s);
	xdpath_umem_destroy(u);
	return err;
}

static struct xdpath_port port(const char *driver, uint32_t mtu)
{
	struct xdpath_port p = {.name = "eth7",
				.ifindex = 70007,
				.mtu = mtu,
				.rx_queues = 2,
				.tx_queues = 2,
				.features_known = true,
				.zc_max_segs = 1,
				.xdp_features = XDPATH_XDP_ACT_BASIC | XDPATH_XDP_ACT_REDIRECT |
						XDPATH_XDP_ACT_XSK_ZEROCOPY};

	strcpy(p.driver, driver);
	return p;
}

static void refusals_of_zerocopy(void **state)
{
	static const struct {
		int err;
		enum xdpath_reason reason;
	} t[] = {
		/* the driver does not grant it, for whatever reason: copying is next */
		{EOPNOTSUPP, XDPATH_R_NO_ZEROCOPY},
		{EINVAL, XDPATH_R_NO_ZEROCOPY},
		{ENOENT, XDPATH_R_NO_ZEROCOPY},
		{ENXIO, XDPATH_R_NO_ZEROCOPY},
		{EIO, XDPATH_R_NO_ZEROCOPY},
		{EFAULT, XDPATH_R_NO_ZEROCOPY},
		/* copying would meet the same */
		{EBUSY, XDPATH_R_QUEUE_BUSY},
		{ENODEV, XDPATH_R_NO_DEVICE},
		{ENETDOWN, XDPATH_R_DEVICE_DOWN},
		{EPERM, XDPATH_R_PERMISSION},
		{ENOMEM, XDPATH_R_MEMORY},
		{ENOBUFS, XDPATH_R_MEMORY},
	};
	struct xdpath_socket_opts so = XDPATH_OPTS_INIT(struct xdpath_socket_opts);
	struct xdpath_port p = port("virtio_net", 1500);
	struct xdpath_diag d;

	(void)state;
	so.mode = XDPATH_MODE_ZEROCOPY;
	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		bind_says = t[i].err;
		assert_int_equal(open_on(&p, so, 4096, &d), -t[i].err);
		assert_int_equal(d.reason, t[i].reason);
		assert_int_equal(d.err, t[i].err);
		assert_non_null(strstr(d.text, "eth7"));
		if (t[i].reason == XDPATH_R_NO_ZEROCOPY) {
			assert_non_null(strstr(d.text, "advertises zero-copy and does not grant"));
			assert_non_null(strstr(d.text, strerrorname_np(t[i].err)));
		}
	}
	so.queue = 2; /* the one EINVAL that copying would meet as well */
	bind_says = EINVAL;
	assert_int_equal(open_on(&p, so, 4096, &d), -EINVAL);
	assert_int_equal(d.reason, XDPATH_R_QUEUE_RANGE);
}

static void another_mode_than_asked_is_no_success(void **state)
{
	struct xdpath_socket_opts so = XDPATH_OPTS_INIT(struct xdpath_socket_opts);
	struct xdpath_port p = port("virtio_net", 1500);
	struct xdpath_diag d;

	(void)state;
	so.mode = XDPATH_MODE_ZEROCOPY;
	bind_says = 0;
	bound_zerocopy = false;
	assert_int_equal(open_on(&p, so, 4096, &d), -EOPNOTSUPP);
	assert_int_equal(d.reason, XDPATH_R_NO_ZEROCOPY);
	bound_zerocopy = true;
	assert_int_equal(open_on(&p, so, 4096, &d), 0);
}

/* igb cuts packets above a whole number of KiB: before the kernel is even asked. */
static void frames_that_igb_would_cut(void **state)
{
	static const struct {
		uint32_t frame_size, mtu;
		bool refused;
	} t[] = {
		{2048, 1500, true},  {2048, 1010, true},  {2048, 68, true},
		{4096, 1500, false}, {4096, 3054, false}, {4096, 3055, true},
	};
	struct xdpath_socket_opts so = XDPATH_OPTS_INIT(struct xdpath_socket_opts);
	struct xdpath_diag d;

	(void)state;
	bind_says = 0;
	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct xdpath_port p = port("igb", t[i].mtu);

		so.mode = XDPATH_MODE_ZEROCOPY;
		bound_zerocopy = true;
		assert_int_equal(open_on(&p, so, t[i].frame_size, &d),
				 t[i].refused ? -EOPNOTSUPP : 0);
		assert_int_equal(binds, !t[i].refused);
		assert_int_equal(d.reason, t[i].refused ? XDPATH_R_NO_FRAGMENTS : XDPATH_R_NONE);
		assert_int_equal(strstr(d.text, "umem.frame_size=4096") != NULL, t[i].refused);
		so.no_quirks = true; /* to see it for oneself */
		assert_int_equal(open_on(&p, so, t[i].frame_size, &d), 0);
		so.no_quirks = false;
		so.no_rx = true; /* nothing is received */
		assert_int_equal(open_on(&p, so, t[i].frame_size, &d), 0);
		so.no_rx = false;
		bound_zerocopy = false;
		so.mode = XDPATH_MODE_COPY; /* the driver's own buffers are large enough */
		assert_int_equal(open_on(&p, so, t[i].frame_size, &d), 0);
		p = port("ixgbe", t[i].mtu);
		so.mode = XDPATH_MODE_ZEROCOPY;
		bound_zerocopy = true;
		assert_int_equal(open_on(&p, so, t[i].frame_size, &d), 0);
	}
}

static void quirks_are_documented(void **state)
{
	static const char *const drivers[] = {"igb", "virtio_net", "ixgbe", "", "ig"};
	const struct xdpath_quirk *q = NULL;
	size_t n = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(drivers) / sizeof(drivers[0]); i++)
		while ((q = xdpath_quirk_next(q, drivers[i]))) {
			n++;
			assert_string_equal(q->driver, drivers[i]);
			assert_true(q->key[0] && q->what[0] && q->done[0] && q->seen[0]);
			assert_non_null(strstr(q->verify, "xdpath "));
		}
	assert_int_equal(n, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refusals_of_zerocopy),
		cmocka_unit_test(another_mode_than_asked_is_no_success),
		cmocka_unit_test(frames_that_igb_would_cut),
		cmocka_unit_test(quirks_are_documented),
	};

	return cmocka_run_group_tests_name("bind", tests, NULL, NULL);
}
