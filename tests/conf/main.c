// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
/*
 * The runner of the conformance suite: each test in a child of its own under a watchdog, the
 * verdicts as TAP, on demand as a table for docs/conformance.md.
 *
 *   conf [--markdown FILE] [--seed N] [--long] [--all] [--list] [NAME...]
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

static const struct conf_test *const tables[] = {
	rows_tests,   stat_tests, share_tests,	 desc_tests, errno_tests, errno_bind_tests,
	kernel_tests, ring_tests, process_tests, mode_tests, fuzz_tests,
};
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

static void run_table(const struct conf_test *t, struct report *r)
{
	static const enum conf_mode modes[] = {CONF_SKB, CONF_DRV, CONF_ANY};

	for (; t->name; t++) {
		if (!wanted(t->name))
			continue;
		report_begin(r, t);
		for (size_t m = 0; m < sizeof(modes) / sizeof(modes[0]); m++) {
			unsigned int seconds = t->seconds ? t->seconds : WATCHDOG_S;
			uint64_t begin = conf_now_ms();
			int verdict;

			if (!(t->modes & modes[m]))
				continue;
			conf->mode = modes[m];
			verdict = run(t->fn, t->arg, seconds);
			report_verdict(r, t, modes[m], verdict, conf_now_ms() - begin);
		}
	}
}

static void list(void)
{
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		for (const struct conf_test *t = tables[i]; t->name; t++)
			printf("%-36s %s%s%s %s\n", t->name, t->modes & CONF_SKB ? "SKB " : "",
			       t->modes & CONF_DRV ? "DRV " : "", t->modes & CONF_ANY ? "ANY " : "",
			       t->what ? t->what : "");
}

static uint32_t planned(void)
{
	uint32_t n = 0;

	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		for (const struct conf_test *t = tables[i]; t->name; t++)
			n += wanted(t->name) ? (uint32_t)__builtin_popcount(t->modes) : 0;
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
		"conf: %s; usage: conf [--markdown FILE] [--seed N] [--long] [--all] [--list] "
		"[NAME...]\n",
		what);
	return 2;
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
	return 0;
}

int main(int argc, char **argv)
{
	struct report r = {0};
	int err;

	conf = mmap(NULL, sizeof(*conf), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (conf == MAP_FAILED)
		return can_not_run("no memory");
	conf->seed = (uint64_t)time(NULL);
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
	if (run(conf_probe, NULL, WATCHDOG_S) != CONF_OK) {
		huge_return();
		return can_not_run(conf->text);
	}
	report_start(&r, planned());
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		run_table(tables[i], &r);
	huge_return();
	return report_end(&r);
}
