/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/* The inside of the bench end: session.c opens it, session_talk.c speaks, session_run.c runs. */
#ifndef BENCH_SESSION_IN_H
#define BENCH_SESSION_IN_H

#include "session.h"
#include "session_end.h"
#include "wire.h"

struct session {
	struct session_end x;
	struct wire w;
	char peer[64];
	uint32_t run;
	json_t *far_record;
};

/* Why the far end could not be heard, as a diagnosis; returns err's kind. */
int session_broken(const struct session *s, int err, struct xdpath_diag *d);
/* The answer to the last line, within ms; an "error" in it becomes the diagnosis. */
int session_answer(struct session *s, int timeout_ms, json_t **out, struct xdpath_diag *d);
/* Say it (the reference is taken) and wait for the answer. */
int session_ask(struct session *s, json_t *line, int timeout_ms, json_t **out,
		struct xdpath_diag *d);
/*
 * Until `until` (ns), or something happens: 1 an event, 0 the time, -EINTR the user, -EPIPE the far
 * end said something or is gone (then the diagnosis says it), or a lane ended.
 */
int session_watch(struct session *s, uint64_t until, int stop_fd, struct xdpath_diag *d);
int session_wait_until(struct session *s, uint64_t until, int stop_fd, struct xdpath_diag *d);
int session_pause_ms(struct session *s, int ms, int stop_fd, struct xdpath_diag *d);

#endif
