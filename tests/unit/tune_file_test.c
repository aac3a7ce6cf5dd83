/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * The files of an experiment: the one by which it is resumed after any kind of end, and the one of
 * what won, that the knobs are read from again.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "tune_in.h"
#include "tune_model.h"

static char folder[200], runs[256], winners[256];

static int make_folder(void **state)
{
	const char *tmp = getenv("XDPATH_TEST_TMP");

	(void)state;
	snprintf(folder, sizeof(folder), "%s/tune-XXXXXX", tmp ? tmp : "/var/tmp");
	if (!mkdtemp(folder))
		return -1;
	snprintf(runs, sizeof(runs), "%s/runs", folder);
	snprintf(winners, sizeof(winners), "%s/winners.conf", folder);
	return 0;
}

static int remove_folder(void **state)
{
	(void)state;
	unlink(runs);
	unlink(winners);
	return rmdir(folder);
}

static char *contents(const char *path)
{
	char *text = calloc(1, 1 << 16);
	FILE *f = fopen(path, "re");

	assert_non_null(text);
	if (!f)
		fail_msg("%s is not there", path);
	assert_true(fread(text, 1, (1 << 16) - 1, f) < (1 << 16) - 1);
	fclose(f);
	return text;
}

static void write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "we");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static uint32_t lines(const char *text)
{
	uint32_t n = 0;

	for (; *text; text++)
		n += *text == '\n';
	return n;
}

static void has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("no \"%s\" in:\n%s", part, text);
}

/* ---- resumed
 * -------------------------------------------------------------------------------------- */

/* Runs whose values depend on nothing but which run it is: the same whenever it is made. */
struct fixed {
	uint32_t runs, fail_at, block[TUNE_SETTINGS]; /* of each setting, counted by progress() */
	uint32_t replayed;
};

static int fixed_measure(void *ctx, const struct tune_setting *s, struct tune_sample *out)
{
	struct fixed *x = ctx;
	struct model m = {.random = x->block[s->pick[0]] * 100 + s->pick[0]};

	if (++x->runs == x->fail_at)
		return -EINTR;
	for (int g = 0; g < TUNE_GOALS; g++)
		out->value[g] = g == TUNE_CPU ? NAN : 1000 * exp(0.1 * model_normal(&m));
	return 0;
}

static void fixed_progress(void *ctx, uint32_t block, const struct tune_setting *s,
			   const struct tune_sample *got)
{
	struct fixed *x = ctx;

	assert_true(isfinite(got->value[TUNE_THROUGHPUT]));
	assert_int_equal(x->block[s->pick[0]], block);
	x->block[s->pick[0]]++;
	x->replayed++;
}

static struct tune_plan resumed_plan(void)
{
	struct tune_plan p = plan_of("rx.batch=64,16,32", "throughput,cpu,p99");

	p.resume = runs;
	p.blocks = 20;
	p.margin = 0.001;
	checked(&p);
	return p;
}

static int go(const struct tune_plan *p, uint32_t fail_at, struct fixed *x, struct tune_result *r)
{
	struct tune_calls calls = {.measure = fixed_measure, .progress = fixed_progress, .ctx = x};
	struct xdpath_diag d = {0};
	int err;

	*x = (struct fixed){.fail_at = fail_at};
	err = tune_measure(p, &calls, r, &d);
	if (err && err != -EINTR)
		fail_msg("%s", d.text);
	return err;
}

static void same_results(const struct tune_result *a, const struct tune_result *b)
{
	assert_int_equal(a->blocks, b->blocks);
	assert_int_equal(a->looks, b->looks);
	assert_int_equal(a->ncomparisons, b->ncomparisons);
	for (uint32_t i = 0; i < a->ncomparisons; i++) {
		assert_int_equal(a->comparison[i].verdict, b->comparison[i].verdict);
		assert_int_equal(a->comparison[i].pairs, b->comparison[i].pairs);
		if (a->comparison[i].pairs)
			assert_true(a->comparison[i].effect == b->comparison[i].effect);
		assert_true(a->comparison[i].lo == b->comparison[i].lo);
		assert_true(a->comparison[i].p == b->comparison[i].p);
	}
}

static void test_resume(void **state)
{
	struct tune_plan plain = resumed_plan(), p = resumed_plan();
	struct tune_result whole, r;
	struct fixed x;
	char *text;

	(void)state;
	plain.resume = NULL;
	assert_int_equal(go(&plain, 0, &x, &whole), 0);
	assert_int_equal(x.runs, 60);
	unlink(runs);
	assert_int_equal(go(&p, 30, &x, &r), -EINTR); /* 29 runs are kept: 9 blocks and two runs */
	assert_int_equal(r.blocks, 9);
	tune_result_free(&r);
	text = contents(runs);
	assert_int_equal(lines(text), 1 + 29);
	free(text);
	assert_int_equal(go(&p, 10, &x, &r), -EINTR); /* 9 more: those two were made anew */
	assert_int_equal(r.blocks, 12);
	assert_int_equal(x.replayed, 27 + 9);
	tune_result_free(&r);
	assert_int_equal(go(&p, 0, &x, &r), 0);
	assert_int_equal(x.runs, 60 - 36);
	same_results(&r, &whole);
	tune_result_free(&r);
	assert_int_equal(go(&p, 1, &x, &r), 0); /* whole: nothing is measured any more */
	assert_int_equal(x.runs, 0);
	same_results(&r, &whole);
	tune_result_free(&r);
	tune_result_free(&whole);
	text = contents(runs);
	assert_int_equal(lines(text), 1 + 60);
	free(text);
}

/* Cut anywhere at all, it goes on from there and comes to the same end. */
static void test_truncated(void **state)
{
	struct tune_plan p = resumed_plan();
	struct tune_result whole, r;
	struct stat st;
	struct fixed x;

	(void)state;
	unlink(runs);
	assert_int_equal(go(&p, 0, &x, &whole), 0);
	assert_int_equal(stat(runs, &st), 0);
	for (off_t at = st.st_size; at >= 0; at -= at > 500 ? 233 : 7) {
		char *text;

		assert_int_equal(truncate(runs, at), 0);
		assert_int_equal(go(&p, 0, &x, &r), 0);
		same_results(&r, &whole);
		tune_result_free(&r);
		text = contents(runs);
		assert_int_equal(lines(text), 1 + 60);
		free(text);
	}
	tune_result_free(&whole);
}

static void refused(const struct tune_plan *p, int err, const char *why)
{
	struct fixed x = {0};
	struct tune_calls calls = {.measure = fixed_measure, .ctx = &x};
	struct xdpath_diag d = {0};
	struct tune_result r;

	assert_int_equal(tune_measure(p, &calls, &r, &d), err);
	assert_int_equal(x.runs, 0);
	if (!strstr(d.text, why))
		fail_msg("\"%s\" has no \"%s\"", d.text, why);
	assert_null(strchr(d.text, '\n'));
	tune_result_free(&r);
}

static void test_refused(void **state)
{
	static const char *const foreign[] = {"precious", "precious\nlines\n", "{\"tune\": 1}\n",
					      "[1]\n", "{\"tune\": 2, \"hash\": \"0\"}\n"};
	struct tune_plan p = resumed_plan(), other = resumed_plan();
	struct tune_result r;
	struct fixed x;
	char *text, *before;
	int fd;

	(void)state;
	for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++) {
		write_file(runs, foreign[i]);
		refused(&p, -EINVAL, "runs: holds no runs of an experiment; give another --resume");
		text = contents(runs);
		assert_string_equal(text, foreign[i]);
		free(text);
	}
	unlink(runs);
	assert_int_equal(go(&p, 20, &x, &r), -EINTR);
	tune_result_free(&r);
	before = contents(runs);
	other.seed++;
	refused(&other, -EINVAL,
		"runs: holds the runs of another plan; give another --resume file");
	fd = open(runs, O_RDONLY | O_CLOEXEC);
	assert_int_equal(flock(fd, LOCK_SH), 0);
	refused(&p, -EBUSY, "another experiment is writing it");
	close(fd);
	text = contents(runs);
	assert_string_equal(text, before);
	free(text);
	free(before);
	other = p;
	other.resume = folder;
	refused(&other, -EISDIR, "could not be opened: Is a directory");
}

/* Lines that are whole, but not what was written. */
static void test_spoilt(void **state)
{
	struct tune_plan p = resumed_plan();
	char *text, *line, *next;
	struct tune_result r;
	struct fixed x;

	(void)state;
	unlink(runs);
	assert_int_equal(go(&p, 20, &x, &r), -EINTR);
	tune_result_free(&r);
	text = contents(runs);
	line = strchr(text, '\n') + 1; /* the first run, out of its place */
	next = strchr(line, '\n') + 1;
	memmove(line, next, strlen(next) + 1);
	write_file(runs, text);
	refused(&p, -EINVAL, "runs: line 2 is not the run that this plan makes there");
	memset(line, '#', 3);
	write_file(runs, text);
	refused(&p, -EINVAL, "runs: line 2 is no run; mend or remove it");
	free(text);
	unlink(runs);
}

/* ---- winners
 * -------------------------------------------------------------------------------------- */

static double spin_helps(const struct tune_setting *s, enum tune_goal g)
{
	bool spin = strcmp(s->value[1], "spin") == 0;

	return spin ? (g == TUNE_THROUGHPUT ? 1.3 : 1 / 1.3) : 1;
}

/* Nothing by itself; together they help. */
static double together(const struct tune_setting *s, enum tune_goal g)
{
	bool both = s->pick[0] && s->pick[1];

	return both ? (g == TUNE_THROUGHPUT ? 1.3 : 1 / 1.3) : 1;
}

/* The others are worse than the baseline. */
static double baseline_is_best(const struct tune_setting *s, enum tune_goal g)
{
	double v = 1 + 0.3 * s->pick[0];

	return g == TUNE_THROUGHPUT ? 1 / v : v;
}

/* As fast, for less. */
static double cheaper(const struct tune_setting *s, enum tune_goal g)
{
	return s->pick[0] == 2 && g == TUNE_DEMAND ? 0.7 : 1;
}

static char *won(uint64_t seed, bool factorial,
		 double (*worth)(const struct tune_setting *, enum tune_goal))
{
	struct tune_plan p = plan_of("rx.batch=64,16,32", "throughput,demand");
	struct model m = {.noise = 0.05, .worth = worth, .random = seed};
	struct tune_calls calls = model_calls(&m);
	struct xdpath_diag d = {0};
	FILE *out = fopen("/dev/null", "we");

	assert_non_null(out);
	assert_int_equal(tune_plan_knob(&p, "poll.mode=block,spin", &d), 0);
	p.factorial = factorial;
	p.winners = winners;
	p.what = "bench stream d0 10.77.0.2";
	if (tune_run(&p, &calls, out, &d))
		fail_msg("%s", d.text);
	fclose(out);
	return contents(winners);
}

/* What the file sets, as the knobs are read from it. */
static struct xdpath_knobs as_read(void)
{
	struct xdpath_knobs k;
	struct xdpath_diag d = {0};

	xdpath_knobs_defaults(&k);
	k.rx_batch = 77;
	k.poll_mode = 77;
	if (xdpath_knobs_load(&k, winners, &d))
		fail_msg("%s", d.text);
	return k;
}

static void test_winner(void **state)
{
	char *text = won(8, false, spin_helps);
	struct xdpath_knobs k = as_read();

	(void)state;
	assert_int_equal(k.poll_mode, XDPATH_POLL_SPIN);
	assert_int_equal(k.rx_batch, 77); /* nothing found: nothing set */
	has(text, "\npoll.mode = spin\n");
	has(text, "\n# poll.mode=spin against baseline: throughput +");
	has(text, "# rx.batch: no better value than 64 was found; throughput differs by ");
	has(text, "# measured: bench stream d0 10.77.0.2\n");
	has(text, "each knob was moved alone");
	has(text, "# decided by throughput, then demand; ");
	free(text);
}

static void test_no_winner(void **state)
{
	char *text = won(8, false, NULL);
	struct xdpath_knobs k = as_read();

	(void)state;
	assert_int_equal(k.poll_mode, 77);
	assert_int_equal(k.rx_batch, 77);
	has(text, "# rx.batch: no better value than 64 was found");
	has(text, "# poll.mode: no better value than block was found");
	assert_null(strstr(text, " = "));
	free(text);
}

static void test_baseline_wins(void **state)
{
	char *text = won(8, false, baseline_is_best);
	struct xdpath_knobs k = as_read();

	(void)state;
	assert_int_equal(k.rx_batch, 64);
	has(text, "# rx.batch=16 against baseline: throughput -");
	free(text);
}

/* Equal in what decides first, so the next decides. */
static void test_second_goal(void **state)
{
	char *text = won(8, false, cheaper);
	struct xdpath_knobs k = as_read();

	(void)state;
	assert_int_equal(k.rx_batch, 32);
	has(text, "# rx.batch=32 against baseline: demand -");
	free(text);
}

static void test_interaction(void **state)
{
	char *text = won(8, true, together);
	struct xdpath_knobs k = as_read();

	(void)state;
	assert_int_equal(k.poll_mode, XDPATH_POLL_SPIN);
	assert_true(k.rx_batch == 16 || k.rx_batch == 32);
	has(text, " poll.mode=spin against poll.mode=spin: throughput +");
	has(text, " poll.mode=spin against rx.batch=");
	free(text);
	free(won(8, false, together)); /* what one knob at a time does not see */
	k = as_read();
	assert_int_equal(k.rx_batch, 77);
}

/* Of all combinations with spin none is better by its batch: the batch is not set. */
static void test_factorial_sets_what_helps(void **state)
{
	struct xdpath_knobs k;

	(void)state;
	for (uint64_t seed = 1; seed <= 6; seed++) {
		free(won(seed, true, spin_helps));
		k = as_read();
		assert_int_equal(k.poll_mode, XDPATH_POLL_SPIN);
		assert_int_equal(k.rx_batch, 77);
	}
}

static void test_winners_not_written(void **state)
{
	struct tune_plan p = plan_of("rx.batch=64,16", "throughput");
	struct model m = {.noise = 0.05};
	struct tune_calls calls = model_calls(&m);
	FILE *out = fopen("/dev/null", "we");
	struct xdpath_diag d = {0};
	char path[256];
	char *text;

	(void)state;
	assert_non_null(out);
	snprintf(path, sizeof(path), "%s/not/there", folder);
	p.winners = path;
	assert_int_equal(tune_run(&p, &calls, out, &d), -ENOENT);
	has(d.text, "not/there: could not be written: No such file or directory; ");
	/* interrupted: what is there already stays */
	write_file(winners, "kept\n");
	p.winners = winners;
	m = (struct model){.fail_at = 50, .error = -EINTR};
	assert_int_equal(tune_run(&p, &calls, out, &d), -EINTR);
	text = contents(winners);
	assert_string_equal(text, "kept\n");
	free(text);
	fclose(out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_resume),
		cmocka_unit_test(test_truncated),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_spoilt),
		cmocka_unit_test(test_winner),
		cmocka_unit_test(test_no_winner),
		cmocka_unit_test(test_baseline_wins),
		cmocka_unit_test(test_second_goal),
		cmocka_unit_test(test_interaction),
		cmocka_unit_test(test_factorial_sets_what_helps),
		cmocka_unit_test(test_winners_not_written),
	};

	return cmocka_run_group_tests_name("tune_file", tests, make_folder, remove_folder);
}
