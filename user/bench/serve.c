/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * The far end of a measurement: listens on one device, serves one session at a time, and is ready
 * for the next however that ended. Whoever connects may be anyone: lines are bounded, everything in
 * them is checked, and an end that says nothing for long is closed.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "engine_common.h"
#include "internal.h"
#include "record.h"
#include "session.h"
#include "session_end.h"
#include "wire.h"

#define HELLO_MS   3000	 /* who connects says what it wants */
#define IDLE_MS	   60000 /* between two runs */
#define OVERDUE_MS 10000 /* a run that does not end by itself */
#define SETTLE_MS  50
#define QUIET_MS   200

struct server {
	const struct serve_opts *o;
	int listen_fd, stop_fd;
	struct session_end x;
	struct wire w;
	char who[INET6_ADDRSTRLEN];
};

/* ---- listening ------------------------------------------------------------------------------ */

static int listen_socket(const struct serve_opts *o, int family)
{
	uint16_t port = htons(o->port ? o->port : SESSION_PORT);
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = port};
	struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = port};
	const struct sockaddr *a =
		family == AF_INET6 ? (struct sockaddr *)&v6 : (struct sockaddr *)&v4;
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), one = 1, none = 0,
	    err;

	if (fd < 0)
		return -errno;
	if (family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &none, sizeof(none));
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, o->dev, (socklen_t)strlen(o->dev) + 1) ||
	    bind(fd, a, family == AF_INET6 ? sizeof(v6) : sizeof(v4)) || listen(fd, 8)) {
		err = errno;
		close(fd);
		return -err;
	}
	return fd;
}

static int open_listener(struct server *v, struct xdpath_diag *d)
{
	uint32_t port = v->o->port ? v->o->port : SESSION_PORT;

	v->listen_fd = listen_socket(v->o, AF_INET6);
	if (v->listen_fd < 0 && v->listen_fd != -EADDRINUSE && v->listen_fd != -EPERM)
		v->listen_fd = listen_socket(v->o, AF_INET); /* a host without IPv6 */
	if (v->listen_fd >= 0)
		return 0;
	return xdpath_fail(d, v->listen_fd == -EPERM ? XDPATH_R_PERMISSION : XDPATH_R_REFUSED,
			   -v->listen_fd, "%s: TCP port %u: %s; %s", v->o->dev, port,
			   strerror(-v->listen_fd),
			   v->listen_fd == -EPERM ? "run as root"
						  : "end what uses it (`ss -ltnp`) or give another "
						    "--port");
}

static void name_of(const struct sockaddr_storage *a, char out[INET6_ADDRSTRLEN])
{
	uint8_t addr[16] = {0};
	int family = end_unpack(a, addr);

	inet_ntop(family, addr, out, INET6_ADDRSTRLEN);
}

/* While one is served, another is told who has it. */
static void turn_away(const struct server *v)
{
	int fd = accept4(v->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	char text[160];
	int n;

	if (fd < 0)
		return;
	n = snprintf(text, sizeof(text),
		     "{\"error\":\"it serves %s just now; try again when that has ended\"}\n",
		     v->who);
	if (send(fd, text, (size_t)n, MSG_NOSIGNAL) > 0) /* else it did not wait to be told */
		shutdown(fd, SHUT_WR);
	close(fd);
}

/* ---- talking -------------------------------------------------------------------------------- */

static void tell(const struct server *v, const char *what, const char *more)
{
	if (v->o->quiet)
		return;
	if (v->o->json) {
		json_t *o =
			json_pack("{s:s, s:s, s:s}", "peer", v->who, "event", what, "text", more);

		json_dumpf(o, stdout, JSON_COMPACT);
		json_decref(o);
		fputc('\n', stdout);
	} else {
		printf("serve: %s: %s%s%s\n", v->who, what, *more ? ": " : "", more);
	}
	fflush(stdout);
}

static int refuse(struct server *v, const struct xdpath_diag *d)
{
	tell(v, "refused", d->text);
	wire_send(&v->w, json_pack("{s:s, s:i}", "error", d->text, "reason", (int)d->reason));
	return -EPROTO;
}

static int refuse_line(struct server *v, const char *why)
{
	struct xdpath_diag d;

	xdpath_fail(&d, XDPATH_R_REFUSED, EPROTO, "%s", why);
	return refuse(v, &d);
}

/* Until the connection has something, another wants in, or the time is up: 0, -ETIMEDOUT, -EINTR,
 * and 1 for a mark that came. */
static int watch(const struct server *v, uint64_t until)
{
	for (;;) {
		struct pollfd fd[] = {{.fd = v->w.fd, .events = POLLIN},
				      {.fd = v->stop_fd, .events = POLLIN},
				      {.fd = v->listen_fd, .events = POLLIN},
				      {.fd = v->x.event_fd, .events = POLLIN},
				      {.fd = v->x.t ? v->x.e.event_fd : -1, .events = POLLIN}};
		uint64_t now = xdpath_now_ms(), n;
		int r = poll(fd, 5, until > now ? (int)(until - now) : 0);

		if (r < 0 && errno != EINTR)
			return -errno;
		if (r > 0 && fd[1].revents)
			return -EINTR;
		if (r > 0 && fd[4].revents)
			return -ENODEV;
		if (r > 0 && fd[3].revents && read(v->x.event_fd, &n, sizeof(n)) > 0)
			return 1;
		if (r > 0 && fd[2].revents)
			turn_away(v);
		if (r > 0 && fd[0].revents)
			return 0;
		if (xdpath_now_ms() >= until)
			return -ETIMEDOUT;
	}
}

/* The next line, while others are turned away. Marks outside a run are of no interest. */
static int next_line(struct server *v, uint32_t ms, json_t **out)
{
	uint64_t until = xdpath_now_ms() + ms;
	int r = 1;

	while (r == 1 && v->w.have == 0)
		r = watch(v, until);
	if (r >= 0)
		r = wire_receive(&v->w, HELLO_MS, out);
	return r == -EPROTO ? refuse_line(v, "that is no xdpath bench") : r;
}

static bool is_command(const json_t *line, const char *what)
{
	const char *cmd = json_string_value(json_object_get(line, "cmd"));

	return cmd && !strcmp(cmd, what);
}

/* ---- a session ------------------------------------------------------------------------------ */

static int hello(struct server *v)
{
	json_t *line = NULL;
	char version[32], kind[16];
	uint32_t protocol = 0;
	int err = next_line(v, HELLO_MS, &line);

	if (err)
		return err;
	if (!wire_text(line, "xdpath", kind, sizeof(kind)) || strcmp(kind, "bench") != 0 ||
	    !wire_u32(line, "protocol", 1, 1000, &protocol) ||
	    !wire_text(line, "version", version, sizeof(version)))
		err = refuse_line(v, "that is no xdpath bench");
	json_decref(line);
	if (err)
		return err;
	/* the version is the asking end's to judge: it has somebody to tell */
	return wire_send(&v->w, json_pack("{s:s, s:i, s:s, s:i, s:o}", "xdpath", "serve",
					  "protocol", SESSION_PROTOCOL, "version", XDPATH_VERSION,
					  "mtu", (int)v->x.e.path.mtu, "record",
					  record_host(v->o->dev, &v->o->knobs)));
}

/* What the other end asks for, into the end. 0, or refused. */
static int read_setup(struct server *v, const json_t *line, enum xdpath_mode *mode,
		      enum xdpath_mode *worst)
{
	struct engine_path *p = &v->x.e.path;
	uint32_t id, base, mtu, m, w, device_mtu = p->mtu;
	struct xdpath_diag d = {0};

	if (!is_command(line, "setup") ||
	    spec_from_json(json_object_get(line, "spec"), &v->x.spec) ||
	    !wire_u32(line, "id", 0, 65535, &id) || !wire_u32(line, "base", 1024, 65535, &base) ||
	    base + v->x.spec.flows > 65536 || !wire_u32(line, "mtu", 68, 65535, &mtu) ||
	    !wire_u32(line, "mode", XDPATH_MODE_AUTO, XDPATH_MODE_ZEROCOPY, &m) ||
	    !wire_u32(line, "worst", XDPATH_MODE_AUTO, XDPATH_MODE_ZEROCOPY, &w) ||
	    !json_is_object(json_object_get(line, "knobs")))
		return refuse_line(v, "a test out of bounds; run the same xdpath on both hosts");
	v->x.knobs = v->o->knobs;
	if (knobs_from_json(json_object_get(line, "knobs"), &v->x.knobs, &d))
		return refuse(v, &d);
	v->x.id = (uint16_t)id;
	v->x.spec.mtu = mtu;
	p->is_server = true;
	p->client_base = (uint16_t)base;
	p->server_port = (uint16_t)((v->o->port ? v->o->port : SESSION_PORT) + 1);
	*mode = m != XDPATH_MODE_AUTO ? (enum xdpath_mode)m : v->o->mode;
	*worst = w != XDPATH_MODE_AUTO ? (enum xdpath_mode)w : v->o->worst;
	if (end_addresses(&v->x, v->w.fd, &d) || spec_mtu(&v->x, device_mtu, &p->mtu, &d))
		return refuse(v, &d);
	return 0;
}

static void describe(const struct server *v)
{
	const struct test_spec *s = &v->x.spec;
	char text[200];

	if (s->kind == TEST_RR)
		snprintf(text, sizeof(text), "rr, %u flow%s, %u to %u bytes, engine %s, mode %s",
			 s->flows, s->flows == 1 ? "" : "s", s->req, s->rsp,
			 spec_engine_name(s->engine), v->x.e.mode_name);
	else
		snprintf(text, sizeof(text), "stream%s, %u flow%s, %u bytes, engine %s, mode %s",
			 s->bidir     ? " both ways"
			 : s->reverse ? " from here"
				      : "",
			 s->flows, s->flows == 1 ? "" : "s", s->size, spec_engine_name(s->engine),
			 v->x.e.mode_name);
	tell(v, "begins", text);
}

static int setup(struct server *v)
{
	enum xdpath_mode mode, worst;
	struct xdpath_diag d = {0};
	json_t *line = NULL;
	int err = next_line(v, SESSION_OPEN_MS, &line);

	if (err)
		return err;
	err = read_setup(v, line, &mode, &worst);
	json_decref(line);
	if (err)
		return err;
	if (end_open(&v->x, mode, worst, &d))
		return refuse(v, &d);
	describe(v);
	return wire_send(&v->w, json_pack("{s:b}", "ok", 1));
}

/* Wait for a mark of this run; the other end may have gone meanwhile. */
static int await_mark(struct server *v, uint32_t mark, uint64_t until)
{
	int r = 1;

	while (r == 1 && test_mark_seen(v->x.t) != mark)
		r = watch(v, until);
	if (test_mark_seen(v->x.t) == mark)
		return 0;
	return r ? r : -EPIPE; /* a line in the middle of a run: one way or another it is over */
}

static int run(struct server *v, const json_t *line)
{
	uint64_t until;
	double seconds;
	bool account;
	uint32_t n;
	int err;

	if (!wire_u32(line, "run", 1, 0xffffff, &n) ||
	    !wire_number(line, "seconds", 0, 86400, &seconds) ||
	    !wire_flag(line, "account", &account))
		return refuse_line(v, "a run out of bounds; run the same xdpath on both hosts");
	until = xdpath_now_ms() + (uint64_t)(seconds * 1e3) + OVERDUE_MS;
	if (account)
		end_usage_start(&v->x); /* takes its time: before the other end is told to begin */
	wire_keepalive(&v->w, false);
	err = wire_send(&v->w, json_pack("{s:b}", "ok", 1));
	if (err)
		return err;
	wire_settle(&v->w, SETTLE_MS);
	end_begin(&v->x);
	test_expect_mark(v->x.t, MARK_BEGIN(n));
	err = await_mark(v, MARK_BEGIN(n), until);
	if (err)
		return err;
	if (v->x.spec.kind == TEST_STREAM && v->x.t->sends) {
		v->x.t->stop_at = ticks_now() + ticks_from_ns(seconds * 1e9);
		test_set_phase(v->x.t, PHASE_GO);
	}
	err = await_mark(v, MARK_END(n), until);
	test_set_phase(v->x.t, PHASE_IDLE);
	end_usage_stop(&v->x);
	if (err)
		return err;
	end_quiet(&v->x, QUIET_MS);
	end_finish(&v->x);
	wire_keepalive(&v->w, true);
	return 0;
}

static int report(struct server *v)
{
	struct test_side side;

	end_account(&v->x, &side);
	return wire_send(&v->w, json_pack("{s:o}", "side", side_to_json(&side)));
}

static int session(struct server *v)
{
	bool reported = true;
	json_t *line;
	int err;

	if ((err = hello(v)) || (err = setup(v)))
		return err;
	while (!(err = next_line(v, IDLE_MS, &line))) {
		if (is_command(line, "run")) {
			err = run(v, line);
			reported = false;
		} else if (is_command(line, "report") && !reported) {
			err = report(v);
			reported = true;
		} else {
			err = refuse_line(v, "that is no xdpath bench");
		}
		json_decref(line);
		if (err)
			break;
	}
	return err;
}

static void farewell(struct server *v, int err)
{
	const char *why = "";

	if (err == -EINTR)
		wire_send(&v->w, json_pack("{s:s}", "error", "it was ended by its user"));
	else if (err == -ENODEV)
		wire_send(&v->w, json_pack("{s:s}", "error",
					   "its device went away or its queue died; see `xdpath "
					   "status` there"));
	if (err == -EINTR)
		why = "ended here";
	else if (err == -ENODEV)
		why = "the device went away or its queue died";
	else if (err == -ETIMEDOUT)
		why = "it said nothing for too long";
	else if (err == -EPROTO)
		why = "it said what no xdpath bench says";
	tell(v, "ended", why);
}

/* One who connected, from beginning to end. */
static int serve_one(struct server *v, struct xdpath_diag *d)
{
	struct sockaddr_storage a = {0};
	socklen_t len = sizeof(a);
	int fd = accept4(v->listen_fd, (struct sockaddr *)&a, &len, SOCK_CLOEXEC | SOCK_NONBLOCK),
	    event_fd = v->x.event_fd, err;

	if (fd < 0)
		return 0;
	name_of(&a, v->who);
	memset(&v->x, 0, sizeof(v->x));
	v->x.event_fd = event_fd;
	v->x.e.event_fd = -1;
	wire_init(&v->w, fd, v->stop_fd);
	err = end_device(&v->x, v->o->dev, d);
	if (err) {
		refuse(v, d);
		wire_close(&v->w);
		return err == -ENODEV ? err : 0; /* down may be up again */
	}
	err = session(v);
	farewell(v, err);
	end_close(&v->x);
	wire_close(&v->w);
	return 0;
}

static struct server *new_server(void)
{
	size_t size =
		(sizeof(struct server) + XDPATH_CACHELINE - 1) & ~(size_t)(XDPATH_CACHELINE - 1);
	struct server *v = aligned_alloc(XDPATH_CACHELINE, size);

	if (v)
		memset(v, 0, size);
	return v;
}

int session_serve(const struct serve_opts *o, int stop_fd, struct xdpath_diag *d)
{
	struct server *v = new_server();
	int err;

	if (!v)
		return xdpath_fail(d, XDPATH_R_MEMORY, ENOMEM, "%s: no memory; free some", o->dev);
	ticks_init();
	v->o = o;
	v->stop_fd = stop_fd;
	v->listen_fd = -1;
	v->w.fd = -1;
	v->x.event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	err = v->x.event_fd < 0 ? -errno : end_device(&v->x, o->dev, d);
	if (!err)
		err = open_listener(v, d);
	if (!err && o->ready)
		o->ready(o->ctx);
	while (!err) {
		struct pollfd fd[] = {{.fd = v->listen_fd, .events = POLLIN},
				      {.fd = stop_fd, .events = POLLIN}};

		if (poll(fd, 2, -1) < 0 && errno != EINTR)
			err = -errno;
		else if (fd[1].revents)
			break;
		else if (fd[0].revents)
			err = serve_one(v, d);
	}
	if (v->listen_fd >= 0)
		close(v->listen_fd);
	if (v->x.event_fd >= 0)
		close(v->x.event_fd);
	free(v);
	return err;
}
