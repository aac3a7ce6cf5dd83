/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * bench: measure against a `serve`. Here the runs are repeated, until there are as many as asked
 * for, or the mean is known well enough, or somebody ends it; then what there is is reported.
 */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "../bench/lab_hosts.h"
#include "../bench/stats.h"
#include "bench.h"

#define VERB_NAME "bench"
#define PLACES	  2

/* The runs of one placement. */
struct series {
	struct test_spec spec;
	struct test_result *run;
	uint32_t n;
	bool stopped_early;
	double reached;
	json_t *local, *remote;
};

static int add(int epoll, int fd)
{
	struct epoll_event ev = {.events = EPOLLIN};
	int err = fd < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;

	return err; /* the descriptors live as long as the process, and the epoll by them */
}

int bench_stop_fd(double duration)
{
	struct itimerspec it = {.it_value.tv_sec = (time_t)duration};
	int epoll = epoll_create1(EPOLL_CLOEXEC), timer, err;
	sigset_t stop;

	if (epoll < 0)
		return -errno;
	sigemptyset(&stop);
	sigaddset(&stop, SIGINT);
	sigaddset(&stop, SIGTERM);
	sigprocmask(SIG_BLOCK, &stop, NULL);
	signal(SIGPIPE, SIG_IGN); /* a closed pipe must not keep us from cleaning up */
	err = add(epoll, signalfd(-1, &stop, SFD_CLOEXEC | SFD_NONBLOCK));
	if (!err && duration > 0) {
		it.it_value.tv_nsec = (long)((duration - (double)it.it_value.tv_sec) * 1e9);
		timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
		err = add(epoll, timer);
		if (!err && timerfd_settime(timer, 0, &it, NULL))
			err = -errno;
	}
	if (!err)
		return epoll;
	close(epoll);
	return err;
}

/* Whether the mean is known within the width asked for. Fills what was reached. */
static bool known_well(const struct bench_plan *p, struct series *s)
{
	double *x, mean;

	if (!p->confidence || s->n < 2)
		return false;
	x = calloc(s->n, sizeof(*x));
	if (!x)
		return false;
	for (uint32_t i = 0; i < s->n; i++)
		x[i] = s->run[i].msgs_per_s;
	mean = stats_mean(x, s->n);
	s->reached =
		mean > 0 ? 100 * stats_half_width(x, s->n, p->confidence / 100) / mean : INFINITY;
	free(x);
	return s->n >= p->runs_least && s->reached <= p->width / 2;
}

static void progress(const struct args *a, const struct series *s)
{
	const struct test_result *r = &s->run[s->n - 1];

	if (a->quiet || !(a->verbose || isatty(STDERR_FILENO)))
		return;
	fprintf(stderr, "run %u: %.0f %s/s, %.1f Mb/s\n", s->n, r->msgs_per_s,
		s->spec.kind == TEST_RR ? "transactions" : "messages", r->bits_per_s / 1e6);
}

/* An interruption is no failure once there is a run to show. */
static int run_series(const struct args *a, const struct bench_plan *p, struct series *s,
		      int stop_fd)
{
	struct session_opts o = p->o;
	struct xdpath_diag d = {0};
	struct session *session;
	int err;

	o.spec = s->spec;
	s->run = calloc(p->runs_most, sizeof(*s->run));
	if (!s->run)
		return fail(VERB_NAME, EXIT_FAILED, "no memory for %u runs; give fewer --runs",
			    p->runs_most);
	err = session_open(&session, &o, &d);
	if (err)
		return fail_diag(VERB_NAME, &d, err);
	s->local = record_host(o.dev, &o.knobs);
	s->remote = json_incref(session_peer_record(session));
	while (!err && s->n < p->runs_most && !s->stopped_early) {
		err = session_run(session, &s->run[s->n], stop_fd, &d);
		if (err)
			break;
		s->n++;
		progress(a, s);
		s->stopped_early = known_well(p, s) && s->n < p->runs_most;
	}
	session_close(session);
	if (err == -EINTR && s->n) {
		s->stopped_early = true;
		return EXIT_DONE;
	}
	if (err == -EINTR)
		return fail(VERB_NAME, EXIT_FAILED,
			    "ended before the first run was over; give a shorter --time");
	return err ? fail_diag(VERB_NAME, &d, err) : EXIT_DONE;
}

static struct bench_report make_report(const struct bench_plan *p, const struct series *s)
{
	return (struct bench_report){
		.spec = &s->spec,
		.dev = p->o.dev,
		.peer = p->o.peer,
		.run = s->run,
		.nruns = s->n,
		.stopped_early = s->stopped_early,
		.confidence = p->confidence,
		.width = p->width,
		.reached = s->reached,
		.local = s->local,
		.remote = s->remote,
	};
}

static int show(const struct args *a, const struct bench_plan *p, const struct series *s,
		uint32_t n)
{
	struct bench_report b[PLACES];
	int err = 0;

	for (uint32_t i = n; i-- > 0;) {
		b[i] = make_report(p, &s[i]);
		b[i].next = i + 1 < n ? &b[i + 1] : NULL;
	}
	if (a->json) {
		json_t *doc = bench_report_json(&b[0]);

		if (!doc || json_dumpf(doc, stdout, JSON_INDENT(2)))
			err = -ENOMEM;
		json_decref(doc);
		putchar('\n');
	} else {
		bench_report_text(&b[0], stdout);
	}
	if (fflush(stdout) || err)
		return fail(VERB_NAME, EXIT_FAILED,
			    "the report could not be written: %s; see where its output goes",
			    strerror(err ? -err : errno));
	err = a->bench.html ? bench_report_html(&b[0], a->bench.html) : 0;
	if (err)
		return fail(VERB_NAME, EXIT_FAILED, "--html %s: %s; give another file",
			    a->bench.html, strerror(-err));
	return EXIT_DONE;
}

static int measure(const struct args *a, const struct bench_plan *p, int stop_fd)
{
	struct series s[PLACES] = {{.spec = p->o.spec}, {.spec = p->o.spec}};
	uint32_t n = CPU_COUNT(&p->also) ? 2 : 1, done = 0;
	int code = EXIT_DONE;

	s[1].spec.cpus = p->also;
	for (uint32_t i = 0; i < n && !code; i++) {
		code = run_series(a, p, &s[i], stop_fd);
		done += s[i].n != 0;
	}
	if (!code)
		code = show(a, p, s, done);
	for (uint32_t i = 0; i < n; i++) {
		json_decref(s[i].local);
		json_decref(s[i].remote);
		free(s[i].run);
	}
	return code;
}

int bench_open_lab(const char *verb, const struct args *a, struct bench_plan *p,
		   struct lab_hosts **lab)
{
	struct serve_opts far = {.knobs = a->knobs,
				 .mode = a->mode,
				 .worst = a->worst,
				 .quiet = true};
	struct xdpath_diag d = {0};
	uint32_t queues = a->bench.lab_queues ? a->bench.lab_queues
			  : p->o.spec.workers ? p->o.spec.workers
					      : 1;
	int err;

	if (!p->lab)
		return EXIT_DONE;
	err = lab_hosts_open(lab, queues, p->o.spec.mtu, &far, &d);
	if (err)
		return fail_diag(verb, &d, err);
	p->o.dev = LAB_DEV;
	p->o.peer = LAB_PEER;
	return EXIT_DONE;
}

int cmd_bench(const struct args *a)
{
	struct lab_hosts *lab = NULL;
	struct bench_plan p;
	int code = bench_parse(&p, a), stop_fd;

	if (code)
		return code;
	code = bench_open_lab(VERB_NAME, a, &p, &lab);
	if (code)
		return code;
	stop_fd = bench_stop_fd(a->duration);
	if (stop_fd < 0)
		code = fail(VERB_NAME, EXIT_FAILED, "no descriptor for signals: %s; free some",
			    strerror(-stop_fd));
	if (!code)
		code = measure(a, &p, stop_fd);
	if (stop_fd >= 0)
		close(stop_fd);
	lab_hosts_close(lab);
	return code;
}
