/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * A run: both ends take their counters while nothing is on its way, the begin is marked, traffic
 * flows, what is out comes home, the end is marked, both take their counters again.
 */
#include <errno.h>
#include <string.h>

#include "clock.h"
#include "internal.h"
#include "record.h"
#include "session_in.h"

#define SETTLE_MS  15 /* after the last line before a run: its acknowledgement has come */
#define MARK_MS	   20 /* a mark that is not answered is sent again */
#define MARK_TRIES 100
#define DRAIN_MS   1000
#define AFTER_MS   100 /* the far end takes its account */

/* Send a mark until it is answered. */
static int mark(struct session *s, uint32_t what, int stop_fd, struct xdpath_diag *d)
{
	for (int i = 0; i < MARK_TRIES; i++) {
		uint64_t until = xdpath_now_ns() + MARK_MS * 1000000ULL;

		test_send_mark(s->x.t, what);
		while (test_mark_seen(s->x.t) != what && xdpath_now_ns() < until) {
			int r = session_watch(s, until, stop_fd, d);

			if (r < 0)
				return r;
		}
		if (test_mark_seen(s->x.t) == what)
			return 0;
	}
	return xdpath_fail(d, XDPATH_R_REFUSED, ETIMEDOUT,
			   "%s: the far end's port %u does not answer any more; see whether its "
			   "device is up",
			   s->peer, s->x.e.path.server_port);
}

/* Both ends ready, accounts begun, nothing on its way. */
static int begin(struct session *s, double seconds, bool account, int stop_fd,
		 struct xdpath_diag *d)
{
	json_t *reply = NULL;
	int err;

	s->run = (s->run + 1) & 0xffffff;
	err = session_ask(s,
			  json_pack("{s:s, s:i, s:f, s:b}", "cmd", "run", "run", (int)s->run,
				    "seconds", seconds, "account", (int)account),
			  SESSION_WAIT_MS, &reply, d);
	json_decref(reply);
	if (err)
		return err;
	wire_quick_ack(&s->w);
	wire_keepalive(&s->w, false);
	test_forget_times(s->x.t);
	err = session_pause_ms(s, SETTLE_MS, stop_fd, d);
	if (err)
		return err;
	if (account)
		end_usage_start(&s->x);
	end_begin(&s->x);
	return mark(s, MARK_BEGIN(s->run), stop_fd, d);
}

static int drain(struct session *s, int stop_fd, struct xdpath_diag *d)
{
	uint64_t until = xdpath_now_ms() + DRAIN_MS;
	int err = 0;

	test_set_phase(s->x.t, PHASE_DRAIN);
	while (!err && !test_is_drained(s->x.t) && xdpath_now_ms() < until)
		err = session_pause_ms(s, 1, stop_fd, d);
	if (!err && s->x.spec.kind == TEST_STREAM && s->x.t->receives)
		end_quiet(&s->x, DRAIN_MS);
	end_usage_stop(&s->x);
	test_set_phase(s->x.t, PHASE_IDLE);
	return err;
}

static int finish(struct session *s, struct test_result *r, int stop_fd, struct xdpath_diag *d)
{
	json_t *reply = NULL;
	int err = mark(s, MARK_END(s->run), stop_fd, d);

	if (err || !r)
		return err;
	end_quiet(&s->x, DRAIN_MS);
	end_finish(&s->x);
	err = session_pause_ms(s, AFTER_MS, stop_fd, d);
	wire_keepalive(&s->w, true);
	if (err)
		return err;
	err = session_ask(s, json_pack("{s:s}", "cmd", "report"), SESSION_WAIT_MS, &reply, d);
	if (err)
		return err;
	if (side_from_json(json_object_get(reply, "side"), &r->remote))
		err = session_broken(s, -EPROTO, d);
	json_decref(reply);
	return err;
}

static void result(const struct session *s, uint64_t in_time, double seconds, struct test_result *r)
{
	const struct test_spec *spec = &s->x.spec;
	const struct test_end *t = s->x.t;

	end_account(&s->x, &r->local);
	r->seconds = seconds;
	r->offered_per_s = spec->rate * (spec->bidir ? 2 : 1);
	if (spec->kind == TEST_RR) {
		r->msgs_per_s = (double)in_time / seconds;
		r->bits_per_s = r->msgs_per_s * 8 * (spec->req + spec->rsp);
	} else {
		r->msgs_per_s = (double)(r->local.msgs_in + r->remote.msgs_in) / seconds;
		r->bits_per_s = r->msgs_per_s * 8 * spec->size;
	}
	hist_init(&r->latency);
	hist_init(&r->service);
	for (uint32_t i = 0; i < s->x.e.path.lanes; i++) {
		hist_merge(&r->latency, &t->lane[i].latency);
		hist_merge(&r->service, &t->lane[i].service);
	}
}

/* r NULL: a warm-up, of which there is no account. */
static int run_once(struct session *s, double seconds, struct test_result *r, int stop_fd,
		    struct xdpath_diag *d)
{
	struct test_count n;
	uint64_t from, to, before;
	int err;

	err = begin(s, seconds, r != NULL, stop_fd, d);
	if (err)
		return err;
	test_counts(s->x.t, &n);
	before = n.msgs_in;
	from = xdpath_now_ns();
	test_set_phase(s->x.t, PHASE_GO);
	err = session_wait_until(s, from + (uint64_t)(seconds * 1e9), stop_fd, d);
	test_counts(s->x.t, &n);
	to = xdpath_now_ns();
	if (!err)
		err = drain(s, stop_fd, d);
	if (!err)
		err = finish(s, r, stop_fd, d);
	if (err) {
		test_set_phase(s->x.t, PHASE_IDLE);
		end_usage_stop(&s->x);
		return err;
	}
	if (r)
		result(s, n.msgs_in - before, (double)(to - from) * 1e-9, r);
	return 0;
}

int session_run(struct session *s, struct test_result *r, int stop_fd, struct xdpath_diag *d)
{
	int err = 0;

	memset(r, 0, sizeof(*r));
	s->w.stop_fd = stop_fd;
	if (s->x.spec.warmup > 0)
		err = run_once(s, s->x.spec.warmup, NULL, stop_fd, d);
	return err ? err : run_once(s, s->x.spec.seconds, r, stop_fd, d);
}
