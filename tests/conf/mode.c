// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
/* Mode negotiation of a datapath: what is refused, what is taken instead, what is recorded. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "raw.h"

#define HELD_MS	  500 /* opening takes half of it before it comes to the queue */
#define HELD_LONG 5000

struct mode_case {
	const char *dev; /* NULL: NET_B */
	enum xdpath_mode mode, worst;
	int want;		   /* errno */
	enum xdpath_reason reason; /* of the diagnosis */
	enum xdpath_mode got;
	uint32_t attempts;
	enum xdpath_reason why[3]; /* of each attempt */
	bool down, program;	   /* the device is set down, has a program of someone else */
};

static int open_in_mode(struct xdpath_datapath **dp, const struct mode_case *c, uint32_t wait_ms,
			struct xdpath_diag *diag)
{
	static const uint32_t queue0;
	struct xdpath_datapath_opts o = XDPATH_OPTS_INIT(struct xdpath_datapath_opts);
	struct xdpath_knobs k;

	xdpath_knobs_defaults(&k);
	k.open_wait_ms = wait_ms;
	k.umem_hugepages = XDPATH_HUGE_OFF; /* not to have them diagnosed */
	o.ports[0] = c->dev ? c->dev : NET_B;
	o.nports = 1;
	o.queues = &queue0;
	o.nqueues = 1;
	o.mode = c->mode;
	o.worst = c->worst;
	o.steer = XDPATH_STEER_L2;
	o.knobs = &k;
	o.who = "conf";
	o.diag = diag;
	return xdpath_datapath_open(dp, &o);
}

static int one_line(const char *text)
{
	need(strchr(text, ':') && strchr(text, ';') && !strchr(text, '\n'),
	     "no line of \"WHAT: why; what to do\": %s", text);
	return CONF_OK;
}

/* After a refusal nothing is left: no program, and the queue is free. */
static int nothing_left(const struct mode_case *c)
{
	struct xdpath_prog_info info[XDPATH_PROGS_MAX];
	struct xdpath_port p;
	struct raw r;
	int n;

	need(xdpath_port_query(&p, c->dev ? c->dev : NET_B, NULL) == 0, "%s is gone",
	     c->dev ? c->dev : NET_B);
	n = xdpath_prog_query(p.ifindex, info);
	need(n == (c->program ? 1 : 0), "%d programs are attached", n);
	n = raw_open(&r, &(struct raw_opts){.dev = c->dev});
	need(n == 0, "queue 0: %s", strerror(-n));
	return CONF_OK;
}

static int negotiate(const void *arg)
{
	const struct mode_case *c = arg;
	const struct xdpath_attempt *a;
	struct xdpath_diag diag = {0};
	struct xdpath_datapath *dp;
	uint32_t n;
	int err;

	attempt(net_make(1500));
	need(net_up("lo", true) == 0 && net_mtu("lo", 1500) == 0, "lo: %s", strerror(errno));
	if (c->down)
		need(net_up(NET_B, false) == 0, "%s", strerror(errno));
	if (c->program)
		attempt(net_attach(NET_B, NET_REDIRECT));
	err = open_in_mode(&dp, c, 1000, &diag);
	need(err == -c->want, "%s: %s", strerror(-err), diag.text);
	need(diag.reason == c->reason, "reason %d: %s", diag.reason, diag.text);
	if (diag.text[0])
		conf_note("%s", diag.text);
	if (err) {
		attempt(one_line(diag.text));
		return c->down || c->want == ENODEV ? CONF_OK : nothing_left(c);
	}
	need(xdpath_datapath_mode(dp) == c->got, "%s", xdpath_mode_name(xdpath_datapath_mode(dp)));
	a = xdpath_datapath_attempts(dp, &n);
	need(n == c->attempts, "%u attempts", n);
	for (uint32_t i = 0; i < n; i++) {
		need(a[i].reason == c->why[i], "attempt %u: reason %d: %s", i, a[i].reason,
		     a[i].text);
		if (a[i].reason)
			attempt(one_line(a[i].text));
	}
	xdpath_datapath_close(dp);
	return nothing_left(c);
}

/* A process that holds queue 0 for a while. */
static pid_t hold(uint32_t ms)
{
	const struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000L};
	pid_t pid;
	int ready[2];
	char c;

	if (pipe(ready) < 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		static struct raw r;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (raw_open(&r, &(struct raw_opts){0}) || write(ready[1], "1", 1) != 1)
			_exit(CONF_FAIL);
		nanosleep(&t, NULL);
		_exit(CONF_OK);
	}
	close(ready[1]);
	if (pid > 0 && read(ready[0], &c, 1) != 1)
		pid = -1;
	close(ready[0]);
	return pid;
}

static int busy(const void *arg)
{
	const bool wait = arg != NULL;
	const struct mode_case c = {.mode = XDPATH_MODE_COPY};
	struct xdpath_diag diag = {0};
	struct xdpath_datapath *dp;
	uint64_t begin;
	pid_t pid;
	int err;

	attempt(net_make(1500));
	pid = hold(wait ? HELD_MS : HELD_LONG);
	need(pid > 0, "the holder did not start");
	begin = conf_now_ms();
	err = open_in_mode(&dp, &c, wait ? 3000 : 0, &diag);
	if (wait) {
		need(err == 0, "%s", diag.text);
		need(conf_now_ms() - begin >= HELD_MS - 50, "it did not wait");
		conf_note("after %llu ms", (unsigned long long)(conf_now_ms() - begin));
		xdpath_datapath_close(dp);
		return CONF_OK;
	}
	need(err == -EBUSY && diag.reason == XDPATH_R_QUEUE_BUSY, "%s: %s", strerror(-err),
	     diag.text);
	attempt(one_line(diag.text));
	conf_note("%s", diag.text);
	need(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid, "%s", strerror(errno));
	return CONF_OK;
}

#define MODE(name_, what_, ...)                                                             \
	{                                                                                   \
		.name = "MODE_" name_, .modes = CONF_ANY, .what = (what_), .fn = negotiate, \
		.arg = &(const struct mode_case)                                            \
		{                                                                           \
			__VA_ARGS__                                                         \
		}                                                                           \
	}

const struct conf_test mode_tests[] = {
	MODE("FORCED_ZEROCOPY", "refused, nothing worse is taken", .mode = XDPATH_MODE_ZEROCOPY,
	     .want = EOPNOTSUPP, .reason = XDPATH_R_NO_ZEROCOPY),
	MODE("FORCED_COPY", "as asked", .mode = XDPATH_MODE_COPY, .got = XDPATH_MODE_COPY,
	     .attempts = 1),
	MODE("FORCED_GENERIC", "as asked", .mode = XDPATH_MODE_GENERIC, .got = XDPATH_MODE_GENERIC,
	     .attempts = 1),
	MODE("AUTO", "copy, and why not zero-copy", .reason = XDPATH_R_NO_ZEROCOPY,
	     .got = XDPATH_MODE_COPY, .attempts = 2, .why = {XDPATH_R_NO_ZEROCOPY}),
	MODE("AUTO_NO_NATIVE", "generic, and why nothing better", .dev = "lo",
	     .reason = XDPATH_R_NO_NATIVE, .got = XDPATH_MODE_GENERIC, .attempts = 3,
	     .why = {XDPATH_R_NO_NATIVE, XDPATH_R_NO_NATIVE}),
	MODE("STRICT", "worst = copy on a device without native XDP", .dev = "lo",
	     .worst = XDPATH_MODE_COPY, .want = EOPNOTSUPP, .reason = XDPATH_R_NO_NATIVE),
	MODE("FORCED_COPY_NO_NATIVE", "refused, nothing worse is taken", .dev = "lo",
	     .mode = XDPATH_MODE_COPY, .want = EOPNOTSUPP, .reason = XDPATH_R_NO_NATIVE),
	MODE("FOREIGN_PROGRAM", "refused, whatever the mode", .program = true, .want = EBUSY,
	     .reason = XDPATH_R_PROG_CONFLICT),
	MODE("DEVICE_DOWN", "refused", .down = true, .want = ENETDOWN,
	     .reason = XDPATH_R_DEVICE_DOWN),
	MODE("NO_DEVICE", "refused", .dev = "xq", .want = ENODEV, .reason = XDPATH_R_NO_DEVICE),
	{.name = "MODE_BUSY", .modes = CONF_ANY, .fn = busy, .what = "a held queue, no waiting"},
	{.name = "MODE_BUSY_RETRY",
	 .modes = CONF_ANY,
	 .fn = busy,
	 .arg = "wait",
	 .what = "a queue that becomes free is waited for"},
	{0},
};
