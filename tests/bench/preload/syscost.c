/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * LD_PRELOAD instrument of the benches: how many TSC cycles of user code lie between one system
 * call of a datapath's thread and its next. At exit it writes one line to the file named by
 * SYSCOST_OUT: stretches seen, their median and their mean without the longest 1 % (where the
 * thread was preempted), in cycles; then the same three for the time inside sendto(). x86 only.
 */
#include <dlfcn.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <x86intrin.h>

#define STEP	16U /* cycles of a bucket */
#define BUCKETS 65536U

struct histogram {
	uint64_t n, bucket[BUCKETS]; /* the last one holds all that is longer */
};

/* One busy thread is what the benches have; of several, each adds without a lock and may lose a
 * few. */
static struct histogram user, kernel;
static __thread uint64_t left_kernel;

static ssize_t (*real_sendto)(int, const void *, size_t, int, const struct sockaddr *, socklen_t);
static int (*real_ppoll)(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *);

__attribute__((constructor)) static void start(void)
{
	*(void **)&real_sendto = dlsym(RTLD_NEXT, "sendto");
	*(void **)&real_ppoll = dlsym(RTLD_NEXT, "ppoll");
}

static void add(struct histogram *h, uint64_t cycles)
{
	uint64_t i = cycles / STEP;

	h->bucket[i < BUCKETS ? i : BUCKETS - 1]++;
	h->n++;
}

static void print(FILE *f, const struct histogram *h)
{
	uint64_t seen = 0, sum = 0, kept = h->n - h->n / 100, median = 0;

	for (uint64_t i = 0; i < BUCKETS && seen < kept; i++) {
		uint64_t take = h->bucket[i] < kept - seen ? h->bucket[i] : kept - seen;

		if (seen < h->n / 2 && seen + take >= h->n / 2)
			median = i * STEP + STEP / 2;
		sum += take * (i * STEP + STEP / 2);
		seen += take;
	}
	fprintf(f, "%llu %llu %.1f ", (unsigned long long)h->n, (unsigned long long)median,
		seen ? (double)sum / (double)seen : 0.0);
}

__attribute__((destructor)) static void finish(void)
{
	const char *path = getenv("SYSCOST_OUT");
	FILE *f = path ? fopen(path, "we") : NULL;

	if (!f)
		return;
	print(f, &user);
	print(f, &kernel);
	fputc('\n', f);
	fclose(f);
}

ssize_t sendto(int fd, const void *buf, size_t len, int flags, const struct sockaddr *to,
	       socklen_t tolen)
{
	uint64_t from = __rdtsc();
	ssize_t r;

	if (left_kernel)
		add(&user, from - left_kernel);
	r = real_sendto(fd, buf, len, flags, to, tolen);
	left_kernel = __rdtsc();
	add(&kernel, left_kernel - from);
	return r;
}

int ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask)
{
	int r = real_ppoll(fds, n, timeout, mask);

	left_kernel = 0; /* what comes next was not backlog */
	return r;
}
