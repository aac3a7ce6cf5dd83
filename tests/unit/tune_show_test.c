/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/* What an experiment prints, as text and JSON, at its end and when it was cut short. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "tune_model.h"

static double half_more(const struct tune_setting *s, enum tune_goal g)
{
	(void)g;
	return strcmp(s->value[0], "16") == 0 ? 1.5 : 1;
}

static void test_failed_run(void **state)
{
	struct tune_plan p = plan_of("rx.batch=64,16", "throughput");
	struct model m = {.noise = 0.05, .fail_at = 30, .error = -EIO};
	struct tune_calls calls = model_calls(&m);
	struct xdpath_diag d = {.err = 99};
	struct tune_result r;

	(void)state;
	checked(&p);
	assert_int_equal(tune_measure(&p, &calls, &r, &d), -EIO);
	assert_non_null(strstr(d.text, ": could not be measured: Input/output error; "));
	assert_int_equal(d.err, EIO);
	assert_int_equal(r.blocks, 14); /* whole ones */
	assert_int_equal(r.comparison[0].pairs, 14);
	assert_int_equal(r.comparison[0].verdict, TUNE_OPEN);
	assert_true(isfinite(r.comparison[0].lo));
	tune_result_free(&r);
	m = (struct model){.fail_at = 1, .error = -EINTR};
	assert_int_equal(tune_measure(&p, &calls, &r, NULL), -EINTR);
	assert_int_equal(r.blocks, 0);
	tune_result_free(&r);
}

static char *printed(const struct tune_plan *p, struct model *m, int want)
{
	struct tune_calls calls = model_calls(m);
	struct xdpath_diag d = {0};
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);

	assert_non_null(f);
	assert_int_equal(tune_run(p, &calls, f, &d), want);
	fclose(f);
	return text;
}

static void has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("no \"%s\" in:\n%s", part, text);
}

static void test_text(void **state)
{
	struct tune_plan p = plan_of("rx.batch=64,16,32", NULL);
	struct model m = {.noise = 0.05, .worth = half_more};
	char *text;

	(void)state;
	p.what = "bench stream d0 10.77.0.2";
	p.unit = "bit/s";
	text = printed(&p, &m, 0);
	has(text, "tune: 3 settings, 48 of at most 48 blocks, each setting once in each\n");
	has(text, "measured    bench stream d0 10.77.0.2\n");
	has(text, "baseline    rx.batch=64\n");
	has(text, "throughput, bit/s  median");
	has(text, "demand, us/KB");
	has(text, "  better\n");
	has(text, "  worse\n");
	has(text, "no difference (within ");
	has(text, "\n  won         rx.batch=16\n");
	free(text);
	m = (struct model){.noise = 0.05, .fail_at = 30, .error = -EINTR};
	text = printed(&p, &m, -EINTR);
	has(text, "9 of at most 48 blocks");
	has(text, "not sure yet");
	has(text, "won         rx.batch: nothing found\n");
	free(text);
	m = (struct model){.fail_at = 3, .error = -EINTR};
	text = printed(&p, &m, -EINTR); /* not one block: nothing to say */
	assert_string_equal(text, "");
	free(text);
}

/* More rows than a table holds. */
static void test_long_text(void **state)
{
	struct tune_plan p = plan_of("rx.batch=1,2,3,4,5,6,7,8", "throughput");
	struct model m = {.noise = 0.05};
	struct xdpath_diag d;
	const char *at;
	uint32_t rows = 0, heads = 0;
	char *text;

	(void)state;
	assert_int_equal(tune_plan_knob(&p, "tx.stall_us=1,2,3,4,5", &d), 0);
	p.factorial = true;
	p.blocks = 17;
	text = printed(&p, &m, 0);
	for (at = text; (at = strstr(at, "no difference (")); at++)
		rows++;
	for (at = text; (at = strstr(at, "  median  ")); at++)
		heads++;
	assert_int_equal(rows, 39 + 2 * 28);
	assert_true(heads >= 3);
	free(text);
}

static void test_json(void **state)
{
	struct tune_plan p = plan_of("rx.batch=64,16,64", "throughput,cpu");
	struct model m = {.noise = 0.05, .worth = half_more};
	json_t *j, *c;
	char *text;

	(void)state;
	p.json = true;
	text = printed(&p, &m, 0);
	j = json_loads(text, 0, NULL);
	assert_non_null(j);
	assert_string_equal(json_string_value(json_object_get(j, "verb")), "tune");
	assert_int_equal(json_array_size(json_object_get(j, "settings")), 3);
	assert_int_equal(json_array_size(json_object_get(j, "comparisons")), 4);
	c = json_array_get(json_object_get(j, "comparisons"), 0);
	assert_string_equal(json_string_value(json_object_get(c, "setting")), "rx.batch=16");
	assert_string_equal(json_string_value(json_object_get(c, "verdict")), "better");
	assert_true(json_real_value(json_object_get(c, "low_percent")) > 0);
	c = json_array_get(json_object_get(j, "comparisons"), 1);
	assert_string_equal(json_string_value(json_object_get(c, "setting")), "rx.batch=64#3");
	assert_string_equal(json_string_value(json_object_get(c, "verdict")), "no difference");
	c = json_object_get(json_object_get(j, "winners"), "rx.batch");
	assert_string_equal(json_string_value(c), "16");
	c = json_object_get(json_object_get(j, "plan"), "knobs");
	assert_int_equal(json_array_size(c), 1);
	json_decref(j);
	free(text);
}

/* One file, nothing from outside, what the user gave is escaped; one that cannot be written is
 * told, and the text has been printed all the same. */
static void test_html(void **state)
{
	struct tune_plan p = plan_of("rx.batch=64,16", "throughput,p50");
	struct model m = {.noise = 0.05, .worth = half_more};
	char path[] = "/tmp/tune_html.XXXXXX", page[65536];
	int fd = mkstemp(path);
	ssize_t n;

	(void)state;
	assert_true(fd >= 0);
	p.html = path;
	p.what = "<script> & co";
	free(printed(&p, &m, 0));
	n = read(fd, page, sizeof(page) - 1);
	close(fd);
	unlink(path);
	assert_in_range(n, 2000, sizeof(page) - 2);
	page[n] = '\0';
	has(page, "&lt;script&gt; &amp; co");
	has(page, "rx.batch=16");
	has(page, "p50");
	has(page, "</html>");
	assert_null(strstr(page, "<script"));
	assert_null(strstr(page, "src="));
	p.html = "/nonexistent/page.html";
	m = (struct model){.noise = 0.05, .worth = half_more};
	{
		char *text = printed(&p, &m, -ENOENT);

		has(text, "tune: 2 settings");
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_failed_run), cmocka_unit_test(test_text),
		cmocka_unit_test(test_long_text),  cmocka_unit_test(test_json),
		cmocka_unit_test(test_html),
	};

	return cmocka_run_group_tests_name("tune_show", tests, NULL, NULL);
}
