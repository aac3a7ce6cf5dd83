/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * What an experiment promises, on recorded runs of a noisy machine and on a simulated one of two
 * speeds, with the default number of runs: nothing is taken for something at the rate it says, and
 * a loss of 10 % is found.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tune_model.h"

#define RECORDED 1000U
#define RUN_OF	 40U /* recorded runs taken in a row, with the slow and fast phases among them */

struct record {
	double throughput[RECORDED], demand[RECORDED];
	uint32_t n;
};

static struct record record;

/* Beside this file, from where the tests are run. */
static int read_record(void **state)
{
	FILE *f = fopen("tests/unit/data/tune_samples.txt", "re");
	char line[256];

	(void)state;
	if (!f)
		fail_msg("tests/unit/data/tune_samples.txt: not here; run the tests at the top");
	while (fgets(line, sizeof(line), f) && record.n < RECORDED) {
		if (line[0] == '#')
			continue;
		assert_int_equal(sscanf(line, "%*f %lf %lf", &record.throughput[record.n],
					&record.demand[record.n]),
				 2);
		record.n++;
	}
	fclose(f);
	return record.n > 300 ? 0 : -1;
}

/* Plays the record in pieces of RUN_OF, each from a place of its own. */
struct player {
	uint64_t random;
	uint32_t at, left;
	double more; /* demand of every setting but the baseline: times this */
};

static int play(void *ctx, const struct tune_setting *s, struct tune_sample *out)
{
	struct player *p = ctx;

	if (!p->left) {
		p->at = stats_below(&p->random, record.n);
		p->left = RUN_OF;
	}
	for (int g = 0; g < TUNE_GOALS; g++)
		out->value[g] = NAN;
	out->value[TUNE_THROUGHPUT] = record.throughput[p->at];
	out->value[TUNE_DEMAND] = record.demand[p->at] * (s->pick[0] ? p->more : 1);
	p->at = (p->at + 1) % record.n;
	p->left--;
	return 0;
}

/* Experiments in which anything was found, or would be without the correction for many; verdicts
 * as wanted; blocks of all. */
struct outcome {
	uint32_t any, uncorrected, wanted, blocks;
};

static void count(struct outcome *o, const struct tune_result *r, enum tune_goal goal,
		  enum tune_verdict wanted)
{
	bool any = false, uncorrected = false;

	for (uint32_t i = 0; i < r->ncomparisons; i++) {
		const struct tune_comparison *c = &r->comparison[i];

		any |= c->verdict == TUNE_BETTER || c->verdict == TUNE_WORSE;
		uncorrected |= c->p <= r->plan->alpha;
		o->wanted += c->goal == goal && c->verdict == wanted;
	}
	o->any += any;
	o->uncorrected += uncorrected;
	o->blocks += r->blocks;
}

static struct outcome played(const char *knob, uint32_t experiments, double more)
{
	struct tune_plan p = plan_of(knob, "throughput,demand");
	struct outcome o = {0};

	checked(&p);
	for (uint32_t e = 0; e < experiments; e++) {
		struct player player = {.random = e, .more = more};
		struct tune_calls calls = {.measure = play, .ctx = &player};
		struct tune_result r;

		p.seed = e + 1000;
		assert_int_equal(tune_measure(&p, &calls, &r, NULL), 0);
		count(&o, &r, TUNE_DEMAND, TUNE_WORSE);
		tune_result_free(&r);
	}
	return o;
}

static struct outcome simulated(const struct tune_plan *plan, uint32_t experiments, double noise,
				double (*worth)(const struct tune_setting *, enum tune_goal))
{
	struct tune_plan p = *plan;
	struct outcome o = {0};

	checked(&p);
	for (uint32_t e = 0; e < experiments; e++) {
		struct model m = {.random = e, .noise = noise, .worth = worth};
		struct tune_calls calls = model_calls(&m);
		struct tune_result r;

		p.seed = e + 1000;
		assert_int_equal(tune_measure(&p, &calls, &r, NULL), 0);
		count(&o, &r, p.goal[0], TUNE_WORSE);
		tune_result_free(&r);
	}
	return o;
}

/* "rx.batch=64,64": 1000 experiments of A against A. */
static void test_null_on_record(void **state)
{
	struct outcome o = played("rx.batch=64,64", 1000, 1);

	(void)state;
	print_message("A against A, recorded: %u of 1000 found something\n", o.any);
	assert_in_range(o.any, 1, 70);
}

/* 10 % more CPU for a packet, in what is in other ways the same. */
static void test_power_on_record(void **state)
{
	struct outcome o = played("rx.batch=64,128", 300, 1.1);

	(void)state;
	print_message("10 %% more cycles, recorded: found in %u of 300, after %.1f blocks\n",
		      o.wanted, o.blocks / 300.0);
	assert_in_range(o.wanted, 270, 300);
}

static double tenth_lost(const struct tune_setting *s, enum tune_goal g)
{
	if (!s->pick[0])
		return 1;
	return g == TUNE_THROUGHPUT ? 1 / 1.1 : 1.1;
}

/* Two speeds and 10 % of noise in each: runs differ by 40 % and more. */
static void test_two_speeds(void **state)
{
	struct tune_plan p = plan_of("rx.batch=64,64", "throughput");
	struct outcome null = simulated(&p, 300, 0.1, NULL);
	struct outcome loss = simulated(&p, 100, 0.1, tenth_lost);

	(void)state;
	print_message("two speeds: %u of 300 nulls, %u of 100 losses found, after %.1f blocks\n",
		      null.any, loss.wanted, loss.blocks / 100.0);
	assert_in_range(null.any, 1, 21);
	assert_in_range(loss.wanted, 90, 100);
}

/* Eight settings, three goals: all of them together stay at 5 %. */
static void test_many_comparisons(void **state)
{
	struct tune_plan p = plan_of("rx.batch=64,64,64,64,64,64,64,64", "throughput,p99,demand");
	struct outcome o = simulated(&p, 60, 0.1, NULL);

	(void)state;
	print_message("21 nulls at once: something found in %u of 60, uncorrected in %u\n", o.any,
		      o.uncorrected);
	/* at most 5 %: 8 or less then, in 99.7 % of such tests */
	assert_in_range(o.any, 0, 8);
	assert_in_range(o.uncorrected, 15, 60);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_null_on_record),
		cmocka_unit_test(test_power_on_record),
		cmocka_unit_test(test_two_speeds),
		cmocka_unit_test(test_many_comparisons),
	};

	return cmocka_run_group_tests_name("tune_power", tests, read_record, NULL);
}
