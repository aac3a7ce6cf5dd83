/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * The three reports from made-up runs: digits, columns, what shares a machine counts once, JSON by
 * its schema, an HTML page that needs nothing from outside and takes no one's word for markup.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>

#include <cmocka.h>

#include "bench_fake.h"
#include "json_schema.h"
#include "../../user/bench/report_in.h"

#define RUNS 5

/* A report of made-up runs; what it holds is freed by drop(). */
struct fake {
	struct test_spec spec;
	struct test_result *run;
	struct bench_report b;
};

static void make(struct fake *f, enum test_kind kind, uint32_t runs, bool shared)
{
	memset(f, 0, sizeof(*f));
	f->spec = (struct test_spec){.kind = kind,
				     .flows = 200,
				     .req = 1400,
				     .rsp = 1,
				     .size = 1400,
				     .seconds = 0.3,
				     .warmup = 1};
	CPU_SET(1, &f->spec.cpus);
	f->run = calloc(RUNS, sizeof(*f->run));
	assert_non_null(f->run);
	for (uint32_t i = 0; i < runs; i++)
		fake_run(&f->run[i], kind, i + 1);
	f->b = (struct bench_report){.spec = &f->spec,
				     .dev = "d0",
				     .peer = "10.0.0.2",
				     .run = f->run,
				     .nruns = runs,
				     .local = fake_record("a"),
				     .remote = fake_record(shared ? "a" : "b")};
	assert_non_null(f->b.local);
}

static void drop(struct fake *f)
{
	json_decref(f->b.local);
	json_decref(f->b.remote);
	free(f->run);
}

static char *text_of(const struct bench_report *b)
{
	char *text = NULL;
	size_t size;
	FILE *m = open_memstream(&text, &size);

	assert_non_null(m);
	bench_report_text(b, m);
	fclose(m);
	return text;
}

static void expect(double mean, double sd, uint32_t n, double step, const char *text)
{
	char buf[64];

	figure_text((struct figure){mean, sd, n}, step, buf, sizeof(buf));
	assert_string_equal(buf, text);
}

static void digits_are_those_that_mean_something(void **state)
{
	(void)state;
	expect(275.3, 2.1, 10, 0, "275 ± 2");
	expect(643.8, 0.4, 10, 0, "643.8 ± 0.4");
	expect(2474.41, 0.3, 10, 0, "2474.4 ± 0.3");
	expect(691874, 1300, 10, 0, "692000 ± 1000");
	expect(99.95, 0.97, 10, 0, "100 ± 1");
	expect(1234, 96, 10, 0, "1200 ± 100");
	expect(0.5224, 0.0031, 3, 0, "0.522 ± 0.003");
	expect(643.8, 0.4, 10, 2.515, "644 ± <3");
	expect(643.8, 20, 10, 2.515, "640 ± 20");
	expect(0.03624751, 1e-9, 9, 0, "0.036248 ± <0.000001");
	expect(100, 0, 5, 0, "100 ± 0");
	expect(0, 0, 5, 0, "0");
	expect(9402.31, 0, 1, 0, "9402");
	expect(643.84, 0, 1, 2.5, "643.8");
	expect(0, 0, 0, 0, "-1");
}

static void lines_have_100_columns(void **state)
{
	struct fake f, g;

	(void)state;
	for (int i = 0; i < 8; i++) {
		char *text, *save = NULL;

		make(&f, i & 1 ? TEST_STREAM : TEST_RR, i & 2 ? RUNS : 1, i & 4);
		make(&g, i & 1 ? TEST_STREAM : TEST_RR, RUNS, i & 4);
		g.b.placement = "on the CPU of the interrupt";
		f.b.next = i & 2 ? &g.b : NULL;
		f.b.confidence = 99;
		text = text_of(&f.b);
		for (char *l = strtok_r(text, "\n", &save); l; l = strtok_r(NULL, "\n", &save)) {
			if (text_width(l) > 100)
				print_message("too long: %s\n", l);
			assert_true(text_width(l) <= 100);
			assert_true(l[strlen(l) - 1] != ' ');
		}
		free(text);
		drop(&f);
		drop(&g);
	}
}

/* The seeds' column, from the same figures. */
static void latency_stands_in_one_column(void **state)
{
	static const double p[] = {50, 90, 95, 99};
	char want[300] = "", one[64], *text;
	struct fake f;

	(void)state;
	make(&f, TEST_RR, RUNS, false);
	for (int i = 0; i < 4; i++) {
		struct figure v = figure_of(&f.b, run_latency_us, p[i]);

		figure_text(v, latency_step(v.mean), one, sizeof(one));
		snprintf(want + strlen(want), sizeof(want) - strlen(want), "%s%s", i ? " / " : "",
			 one);
	}
	text = text_of(&f.b);
	assert_non_null(strstr(text, "latency 50 / 90 / 95 / 99 %, us"));
	assert_non_null(strstr(text, want));
	assert_non_null(strstr(text, "timeouts  15     15"));
	assert_non_null(strstr(text, "rx.batch = 32"));
	free(text);
	drop(&f);
}

static void a_shared_machine_counts_once(void **state)
{
	struct fake apart, shared;
	struct figure one, both;
	char *text;

	(void)state;
	make(&apart, TEST_STREAM, RUNS, false);
	make(&shared, TEST_STREAM, RUNS, true);
	one = figure_of(&shared.b, run_demand_all, 0);
	both = figure_of(&apart.b, run_demand_all, 0);
	assert_true(both.mean > 1.9 * one.mean && both.mean < 2.1 * one.mean);
	assert_int_equal(figure_of(&shared.b, run_machine_cpus, REMOTE).n, 0);
	assert_int_equal(figure_of(&apart.b, run_machine_cpus, REMOTE).n, RUNS);
	one = figure_of(&shared.b, run_packets_per_poll, LOCAL); /* of both interfaces */
	both = figure_of(&apart.b, run_packets_per_poll, LOCAL);
	assert_true(one.mean > 1.9 * both.mean && one.mean < 2.1 * both.mean);
	text = text_of(&shared.b);
	assert_non_null(strstr(text, "both ends share one machine"));
	assert_non_null(strstr(text, "same machine"));
	free(text);
	text = text_of(&apart.b);
	assert_null(strstr(text, "same machine"));
	free(text);
	/* without records the names tell */
	json_decref(shared.b.local);
	shared.b.local = NULL;
	assert_false(same_machine(&shared.b));
	strcpy(shared.run[0].remote.host, shared.run[0].local.host);
	assert_true(same_machine(&shared.b));
	drop(&apart);
	drop(&shared);
}

static void figures_are_worked_out(void **state)
{
	struct test_result *r;
	struct fake f;

	(void)state;
	make(&f, TEST_STREAM, 1, false);
	r = f.run;
	r->seconds = r->local.usage.seconds = r->remote.usage.seconds = 2;
	r->bits_per_s = 8 * 1024 * 1000; /* 2000 KB in all */
	r->msgs_per_s = 500;
	r->local.usage.busy_total = 0.5;
	r->remote.usage.busy_total = 1.5;
	r->local.usage.tsc_hz = r->remote.usage.tsc_hz = 1e9;
	assert_float_equal(run_demand(&f.b, r, LOCAL), 250, 1e-9);
	assert_float_equal(run_demand(&f.b, r, REMOTE), 750, 1e-9);
	assert_float_equal(run_demand_all(&f.b, r, 0), 1000, 1e-9);
	assert_float_equal(run_cycles_per_byte(&f.b, r, 0), 2e9 / 2048000, 1e-9);
	assert_float_equal(run_us_per_message(&f.b, r, 0), 2000, 1e-9);
	assert_float_equal(run_cycles_per_message(&f.b, r, 0), 2e6, 1e-6);
	assert_float_equal(run_utilisation(&f.b, r, LOCAL), 12.5, 1e-9);
	assert_float_equal(run_machine_cpus(&f.b, r, REMOTE), 0.75, 1e-9);
	/* the processor's own counter goes before the TSC, if both ends have it */
	r->local.usage.counter[2].supported = true;
	r->local.usage.counter[2].value = 3000000;
	assert_false(cycles_counted(&f.b));
	r->remote.usage.counter[2] = r->local.usage.counter[2];
	assert_true(cycles_counted(&f.b));
	assert_float_equal(run_cycles_per_message(&f.b, r, 0), 6000, 1e-6);
	r->remote.usage.cpus = 0; /* an end that measured none: the sum is not known */
	assert_true(isnan(run_demand_all(&f.b, r, 0)));
	drop(&f);
}

static json_t *schema(void)
{
	json_error_t e;
	json_t *s = json_load_file("docs/bench.schema.json", 0, &e);

	if (!s)
		print_message("docs/bench.schema.json line %d: %s\n", e.line, e.text);
	assert_non_null(s);
	return s;
}

static bool fits(const json_t *s, const json_t *doc)
{
	struct schema_check c = {.root = s};
	bool ret = schema_fits(&c, s, doc, "$");

	if (!ret)
		print_message("# %s\n", c.error);
	return ret;
}

static void json_fits_the_schema(void **state)
{
	json_t *s = schema(), *doc;
	struct fake f, g;

	(void)state;
	for (int i = 0; i < 6; i++) {
		make(&f, i & 1 ? TEST_STREAM : TEST_RR, i < 4 ? RUNS : 0, i & 2);
		make(&g, i & 1 ? TEST_STREAM : TEST_RR, RUNS, i & 2);
		f.b.next = i & 2 ? &g.b : NULL;
		f.b.confidence = i == 2 ? 99 : 0;
		f.run[0].offered_per_s = 1000;
		fake_run(&g.run[0], TEST_RR, 9);
		hist_merge(&f.run[0].service, &g.run[0].latency);
		doc = bench_report_json(&f.b);
		assert_true(fits(s, doc));
		json_decref(doc);
		if (i == 4) { /* no record of an end */
			json_decref(f.b.remote);
			f.b.remote = NULL;
			doc = bench_report_json(&f.b);
			assert_true(fits(s, doc));
			json_decref(doc);
		}
		drop(&f);
		drop(&g);
	}
	json_decref(s);
}

static json_t *first_run(json_t *doc)
{
	json_t *m = json_array_get(json_object_get(doc, "measurements"), 0);

	return json_array_get(json_object_get(m, "runs"), 0);
}

/* The check itself can fail. */
static void the_schema_refuses(void **state)
{
	json_t *s = schema(), *doc, *usage;
	struct fake f;

	(void)state;
	make(&f, TEST_RR, 1, false);
	doc = bench_report_json(&f.b);
	usage = json_object_get(json_object_get(first_run(doc), "local"), "usage");
	assert_true(fits(s, doc));
	json_object_set_new(first_run(doc), "surprise", json_true());
	assert_false(fits(s, doc));
	json_object_del(first_run(doc), "surprise");
	json_object_set_new(usage, "source", json_string("guess"));
	assert_false(fits(s, doc));
	json_object_set_new(usage, "source", json_string("stat"));
	json_object_set_new(usage, "threads_seconds", json_real(-1));
	assert_false(fits(s, doc));
	json_object_set_new(usage, "threads_seconds", json_string("1"));
	assert_false(fits(s, doc));
	json_object_del(usage, "threads_seconds");
	assert_false(fits(s, doc));
	json_object_set_new(usage, "threads_seconds", json_real(1));
	assert_true(fits(s, doc));
	json_decref(doc);
	json_decref(s);
	drop(&f);
}

static void the_histogram_holds_every_transaction(void **state)
{
	json_int_t sum = 0, want = 0;
	json_t *doc, *list, *one;
	struct fake f;
	double last = 0;
	size_t i;

	(void)state;
	make(&f, TEST_RR, RUNS, false);
	for (int r = 0; r < RUNS; r++)
		want += (json_int_t)f.run[r].latency.total;
	doc = bench_report_json(&f.b);
	list = json_object_get(json_array_get(json_object_get(doc, "measurements"), 0),
			       "latency_histogram_us");
	json_array_foreach(list, i, one)
	{
		assert_true(json_real_value(json_array_get(one, 0)) > last);
		last = json_real_value(json_array_get(one, 0));
		sum += json_integer_value(json_array_get(one, 1));
	}
	assert_int_equal(sum, want);
	json_decref(doc);
	drop(&f);
}

static char *page_of(const struct bench_report *b)
{
	const char *tmp = getenv("XDPATH_TEST_TMP");
	char path[300], *text;
	long size;
	FILE *f;

	snprintf(path, sizeof(path), "%s/report-%d.html", tmp ? tmp : "/var/tmp", (int)getpid());
	assert_int_equal(bench_report_html(b, path), 0);
	f = fopen(path, "re");
	assert_non_null(f);
	fseek(f, 0, SEEK_END);
	size = ftell(f);
	rewind(f);
	assert_true(size > 5000 && size < 300000);
	text = calloc(1, (size_t)size + 1);
	assert_non_null(text);
	assert_int_equal(fread(text, 1, (size_t)size, f), size);
	fclose(f);
	unlink(path);
	return text;
}

static uint32_t count(const char *text, const char *what)
{
	uint32_t n = 0;

	for (const char *at = strstr(text, what); at; at = strstr(at + 1, what))
		n++;
	return n;
}

/* Every element that is opened is closed, in order; no number in a tag is none. */
static void check_markup(const char *page)
{
	static const char *const single[] = {"meta", "line", "path", "!doctype"};
	char stack[64][24];
	int depth = 0;

	for (const char *at = strchr(page, '<'); at; at = strchr(at + 1, '<')) {
		const char *close = strchr(at, '>');
		char name[24], tag[512];
		bool alone = false;

		assert_non_null(close);
		snprintf(tag, sizeof(tag), "%.*s", (int)(close - at), at + 1);
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(at + 1 + (at[1] == '/'), " >/"),
			 at + 1 + (at[1] == '/'));
		if (strstr(tag, "nan") || strstr(tag, "inf"))
			print_message("bad number: <%s\n", tag);
		assert_false(strstr(tag, "nan") || strstr(tag, "inf"));
		for (size_t i = 0; i < sizeof(single) / sizeof(single[0]); i++)
			alone |= strcmp(name, single[i]) == 0;
		if (alone || close[-1] == '/')
			continue;
		if (at[1] == '/') {
			assert_true(depth > 0);
			assert_string_equal(stack[--depth], name);
			continue;
		}
		assert_true(depth < 64);
		strcpy(stack[depth++], name);
	}
	assert_int_equal(depth, 0);
}

static void the_page_needs_nothing_from_outside(void **state)
{
	static const char *const outside[] = {"http:", "https:",  "src=", "<script",
					      "<link", "@import", "url(", "href="};
	struct fake f, g;

	(void)state;
	for (int i = 0; i < 6; i++) {
		char *page;

		make(&f, i & 1 ? TEST_STREAM : TEST_RR, i < 2 ? 1 : i < 4 ? RUNS : 0, i == 2);
		make(&g, i & 1 ? TEST_STREAM : TEST_RR, RUNS, i == 2);
		f.b.next = i == 3 ? &g.b : NULL;
		page = page_of(&f.b);
		for (size_t j = 0; j < sizeof(outside) / sizeof(outside[0]); j++)
			assert_null(strstr(page, outside[j]));
		assert_non_null(strstr(page, "prefers-color-scheme:dark"));
		check_markup(page);
		if (i == 2) { /* three of latency, two over runs, CPUs: each with words */
			assert_int_equal(count(page, "class=plot"), 6);
			assert_int_equal(count(page, "<desc>"), 6);
		}
		free(page);
		drop(&f);
		drop(&g);
	}
}

static void the_page_believes_no_name(void **state)
{
	const char *evil = "<script>alert(1)</script>\" onload='x' & \x1b";
	struct fake f;
	char *page;

	(void)state;
	make(&f, TEST_RR, RUNS, false);
	snprintf(f.run[0].remote.host, sizeof(f.run[0].remote.host), "%s", evil);
	f.b.peer = f.b.placement = evil;
	json_object_set_new(f.b.remote, "kernel", json_string(evil));
	json_object_set_new(f.b.remote, "<b>key", json_string("x"));
	page = page_of(&f.b);
	assert_null(strstr(page, "<script"));
	assert_null(strstr(page, "<b>"));
	assert_null(strchr(page, '\x1b'));
	assert_non_null(strstr(page, "&lt;script&gt;"));
	check_markup(page);
	free(page);
	drop(&f);
}

static void a_page_that_cannot_be_written(void **state)
{
	struct fake f;

	(void)state;
	make(&f, TEST_RR, 1, false);
	assert_int_equal(bench_report_html(&f.b, "/nonexistent/page.html"), -ENOENT);
	assert_true(bench_report_html(&f.b, "/dev/full") < 0);
	drop(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(digits_are_those_that_mean_something),
		cmocka_unit_test(lines_have_100_columns),
		cmocka_unit_test(latency_stands_in_one_column),
		cmocka_unit_test(a_shared_machine_counts_once),
		cmocka_unit_test(figures_are_worked_out),
		cmocka_unit_test(json_fits_the_schema),
		cmocka_unit_test(the_schema_refuses),
		cmocka_unit_test(the_histogram_holds_every_transaction),
		cmocka_unit_test(the_page_needs_nothing_from_outside),
		cmocka_unit_test(the_page_believes_no_name),
		cmocka_unit_test(a_page_that_cannot_be_written),
	};

	return cmocka_run_group_tests_name("bench_report", tests, NULL, NULL);
}
