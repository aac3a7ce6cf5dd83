// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
/* More than one process or thread: two processes on two queues of one port; a running datapath. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "raw.h"

#define BATCHES	 16U
#define START_MS 10000U /* an emulated machine takes its time for 16 MiB of frames */

/* What sender and receivers share. */
struct pace {
	uint32_t ready[2], got[2]; /* atomic */
	bool leave[2];
};

static struct pace *pace;

static uint32_t see(const uint32_t *p)
{
	return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

static int wait_for(const uint32_t *p, uint32_t want, uint32_t ms, const char *what)
{
	uint64_t until = conf_now_ms() + ms;

	while (see(p) < want) {
		need(conf_now_ms() < until, "%s: %u of %u", what, see(p), want);
		conf_pause();
	}
	return CONF_OK;
}

/* Receiver q of two: opens its queue, takes its stream, leaves. */
static int receiver(uint32_t q, uint32_t batches)
{
	const struct flow f = {.len = 64, .stream = (uint16_t)q};
	struct xdpath_prog *g = NULL;
	struct flow_seen seen = {0};
	struct api a;

	attempt(api_open(&a, &(struct api_opts){.queue = q, .frames = 4096, .no_tx = true}));
	attempt(api_steer(&g, &a, q));
	need(xdpath_prog_joined(g) == (q == 1), "receiver %u: joined %d", q, xdpath_prog_joined(g));
	__atomic_store_n(&pace->ready[q], 1, __ATOMIC_RELEASE);
	for (uint32_t i = 1; i <= batches; i++) {
		attempt(flow_wait(NULL, &a.e, &f, &seen, i * FLOW_BATCH));
		__atomic_store_n(&pace->got[q], i, __ATOMIC_RELEASE);
	}
	attempt(a.e.audit(&a.e));
	need(xdpath_prog_clear_socket(g, q) == 0, "receiver %u: its slot", q);
	xdpath_prog_close(g);
	api_close(&a);
	return CONF_OK;
}

static pid_t start(uint32_t q, uint32_t batches)
{
	pid_t parent = getpid(), pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(CONF_FAIL);
	_exit(receiver(q, batches));
}

static int finish(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		need(errno == EINTR, "%s", strerror(errno));
	return WIFEXITED(status) ? WEXITSTATUS(status) : CONF_FAIL;
}

static int send_batch(struct end *tx, uint32_t q, uint32_t batch)
{
	const struct flow f = {.len = 64, .stream = (uint16_t)q};

	attempt(flow_send(tx, &f, batch * FLOW_BATCH, FLOW_BATCH));
	return wait_for(&pace->got[q], batch + 1, CONF_PATIENCE_MS,
			q ? "second receiver" : "first receiver");
}

/*
 * The second joins the first's program. Both receive; then the first, who loaded it, leaves, and
 * the second goes on. Generic mode takes a sender's queue for one less than it was.
 */
static int two_processes(const void *arg)
{
	const uint32_t queue[2] = {0, conf->mode == CONF_DRV ? 1 : 2};
	struct api tx[2];
	pid_t pid[2];

	(void)arg;
	pace = mmap(NULL, sizeof(*pace), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	need(pace != MAP_FAILED, "%s", strerror(errno));
	attempt(net_make(1500));
	for (uint32_t q = 0; q < 2; q++)
		attempt(api_open(&tx[q], &(struct api_opts){.dev = NET_A,
							    .queue = queue[q],
							    .frames = 1024,
							    .no_rx = true}));
	for (uint32_t q = 0; q < 2; q++) {
		pid[q] = start(q, (q + 1) * BATCHES);
		need(pid[q] > 0, "fork: %s", strerror(errno));
		attempt(wait_for(&pace->ready[q], 1, START_MS, "start"));
	}
	for (uint32_t i = 0; i < BATCHES; i++)
		for (uint32_t q = 0; q < 2; q++)
			attempt(send_batch(&tx[q].e, q, i));
	attempt(finish(pid[0]));
	for (uint32_t i = BATCHES; i < 2 * BATCHES; i++)
		attempt(send_batch(&tx[1].e, 1, i));
	attempt(finish(pid[1]));
	for (uint32_t q = 0; q < 2; q++) {
		attempt(flow_drain(&tx[q].e));
		attempt(tx[q].e.audit(&tx[q].e));
	}
	return CONF_OK;
}

/* ---- a datapath with its threads ---- */

/* Send all back as it came. */
static uint32_t reflect(void *ctx, struct xdpath_worker *w, uint32_t i)
{
	struct xdp_desc d[XDPATH_BURST_ROOM];
	uint32_t n = xdpath_rx_burst(&w->sockets[i]->q, d, w->batch), sent;

	(void)ctx;
	sent = xdpath_tx_burst(&w->peer[i]->q, d, n);
	xdpath_release(&w->sockets[i]->q, d + sent, n - sent);
	return n;
}

static int datapath_audit(const struct xdpath_datapath *dp)
{
	struct xdpath_ledger l;

	xdpath_datapath_audit(dp, &l);
	need(l.free + l.fill + l.rx + l.held + l.tx == l.total,
	     "free %u fill %u rx %u held %u tx %u of %u", l.free, l.fill, l.rx, l.held, l.tx,
	     l.total);
	need(l.rx + l.held + l.tx == 0 && l.wrong == 0, "rx %u held %u tx %u wrong %llu", l.rx,
	     l.held, l.tx, (unsigned long long)l.wrong);
	return CONF_OK;
}

static int datapath(const void *arg)
{
	const bool several = arg != NULL;
	const struct flow f = {.count = several ? 512 : 4096, .len = several ? 9000 : 64};
	struct xdpath_datapath_opts o = XDPATH_OPTS_INIT(struct xdpath_datapath_opts);
	struct xdpath_prog *g = NULL;
	struct xdpath_datapath *dp;
	struct xdpath_diag diag = {0};
	struct api a;
	int err;

	if (several && !conf->k.sg)
		return conf_no_frags();
	attempt(net_make(several ? 9000 : 1500));
	attempt(api_open(&a, &(struct api_opts){.dev = NET_A, .several = several}));
	attempt(api_steer(&g, &a, 0));
	o.ports[0] = NET_B;
	o.nports = 1;
	o.workers = net_queues(2) == CONF_OK ? 2 : 1;
	o.mode = end_mode();
	o.steer = XDPATH_STEER_L2;
	o.who = "conf";
	o.diag = &diag;
	err = xdpath_datapath_open(&dp, &o);
	need(err == 0, "%s", diag.text);
	err = xdpath_datapath_start(dp, reflect, NULL);
	need(err == 0, "start: %s", strerror(-err));
	attempt(flow_run(&a.e, &a.e, &f));
	xdpath_datapath_stop(dp);
	attempt(datapath_audit(dp));
	xdpath_datapath_close(dp);
	return CONF_OK;
}

const struct conf_test process_tests[] = {
	{.name = "TWO_PROCESSES",
	 .modes = CONF_BOTH,
	 .fn = two_processes,
	 .what = "two queues, one program; who loaded it leaves first",
	 .not_nic = "the runner holds the program, and a NIC sends all of it to one queue",
	 .seconds = 30},
	{.name = "DATAPATH_REFLECT",
	 .modes = CONF_BOTH,
	 .fn = datapath,
	 .what = "4 queues, 2 threads, all sent back"},
	{.name = "DATAPATH_REFLECT_9K",
	 .modes = CONF_BOTH,
	 .fn = datapath,
	 .arg = "9k",
	 .what = "the same with packets of 9000 bytes"},
	{0},
};
