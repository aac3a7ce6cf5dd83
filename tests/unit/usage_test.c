/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * What a run cost: a load whose CPU time is known is found again, by idle times and by the soaker;
 * counters move; nothing is left behind.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../user/bench/usage_in.h"

#define POINTS	 0.05 /* of a core */
#define ATTEMPTS 10
/*
 * The soaker's CPUs never halt, and what a hypervisor takes of them for itself is nobody's load: a
 * few points of each core, which idle times do not have. That much it may be above, and by twice
 * the points it may differ from load to load.
 */
#define HYPERVISOR  0.15
#define SOAK_POINTS 0.10

static double clock_of(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* A thread on one CPU, busy for `duty` of every 4 ms until told to stop. */
struct load {
	double duty;
	int cpu;
	bool stop;
	pthread_t thread;
};

static void *run_load(void *arg)
{
	struct load *l = arg;
	double due = clock_of(CLOCK_MONOTONIC);

	while (!__atomic_load_n(&l->stop, __ATOMIC_RELAXED)) {
		struct timespec ts;

		while (clock_of(CLOCK_MONOTONIC) < due + 0.004 * l->duty)
			;
		due += 0.004;
		ts.tv_sec = (time_t)due;
		ts.tv_nsec = (long)((due - (double)ts.tv_sec) * 1e9);
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
	}
	return NULL;
}

static void load_start(struct load *l, double duty)
{
	cpu_set_t cpus;

	memset(l, 0, sizeof(*l));
	l->duty = duty;
	sched_getaffinity(0, sizeof(cpus), &cpus);
	for (int i = 0; i < CPU_SETSIZE; i++)
		l->cpu = CPU_ISSET(i, &cpus) ? i : l->cpu;
	assert_int_equal(pthread_create(&l->thread, NULL, run_load, l), 0);
	CPU_ZERO(&cpus);
	CPU_SET(l->cpu, &cpus);
	assert_int_equal(pthread_setaffinity_np(l->thread, sizeof(cpus), &cpus), 0);
}

static void load_stop(struct load *l)
{
	__atomic_store_n(&l->stop, true, __ATOMIC_RELAXED);
	pthread_join(l->thread, NULL);
}

static void nap(double seconds)
{
	struct timespec ts = {.tv_sec = (time_t)seconds};

	ts.tv_nsec = (long)((seconds - (double)ts.tv_sec) * 1e9);
	nanosleep(&ts, NULL);
}

static double schedstat(const char *path)
{
	unsigned long long ns = 0;
	FILE *f = fopen(path, "re");

	if (!f)
		return 0;
	if (fscanf(f, "%llu", &ns) != 1)
		ns = 0;
	fclose(f);
	return (double)ns / 1e9;
}

/* All threads of all other processes: CPU seconds so far, how many, how many were ever made. */
struct others {
	double seconds, at; /* at: when it was looked */
	uint32_t tasks;
	unsigned long long forks;
};

static unsigned long long forks(void)
{
	unsigned long long n = 0;
	FILE *f = fopen("/proc/stat", "re");
	char line[4096];

	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "processes %llu", &n) == 1)
			break;
	fclose(f);
	return n;
}

static struct others look_at_others(void)
{
	struct others o = {.forks = forks(), .at = clock_of(CLOCK_MONOTONIC)};
	DIR *procs = opendir("/proc"), *tasks;
	struct dirent *p, *t;
	char path[600];

	assert_non_null(procs);
	while ((p = readdir(procs))) {
		if (p->d_name[0] < '1' || p->d_name[0] > '9' || atoi(p->d_name) == getpid())
			continue;
		snprintf(path, sizeof(path), "/proc/%s/task", p->d_name);
		tasks = opendir(path);
		while (tasks && (t = readdir(tasks))) {
			if (t->d_name[0] == '.')
				continue;
			snprintf(path, sizeof(path), "/proc/%s/task/%s/schedstat", p->d_name,
				 t->d_name);
			o.seconds += schedstat(path);
			o.tasks++;
		}
		if (tasks)
			closedir(tasks);
	}
	closedir(procs);
	return o;
}

/*
 * How far the CPUs in use are from the known load with all other tasks, in cores. False: a task
 * began or ended meanwhile, so that nothing is known.
 */
static bool miss(double duty, bool soak, struct usage *u, double *off)
{
	struct others before, after;
	struct usage_meter *m;
	double used, known;
	struct load l;
	clockid_t id;

	load_start(&l, duty);
	assert_int_equal(pthread_getcpuclockid(l.thread, &id), 0);
	before = look_at_others();
	used = -clock_of(id);
	assert_int_equal(usage_begin(&m, NULL, soak), 0);
	nap(0.6);
	usage_end(m, u);
	after = look_at_others();
	used += clock_of(id);
	load_stop(&l);
	known = (used + after.seconds - before.seconds) / (after.at - before.at);
	*off = u->busy_total / u->seconds - known;
	if (after.tasks != before.tasks || after.forks - before.forks != (soak ? u->online : 0))
		return false;
	print_message("# duty %.2f by %s: %.3f CPUs in use, known %.3f\n", duty,
		      usage_source_name(u->source), u->busy_total / u->seconds, known);
	return true;
}

/* What is measured with the ends of the window a little apart can miss once. */
static void find_loads(bool soak)
{
	static const double duty[] = {0, 0.2, 0.55, 1};
	double points = soak ? HYPERVISOR : POINTS, base = 0;
	struct usage u;

	for (size_t i = 0; i < sizeof(duty) / sizeof(duty[0]); i++) {
		double off, least = 1e9;
		int known = 0;

		for (int n = 0; n < ATTEMPTS && known < 3 && !(fabs(least) < points); n++) {
			if (!miss(duty[i], soak, &u, &off))
				continue;
			known++;
			off -= base;
			least = fabs(off) < fabs(least) ? off : least;
		}
		if (!soak && u.source == USAGE_STAT) {
			print_message("skipped: this kernel only samples CPU time\n");
			skip();
		}
		if (!known) {
			print_message("skipped: other processes come and go all the time\n");
			skip();
		}
		points *= soak && i == 0 ? u.online : 1; /* of each */
		assert_true(fabs(least) < points);
		assert_int_equal(u.source == USAGE_SOAKER, soak);
		if (soak && i == 0) {
			base = least;
			points = SOAK_POINTS;
		}
	}
}

static void a_known_load_is_found(void **state)
{
	(void)state;
	find_loads(false);
}

/* ... and so both agree. */
static void the_soaker_finds_it_too(void **state)
{
	(void)state;
	find_loads(true);
}

static void *burn(void *seconds)
{
	double until = *(const double *)seconds;

	while (clock_of(CLOCK_THREAD_CPUTIME_ID) < until)
		;
	return NULL;
}

static void threads_that_ended_are_not_lost(void **state)
{
	double seconds = 0.08;
	struct usage_meter *m;
	struct usage u;
	pthread_t t;

	(void)state;
	for (int soak = 0; soak < 2; soak++) {
		assert_int_equal(usage_begin(&m, NULL, soak), 0);
		for (int i = 0; i < 3; i++) {
			assert_int_equal(pthread_create(&t, NULL, burn, &seconds), 0);
			pthread_join(t, NULL);
		}
		usage_end(m, &u);
		assert_true(u.threads > 0.24 && u.threads < 0.26);
		for (uint32_t i = 0; i < u.counters; i++) {
			const struct usage_counter *c = &u.counter[i];

			/* the soaker's threads are in this one */
			if (strcmp(c->name, "task-clock") != 0 || !c->supported || soak)
				continue;
			assert_true(c->value > 200000000 && c->value < 280000000);
		}
	}
}

static void *ping(void *arg)
{
	(void)arg;
	for (int i = 0; i < 500; i++)
		nap(0.0001);
	return NULL;
}

static void counters_move_or_say_why(void **state)
{
	static const char *const names[] = {"task-clock",
					    "context-switches",
					    "cpu-migrations",
					    "page-faults",
					    "cycles",
					    "stalled-cycles-frontend",
					    "stalled-cycles-backend",
					    "instructions",
					    "branches",
					    "branch-misses",
					    "cache-misses"};
	struct usage_meter *m;
	volatile char *fresh;
	struct usage u;
	pthread_t t;

	(void)state;
	assert_int_equal(usage_begin(&m, NULL, false), 0);
	assert_int_equal(pthread_create(&t, NULL, ping, NULL), 0);
	fresh = malloc(4 << 20);
	assert_non_null(fresh);
	for (size_t i = 0; i < 4 << 20; i += 4096)
		fresh[i] = 1;
	pthread_join(t, NULL);
	usage_end(m, &u);
	free((void *)fresh);
	assert_int_equal(u.counters, sizeof(names) / sizeof(names[0]));
	for (uint32_t i = 0; i < u.counters; i++) {
		const struct usage_counter *c = &u.counter[i];

		assert_string_equal(c->name, names[i]);
		assert_true(c->share >= 0 && c->share <= 1);
		assert_true(c->supported ? c->share > 0 : c->why[0] != '\0');
		print_message("# %s: %llu, share %.2f, %s %s\n", c->name,
			      (unsigned long long)c->value, c->share,
			      c->machine ? "machine" : "threads", c->why);
		if (!c->supported)
			continue;
		if (i == 1)
			assert_true(c->value >= 500);
		if (i == 3)
			assert_true(c->value > 0);
	}
}

static uint32_t entries(const char *dir)
{
	DIR *d = opendir(dir);
	uint32_t n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static void nothing_is_left_behind(void **state)
{
	uint32_t fds, threads;
	struct usage_meter *m;
	struct usage u;

	(void)state;
	assert_int_equal(usage_begin(&m, "lo", false), 0);
	usage_end(m, &u);
	fds = entries("/proc/self/fd");
	threads = entries("/proc/self/task");
	for (int i = 0; i < 20; i++) {
		assert_int_equal(usage_begin(&m, "lo", i & 1), 0);
		assert_true(entries("/proc/self/fd") > fds);
		usage_end(m, i & 2 ? &u : NULL);
	}
	usage_end(NULL, &u);
	assert_int_equal(entries("/proc/self/fd"), fds);
	assert_int_equal(entries("/proc/self/task"), threads);
}

/* Each datagram to ourselves is one poll of the loopback's backlog. */
static void polls_are_counted(void **state)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(a);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct usage_meter *m;
	struct usage u;

	(void)state;
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &len), 0);
	assert_int_equal(usage_begin(&m, "lo", false), 0);
	for (int i = 0; i < 400; i++) {
		char c = 'x';

		assert_int_equal(sendto(fd, &c, 1, 0, (struct sockaddr *)&a, sizeof(a)), 1);
		assert_int_equal(recv(fd, &c, 1, 0), 1);
	}
	usage_end(m, &u);
	close(fd);
	assert_true(u.softirqs_rx >= 400);
	assert_true(u.interrupts == UINT64_MAX); /* lo has none */
}

static void cycles_are_of_this_processor(void **state)
{
	struct usage_meter *m;
	struct usage u;
	uint64_t ticks;
	double begin, hz;

	(void)state;
	if (!USAGE_HAVE_TSC)
		skip();
	assert_int_equal(usage_begin(&m, NULL, false), 0);
	begin = clock_of(CLOCK_MONOTONIC_RAW);
	ticks = usage_ticks();
	nap(0.2);
	hz = (double)(usage_ticks() - ticks) / (clock_of(CLOCK_MONOTONIC_RAW) - begin);
	usage_end(m, &u);
	assert_true(u.tsc_hz > hz * 0.999 && u.tsc_hz < hz * 1.001);
	assert_true(u.seconds > 0.2 && u.cpus >= u.online && u.online > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_known_load_is_found),
		cmocka_unit_test(the_soaker_finds_it_too),
		cmocka_unit_test(threads_that_ended_are_not_lost),
		cmocka_unit_test(counters_move_or_say_why),
		cmocka_unit_test(nothing_is_left_behind),
		cmocka_unit_test(polls_are_counted),
		cmocka_unit_test(cycles_are_of_this_processor),
	};

	return cmocka_run_group_tests_name("usage", tests, NULL, NULL);
}
