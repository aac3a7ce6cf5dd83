/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * One packet in flight: the client of pairs.py. Sends a UDP frame of 60 bytes out of DEV by a bare
 * AF_XDP socket, spins until it is back, COUNT times, and prints p50, p99, p99.9 in ns and how many
 * did not come back in time. Without arguments: TSC ticks a second, 0 where there is no TSC.
 *
 *   rtt DEV DST-MAC COUNT
 */
#include <time.h>

#include "bare.h"

#if defined(__x86_64__) || defined(__i386__)
#include <x86intrin.h>
#define TICKS() __rdtsc()
#else
#define TICKS() 0ULL
#endif

#define LEN    60U
#define WARM   2000U
#define LATE   20000000ULL /* ns */
#define LOST   100U	   /* so many, and nobody sends anything back */
#define SEQ_AT 44U	   /* in the UDP payload */

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
}

static int tsc_rate(void)
{
	uint64_t from = now(), ticks = TICKS(), end;

	do
		end = now();
	while (end - from < 100000000ULL);
	printf("%.0f\n", (double)(TICKS() - ticks) * 1e9 / (double)(end - from));
	return 0;
}

/* 10.9.0.1:9000 to 10.9.0.2:9000, no UDP checksum */
static void build(uint8_t *p, const char *mac)
{
	static const uint8_t rest[] = {0x02, 0x77, 0,	     0,	   0,	 0x0c, 0x08,	 0x00, 0x45,
				       0,    0,	   LEN - 14, 0,	   0,	 0x40, 0,	 64,   17,
				       0,    0,	   10,	     9,	   0,	 1,    10,	 9,    0,
				       2,    0x23, 0x28,     0x23, 0x28, 0,    LEN - 34, 0,    0};
	unsigned int m[6];
	uint32_t sum = 0;

	memset(p, 0, LEN);
	if (sscanf(mac, "%x:%x:%x:%x:%x:%x", &m[0], &m[1], &m[2], &m[3], &m[4], &m[5]) != 6)
		exit(2);
	for (int i = 0; i < 6; i++)
		p[i] = (uint8_t)m[i];
	memcpy(p + 6, rest, sizeof(rest));
	for (uint32_t i = 14; i < 34; i += 2)
		sum += (uint32_t)p[i] << 8 | p[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	sum = ~((sum & 0xffff) + (sum >> 16));
	p[24] = (uint8_t)(sum >> 8);
	p[25] = (uint8_t)sum;
}

/* Take what arrived, give the frames back; was it the one we wait for? */
static int arrived(struct xsk *x, uint32_t seq)
{
	uint32_t n = readable(&x->rx), got;
	int found = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint64_t addr = x->rx.desc[x->rx.at++ % N].addr;

		memcpy(&got, area + addr + SEQ_AT, sizeof(got));
		found |= got == seq;
		x->fill.addr[x->fill.at++ % N] = addr;
	}
	if (n) {
		publish(x->rx.consumer, x->rx.at);
		publish(x->fill.producer, x->fill.at);
	}
	return found;
}

/* ns, or 0 for a packet that did not come back */
static uint64_t round_trip(struct xsk *x, uint64_t frame, uint32_t seq)
{
	uint64_t start = now(), end;

	memcpy(area + frame + SEQ_AT, &seq, sizeof(seq));
	x->tx.desc[x->tx.at++ % N] = (struct xdp_desc){.addr = frame, .len = LEN};
	publish(x->tx.producer, x->tx.at);
	kick(x);
	while (!arrived(x, seq)) {
		end = now();
		if (end - start > LATE)
			return 0;
	}
	end = now();
	x->comp.at += readable(&x->comp); /* one frame, and it is our only one */
	publish(x->comp.consumer, x->comp.at);
	return end - start;
}

static int ascending(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static int report(const char *dev, uint64_t *ns, size_t n, uint32_t lost)
{
	if (lost == LOST || !n) {
		fprintf(stderr, "rtt: %s: nothing comes back\n", dev);
		return 1;
	}
	qsort(ns, n, sizeof(*ns), ascending);
	printf("%llu %llu %llu %u\n", (unsigned long long)ns[n / 2],
	       (unsigned long long)ns[n / 100 * 99], (unsigned long long)ns[n / 1000 * 999], lost);
	return 0;
}

int main(int argc, char **argv)
{
	const uint64_t frame = 2ULL * N * FRAME;
	uint32_t count, lost = 0, n = 0;
	struct xsk x = {0};
	uint64_t *ns, t;
	int code;

	if (argc == 1)
		return tsc_rate();
	if (argc != 4) {
		fprintf(stderr, "usage: rtt DEV DST-MAC COUNT\n");
		return 2;
	}
	alarm(60); /* whatever happens */
	count = (uint32_t)atoi(argv[3]);
	ns = calloc(count + 1, sizeof(*ns));
	need(ns != NULL, "memory");
	open_xsk(&x, argv[1], NULL, 0);
	build(area + frame, argv[2]);
	for (uint32_t i = 0; i < WARM + count && lost < LOST; i++) {
		t = round_trip(&x, frame, i + 1);
		lost += !t;
		if (t && i >= WARM)
			ns[n++] = t;
	}
	code = report(argv[1], ns, n, lost);
	free(ns);
	return code;
}
