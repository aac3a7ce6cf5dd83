/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * What a verdict by rules costs: nanoseconds over a bare XDP_PASS for a 64-byte packet. Test runs
 * of 100,000 packets, each of another of 10,000 shuffled flows (steer.bpf.c), most of which hit a
 * random rule; each figure is the median of 11 runs less the median of 11 baseline runs, taken in
 * turn. Busy machines add to both.
 */
#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <xdpath/shared.h>
#include <xdpath/steer.h>
#include <xdpath/uapi.h>

#include "bench_steer.skel.h"
#include "steer.skel.h"
#include "steer_flow.h"

enum { RUNS = 11, REPEAT = 100000 };

static struct bench_steer_bpf *bench;
static struct steer_bpf *skel;
static uint32_t prog_id;
static uint64_t seed = 88172645463325252ULL;

static int quiet(enum libbpf_print_level level, const char *format, va_list ap)
{
	(void)level, (void)format, (void)ap;
	return 0;
}

static uint32_t draw(uint32_t below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (uint32_t)(seed >> 20) % below;
}

/*
 * Shapes as access lists have them: two prefixes, a protocol, a port or two. The first ones are the
 * usual ones; up to 64, all different.
 */
static void shape_of(uint32_t n, struct xdpath_rule *r)
{
	static const uint8_t len[] = {32, 24, 16, 28, 20, 12, 30, 8};

	*r = (struct xdpath_rule){.prio = 100, .fields = XDPATH_RF_PROTO | XDPATH_RF_DST};
	r->dst.family = r->src.family = 4;
	r->dst.len = len[n % 8];
	if (n / 8 % 4 != 3)
		r->fields |= XDPATH_RF_DPORT;
	if (n / 8 % 2) {
		r->fields |= XDPATH_RF_SRC;
		r->src.len = len[(n + 1) % 8];
	}
	if (n / 32)
		r->fields |= XDPATH_RF_SPORT;
}

static void put_prefix(struct xdpath_prefix *p, uint32_t addr)
{
	addr &= p->len ? ~0U << (32 - p->len) : 0;
	for (int i = 0; i < 4; i++)
		p->addr[i] = (uint8_t)(addr >> (24 - 8 * i));
}

/* n rules of `shapes` shapes; half the addresses of a shape are of one network, as in life. */
static void make_rules(struct xdpath_rules *l, uint32_t n, uint32_t shapes)
{
	l->rule = calloc(n, sizeof(*l->rule));
	if (!l->rule)
		exit(1);
	l->n = l->room = n;
	for (uint32_t i = 0; i < n; i++) {
		struct xdpath_rule *r = &l->rule[i];

		shape_of(i % shapes, r);
		r->id = ++l->next_id;
		r->proto = draw(2) ? 6 : 17;
		put_prefix(&r->dst, 0x0a000000 + draw(1 << 24));
		put_prefix(&r->src, 0xc0a80000 + draw(1 << 16) + (draw(64) << 24));
		r->sport[0] = r->sport[1] = (uint16_t)draw(65536);
		r->dport[0] = r->dport[1] = (uint16_t)draw(1024);
		r->action = draw(4) ? XDPATH_RA_XSK : XDPATH_RA_PASS;
	}
	l->next_id++;
}

static uint32_t inside(const struct xdpath_prefix *p)
{
	uint32_t addr = 0;

	for (int i = 0; i < 4; i++)
		addr = addr << 8 | p->addr[i];
	return addr | (p->len ? (uint32_t)(((uint64_t)draw(65536) << 16 | draw(65536)) &
					   ~(~0ULL << (32 - p->len)))
			      : 0);
}

/* A flow that a rule matches; or (miss) one from addresses that no rule knows. */
static struct bench_flow flow_for(const struct xdpath_rule *r, int miss)
{
	uint32_t src = r->fields & XDPATH_RF_SRC ? inside(&r->src) : draw(1U << 31);
	uint32_t dst = inside(&r->dst) | (miss ? 0xf0000000 : 0);
	uint16_t sport = r->fields & XDPATH_RF_SPORT ? r->sport[0] : (uint16_t)draw(65536);
	uint16_t dport = r->fields & XDPATH_RF_DPORT ? r->dport[0] : (uint16_t)draw(65536);

	return (struct bench_flow){.addr = __builtin_bswap32(src) | (uint64_t)__builtin_bswap32(dst)
									    << 32,
				   .ports = __builtin_bswap16(sport) |
					    (uint32_t)__builtin_bswap16(dport) << 16,
				   .proto = r->proto};
}

static void put_flows(const struct xdpath_rules *l, int miss)
{
	for (uint32_t i = 0; i < BENCH_FLOWS; i++) {
		struct bench_flow f = flow_for(&l->rule[draw(l->n)], miss);

		if (bpf_map_update_elem(bpf_map__fd(bench->maps.flows), &i, &f, BPF_ANY))
			exit(1);
	}
}

static double run_once(int fd)
{
	uint8_t frame[64] = {2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0, 0, 50};
	LIBBPF_OPTS(bpf_test_run_opts, o, .data_in = frame, .data_size_in = sizeof(frame),
		    .repeat = REPEAT);
	uint32_t zero = 0;

	if (bpf_map_update_elem(bpf_map__fd(bench->maps.next), &zero, &fd, BPF_ANY) ||
	    bpf_prog_test_run_opts(bpf_program__fd(bench->progs.bench_write), &o) ||
	    o.retval == XDP_ABORTED) {
		fprintf(stderr, "test run: %s\n", strerror(errno));
		exit(1);
	}
	return o.duration;
}

static int ascending(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Nanoseconds over PASS. */
static double cost(void)
{
	double with[RUNS], without[RUNS];

	for (int i = 0; i < RUNS; i++) {
		with[i] = run_once(bpf_program__fd(skel->progs.xdpath_steer));
		without[i] = run_once(bpf_program__fd(bench->progs.bench_pass));
	}
	qsort(with, RUNS, sizeof(*with), ascending);
	qsort(without, RUNS, sizeof(*without), ascending);
	return with[RUNS / 2] - without[RUNS / 2];
}

static double measure(uint32_t n, uint32_t shapes, int miss)
{
	struct xdpath_rules l = {0};
	struct xdpath_diag diag;
	double ns;

	make_rules(&l, n, shapes);
	if (xdpath_steer_set(prog_id, &l, &diag)) {
		fprintf(stderr, "%s\n", diag.text);
		exit(1);
	}
	put_flows(&l, miss);
	ns = cost();
	printf("  %5u rules of %2u shapes, %s %6.0f ns\n", n, shapes,
	       miss ? "no rule hit:  " : "random hits:  ", ns);
	fflush(stdout);
	xdpath_rules_clear(&l);
	return ns;
}

static int verdict(const char *what, double got, double most)
{
	printf("%s %s: %.1f, at most %.1f\n", got <= most ? "ok  " : "FAIL", what, got, most);
	return got > most;
}

static int start(void)
{
	struct bpf_prog_info info = {0};
	uint32_t len = sizeof(info), zero = 0;
	int xsk = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);

	libbpf_set_print(quiet);
	bench = bench_steer_bpf__open_and_load();
	skel = steer_bpf__open_and_load();
	if (!bench || !skel || xsk < 0 ||
	    bpf_map_update_elem(bpf_map__fd(skel->maps.xsks_map), &zero, &xsk, BPF_ANY) ||
	    bpf_obj_get_info_by_fd(bpf_program__fd(skel->progs.xdpath_steer), &info, &len))
		return -errno;
	prog_id = info.id;
	return 0;
}

int main(void)
{
	double ten, three, many, shapes, none;
	cpu_set_t one;
	int failed = 0;

	if (geteuid() || start()) {
		printf("skip: BPF programs cannot be loaded here: needs root\n");
		printf("0 passed, 0 failed, 1 skipped\n");
		return 0;
	}
	CPU_ZERO(&one);
	CPU_SET(sysconf(_SC_NPROCESSORS_ONLN) - 1, &one);
	sched_setaffinity(0, sizeof(one), &one);
	none = cost();
	printf("  no rules: %29.0f ns\n", none);
	ten = measure(10, 1, 0);
	three = measure(10, 3, 0);
	many = measure(10000, 1, 0);
	measure(10000, 3, 0);
	measure(10000, 16, 0);
	shapes = measure(10000, 64, 0);
	measure(10000, 64, 1);
	failed += verdict("ns more for 10000 rules than for 10 of one shape", many - ten, 15);
	failed += verdict("times the cost for 64 shapes", shapes / many, 2);
	failed += verdict("ns over PASS with 10 rules of 3 shapes", three, 60);
	printf("%d passed, %d failed, 0 skipped\n", 3 - failed, failed);
	return failed != 0;
}
