/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * `source --engine live`: the kernel runs bpf/gen.bpf.c over pages of its own and hands what the
 * program redirects straight to the device, no socket and no skb between. Called by source.c.
 *
 * One thread sits in BPF_PROG_TEST_RUN for the whole run, because setting such a call up costs tens
 * of milliseconds; the program itself paces, counts and stops sending. The calling thread waits for
 * signals, watches the program's state in a shared map, and ends the call by a signal to the
 * thread. It owns the maps, the program and both signals' dispositions until it returns.
 */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <jansson.h>

#include "clock.h"
#include "inspect.h"
#include "gen.skel.h"
#include "source.h"

#define VERB_NAME "source"

#ifndef BPF_F_TEST_XDP_LIVE_FRAMES
#define BPF_F_TEST_XDP_LIVE_FRAMES (1U << 1)
#endif

enum {
	BATCH = 64,	      /* frames between two flushes; smaller ones cost rate (measured) */
	TICK_MS = 5,	      /* how often the state is looked at for the end of a run */
	OVERDUE_MS = 1000,    /* past --duration: end the run from here */
	ONE_PAGE_MOST = 3000, /* frames up to here certainly fit a page beside its headroom */
};

struct live {
	const struct source *s;
	struct gen_bpf *skel;
	struct gen_state *state; /* the map, shared with the program */
	size_t state_len;
	uint8_t *frame; /* the template */
	pthread_t control;
	bool stop, ended; /* written by one thread, read by the other: atomics */
	bool gone;	  /* the device was removed */
	int err;	  /* of the call, valid once ended */
};

struct totals {
	uint64_t packets, bytes;  /* the device took */
	uint64_t device, refused; /* lost: at the device, before it */
	bool estimated;		  /* bytes */
	double seconds;
};

/* A field that the program writes meanwhile. */
static uint64_t look(const __u64 *field)
{
	return __atomic_load_n(field, __ATOMIC_RELAXED);
}

/* ---- set up ---- */

static int silent(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	(void)level;
	(void)fmt;
	(void)ap;
	return 0;
}

static int check(const struct source *s)
{
	const struct args *a = s->args;
	const struct xdpath_port *p = &s->port;

	if (a->mode != XDPATH_MODE_AUTO || a->nqueues || a->workers > 1)
		return fail(VERB_NAME, EXIT_USAGE,
			    "--engine live: it sends from one thread without a socket, so --mode, "
			    "--queues and --workers mean nothing; leave them out");
	if (!(p->flags & IFF_UP))
		return fail(VERB_NAME, EXIT_FAILED, "%s: it is down; ip link set %s up", p->name,
			    p->name);
	if (!p->features_known || p->xdp_features & XDPATH_XDP_ACT_NDO_XMIT)
		return EXIT_DONE;
	if (!strcmp(p->kind, "veth"))
		return fail(
			VERB_NAME, EXIT_MISSING,
			"%s: its peer (ifindex %u there) takes no live frames, they would vanish; "
			"attach an XDP program to the peer, or ethtool -K PEER gro on, or use "
			"--engine xsk",
			p->name, p->peer_ifindex);
	return fail(
		VERB_NAME, EXIT_MISSING,
		"%s: its driver (%s) sends no frames for XDP now; some do once an XDP program is "
		"attached, else use --engine xsk",
		p->name, p->driver[0] ? p->driver : "unknown");
}

static int open_failed(int err, const char *what)
{
	if (err == -EPERM)
		return fail(VERB_NAME, EXIT_FAILED,
			    "%s: not permitted; run as root, or with CAP_NET_ADMIN, CAP_BPF and "
			    "CAP_PERFMON",
			    what);
	return fail(VERB_NAME, EXIT_MISSING, "%s: %s; this kernel lacks it, use --engine xsk", what,
		    strerror(-err));
}

static int map_state(struct live *l)
{
	long page = sysconf(_SC_PAGESIZE);
	void *at;

	l->state_len = (sizeof(*l->state) + (size_t)page - 1) / (size_t)page * (size_t)page;
	at = mmap(NULL, l->state_len, PROT_READ | PROT_WRITE, MAP_SHARED,
		  bpf_map__fd(l->skel->maps.gen_state), 0);
	if (at == MAP_FAILED)
		return open_failed(-errno, "mapping the generator's state");
	l->state = at;
	return EXIT_DONE;
}

static int open_program(struct live *l)
{
	const struct source *s = l->s;
	struct gen_config config = {
		.plan = s->plan,
		.count = s->args->count,
		.duration_ns = (uint64_t)(s->args->duration * 1e9),
		.ifindex = (uint32_t)s->port.ifindex,
	};
	uint32_t key = 0;
	int err, code;

	libbpf_set_print(silent);
	l->skel = gen_bpf__open_and_load();
	if (!l->skel)
		return open_failed(-errno, "loading the generator program");
	l->skel->links.xdpath_gen_sent = bpf_program__attach(l->skel->progs.xdpath_gen_sent);
	if (!l->skel->links.xdpath_gen_sent)
		return open_failed(-errno, "counting at tracepoint xdp_devmap_xmit");
	code = map_state(l);
	if (code)
		return code;
	l->state->pace = s->pace;
	err = bpf_map__update_elem(l->skel->maps.gen_config, &key, sizeof(key), &config,
				   sizeof(config), 0);
	if (err)
		return open_failed(err, "writing the generator's configuration");
	l->frame = calloc(1, s->plan.size_longest + GEN_HEAD);
	if (!l->frame)
		return open_failed(-ENOMEM, "the template frame");
	memcpy(l->frame, s->plan.head, GEN_HEAD);
	return EXIT_DONE;
}

static void close_program(struct live *l)
{
	free(l->frame);
	if (l->state)
		munmap(l->state, l->state_len);
	gen_bpf__destroy(l->skel);
}

/* ---- the sending thread ---- */

static bool counted_out(const struct live *l)
{
	uint64_t count = l->s->args->count;

	return look(&l->state->done) || (count && look(&l->state->frames) >= count);
}

static void *send_all(void *ctx)
{
	struct live *l = ctx;
	const struct gen_plan *p = &l->s->plan;
	uint64_t count = l->s->args->count;
	bool paced = l->s->pace.gap || l->s->pace.gap_byte;
	struct bpf_test_run_opts o = {
		.sz = sizeof(o),
		.data_in = l->frame,
		.data_size_in = p->size_longest,
		.flags = BPF_F_TEST_XDP_LIVE_FRAMES,
		.batch_size = BATCH,
		.repeat = INT_MAX,
	};
	int err = 0;

	/* Without a rate each run of the program sends: the call ends by itself, and exactly. */
	if (count && count < INT_MAX && !paced)
		o.repeat = (int)count;
	while (!__atomic_load_n(&l->stop, __ATOMIC_ACQUIRE) && !counted_out(l)) {
		err = bpf_prog_test_run_opts(bpf_program__fd(l->skel->progs.xdpath_gen), &o);
		if (err && err != -EINTR)
			break;
		err = 0;
	}
	l->err = err;
	__atomic_store_n(&l->ended, true, __ATOMIC_RELEASE);
	pthread_kill(l->control, SIGUSR1);
	return NULL;
}

static void woken(int sig)
{
	(void)sig; /* it only has to end a system call */
}

static int start_thread(struct live *l, pthread_t *thread)
{
	const struct args *a = l->s->args;
	pthread_attr_t attr;
	sigset_t mask, old;
	cpu_set_t one;
	int err;

	pthread_attr_init(&attr);
	if (a->have_cpus) {
		CPU_ZERO(&one);
		for (int i = 0; i < CPU_SETSIZE; i++)
			if (CPU_ISSET(i, &a->cpus)) {
				CPU_SET(i, &one);
				break;
			}
		pthread_attr_setaffinity_np(&attr, sizeof(one), &one);
	}
	/* The thread takes SIGUSR1 and nothing else of ours. */
	sigfillset(&mask);
	sigdelset(&mask, SIGUSR1);
	pthread_sigmask(SIG_SETMASK, &mask, &old);
	l->control = pthread_self();
	err = pthread_create(thread, &attr, send_all, l);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	return err ? fail(VERB_NAME, EXIT_FAILED,
			  "starting the sender: %s; check --cpus and limits", strerror(err))
		   : EXIT_DONE;
}

/* ---- what came of it ---- */

static void total(const struct live *l, struct totals *t)
{
	const struct gen_state *st = l->state;
	uint64_t frames = look(&st->frames), bytes = look(&st->bytes);
	uint64_t sent = look(&st->sent), dropped = look(&st->dropped);
	uint64_t first = look(&st->first_ns), last = look(&st->last_ns);

	t->packets = sent;
	t->device = dropped;
	t->refused = frames > sent + dropped ? frames - sent - dropped : 0;
	t->bytes = bytes;
	t->estimated = false;
	if (sent != frames && frames) {
		t->bytes = (uint64_t)((double)bytes / (double)frames * (double)sent + 0.5);
		t->estimated = l->s->plan.size_span != 1;
	}
	t->seconds = (double)(last - first) / 1e9;
}

static void progress(const struct live *l, struct totals *before, uint64_t elapsed,
		     uint64_t interval)
{
	struct totals t;
	double s = (double)interval / 1e9;
	uint64_t lost;

	total(l, &t);
	lost = t.device + t.refused - before->device - before->refused;
	printf("%7.1fs  %s tx %.0f pps %.3f Mb/s", (double)elapsed / 1e9, l->s->port.name,
	       (double)(t.packets - before->packets) / s,
	       (double)(t.bytes - before->bytes) * 8e-6 / s);
	if (lost)
		printf(" dropped %llu", (unsigned long long)lost);
	putchar('\n');
	fflush(stdout);
	*before = t;
}

/* The keys are those of the other engine's report, as far as they apply. */
static int report_json(const struct source *s, const struct totals *t)
{
	json_t *o = json_pack("{s:s, s:s, s:s, s:f, s:[{s:s, s:I, s:I, s:b, s:{s:I, s:I}}]}",
			      "verb", VERB_NAME, "engine", "live", "mode", "live-frames", "seconds",
			      t->seconds, "ports", "name", s->port.name, "tx_packets",
			      (json_int_t)t->packets, "tx_bytes", (json_int_t)t->bytes,
			      "tx_bytes_estimated", t->estimated, "drops", "tx_device",
			      (json_int_t)t->device, "tx_redirect", (json_int_t)t->refused);

	return json_out(VERB_NAME, o);
}

static void report_text(const struct source *s, const struct totals *t)
{
	double seconds = t->seconds > 0 ? t->seconds : 1;

	printf("source: %.2f s, mode live-frames (no socket)\n", t->seconds);
	printf("  %-15s tx %12llu packets %14llu bytes%s  %.0f pps %.3f Mb/s\n", s->port.name,
	       (unsigned long long)t->packets, (unsigned long long)t->bytes,
	       t->estimated ? " (estimated)" : "", (double)t->packets / seconds,
	       (double)t->bytes * 8e-6 / seconds);
	if (t->device)
		printf("  %-15s dropped %7llu tx_device: dropped by the egress device\n", "",
		       (unsigned long long)t->device);
	if (t->refused)
		printf("  %-15s dropped %7llu tx_redirect: the device went down, its MTU shrank, "
		       "or the "
		       "other end stopped taking live frames\n",
		       "", (unsigned long long)t->refused);
}

static int report(const struct live *l)
{
	struct totals t;

	total(l, &t);
	if (l->s->args->json)
		return report_json(l->s, &t);
	if (!l->s->args->quiet)
		report_text(l->s, &t);
	fflush(stdout);
	return EXIT_DONE;
}

/* ---- the control thread ---- */

static double interval_of(const struct args *a)
{
	if (a->quiet || a->json)
		return 0;
	if (a->interval >= 0)
		return a->interval;
	return isatty(STDOUT_FILENO) ? 1 : 0; /* a terminal gets a line each second */
}

/* Wait for a signal of the set, but no longer. Returns it, or 0. */
static int wait_signal(const sigset_t *set, uint64_t ns)
{
	struct timespec t = {.tv_sec = (time_t)(ns / 1000000000ULL),
			     .tv_nsec = (long)(ns % 1000000000ULL)};
	int sig = sigtimedwait(set, NULL, &t);

	return sig < 0 ? 0 : sig;
}

/* Redirects fail: because the device is not there any more? */
static bool device_gone(struct live *l)
{
	char name[IF_NAMESIZE];
	struct totals t;

	total(l, &t);
	l->gone = t.refused && !if_indextoname((unsigned int)l->s->port.ifindex, name);
	return l->gone;
}

static void watch(struct live *l, const sigset_t *set)
{
	const struct args *a = l->s->args;
	uint64_t every = (uint64_t)(interval_of(a) * 1e9), begin = xdpath_now_ns(), shown = begin;
	uint64_t limit =
		a->duration > 0 ? (uint64_t)(a->duration * 1e9) + OVERDUE_MS * 1000000ULL : 0;
	struct totals before = {0};

	while (!__atomic_load_n(&l->ended, __ATOMIC_ACQUIRE)) {
		uint64_t tick = a->count || limit || every ? TICK_MS * 1000000ULL : 1000000000ULL;
		int sig = wait_signal(set, tick);
		uint64_t now = xdpath_now_ns();

		if (sig == SIGINT || sig == SIGTERM || counted_out(l) || device_gone(l) ||
		    (limit && now - begin > limit))
			return;
		if (every && now - shown >= every) {
			progress(l, &before, now - begin, now - shown);
			shown = now;
		}
	}
}

/* Until the thread is out of the kernel: a signal that finds it just outside is lost, so repeat. */
static void end_thread(struct live *l, pthread_t thread, const sigset_t *set)
{
	__atomic_store_n(&l->stop, true, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&l->ended, __ATOMIC_ACQUIRE)) {
		pthread_kill(thread, SIGUSR1);
		wait_signal(set, TICK_MS * 1000000ULL);
	}
	pthread_join(thread, NULL);
}

static int run_failed(const struct live *l)
{
	uint32_t longest = l->s->plan.size_longest;

	if (l->err == -EINVAL && longest > ONE_PAGE_MOST)
		return fail(VERB_NAME, EXIT_MISSING,
			    "live frames of %u bytes: the kernel wants each in one page; give a "
			    "smaller "
			    "--size, or use --engine xsk",
			    longest);
	return open_failed(l->err, "injecting live frames (Linux 5.18)");
}

static int run(struct live *l)
{
	struct sigaction act = {.sa_handler = woken}, old_act;
	sigset_t set, old_mask;
	pthread_t thread;
	int code;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGUSR1);
	sigaction(SIGUSR1, &act, &old_act);
	pthread_sigmask(SIG_BLOCK, &set, &old_mask);
	code = start_thread(l, &thread);
	if (!code) {
		watch(l, &set);
		end_thread(l, thread, &set);
		code = l->err ? run_failed(l) : EXIT_DONE;
	}
	while (wait_signal(&set, 0))
		; /* what came too late must not hit the caller */
	pthread_sigmask(SIG_SETMASK, &old_mask, NULL);
	sigaction(SIGUSR1, &old_act, NULL);
	return code;
}

int source_live(const struct source *s)
{
	struct live l = {.s = s};
	char text[300];
	int code = check(s);

	if (code)
		return code;
	code = open_program(&l);
	if (!code) {
		if (!s->args->json && !s->args->quiet) {
			source_describe(s, text, sizeof(text));
			printf("source: %s, engine live, %s\n", s->port.name, text);
			fflush(stdout);
		}
		code = run(&l);
	}
	if (!code)
		code = report(&l);
	if (!code && l.gone)
		code = fail(VERB_NAME, EXIT_FAILED,
			    "%s: the interface was removed or moved away; start again where it is",
			    s->port.name);
	close_program(&l);
	return code;
}
