/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * The control connection: one JSON object a line, by TCP. Lines are bounded, so are waits, and what
 * is no object is an error: the other end may be anyone.
 */
#ifndef BENCH_WIRE_H
#define BENCH_WIRE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#define WIRE_LINE_MAX 65536U

struct wire {
	int fd;	     /* -1: closed */
	int stop_fd; /* readable: give up with -EINTR; -1 none */
	char buf[WIRE_LINE_MAX];
	size_t have;
};

void wire_init(struct wire *w, int fd, int stop_fd);
void wire_close(struct wire *w);
/* Nothing more will be sent; and wait until the other end has closed, ms at most. */
void wire_end(struct wire *w);
void wire_await_end(struct wire *w, int ms);
/* Takes the reference. 0, -EPIPE (the other end is gone), -ETIMEDOUT (it does not read). */
int wire_send(struct wire *w, json_t *line);
/* The next line, a new reference. 0, -EPIPE, -ETIMEDOUT, -EINTR, -EPROTO (too long, no object). */
int wire_receive(struct wire *w, int timeout_ms, json_t **out);
/* Nothing is sent on an idle connection (a run's frames are counted), or now and then a probe
 * whether the other end is there. */
void wire_keepalive(struct wire *w, bool on);
/* Answer now, not with the next data: for the last line before a run. */
void wire_quick_ack(struct wire *w);
/* Until the other end has acknowledged all, ms at most. */
void wire_settle(struct wire *w, int ms);
/* The members as asked, within bounds; false: not there, or not so. */
bool wire_u32(const json_t *o, const char *key, uint32_t low, uint32_t high, uint32_t *out);
bool wire_number(const json_t *o, const char *key, double low, double high, double *out);
bool wire_flag(const json_t *o, const char *key, bool *out);
/* A copy of a string, control characters replaced: it goes to a terminal. */
bool wire_text(const json_t *o, const char *key, char *out, size_t size);

#endif
