/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/* How the bench end hears the far end, and waits without missing its death. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "internal.h"
#include "session_in.h"

int session_broken(const struct session *s, int err, struct xdpath_diag *d)
{
	if (err == -EINTR)
		return err;
	if (err == -EPROTO)
		return xdpath_fail(d, XDPATH_R_REFUSED, EPROTO,
				   "%s: what answers there is no xdpath serve of this version; run "
				   "the same xdpath on both hosts",
				   s->peer);
	if (err == -ETIMEDOUT)
		return xdpath_fail(d, XDPATH_R_REFUSED, ETIMEDOUT,
				   "%s: the far end does not answer any more; see whether it runs",
				   s->peer);
	return xdpath_fail(d, XDPATH_R_REFUSED, EPIPE,
			   "%s: the far end is gone; start `xdpath serve` there again", s->peer);
}

/* The answer to the last line; its "error" is ours. */
int session_answer(struct session *s, int timeout_ms, json_t **out, struct xdpath_diag *d)
{
	char text[300];
	uint32_t reason = XDPATH_R_REFUSED;
	int err = wire_receive(&s->w, timeout_ms, out);

	if (err)
		return session_broken(s, err, d);
	if (!wire_text(*out, "error", text, sizeof(text)))
		return 0;
	wire_u32(*out, "reason", 1, XDPATH_R_OPTIONS, &reason);
	json_decref(*out);
	*out = NULL;
	return xdpath_fail(d, (enum xdpath_reason)reason, EREMOTEIO, "%s: the far end says: %s",
			   s->peer, text);
}

int session_ask(struct session *s, json_t *line, int timeout_ms, json_t **out,
		struct xdpath_diag *d)
{
	int err = wire_send(&s->w, line);

	/* an end that refuses may have closed before it read all: its words are there all the same
	 */
	if (err && err != -EPIPE)
		return session_broken(s, err, d);
	return session_answer(s, timeout_ms, out, d);
}

int session_watch(struct session *s, uint64_t until, int stop_fd, struct xdpath_diag *d)
{
	struct pollfd fd[] = {{.fd = s->x.event_fd, .events = POLLIN},
			      {.fd = stop_fd, .events = POLLIN},
			      {.fd = s->w.fd, .events = POLLIN},
			      {.fd = s->x.e.event_fd, .events = POLLIN}};
	uint64_t now = xdpath_now_ns(), ns = until > now ? until - now : 0, n;
	struct timespec ts = {.tv_sec = (time_t)(ns / 1000000000),
			      .tv_nsec = (long)(ns % 1000000000)};
	json_t *reply = NULL;
	int r = ppoll(fd, 4, &ts, NULL);

	if (r <= 0)
		return 0;
	if (fd[1].revents)
		return -EINTR;
	if (fd[3].revents)
		return xdpath_fail(
			d, XDPATH_R_DEVICE_GONE, ENODEV,
			"%s: the device went away or its queue died; see `xdpath status`",
			s->x.dev);
	if (fd[2].revents) {
		r = session_answer(s, SESSION_WAIT_MS, &reply, d);
		json_decref(reply);
		return r ? r : session_broken(s, -EPROTO, d);
	}
	if (read(s->x.event_fd, &n, sizeof(n)) < 0)
		return 0;
	return 1;
}

int session_wait_until(struct session *s, uint64_t until, int stop_fd, struct xdpath_diag *d)
{
	int r = 0;

	while (r >= 0 && xdpath_now_ns() < until)
		r = session_watch(s, until, stop_fd, d);
	return r < 0 ? r : 0;
}

int session_pause_ms(struct session *s, int ms, int stop_fd, struct xdpath_diag *d)
{
	return session_wait_until(s, xdpath_now_ns() + (uint64_t)ms * 1000000, stop_fd, d);
}
