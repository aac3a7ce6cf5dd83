/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/* The options of `bench`, from text to a plan. Every refusal is one line and exit code 2. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

#define VERB_NAME "bench"

enum { RUNS = 3, RUNS_LEAST = 3, RUNS_MOST = 30, RUNS_ANY = 1000 };

#define TIME   3.0 /* seconds of a run */
#define WARMUP 0.5

/* A decimal number with an optional k, M or G, and what follows it. False: none, or not finite. */
static bool number(const char *text, double *out, const char **end)
{
	char *stop;

	if (!isdigit((unsigned char)*text))
		return false;
	if (text[strspn(text, "0123456789.")] == 'x')
		return false; /* strtod would take 0x10 */
	*out = strtod(text, &stop);
	switch (*stop) {
	case 'k':
		*out *= 1e3;
		stop++;
		break;
	case 'M':
		*out *= 1e6;
		stop++;
		break;
	case 'G':
		*out *= 1e9;
		stop++;
		break;
	default: break;
	}
	*end = stop;
	return isfinite(*out);
}

static bool whole_number(const char *text, uint32_t *out, const char **end)
{
	unsigned long v;
	char *stop;

	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	v = strtoul(text, &stop, 10);
	*end = stop;
	*out = (uint32_t)v;
	return !errno && v <= UINT32_MAX;
}

static int bad(const char *option, const char *value, const char *cure)
{
	return fail(VERB_NAME, EXIT_USAGE, "%s: \"%.60s\" is not understood; %s", option, value,
		    cure);
}

static int parse_sizes(struct test_spec *s, const struct bench_args *b)
{
	const char *end;

	s->req = s->rsp = 1;
	s->size = 1024;
	if (b->sizes && s->kind != TEST_RR)
		return fail(VERB_NAME, EXIT_USAGE,
			    "-r: a stream has no requests; give -m SIZE, or measure rr");
	if (b->msg && s->kind != TEST_STREAM)
		return fail(VERB_NAME, EXIT_USAGE,
			    "-m: rr has requests and answers; give -r REQ,RSP, or measure stream");
	if (b->sizes && (!whole_number(b->sizes, &s->req, &end) || *end != ',' ||
			 !whole_number(end + 1, &s->rsp, &end) || *end))
		return bad("-r", b->sizes, "give two sizes in bytes, as 1400,1");
	if (b->msg && (!whole_number(b->msg, &s->size, &end) || *end))
		return bad("-m", b->msg, "give a size in bytes, as 1400");
	return EXIT_DONE;
}

static int parse_rate(struct test_spec *s, const struct bench_args *b)
{
	const char *end;

	if (b->rate && (!number(b->rate, &s->rate, &end) || *end || s->rate <= 0))
		return bad("--rate", b->rate, "give messages a second, as 10000 or 10k");
	if (!b->arrival) {
		s->arrival = b->rate ? ARRIVAL_EVEN : ARRIVAL_CLOSED;
	} else if (!b->rate) {
		return fail(VERB_NAME, EXIT_USAGE,
			    "--arrival: says how the messages of a rate come; give --rate too");
	} else if (!strcmp(b->arrival, "even")) {
		s->arrival = ARRIVAL_EVEN;
	} else if (!strcmp(b->arrival, "poisson")) {
		s->arrival = ARRIVAL_POISSON;
	} else if (!strncmp(b->arrival, "burst:", 6)) {
		s->arrival = ARRIVAL_BURST;
		if (!whole_number(b->arrival + 6, &s->burst, &end) || *end || s->burst < 1 ||
		    s->burst > 1000000)
			return bad("--arrival", b->arrival, "give a burst as burst:32");
	} else {
		return bad("--arrival", b->arrival, "give even, poisson or burst:N");
	}
	return EXIT_DONE;
}

static int parse_engine(struct test_spec *s, const struct bench_args *b)
{
	static const char *const names[] = {"xsk", "udp", "packet"};

	s->engine = ENGINE_T_XSK;
	for (int i = 0; b->engine && i < 3; i++)
		if (!strcmp(b->engine, names[i])) {
			s->engine = (enum test_engine)i;
			return EXIT_DONE;
		}
	return b->engine ? bad("--engine", b->engine, "give xsk, udp or packet") : EXIT_DONE;
}

/* "0-3,6". The far end's CPUs are not ours to check. */
static int parse_cpus(const char *option, const char *text, cpu_set_t *out)
{
	const char *at = text;
	uint32_t from, to;

	CPU_ZERO(out);
	while (text) {
		if (!whole_number(at, &from, &at))
			break;
		to = from;
		if (*at == '-' && !whole_number(at + 1, &to, &at))
			break;
		if (from > to || to >= CPU_SETSIZE)
			break;
		for (; from <= to; from++)
			CPU_SET(from, out);
		if (!*at)
			return EXIT_DONE;
		if (*at++ != ',')
			break;
	}
	return text ? bad(option, text, "give a list of CPUs like 0-3,6") : EXIT_DONE;
}

static int parse_runs(struct bench_plan *p, const struct bench_args *b)
{
	const char *end;

	p->runs_least = p->runs_most = b->runs ? b->runs : RUNS;
	if (b->runs > RUNS_ANY)
		return fail(VERB_NAME, EXIT_USAGE, "--runs %u: give 1 to %d", b->runs, RUNS_ANY);
	if (!b->until)
		return EXIT_DONE;
	if (!number(b->until, &p->confidence, &end) || *end != ',' ||
	    !number(end + 1, &p->width, &end) || *end || p->confidence < 50 ||
	    p->confidence > 99.99 || p->width <= 0 || p->width > 100)
		return bad(
			"-I", b->until,
			"give confidence and width in percent, as 99,5: the mean is within 2.5 % "
			"with 99 % confidence");
	p->runs_most = b->runs ? b->runs : RUNS_MOST;
	p->runs_least = p->runs_most < RUNS_LEAST ? p->runs_most : RUNS_LEAST;
	return EXIT_DONE;
}

static int parse_words(struct bench_plan *p, const struct args *a)
{
	const char *kind = a->dev[0];

	if (!strcmp(kind, "rr"))
		p->o.spec.kind = TEST_RR;
	else if (!strcmp(kind, "stream"))
		p->o.spec.kind = TEST_STREAM;
	else
		return fail(VERB_NAME, EXIT_USAGE,
			    "%.40s: no such test; use rr (request and response) or stream", kind);
	p->lab = a->bench.lab;
	if (p->lab && a->nwords)
		return fail(VERB_NAME, EXIT_USAGE,
			    "--lab makes its own two hosts; leave %.40s out, or --lab",
			    a->words[0]);
	if (!p->lab && a->nwords != 2)
		return fail(VERB_NAME, EXIT_USAGE,
			    "%s: name the device and the peer's address, as `xdpath bench %s eth1 "
			    "10.0.0.2`, or give --lab",
			    kind, kind);
	if (!p->lab) {
		p->o.dev = a->words[0];
		p->o.peer = a->words[1];
	}
	return EXIT_DONE;
}

int bench_parse(struct bench_plan *p, const struct args *a)
{
	const struct bench_args *b = &a->bench;
	struct test_spec *s = &p->o.spec;
	int code;

	memset(p, 0, sizeof(*p));
	if ((code = parse_words(p, a)) || (code = parse_sizes(s, b)) || (code = parse_rate(s, b)) ||
	    (code = parse_engine(s, b)) ||
	    (code = parse_cpus("--peer-cpus", b->peer_cpus, &s->peer_cpus)) ||
	    (code = parse_cpus("--also-cpus", b->also_cpus, &p->also)) || (code = parse_runs(p, b)))
		return code;
	if (b->port > 65534)
		return fail(VERB_NAME, EXIT_USAGE, "--port %u: give 1 to 65534", b->port);
	if ((b->reverse || b->bidir) && s->kind == TEST_RR)
		return fail(VERB_NAME, EXIT_USAGE,
			    "--%s: rr goes both ways by itself; leave it out, or measure stream",
			    b->reverse ? "reverse" : "bidir");
	s->flows = b->flows ? b->flows : 1;
	s->reverse = b->reverse;
	s->bidir = b->bidir;
	s->mtu = b->mtu;
	s->workers = a->workers;
	s->peer_workers = b->peer_workers ? b->peer_workers : a->workers;
	if (a->have_cpus)
		s->cpus = a->cpus;
	s->seconds = b->time > 0 ? b->time : TIME;
	s->warmup = b->warmup > 0 ? b->warmup : s->seconds < 2 * WARMUP ? s->seconds / 4 : WARMUP;
	p->o.port = (uint16_t)b->port;
	p->o.knobs = a->knobs;
	p->o.mode = a->mode;
	p->o.worst = a->worst;
	return EXIT_DONE;
}
