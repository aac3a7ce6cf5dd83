/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * The control thread of every verb that runs a datapath: signals, timers, link events, the workers'
 * end. It opens and closes; report.c prints; the workers carry packets.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "events.h"

#define TICK_MS 1000 /* how often to look at what raises no event */

enum { FD_SIGNAL, FD_INTERVAL, FD_DURATION, FD_WORKERS, FD_FINISH, FD_LINKS, FD_COUNT };

struct control {
	struct pollfd fd[FD_COUNT];
	struct events events;
	struct port_totals last[XDPATH_PORTS_MAX];
	double started, interval;
	int code; /* exit code so far */
	bool ended;
};

static double now(void)
{
	return (double)xdpath_now_ns() * 1e-9;
}

void run_init(struct run *r, const char *verb, const struct args *a)
{
	memset(r, 0, sizeof(*r));
	r->verb = verb;
	r->a = a;
	r->finish_fd = -1;
	r->o = XDPATH_OPTS_INIT(struct xdpath_datapath_opts);
	for (int i = 0; i < a->ndev; i++)
		r->o.ports[i] = a->dev[i];
	r->o.nports = (uint32_t)a->ndev;
	r->o.queues = a->nqueues ? a->queues : NULL;
	r->o.nqueues = a->nqueues;
	r->o.mode = a->mode;
	r->o.worst = a->worst;
	r->o.steer = a->steer;
	r->o.steer_explicit = a->steer_given;
	r->o.rules = a->rules.n ? &a->rules : NULL;
	r->o.beside = a->beside;
	r->o.workers = a->workers;
	r->o.cpus = a->have_cpus ? &a->cpus : NULL;
	r->o.knobs = &a->knobs;
	r->o.who = verb;
}

/* Without --all or a rule something must already steer, or nothing would ever arrive. */
static bool is_steered(const char *dev)
{
	struct xdpath_prog_info info[XDPATH_PROGS_MAX];
	int n = xdpath_prog_query((int)if_nametoindex(dev), info);

	for (int i = 0; i < n; i++)
		if (info[i].is_xdpath)
			return true;
	return false;
}

int run_needs_steering(const char *verb, const struct args *a)
{
	if (a->steer_given || a->rules.n || !if_nametoindex(a->dev[0]) || is_steered(a->dev[0]))
		return 0; /* a device that is not there is told so when it is opened */
	return fail(verb, EXIT_USAGE,
		    "%s: nothing would reach user space; add --all (all but ARP, ND and ICMP), "
		    "--all=l2, or a rule (-r, -f)",
		    a->dev[0]);
}

void run_finish(struct run *r)
{
	uint64_t one = 1;

	if (write(r->finish_fd, &one, sizeof(one)) < 0)
		return; /* already at its limit: it is readable, which is all we want */
}

static void arm(int fd, double seconds, bool repeat)
{
	struct itimerspec it = {0};

	if (seconds <= 0)
		return;
	it.it_value.tv_sec = (time_t)seconds;
	it.it_value.tv_nsec = (long)((seconds - (double)it.it_value.tv_sec) * 1e9);
	if (repeat)
		it.it_interval = it.it_value;
	timerfd_settime(fd, 0, &it, NULL);
}

/* Signals are blocked before any thread starts, so that only the control thread sees them. */
static int open_control(struct run *r, struct control *c)
{
	sigset_t stop;

	sigemptyset(&stop);
	sigaddset(&stop, SIGINT);
	sigaddset(&stop, SIGTERM);
	sigprocmask(SIG_BLOCK, &stop, NULL);
	signal(SIGPIPE, SIG_IGN); /* a closed pipe must not keep us from cleaning up */
	c->interval = r->a->interval;
	if (c->interval < 0)
		c->interval = isatty(STDOUT_FILENO) && !r->a->json && !r->a->quiet ? 1 : 0;
	r->finish_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	c->fd[FD_SIGNAL].fd = signalfd(-1, &stop, SFD_CLOEXEC | SFD_NONBLOCK);
	c->fd[FD_INTERVAL].fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	c->fd[FD_DURATION].fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	c->fd[FD_FINISH].fd = r->finish_fd;
	if (events_open(&c->events) == 0)
		c->fd[FD_LINKS].fd = c->events.fd;
	else
		c->fd[FD_LINKS].fd = -1;
	c->fd[FD_WORKERS].fd = -1;
	for (int i = 0; i < FD_COUNT; i++) {
		c->fd[i].events = POLLIN;
		if (c->fd[i].fd < 0 && i != FD_WORKERS)
			return fail(
				r->verb, EXIT_FAILED,
				"no descriptor for the control thread: %s; free some and try again",
				strerror(errno));
	}
	return 0;
}

static void close_control(struct control *c)
{
	for (int i = 0; i < FD_COUNT; i++)
		if (c->fd[i].fd >= 0 && i != FD_WORKERS)
			close(c->fd[i].fd);
}

static int make_app(struct run *r)
{
	struct xdpath_worker *w;

	while (xdpath_datapath_worker(r->dp, r->nworkers))
		r->nworkers++;
	r->app = aligned_alloc(XDPATH_CACHELINE, r->nworkers * sizeof(*r->app));
	if (!r->app)
		return fail(r->verb, EXIT_FAILED,
			    "no memory for the workers' counters; free some and try again");
	memset(r->app, 0, r->nworkers * sizeof(*r->app));
	for (uint32_t i = 0; (w = xdpath_datapath_worker(r->dp, i)); i++)
		w->app = &r->app[i];
	return 0;
}

static void end_badly(struct control *c)
{
	c->code = EXIT_FAILED;
	c->ended = true;
}

/* A dead socket is mostly a device's end, whose event names it better. */
static void worker_ended(const struct run *r, struct control *c)
{
	double until = now() + 0.2;
	const struct xdpath_worker *w;
	bool told = false;

	end_badly(c);
	/* other events of the device come before that of its end */
	while (now() < until)
		if (poll(&c->fd[FD_LINKS], 1, 50) > 0 && events_read(&c->events, r))
			return;
	for (uint32_t i = 0; (w = xdpath_datapath_worker(r->dp, i)); i++)
		for (uint32_t j = 0; w->error && j < w->nsockets; j++)
			if (w->sockets[j]->fatal && (told = true))
				fail(r->verb, EXIT_FAILED,
				     "%s queue %u: the socket died: %s; see `xdpath status %s`",
				     w->sockets[j]->ifname, w->sockets[j]->queue_id,
				     strerror(-w->sockets[j]->fatal), w->sockets[j]->ifname);
	for (uint32_t i = 0; !told && (w = xdpath_datapath_worker(r->dp, i)); i++)
		if (w->error && (told = true))
			fail(r->verb, EXIT_FAILED, "worker %u ended: %s; start again", w->id,
			     strerror(-w->error));
}

static void handle(struct run *r, struct control *c)
{
	uint64_t ticks;

	if (c->fd[FD_SIGNAL].revents || c->fd[FD_DURATION].revents || c->fd[FD_FINISH].revents)
		c->ended = true;
	if (c->fd[FD_WORKERS].revents)
		worker_ended(r, c);
	if (c->fd[FD_LINKS].revents && events_read(&c->events, r))
		end_badly(c);
	if (c->fd[FD_INTERVAL].revents && read(c->fd[FD_INTERVAL].fd, &ticks, sizeof(ticks)) > 0 &&
	    !r->a->quiet)
		report_progress(r, now() - c->started, c->interval * (double)ticks, c->last,
				stdout);
}

static int run_until_ended(struct run *r, struct control *c)
{
	double ticked = now();
	int err;

	if (events_start(&c->events, r)) /* from here on whatever happens is told */
		end_badly(c);
	err = xdpath_datapath_start(r->dp, r->round, r);
	if (err)
		return fail(r->verb, EXIT_FAILED,
			    "the workers did not start: %s; see `xdpath status`", strerror(-err));
	c->started = now();
	arm(c->fd[FD_INTERVAL].fd, c->interval, true);
	arm(c->fd[FD_DURATION].fd, r->a->duration, false);
	c->fd[FD_WORKERS].fd = xdpath_datapath_event_fd(r->dp);
	while (!c->ended) {
		if (poll(c->fd, FD_COUNT, TICK_MS) < 0 && errno != EINTR)
			break;
		handle(r, c);
		if (!c->ended && now() - ticked >= TICK_MS / 1e3) {
			ticked = now();
			if (events_tick(&c->events, r))
				end_badly(c);
		}
	}
	r->seconds = now() - c->started;
	xdpath_datapath_stop(r->dp);
	return c->code;
}

int run_datapath(struct run *r)
{
	struct control c = {0};
	int code, err, told = EXIT_DONE;

	code = open_control(r, &c);
	if (code) {
		close_control(&c);
		return code;
	}
	r->o.diag = &r->diag;
	err = xdpath_datapath_open(&r->dp, &r->o);
	if (err) {
		close_control(&c);
		return fail_diag(r->verb, &r->diag, err);
	}
	code = make_app(r);
	if (!code && r->prepare)
		code = r->prepare(r);
	if (!code) {
		if (!r->a->quiet)
			report_start(r, r->a->json ? stderr : stdout);
		report_notices(r);
		code = run_until_ended(r, &c);
		if (r->a->json)
			told = report_json(r);
		else if (!r->a->quiet)
			report_summary(r, stdout);
	}
	xdpath_datapath_close(r->dp);
	if (r->app && r->finish)
		r->finish(r);
	close_control(&c);
	free(r->app);
	return code ? code : told;
}
