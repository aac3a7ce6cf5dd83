/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * The floor: what a datapath costs on the bare rings, without our library or any other. The fastest
 * program we know how to write that still does the work: one queue, bursts of 64, one UMEM for both
 * ports, one kick a burst, no check of anything the rings say. pairs.py runs it beside xdpath.
 *
 *   bare [-p] [-t SEC] forward A [B] | reflect A | sink A
 *
 * -p sleeps in poll() when nothing is there instead of looking again; it ends after SEC (60), or on
 * SIGINT, with one line: packets taken, and packets the kernel dropped for want of room.
 */
#include <poll.h>

#include "bare.h"

static uint64_t taken;

static void on_signal(int sig)
{
	(void)sig;
	stop = 1;
}

static void swap_macs(uint8_t *p)
{
	uint64_t dst, src; /* 6 bytes count; the two behind are put back by the second store */
	uint16_t rest;

	memcpy(&dst, p, 8);
	memcpy(&src, p + 6, 8);
	memcpy(&rest, p + 12, 2);
	memcpy(p, &src, 8);
	memcpy(p + 6, &dst, 6);
	memcpy(p + 12, &rest, 2);
}

/* Completions of what `in` received: back to where it came from. */
static inline void recycle(struct xsk *in, struct xsk *out)
{
	uint32_t n = readable(&out->comp), c = out->comp.at, f = in->fill.at;
	const uint64_t *from = out->comp.addr;
	uint64_t *to = in->fill.addr;

	if (!n)
		return;
	for (uint32_t i = 0; i < n; i++)
		to[(f + i) % N] = from[(c + i) % N];
	publish(out->comp.consumer, out->comp.at = c + n);
	publish(in->fill.producer, in->fill.at = f + n);
}

/*
 * The kick copies each frame, and waits for each: their lines are in the other CPU's cache. Loads
 * here, of a whole burst, are under way at once: a quarter to a third off the price of a forwarded
 * frame. Prefetches do nothing, every frame lies on a page of its own and they give up on a TLB
 * miss.
 */
static inline void touch(const struct xdp_desc *from, uint32_t r, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		__asm__ volatile("" : : "r"(area[from[(r + i) % N].addr]));
}

static inline uint32_t forward(struct xsk *in, struct xsk *out, int swap)
{
	uint32_t n = readable(&in->rx), r = in->rx.at, t = out->tx.at;
	const struct xdp_desc *from = in->rx.desc;
	struct xdp_desc *to = out->tx.desc;

	if (!n)
		return 0;
	if (n > BATCH)
		n = BATCH;
	if (!swap)
		touch(from, r, n);
	for (uint32_t i = 0; i < n; i++) {
		if (swap)
			swap_macs(area + from[(r + i) % N].addr);
		to[(t + i) % N] = from[(r + i) % N];
	}
	publish(in->rx.consumer, in->rx.at = r + n);
	publish(out->tx.producer, out->tx.at = t + n);
	kick(out);
	recycle(in, out);
	return n;
}

static inline uint32_t sink(struct xsk *in)
{
	uint32_t n = readable(&in->rx), r = in->rx.at, f = in->fill.at;
	const struct xdp_desc *from = in->rx.desc;
	uint64_t *to = in->fill.addr;

	if (!n)
		return 0;
	if (n > BATCH)
		n = BATCH;
	for (uint32_t i = 0; i < n; i++)
		to[(f + i) % N] = from[(r + i) % N].addr;
	publish(in->rx.consumer, in->rx.at = r + n);
	publish(in->fill.producer, in->fill.at = f + n);
	return n;
}

static void run(struct xsk *x, int ports, char what, int blocks)
{
	struct pollfd fds[2] = {{.fd = x[0].fd, .events = POLLIN},
				{.fd = x[1].fd, .events = POLLIN}};
	uint32_t n;

	while (!stop) {
		if (what == 's')
			n = sink(&x[0]);
		else if (what == 'r')
			n = forward(&x[0], &x[0], 1);
		else if (ports == 1)
			n = forward(&x[0], &x[0], 0);
		else
			n = forward(&x[0], &x[1], 0) + forward(&x[1], &x[0], 0);
		taken += n;
		if (!n && blocks)
			poll(fds, (nfds_t)ports, 100);
	}
}

int main(int argc, char **argv)
{
	const struct sigaction sa = {.sa_handler = on_signal};
	struct xsk x[2] = {0};
	struct xdp_statistics st = {0};
	socklen_t len = sizeof(st);
	unsigned int seconds = 60;
	int blocks = 0, opt;
	uint64_t drops = 0;

	while ((opt = getopt(argc, argv, "pt:")) != -1) {
		if (opt == 'p')
			blocks = 1;
		else if (opt == 't')
			seconds = (unsigned int)atoi(optarg);
		else
			return 2;
	}
	argc -= optind;
	argv += optind;
	if (argc < 2 || argc > 3 || !strchr("frs", argv[0][0]) ||
	    (argc == 3 && argv[0][0] != 'f')) {
		fprintf(stderr, "usage: bare [-p] [-t SEC] forward A [B] | reflect A | sink A\n");
		return 2;
	}
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGALRM, &sa, NULL);
	for (int i = 0; i < argc - 1; i++)
		open_xsk(&x[i], argv[1 + i], i ? &x[0] : NULL, (uint32_t)i);
	alarm(seconds);
	printf("ready\n");
	fflush(stdout);
	run(x, argc - 1, argv[0][0], blocks);
	for (int i = 0; i < argc - 1; i++)
		if (!getsockopt(x[i].fd, SOL_XDP, XDP_STATISTICS, &st, &len))
			drops += st.rx_dropped + st.rx_ring_full;
	printf("%llu %llu\n", (unsigned long long)taken, (unsigned long long)drops);
	return 0;
}
