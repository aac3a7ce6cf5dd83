/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * An experiment's plan, its settings and their order, its verdicts, where it ends, and what it
 * says: on a simulated machine. How often it errs is in tune_power_test.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tune_in.h"
#include "tune_model.h"

/* ---- plan -------------------------------------------------------------------------------------
 */

static void refused(const char *text, int err, const char *why)
{
	struct tune_plan p = {0};
	struct xdpath_diag d = {0};

	assert_int_equal(tune_plan_knob(&p, text, &d), err);
	if (!strstr(d.text, why))
		fail_msg("%s: \"%s\" has no \"%s\"", text, d.text, why);
	assert_null(strchr(d.text, '\n'));
	assert_int_equal(p.nknobs, 0);
}

static void test_knobs(void **state)
{
	struct tune_plan p = {0};
	struct xdpath_diag d = {0};

	(void)state;
	assert_int_equal(tune_plan_knob(&p, "rx.batch=64,16,256", &d), 0);
	assert_int_equal(tune_plan_knob(&p, "poll.mode=block,spin", &d), 0);
	assert_int_equal(p.nknobs, 2);
	assert_int_equal(p.knob[0].nvalues, 3);
	assert_string_equal(p.knob[0].key, "rx.batch");
	assert_string_equal(p.knob[0].value[2], "256");
	assert_string_equal(p.knob[1].value[1], "spin");
	assert_int_equal(tune_plan_knob(&p, "rx.batch=1,2", &d), -EINVAL);
	assert_non_null(strstr(d.text, "given twice"));
	assert_int_equal(p.nknobs, 2);
	refused("rx.batch", -EINVAL, "names no knob and its values; write --knob KEY=V1,V2");
	refused("=1,2", -EINVAL, "names no knob");
	refused("rx.batch=64", -EINVAL, "one value is no experiment");
	refused("rx.batch=64,", -EINVAL, "\"\" is no value");
	refused("rx.batch=64,,1", -EINVAL, "\"\" is no value");
	refused("rx.batch=", -EINVAL, "\"\" is no value");
	refused("rx.batch=64,100000", -ERANGE, "out of range");
	refused("rx.batch=64,many", -EINVAL, "not a number");
	refused("rx.bach=64,1", -ENOENT, "did you mean rx.batch?");
	refused("rx.batch=1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17", -E2BIG, "more than 16");
	refused("rx.batch=64,1234567890123456789012345", -EINVAL, "is no value");
}

static void test_goals(void **state)
{
	struct tune_plan p = {0};
	struct xdpath_diag d = {0};

	(void)state;
	assert_int_equal(tune_plan_goals(&p, "p99,throughput,cpu,p50,demand", &d), 0);
	assert_int_equal(p.ngoals, 5);
	assert_int_equal(p.goal[0], TUNE_P99);
	assert_int_equal(p.goal[4], TUNE_DEMAND);
	assert_int_equal(tune_plan_goals(&p, "demand", &d), 0);
	assert_int_equal(p.ngoals, 1);
	assert_int_equal(tune_plan_goals(&p, "p9", &d), -EINVAL);
	assert_non_null(strstr(d.text, "--goal p9: is no goal; give some of throughput, p50, "));
	assert_int_equal(tune_plan_goals(&p, "p99,p99", &d), -EINVAL);
	assert_int_equal(tune_plan_goals(&p, "", &d), -EINVAL);
}

static void test_plans_that_cannot_work(void **state)
{
	struct tune_plan p = {.seed = 1};
	struct xdpath_diag d = {0};

	(void)state;
	assert_int_equal(tune_plan_check(&p, &d), -EINVAL);
	assert_non_null(strstr(d.text, "none given"));
	/* two comparisons at 5 %: 2^-6 is more than 0.05 / 2, 2^-7 is less */
	p = plan_of("rx.batch=64,1", NULL);
	p.blocks = 6;
	assert_int_equal(tune_plan_check(&p, &d), -ERANGE);
	assert_string_equal(d.text, "--runs 6: too few to show a difference in any of 2 "
				    "comparisons; give 7 or more");
	p.blocks = 7;
	assert_int_equal(tune_plan_check(&p, &d), 0);
	assert_int_equal(p.looks, 1);
	p.blocks = 1001;
	assert_int_equal(tune_plan_check(&p, &d), -ERANGE);
	p.blocks = 10;
	p.looks = 11;
	assert_int_equal(tune_plan_check(&p, &d), -ERANGE);
	p.looks = 0;
	p.alpha = 0.7;
	assert_int_equal(tune_plan_check(&p, &d), -ERANGE);
	p = plan_of("rx.batch=1,2,3,4,5,6,7,8,9", NULL);
	assert_int_equal(tune_plan_knob(&p, "tx.stall_us=1,2,3,4,5,6,7,8", &d), 0);
	assert_int_equal(tune_plan_check(&p, &d), 0);
	p.factorial = true; /* 72 */
	assert_int_equal(tune_plan_check(&p, &d), -E2BIG);
	assert_non_null(strstr(d.text, "more than 64 settings"));
}

static void test_hash(void **state)
{
	struct tune_plan p = plan_of("rx.batch=64,1", NULL), q;
	char a[17], b[17];

	(void)state;
	checked(&p);
	assert_int_equal(tune_plan_hash(&p, a), 0);
	assert_int_equal(strlen(a), 16);
	q = p;
	q.json = true; /* how it is shown is no part of it */
	q.winners = "elsewhere";
	assert_int_equal(tune_plan_hash(&q, b), 0);
	assert_string_equal(a, b);
	for (int change = 0; change < 7; change++) {
		q = p;
		switch (change) {
		case 0: q.seed++; break;
		case 1: q.blocks++; break;
		case 2: q.factorial = true; break;
		case 3: q.what = "another test"; break;
		case 4: strcpy(q.knob[0].value[1], "2"); break;
		case 5: q.goal[0] = TUNE_CPU; break;
		default: q.alpha = 0.01; break;
		}
		assert_int_equal(tune_plan_hash(&q, b), 0);
		assert_string_not_equal(a, b);
	}
}

/* ---- settings, comparisons, order
 * ----------------------------------------------------------------- */

static struct tune_plan two_knobs(bool factorial)
{
	struct tune_plan p = plan_of("rx.batch=64,16,64", "throughput");
	struct xdpath_diag d;

	assert_int_equal(tune_plan_knob(&p, "poll.mode=block,spin", &d), 0);
	p.factorial = factorial;
	checked(&p);
	return p;
}

static void expect_comparisons(const struct tune_result *r, const char *const *want, size_t n)
{
	char text[400];

	assert_int_equal(r->ncomparisons, n);
	for (size_t i = 0; i < n; i++) {
		snprintf(text, sizeof(text), "%s | %s", r->setting[r->comparison[i].setting].name,
			 r->setting[r->comparison[i].against].name);
		assert_string_equal(text, want[i]);
	}
}

static void test_one_at_a_time(void **state)
{
	static const char *const want[] = {"rx.batch=16 | baseline", "rx.batch=64#3 | baseline",
					   "poll.mode=spin | baseline"};
	struct tune_plan p = two_knobs(false);
	struct tune_result r;

	(void)state;
	assert_int_equal(tune_result_init(&r, &p), 0);
	assert_int_equal(r.nsettings, 4);
	expect_comparisons(&r, want, 3);
	assert_string_equal(r.setting[0].key[1], "poll.mode");
	assert_string_equal(r.setting[0].value[1], "block");
	assert_string_equal(r.setting[2].value[0], "64");
	assert_string_equal(r.setting[3].value[0], "64");
	assert_string_equal(r.setting[3].value[1], "spin");
	tune_result_free(&r);
}

static void test_factorial(void **state)
{
	static const char *const want[] = {
		"rx.batch=16 | baseline",
		"rx.batch=64#3 | baseline",
		"poll.mode=spin | baseline",
		"rx.batch=16 poll.mode=spin | baseline",
		"rx.batch=16 poll.mode=spin | poll.mode=spin",
		"rx.batch=16 poll.mode=spin | rx.batch=16",
		"rx.batch=64#3 poll.mode=spin | baseline",
		"rx.batch=64#3 poll.mode=spin | poll.mode=spin",
		"rx.batch=64#3 poll.mode=spin | rx.batch=64#3",
	};
	struct tune_plan p = two_knobs(true);
	struct tune_result r;

	(void)state;
	assert_int_equal(tune_result_init(&r, &p), 0);
	assert_int_equal(r.nsettings, 6);
	expect_comparisons(&r, want, 9);
	tune_result_free(&r);
}

/* Each block has each setting once; in the long run each place sees each setting as often. */
static void test_order(void **state)
{
	uint32_t order[TUNE_SETTINGS], again[TUNE_SETTINGS], at[4][4] = {{0}};
	struct tune_plan p = two_knobs(false);
	struct tune_result r;

	(void)state;
	assert_int_equal(tune_result_init(&r, &p), 0);
	for (uint32_t b = 0; b < 4000; b++) {
		uint32_t seen = 0;

		assert_int_equal(tune_order(&r, b, order), 4);
		for (uint32_t i = 0; i < 4; i++) {
			seen |= 1U << order[i];
			at[i][order[i]]++;
		}
		assert_int_equal(seen, 15);
	}
	for (uint32_t i = 0; i < 4; i++)
		for (uint32_t s = 0; s < 4; s++)
			assert_in_range(at[i][s], 1000 - 110, 1000 + 110); /* 4 sigma */
	/* dropping a setting leaves the others where they were */
	tune_order(&r, 7, order);
	r.dropped[order[1]] = true;
	assert_int_equal(tune_order(&r, 7, again), 3);
	assert_int_equal(again[0], order[0]);
	assert_int_equal(again[1], order[2]);
	assert_int_equal(again[2], order[3]);
	tune_result_free(&r);
}

/* ---- verdicts
 * ------------------------------------------------------------------------------------- */

static double half_more(const struct tune_setting *s, enum tune_goal g)
{
	(void)g;
	return strcmp(s->value[0], "16") == 0 ? 1.5 : 1;
}

static struct tune_result measured(const struct tune_plan *p, struct model *m)
{
	struct tune_calls calls = model_calls(m);
	struct xdpath_diag d = {0};
	struct tune_result r;

	if (tune_measure(p, &calls, &r, &d))
		fail_msg("%s", d.text);
	return r;
}

/* Half as much again of each: good for throughput, bad for times and costs. */
static void test_directions(void **state)
{
	struct tune_plan p = plan_of("rx.batch=64,16", "throughput,p50,p99,cpu,demand");
	struct model m = {.noise = 0.05, .worth = half_more};
	struct tune_result r;

	(void)state;
	checked(&p);
	r = measured(&p, &m);
	assert_int_equal(r.ncomparisons, 5);
	for (uint32_t i = 0; i < 5; i++) {
		const struct tune_comparison *c = &r.comparison[i];

		assert_int_equal(c->verdict, i ? TUNE_WORSE : TUNE_BETTER);
		assert_true(c->lo > 0 && c->lo < 50 && c->hi > 50);
		assert_true(fabs(c->effect - 50) < 10);
		assert_true(c->holm <= c->level && c->p <= c->holm);
	}
	/* 12 of 48 blocks cannot pay for it: its share is 1.5e-5; 24 can */
	assert_int_equal(r.blocks, 24);
	assert_int_equal(r.looks, 2);
	assert_int_equal(m.runs, 48);
	tune_result_free(&r);
}

static double hundredth(const struct tune_setting *s, enum tune_goal g)
{
	(void)g;
	return strcmp(s->value[0], "16") == 0 ? 1.004 : 1;
}

/* Where a difference is known not to matter no more runs are spent on it, on others they are. */
static void test_settings_that_are_done(void **state)
{
	struct tune_plan p = plan_of("rx.batch=64,16,32", "throughput");
	struct model m = {.noise = 0.03, .worth = hundredth, .random = 4};
	struct tune_result r;

	(void)state;
	p.margin = 4;
	checked(&p);
	r = measured(&p, &m);
	assert_int_equal(r.comparison[0].verdict, TUNE_SAME);
	assert_true(r.comparison[0].lo > -4 && r.comparison[0].hi < 4);
	assert_true(r.comparison[0].lo < 0.4 && r.comparison[0].hi > 0.4);
	assert_true(r.blocks < 48);
	tune_result_free(&r);
	p.margin = 0.01; /* not to be known in 48 blocks */
	m = (struct model){.noise = 0.03, .worth = half_more, .random = 4};
	r = measured(&p, &m);
	assert_int_equal(r.blocks, 48);
	assert_int_equal(r.comparison[0].verdict, TUNE_BETTER);
	assert_int_equal(r.comparison[0].pairs, 24);
	assert_int_equal(r.comparison[1].verdict, TUNE_SAME);
	assert_int_equal(r.comparison[1].pairs, 48);
	assert_int_equal(m.runs, 3 * 24 + 2 * 24);
	tune_result_free(&r);
}

static int half_measured(void *ctx, const struct tune_setting *s, struct tune_sample *out)
{
	struct model *m = ctx;
	int err = model_measure(ctx, s, out);

	out->value[TUNE_CPU] = NAN;
	if (m->runs > 10)
		out->value[TUNE_P50] = 0;
	return err;
}

static void test_goals_not_measured(void **state)
{
	struct tune_plan p = plan_of("rx.batch=64,16", "throughput,p50,cpu");
	struct model m = {.noise = 0.05};
	struct tune_calls calls = {.measure = half_measured, .ctx = &m};
	struct tune_result r;

	(void)state;
	checked(&p);
	assert_int_equal(tune_measure(&p, &calls, &r, NULL), 0);
	assert_int_equal(r.comparison[0].verdict, TUNE_SAME);
	assert_int_equal(r.comparison[1].verdict, TUNE_TOO_FEW);
	assert_int_equal(r.comparison[1].pairs, 5);
	assert_int_equal(r.comparison[2].verdict, TUNE_UNMEASURED);
	assert_int_equal(r.comparison[2].pairs, 0);
	tune_result_free(&r);
}

/* A verdict and its interval never contradict each other, however many are compared. */
static void test_intervals_agree(void **state)
{
	struct tune_plan p = plan_of("rx.batch=64,16,1,2,3,4,5,6", "throughput,p99");
	uint32_t found = 0;

	(void)state;
	checked(&p);
	for (uint32_t e = 0; e < 30; e++) {
		struct model m = {.noise = e % 3 ? 0.3 : 1, .random = e, .worth = half_more};
		struct tune_result r = measured(&p, &m);

		for (uint32_t i = 0; i < r.ncomparisons; i++) {
			const struct tune_comparison *c = &r.comparison[i];
			bool sure = c->verdict == TUNE_BETTER || c->verdict == TUNE_WORSE;

			assert_int_equal(sure, c->lo > 0 || c->hi < 0);
			assert_true(c->lo <= c->effect && c->effect <= c->hi);
			found += sure;
		}
		tune_result_free(&r);
	}
	assert_in_range(found, 20, 80); /* some are found, some are missed */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_knobs),
		cmocka_unit_test(test_goals),
		cmocka_unit_test(test_plans_that_cannot_work),
		cmocka_unit_test(test_hash),
		cmocka_unit_test(test_one_at_a_time),
		cmocka_unit_test(test_factorial),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_directions),
		cmocka_unit_test(test_settings_that_are_done),
		cmocka_unit_test(test_goals_not_measured),
		cmocka_unit_test(test_intervals_agree),
	};

	return cmocka_run_group_tests_name("tune", tests, NULL, NULL);
}
