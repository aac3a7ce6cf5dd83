// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
/*
 * The runner of the conformance suite: each test in a child of its own under a watchdog, the
 * verdicts as TAP, on demand as a table for docs/conformance.md.
 *
 *   conf [--markdown FILE] [--seed N] [--long] [--all] [--list] [NAME...]
 *   conf --devices A,B --mode skb|drv|zc[,...] [...]
 *
 * The second form runs what is not about veth on two NICs that are wired to each other.
 *
 * Exit 0: all passed; 1: something failed; 77: nothing can be run here.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "report.h"

#define WATCHDOG_S 10U
#define HUGE_FILE  "/proc/sys/vm/nr_hugepages"
#define HUGE_POOL  8L /* for UMEMs made by hand */
#define HUGE_SPARE 4L /* for the library's own */

struct conf *conf;

#define TABLES (sizeof(tables) / sizeof(tables[0]))

static const struct {
	const struct conf_test *test;
	bool nic; /* a NIC makes a difference */
} tables[] = {
	{rows_tests, true},    {stat_tests, true},	 {share_tests, true},  {desc_tests, true},
	{errno_tests, false},  {errno_bind_tests, true}, {kernel_tests, true}, {ring_tests, true},
	{process_tests, true}, {mode_tests, false},	 {fuzz_tests, true},
};
static uint32_t nic_modes; /* enum conf_mode, or-ed: asked for on NICs */
static char **names;
static int nnames;
static long huge_added; /* to be taken off again */

int conf_fail(const char *file, int line, const char *cond, const char *fmt, ...)
{
	const char *base = strrchr(file, '/');
	size_t at;
	va_list ap;

	at = (size_t)snprintf(conf->text, sizeof(conf->text),
			      "%s:%d: not so: %s: ", base ? base + 1 : file, line, cond);
	if (at < sizeof(conf->text)) {
		va_start(ap, fmt);
		vsnprintf(conf->text + at, sizeof(conf->text) - at, fmt, ap);
		va_end(ap);
	}
	return CONF_FAIL;
}

int conf_skip(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(conf->text, sizeof(conf->text), fmt, ap);
	va_end(ap);
	return CONF_SKIP;
}

int conf_no_frags(void)
{
	return conf_skip(conf->mode == CONF_ZC
				 ? "this driver's zero-copy has no packets of several fragments"
				 : "this kernel has no packets of several fragments (XDP_USE_SG)");
}

void conf_note(const char *fmt, ...)
{
	size_t at = strlen(conf->text);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(conf->text + at, sizeof(conf->text) - at, fmt, ap);
	va_end(ap);
}

uint64_t conf_now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

void conf_pause(void)
{
	const struct timespec t = {.tv_nsec = 50000};

	nanosleep(&t, NULL);
}

/* ---- hugepages, borrowed ---- */

static long huge_read(void)
{
	long n = -1;
	FILE *f = fopen(HUGE_FILE, "re");

	if (f) {
		if (fscanf(f, "%ld", &n) != 1)
			n = -1;
		fclose(f);
	}
	return n;
}

static bool huge_write(long n)
{
	char text[24];
	int fd = open(HUGE_FILE, O_WRONLY | O_CLOEXEC), len;
	bool ok;

	len = snprintf(text, sizeof(text), "%ld", n);
	if (fd < 0)
		return false;
	ok = write(fd, text, (size_t)len) == len;
	close(fd);
	return ok;
}

/* The tests' pages are taken here and handed down, so that nobody else can take them meanwhile. */
static void huge_borrow(void)
{
	size_t size = (size_t)HUGE_POOL << 21;
	long before = huge_read();
	void *p;

	if (before >= 0 && huge_write(before + HUGE_POOL + HUGE_SPARE))
		huge_added = huge_read() - before; /* may be fewer than asked for */
	p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		 MAP_SHARED | MAP_ANONYMOUS | MAP_HUGETLB | MAP_POPULATE, -1, 0);
	if (p == MAP_FAILED)
		return;
	conf->k.hugepages = true;
	conf->huge = p;
	conf->huge_size = size;
}

/* Others may have changed the number meanwhile: only ours are taken off. */
static void huge_return(void)
{
	long now = huge_read();

	if (huge_added > 0 && now >= huge_added)
		huge_write(now - huge_added);
	huge_added = 0;
}

static void interrupted(int sig)
{
	huge_return();
	_exit(128 + sig);
}

/* ---- one test ---- */

static int child_result(pid_t pid, unsigned int seconds)
{
	struct pollfd p = {.fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN};
	int status, n;

	do {
		n = poll(&p, 1, (int)seconds * 1000);
	} while (n < 0 && errno == EINTR);
	if (n == 0)
		kill(pid, SIGKILL);
	close(p.fd);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (n == 0) {
		conf_note(" [hung: ended after %u s]", seconds);
		return CONF_FAIL;
	}
	if (WIFSIGNALED(status)) {
		conf_note(" [ended by signal %d]", WTERMSIG(status));
		return CONF_FAIL;
	}
	n = WEXITSTATUS(status);
	if (n != CONF_OK && n != CONF_FAIL && n != CONF_SKIP)
		conf_note(" [exit status %d]", n);
	return n == CONF_OK || n == CONF_SKIP ? n : CONF_FAIL;
}

static int run(int (*fn)(const void *), const void *arg, unsigned int seconds)
{
	pid_t pid;

	conf->text[0] = '\0';
	fflush(NULL);
	pid = fork();
	if (pid < 0)
		return conf_fail(__FILE__, __LINE__, "fork", "%s", strerror(errno));
	if (pid == 0) {
		signal(SIGINT, SIG_DFL);
		signal(SIGTERM, SIG_DFL);
		_exit(fn(arg));
	}
	return child_result(pid, seconds);
}

static bool wanted(const char *name)
{
	for (int i = 0; i < nnames; i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return nnames == 0;
}

/* The verdict on one test in conf->mode. */
static void run_test(const struct conf_test *t, struct report *r)
{
	unsigned int seconds = (t->seconds ? t->seconds : WATCHDOG_S) * (conf->nic ? 6 : 1);
	const char *why = !conf->nic ? NULL : t->not_nic;
	uint64_t begin = conf_now_ms();
	int verdict;

	if (!why && conf->mode == CONF_ZC)
		why = t->not_zc;
	verdict = why ? conf_skip("%s", why) : run(t->fn, t->arg, seconds);
	report_verdict(r, t, conf->mode, verdict, conf_now_ms() - begin);
}

static void run_table(const struct conf_test *t, struct report *r)
{
	static const enum conf_mode modes[] = {CONF_SKB, CONF_DRV, CONF_ANY};

	for (; t->name; t++)
		for (size_t m = 0; wanted(t->name) && m < sizeof(modes) / sizeof(modes[0]); m++) {
			if (!(t->modes & modes[m]))
				continue;
			conf->mode = modes[m];
			run_test(t, r);
		}
}

/* All in one mode: drivers reset when it changes. Where it can not be had that is the verdict on
 * all: a skip if the kernel or the driver refuses it, a failure if it does not work. */
static void run_on_nics(enum conf_mode mode, struct report *r)
{
	char why[sizeof(conf->text)];
	int can;

	conf->mode = mode;
	conf->text[0] = '\0';
	can = nic_hold();
	if (can == CONF_OK)
		can = run(conf_probe, NULL, WATCHDOG_S * 6);
	memcpy(why, conf->text, sizeof(why));
	if (can == CONF_OK)
		report_kernel(r, mode);
	for (size_t i = 0; i < TABLES; i++)
		for (const struct conf_test *t = tables[i].test; tables[i].nic && t->name; t++) {
			if (!wanted(t->name))
				continue;
			if (can == CONF_OK) {
				nic_after();
				run_test(t, r);
			} else {
				memcpy(conf->text, why, sizeof(why));
				report_verdict(r, t, mode, can, 0);
			}
		}
	if (can == CONF_OK)
		nic_after();
	nic_release();
}

static void list(void)
{
	for (size_t i = 0; i < TABLES; i++)
		for (const struct conf_test *t = tables[i].test; t->name; t++)
			printf("%-36s %s%s%s%s %s\n", t->name, t->modes & CONF_SKB ? "SKB " : "",
			       t->modes & CONF_DRV ? "DRV " : "", t->modes & CONF_ANY ? "ANY " : "",
			       tables[i].nic && !t->not_nic ? "NIC " : "", t->what ? t->what : "");
}

static uint32_t planned(void)
{
	uint32_t n = 0;

	for (size_t i = 0; i < TABLES; i++)
		for (const struct conf_test *t = tables[i].test; t->name; t++)
			if (wanted(t->name) && (!conf->nic || tables[i].nic))
				n += (uint32_t)__builtin_popcount(conf->nic ? nic_modes : t->modes);
	return n;
}

static int can_not_run(const char *why)
{
	printf("1..0 # SKIP %s\n0 passed, 0 failed, 1 skipped\n", why);
	return CONF_SKIP;
}

static int usage(const char *what)
{
	fprintf(stderr,
		"conf: %s; usage: conf [--devices A,B --mode skb|drv|zc[,...]] [--markdown FILE] "
		"[--seed N] [--long] [--all] [--list] [NAME...]\n",
		what);
	return 2;
}

static bool set_devices(const char *two)
{
	const char *comma = strchr(two, ',');

	if (!comma || comma == two || comma - two >= IFNAMSIZ || !comma[1] ||
	    strlen(comma + 1) >= IFNAMSIZ)
		return false;
	snprintf(conf->dev[0], IFNAMSIZ, "%.*s", (int)(comma - two), two);
	snprintf(conf->dev[1], IFNAMSIZ, "%s", comma + 1);
	conf->nic = true;
	conf->patience_ms = 10000;
	return strcmp(conf->dev[0], conf->dev[1]) != 0;
}

static bool set_modes(char *some)
{
	for (char *save, *s = strtok_r(some, ",", &save); s; s = strtok_r(NULL, ",", &save)) {
		if (strcmp(s, "skb") == 0)
			nic_modes |= CONF_SKB;
		else if (strcmp(s, "drv") == 0)
			nic_modes |= CONF_DRV;
		else if (strcmp(s, "zc") == 0)
			nic_modes |= CONF_ZC;
		else
			return false;
	}
	return nic_modes != 0;
}

static int options(int argc, char **argv, struct report *r)
{
	int i;

	for (i = 1; i < argc && argv[i][0] == '-'; i++) {
		if (strcmp(argv[i], "--long") == 0) {
			conf->long_run = true;
		} else if (strcmp(argv[i], "--all") == 0) {
			conf->all = true;
		} else if (strcmp(argv[i], "--list") == 0) {
			list();
			exit(0);
		} else if (i + 1 < argc && strcmp(argv[i], "--devices") == 0) {
			if (!set_devices(argv[++i]))
				return usage(argv[i]);
		} else if (i + 1 < argc && strcmp(argv[i], "--mode") == 0) {
			if (!set_modes(argv[++i]))
				return usage("a mode is skb, drv or zc");
		} else if (i + 1 < argc && strcmp(argv[i], "--markdown") == 0) {
			r->markdown = fopen(argv[++i], "we");
			if (!r->markdown)
				return usage(strerror(errno));
		} else if (i + 1 < argc && strcmp(argv[i], "--seed") == 0) {
			conf->seed = strtoull(argv[++i], NULL, 0);
		} else {
			return usage(argv[i]);
		}
	}
	names = argv + i;
	nnames = argc - i;
	if (conf->nic != (nic_modes != 0))
		return usage("--devices and --mode go together");
	return 0;
}

static int on_veth(struct report *r)
{
	conf->mode = CONF_SKB;
	if (run(conf_probe, NULL, WATCHDOG_S) != CONF_OK)
		return can_not_run(conf->text);
	report_start(r, planned(), CONF_BOTH);
	report_kernel(r, CONF_ANY);
	for (size_t i = 0; i < TABLES; i++)
		run_table(tables[i].test, r);
	return report_end(r);
}

static int on_nics(struct report *r)
{
	static const enum conf_mode modes[] = {CONF_SKB, CONF_DRV, CONF_ZC};
	int verdict = nic_take();

	if (verdict != CONF_OK) {
		nic_return();
		return can_not_run(conf->text);
	}
	report_start(r, planned(), nic_modes);
	for (size_t m = 0; m < sizeof(modes) / sizeof(modes[0]); m++)
		if (nic_modes & modes[m])
			run_on_nics(modes[m], r);
	nic_return();
	return report_end(r);
}

int main(int argc, char **argv)
{
	static struct report r;
	int err;

	conf = mmap(NULL, sizeof(*conf), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (conf == MAP_FAILED)
		return can_not_run("no memory");
	conf->seed = (uint64_t)time(NULL);
	conf->patience_ms = 3000;
	strcpy(NET_A, "xa");
	strcpy(NET_B, "xb");
	err = options(argc, argv, &r);
	if (err)
		return err;
	if (planned() == 0)
		return usage("no test of that name");
	if (geteuid() != 0)
		return can_not_run("not root: namespaces and XDP need it");
	signal(SIGINT, interrupted);
	signal(SIGTERM, interrupted);
	huge_borrow();
	err = conf->nic ? on_nics(&r) : on_veth(&r);
	huge_return();
	return err;
}
