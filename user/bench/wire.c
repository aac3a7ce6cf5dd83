/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/* Lines of JSON over TCP; see wire.h. */
#include <errno.h>
#include <math.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "wire.h"

#define SEND_MS	      5000
#define DEAD_MS	      5000U /* a host that acknowledges nothing for so long is gone */
#define DEPTH_FLAGS   (JSON_REJECT_DUPLICATES)
#define KEEPALIVE_SEC 2

static void option(int fd, int level, int name, int value)
{
	setsockopt(fd, level, name, &value, sizeof(value));
}

void wire_init(struct wire *w, int fd, int stop_fd)
{
	w->fd = fd;
	w->stop_fd = stop_fd;
	w->have = 0;
	if (fd < 0)
		return;
	option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, (int)DEAD_MS);
	option(fd, IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_SEC);
	option(fd, IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_SEC);
	wire_keepalive(w, true);
}

void wire_close(struct wire *w)
{
	if (w->fd >= 0)
		close(w->fd);
	w->fd = -1;
}

void wire_end(struct wire *w)
{
	if (w->fd >= 0)
		shutdown(w->fd, SHUT_WR);
}

void wire_await_end(struct wire *w, int ms)
{
	struct pollfd p = {.fd = w->fd, .events = POLLIN};
	uint64_t until = xdpath_now_ms() + (uint64_t)ms, now;
	ssize_t n = 1;

	while (w->fd >= 0 && n && (now = xdpath_now_ms()) < until) {
		if (poll(&p, 1, (int)(until - now)) <= 0)
			continue;
		n = read(w->fd, w->buf, sizeof(w->buf));
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return;
	}
}

void wire_keepalive(struct wire *w, bool on)
{
	option(w->fd, SOL_SOCKET, SO_KEEPALIVE, on);
}

void wire_quick_ack(struct wire *w)
{
	option(w->fd, IPPROTO_TCP, TCP_QUICKACK, 1);
}

void wire_settle(struct wire *w, int ms)
{
	const struct timespec pause = {.tv_nsec = 200000};
	uint64_t until = xdpath_now_ms() + (uint64_t)ms;
	struct tcp_info info;

	do {
		socklen_t len = sizeof(info);

		memset(&info, 0, sizeof(info));
		if (getsockopt(w->fd, IPPROTO_TCP, TCP_INFO, &info, &len) || !info.tcpi_unacked)
			return;
		nanosleep(&pause, NULL);
	} while (xdpath_now_ms() < until);
}

/* Until the connection is ready; 0, -ETIMEDOUT, -EINTR. */
static int await(const struct wire *w, short events, uint64_t until)
{
	struct pollfd fd[2] = {{.fd = w->fd, .events = events},
			       {.fd = w->stop_fd, .events = POLLIN}};

	for (;;) {
		uint64_t now = xdpath_now_ms();
		int r = poll(fd, 2, until > now ? (int)(until - now) : 0);

		if (r < 0 && errno != EINTR)
			return -errno;
		if (r > 0 && fd[1].revents)
			return -EINTR;
		if (r > 0)
			return 0;
		if (xdpath_now_ms() >= until)
			return -ETIMEDOUT;
	}
}

int wire_send(struct wire *w, json_t *line)
{
	char *text = line ? json_dumps(line, JSON_COMPACT) : NULL;
	uint64_t until = xdpath_now_ms() + SEND_MS;
	size_t len, done = 0;
	int err = 0;

	json_decref(line);
	if (!text)
		return -ENOMEM;
	len = strlen(text);
	text[len++] = '\n'; /* in place of the end */
	while (!err && done < len) {
		ssize_t n = send(w->fd, text + done, len - done, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n > 0)
			done += (size_t)n;
		else if (errno == EAGAIN)
			err = await(w, POLLOUT, until);
		else if (errno != EINTR)
			err = errno == ETIMEDOUT ? -ETIMEDOUT : -EPIPE;
	}
	free(text);
	return err;
}

/* A whole line is there: parse it, keep what follows. */
static int take_line(struct wire *w, const char *end, json_t **out)
{
	size_t len = (size_t)(end - w->buf);
	json_t *o = json_loadb(w->buf, len, DEPTH_FLAGS, NULL);

	w->have -= len + 1;
	memmove(w->buf, end + 1, w->have);
	if (!json_is_object(o)) {
		json_decref(o);
		return -EPROTO;
	}
	*out = o;
	return 0;
}

int wire_receive(struct wire *w, int timeout_ms, json_t **out)
{
	uint64_t until = xdpath_now_ms() + (uint64_t)timeout_ms;

	for (;;) {
		const char *end = memchr(w->buf, '\n', w->have);
		ssize_t n;
		int err;

		if (end)
			return take_line(w, end, out);
		if (w->have == sizeof(w->buf))
			return -EPROTO;
		err = await(w, POLLIN, until);
		if (err)
			return err;
		n = recv(w->fd, w->buf + w->have, sizeof(w->buf) - w->have, MSG_DONTWAIT);
		if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
			return n < 0 && errno == ETIMEDOUT ? -ETIMEDOUT : -EPIPE;
		if (n > 0)
			w->have += (size_t)n;
	}
}

bool wire_number(const json_t *o, const char *key, double low, double high, double *out)
{
	const json_t *v = json_object_get(o, key);

	if (!json_is_number(v))
		return false;
	*out = json_number_value(v);
	return isfinite(*out) && *out >= low && *out <= high;
}

bool wire_u32(const json_t *o, const char *key, uint32_t low, uint32_t high, uint32_t *out)
{
	const json_t *v = json_object_get(o, key);

	if (!json_is_integer(v) || json_integer_value(v) < low || json_integer_value(v) > high)
		return false;
	*out = (uint32_t)json_integer_value(v);
	return true;
}

bool wire_flag(const json_t *o, const char *key, bool *out)
{
	const json_t *v = json_object_get(o, key);

	*out = json_is_true(v);
	return json_is_boolean(v);
}

bool wire_text(const json_t *o, const char *key, char *out, size_t size)
{
	const char *s = json_string_value(json_object_get(o, key));
	size_t i;

	out[0] = '\0';
	if (!s)
		return false;
	for (i = 0; s[i] && i + 1 < size; i++)
		out[i] = (unsigned char)s[i] < 32 || s[i] == 127 ? '?' : s[i];
	out[i] = '\0';
	return true;
}
