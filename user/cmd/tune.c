/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * tune: an experiment over knobs, each run a short bench with one setting. The experiment itself is
 * user/bench/tune.c's; here are its runs, and the presets, which are benches one after the other.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../bench/lab_hosts.h"
#include "../bench/report_in.h"
#include "../bench/tune.h"
#include "bench.h"

#define VERB_NAME "tune"
#define WORDS_MAX 64

_Static_assert(TUNE_ARGS_KNOBS == TUNE_KNOBS, "as many as can be given can be compared");

struct tuning {
	const struct args *a;	 /* tune's own */
	struct bench_plan bench; /* the test */
	json_t *here, *there;	 /* the records of both ends, of the first run */
	struct xdpath_diag diag;
	int stop_fd;
};

/* ---- a run ---------------------------------------------------------------------------------- */

static void take_figures(const struct tuning *t, const struct test_spec *spec,
			 const struct test_result *r, struct tune_sample *out)
{
	const struct bench_report b = {
		.spec = spec,
		.run = r,
		.nruns = 1,
		.local = t->here,
		.remote = t->there,
	};
	double far = run_machine_cpus(&b, r, REMOTE);

	out->value[TUNE_THROUGHPUT] = spec->kind == TEST_RR ? r->msgs_per_s : r->bits_per_s;
	out->value[TUNE_P50] = spec->kind == TEST_RR ? run_latency_us(&b, r, 50) : NAN;
	out->value[TUNE_P99] = spec->kind == TEST_RR ? run_latency_us(&b, r, 99) : NAN;
	out->value[TUNE_CPU] = run_machine_cpus(&b, r, LOCAL) + (isnan(far) ? 0 : far);
	out->value[TUNE_DEMAND] = run_demand_all(&b, r, 0);
}

static int measure(void *ctx, const struct tune_setting *s, struct tune_sample *out)
{
	struct tuning *t = ctx;
	struct session_opts o = t->bench.o;
	struct test_result *r = malloc(sizeof(*r));
	struct session *session = NULL;
	int err = r ? 0 : -ENOMEM;

	for (uint32_t i = 0; !err && i < s->n; i++)
		err = xdpath_knob_set(&o.knobs, s->key[i], s->value[i], &t->diag);
	if (!err)
		err = session_open(&session, &o, &t->diag);
	if (!err && !t->here) {
		t->here = record_host(o.dev, &o.knobs);
		t->there = json_incref(session_peer_record(session));
	}
	if (!err)
		err = session_run(session, r, t->stop_fd, &t->diag);
	if (!err)
		take_figures(t, &o.spec, r, out);
	session_close(session);
	free(r);
	return err;
}

static void progress(void *ctx, uint32_t block, const struct tune_setting *s,
		     const struct tune_sample *got)
{
	const struct tuning *t = ctx;

	if (t->a->verbose || isatty(STDERR_FILENO))
		fprintf(stderr, "run %u of each: %s: %.5g/s\n", block + 1, s->name,
			got->value[TUNE_THROUGHPUT]);
}

/* ---- the plan ------------------------------------------------------------------------------- */

/* What follows `--`, as a bench of its own. */
static int parse_bench(struct tuning *t, struct args *b)
{
	const struct args *a = t->a;
	char *argv[WORDS_MAX + 2];
	int argc = 0, code;

	if (!a->ndev || strcmp(a->dev[0], "bench") != 0 || a->nwords >= WORDS_MAX)
		return fail(VERB_NAME, EXIT_USAGE,
			    "%s: the test to run stands behind --, as `xdpath tune --knob "
			    "rx.batch=64,256 --lab -- bench rr -n 20`",
			    a->ndev ? a->dev[0] : "no test named");
	argv[argc++] = (char *)a->dev[0];
	for (int i = 0; i < a->nwords; i++)
		argv[argc++] = a->words[i];
	argv[argc] = NULL;
	code = cli_parse(argc, argv, b);
	if (code)
		return code;
	if (b->bench.runs || b->bench.until || b->bench.html || b->bench.also_cpus)
		return fail(VERB_NAME, EXIT_USAGE,
			    "bench: --runs, -I, --html and --also-cpus are not for a run of tune; "
			    "give --runs before --");
	b->bench.lab |= a->bench.lab;
	if (!b->bench.time)
		b->bench.time = a->bench.time ? a->bench.time : 0.5;
	return bench_parse(&t->bench, b);
}

static int make_plan(struct tuning *t, struct tune_plan *p, const char *what)
{
	const struct tune_args *o = &t->a->tune;
	int err = 0;

	if (!o->nknobs)
		return fail(VERB_NAME, EXIT_USAGE,
			    "nothing to compare; give --knob KEY=V1,V2 (`xdpath help knobs`) or "
			    "--preset seeds-rr");
	for (uint32_t i = 0; !err && i < o->nknobs; i++)
		err = tune_plan_knob(p, o->knob[i], &t->diag);
	if (!err && o->goal)
		err = tune_plan_goals(p, o->goal, &t->diag);
	if (err)
		return fail(VERB_NAME, EXIT_USAGE, "%s", t->diag.text);
	p->what = what;
	p->unit = t->bench.o.spec.kind == TEST_RR ? "transactions/s" : "bit/s";
	p->factorial = o->factorial;
	p->blocks = t->a->bench.runs;
	p->resume = o->resume;
	p->winners = o->winners;
	p->html = t->a->bench.html;
	p->json = t->a->json;
	return 0;
}

/*
 * The test as it was asked for, whole: runs that were kept may only be gone on with by the same
 * one, on the same device, by the same engine. The caller frees it.
 */
static char *command_line(const struct args *a, const struct args *b)
{
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return NULL;
	fprintf(f, "%s", a->dev[0]);
	for (int i = 0; i < a->nwords; i++)
		fprintf(f, " %s", a->words[i]);
	fprintf(f, "%s, %g s a run", a->bench.lab ? " --lab" : "", b->bench.time);
	if (fclose(f) == 0)
		return text;
	free(text);
	return NULL;
}

static int open_lab(struct tuning *t, const struct args *b, struct lab_hosts **lab)
{
	int err = 0, code = bench_open_lab(VERB_NAME, b, &t->bench, lab);

	if (!code)
		t->stop_fd = err = bench_stop_fd(0);
	if (err < 0)
		return fail(VERB_NAME, EXIT_FAILED, "no descriptor for signals: %s; free some",
			    strerror(-err));
	return code;
}

static int experiment(const struct args *a)
{
	static struct args b; /* large */
	struct tuning t = {.a = a, .stop_fd = -1};
	struct tune_calls calls = {.measure = measure, .progress = progress, .ctx = &t};
	struct lab_hosts *lab = NULL;
	struct tune_plan plan = {0};
	int code = parse_bench(&t, &b), err = 0;
	char *what;

	if (code)
		return code < 0 ? EXIT_DONE : code;
	what = command_line(a, &b);
	if (!what)
		return fail(VERB_NAME, EXIT_FAILED, "no memory for the plan; free some");
	code = make_plan(&t, &plan, what);
	if (!code)
		code = open_lab(&t, &b, &lab);
	if (!code)
		err = tune_run(&plan, &calls, stdout, &t.diag);
	if (err && err != -EINTR)
		code = fail_diag(VERB_NAME, &t.diag, err);
	if (t.stop_fd >= 0)
		close(t.stop_fd);
	json_decref(t.here);
	json_decref(t.there);
	lab_hosts_close(lab);
	free(what);
	return code;
}

/* ---- presets -------------------------------------------------------------------------------- */

/* The seeds' tables, a bench each; DEV PEER, or --lab, and --runs and --time are added. */
struct preset {
	const char *name, *test[8];
};

static const struct preset presets[] = {
	{"seeds-rr",
	 {"rr -n 200 -r 1400,1 --engine udp", "rr -n 200 -r 1400,1 --engine packet",
	  "rr -n 200 -r 1400,1 --engine xsk", "rr -n 200 -r 14000,14000 --engine udp",
	  "rr -n 200 -r 14000,14000 --engine packet", "rr -n 200 -r 14000,14000 --engine xsk"}},
	{"seeds-stream",
	 {"stream -m 1400 --cpus 0 --also-cpus 1 --peer-cpus 1 --engine udp",
	  "stream -m 1400 --cpus 0 --also-cpus 1 --peer-cpus 1 --engine packet",
	  "stream -m 1400 --cpus 0 --also-cpus 1 --peer-cpus 1 --engine xsk"}},
};

static int run_preset_test(const struct args *a, const char *test)
{
	char *argv[WORDS_MAX] = {"bench"}, *copy = strdup(test), *save = NULL, *word;
	static struct args b;
	int argc = 1, code;

	if (!copy)
		return fail(VERB_NAME, EXIT_FAILED, "no memory for a test; free some");
	for (word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save))
		argv[argc++] = word;
	for (int i = 0; i < a->ndev; i++)
		argv[argc++] = (char *)a->dev[i];
	for (int i = 0; i < a->nwords && argc < WORDS_MAX - 1; i++)
		argv[argc++] = a->words[i];
	memset(&b, 0, sizeof(b));
	code = cli_parse(argc, argv, &b);
	if (!code) {
		b.bench.lab |= a->bench.lab;
		b.bench.runs = a->bench.runs;
		b.bench.time = a->bench.time;
		b.json = a->json;
		b.verbose = a->verbose;
		code = cmd_bench(&b);
	}
	free(copy);
	return code < 0 ? EXIT_DONE : code; /* < 0: help was asked for, and given */
}

static int run_preset(const struct args *a)
{
	const struct preset *p = NULL;
	int code = EXIT_DONE;

	for (size_t i = 0; i < sizeof(presets) / sizeof(presets[0]); i++)
		if (!strcmp(presets[i].name, a->tune.preset))
			p = &presets[i];
	if (!p || a->tune.nknobs)
		return fail(VERB_NAME, EXIT_USAGE,
			    p ? "--preset %.40s: has no knobs; leave --knob out, or name a test "
				"behind --"
			      : "--preset %.40s: no such preset; give seeds-rr or seeds-stream",
			    a->tune.preset);
	for (size_t i = 0; !code && i < sizeof(p->test) / sizeof(p->test[0]) && p->test[i]; i++) {
		if (i)
			putchar('\n');
		code = run_preset_test(a, p->test[i]);
	}
	return code;
}

int cmd_tune(const struct args *a)
{
	return a->tune.preset ? run_preset(a) : experiment(a);
}
