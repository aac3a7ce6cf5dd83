/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * The bench end of a session. What is said over the control connection, a line each:
 *
 *   hello     -> protocol and version       <- the same, the device's MTU, the far end's record
 *   setup     -> test, knobs, mode, ports   <- ok once its engine is open
 *   run       -> number, seconds            <- ok; then the line is silent until the run is over
 *   report    ->                            <- the far end's account
 *
 * Any answer may be an error in the far end's own words instead.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "engine_common.h"
#include "internal.h"
#include "record.h"
#include "session_in.h"

#define CONNECT_MS 3000
#define CLOSE_MS   3000
#define CLAIM_MS   3000
#define BASE_LOW   16384U
#define BASE_HIGH  32000U /* below the ports that the kernel gives out by itself */
#define BASE_TRIES 16

/* ---- connecting ----------------------------------------------------------------------------- */

static int no_peer(const struct session_opts *o, int err, struct xdpath_diag *d)
{
	uint32_t port = o->port ? o->port : SESSION_PORT;

	if (err == ECONNREFUSED)
		return xdpath_fail(
			d, XDPATH_R_REFUSED, err,
			"%s: nothing listens on port %u there; run `xdpath serve DEV` on "
			"that host",
			o->peer, port);
	return xdpath_fail(
		d, XDPATH_R_REFUSED, err,
		"%s: no answer through %s (port %u: %s); is the host up and `xdpath serve "
		"DEV` running there?",
		o->peer, o->dev, port, strerror(err));
}

static int await_connect(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLOUT};
	socklen_t len = sizeof(int);
	int err = 0, r;

	do {
		r = poll(&p, 1, CONNECT_MS);
	} while (r < 0 && errno == EINTR);
	if (r == 0)
		return ETIMEDOUT;
	if (r < 0 || getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len))
		return errno;
	return err;
}

static int connect_to(struct session *s, const struct session_opts *o, const struct neigh_addr *to,
		      struct xdpath_diag *d)
{
	struct engine_path p = {.dev = o->dev,
				.family = to->family,
				.ifindex = s->x.e.path.ifindex};
	int fd = socket(to->family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), err = 0;
	struct sockaddr_storage a;
	socklen_t len;

	memcpy(&p.remote, &to->v6, sizeof(to->v6));
	len = path_remote(&p, o->port ? o->port : SESSION_PORT, &a);
	if (fd < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, o->dev, (socklen_t)strlen(o->dev) + 1))
		err = errno;
	else if (connect(fd, (struct sockaddr *)&a, len))
		err = errno == EINPROGRESS ? await_connect(fd) : errno;
	if (err) {
		if (fd >= 0)
			close(fd);
		return no_peer(o, err, d);
	}
	wire_init(&s->w, fd, -1);
	return 0;
}

static int hello(struct session *s, uint32_t *mtu, struct xdpath_diag *d)
{
	json_t *reply = NULL;
	uint32_t protocol = 0;
	char version[32];
	int err = session_ask(s,
			      json_pack("{s:s, s:i, s:s}", "xdpath", "bench", "protocol",
					SESSION_PROTOCOL, "version", XDPATH_VERSION),
			      SESSION_WAIT_MS, &reply, d);

	if (err)
		return err;
	if (!wire_text(reply, "version", version, sizeof(version)) ||
	    !wire_u32(reply, "protocol", 1, 1000, &protocol) ||
	    !wire_u32(reply, "mtu", 68, 65535, mtu))
		err = session_broken(s, -EPROTO, d);
	else if (protocol != SESSION_PROTOCOL || strcmp(version, XDPATH_VERSION) != 0)
		err = xdpath_fail(d, XDPATH_R_REFUSED, EPROTO,
				  "%s: runs xdpath %s, this is %s; run the same on both hosts",
				  s->peer, version, XDPATH_VERSION);
	else
		s->far_record = json_incref(json_object_get(reply, "record"));
	json_decref(reply);
	return err;
}

/* Ports that nobody has now: a try at each, at several places. */
static int choose_ports(struct session *s, struct xdpath_diag *d)
{
	struct engine_path *p = &s->x.e.path;
	uint32_t span = BASE_HIGH - BASE_LOW - p->flows, draw, n;
	int *fds, err = -EADDRINUSE;

	for (int i = 0; err == -EADDRINUSE && i < BASE_TRIES; i++) {
		if (getrandom(&draw, sizeof(draw), 0) != sizeof(draw))
			draw = (uint32_t)xdpath_now_ns();
		p->client_base = (uint16_t)(BASE_LOW + draw % span);
		s->x.id = (uint16_t)(draw >> 16);
		err = ports_hold(p, &fds, &n, d);
		if (!err)
			ports_release(fds, n);
	}
	return err;
}

static int setup(struct session *s, const struct session_opts *o, struct xdpath_diag *d)
{
	struct engine_path *p = &s->x.e.path;
	json_t *reply = NULL;
	int err;

	err = session_ask(s,
			  json_pack("{s:s, s:o, s:o, s:i, s:i, s:i, s:i, s:i}", "cmd", "setup",
				    "spec", spec_to_json(&s->x.spec), "knobs",
				    knobs_to_json(&o->knobs, false), "mode", (int)o->mode, "worst",
				    (int)o->worst, "id", (int)s->x.id, "base", (int)p->client_base,
				    "mtu", (int)p->mtu),
			  SESSION_OPEN_MS, &reply, d);
	json_decref(reply);
	return err;
}

/* Every flow has to be known at both ends before the first run. */
static int claim_flows(struct session *s, struct xdpath_diag *d)
{
	uint64_t until = xdpath_now_ms() + CLAIM_MS;
	uint32_t flows = s->x.spec.flows, have;
	int err;

	test_set_phase(s->x.t, PHASE_CLAIM);
	while ((have = test_claimed(s->x.t)) < flows) {
		if (xdpath_now_ms() >= until)
			return xdpath_fail(
				d, XDPATH_R_REFUSED, ETIMEDOUT,
				"%s: of %u flows %u got no answer to UDP port %u; look for a "
				"firewall, or an MTU or driver that drops them (`xdpath status`)",
				s->peer, flows, flows - have, s->x.e.path.server_port);
		err = session_pause_ms(s, 1, -1, d);
		if (err)
			return err;
	}
	test_set_phase(s->x.t, PHASE_IDLE);
	return 0;
}

static int open_ends(struct session *s, const struct session_opts *o, struct xdpath_diag *d)
{
	struct engine_path *p = &s->x.e.path;
	struct neigh_addr peer, hop;
	uint32_t far_mtu = 0, mtu;
	int err;

	if ((err = end_device(&s->x, o->dev, d)) || (err = neigh_parse(o->peer, &peer, d)) ||
	    (err = neigh_route(o->dev, &peer, &hop, d)))
		return err;
	p->family = peer.family;
	if ((err = spec_mtu(&s->x, p->mtu, &mtu, d)) || (err = connect_to(s, o, &peer, d)) ||
	    (err = hello(s, &far_mtu, d)) || (err = end_addresses(&s->x, s->w.fd, d)))
		return err;
	p->server_port = (uint16_t)((o->port ? o->port : SESSION_PORT) + 1);
	p->mtu = !s->x.spec.mtu && far_mtu < mtu ? far_mtu : mtu;
	p->flows = s->x.spec.flows;
	if ((err = choose_ports(s, d)) || (err = setup(s, o, d)) ||
	    (err = end_open(&s->x, o->mode, o->worst, d)))
		return err;
	return claim_flows(s, d);
}

int session_open(struct session **out, const struct session_opts *o, struct xdpath_diag *d)
{
	struct session *s;
	int err = spec_check(&o->spec, d);

	if (err)
		return err;
	ticks_init();
	s = aligned_alloc(XDPATH_CACHELINE,
			  (sizeof(*s) + XDPATH_CACHELINE - 1) & ~(size_t)(XDPATH_CACHELINE - 1));
	if (!s)
		return xdpath_fail(d, XDPATH_R_MEMORY, ENOMEM,
				   "%s: no memory for a session; free some", o->dev);
	memset(s, 0, sizeof(*s));
	s->w.fd = -1;
	s->x.spec = o->spec;
	s->x.knobs = o->knobs;
	snprintf(s->peer, sizeof(s->peer), "%s", o->peer);
	s->x.event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	err = s->x.event_fd < 0 ? -errno : open_ends(s, o, d);
	if (err) {
		session_close(s);
		return err;
	}
	*out = s;
	return 0;
}

json_t *session_peer_record(const struct session *s)
{
	return s->far_record;
}

void session_close(struct session *s)
{
	if (!s)
		return;
	wire_end(&s->w);
	end_close(&s->x);
	wire_await_end(&s->w, CLOSE_MS); /* its queues are free for the next session */
	wire_close(&s->w);
	if (s->x.event_fd >= 0)
		close(s->x.event_fd);
	json_decref(s->far_record);
	free(s);
}
