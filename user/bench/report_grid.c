/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/* Words, numbers and tables of the text report: aligned by the columns they take, not by bytes. */
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "report_in.h"

#define LINE_MOST 100

const char *report_test(const struct test_spec *s)
{
	return s->kind == TEST_RR ? "rr" : "stream";
}

const char *report_engine(const struct test_spec *s)
{
	switch (s->engine) {
	case ENGINE_T_XSK: return "xsk";
	case ENGINE_T_UDP: return "udp";
	case ENGINE_T_PACKET: return "packet";
	}
	return "unknown";
}

const char *report_arrival(const struct test_spec *s)
{
	switch (s->arrival) {
	case ARRIVAL_CLOSED: return "closed";
	case ARRIVAL_EVEN: return "even";
	case ARRIVAL_POISSON: return "poisson";
	case ARRIVAL_BURST: return "burst";
	}
	return "unknown";
}

static void arrival_text(const struct test_spec *s, char *buf, size_t size)
{
	char rate[32];

	number_text(s->rate, rate, sizeof(rate));
	if (s->rate <= 0)
		snprintf(buf, size, "%s",
			 s->kind == TEST_RR ? "closed loop" : "as fast as it goes");
	else if (s->arrival == ARRIVAL_BURST)
		snprintf(buf, size, "%s messages/s in bursts of %u", rate, s->burst);
	else
		snprintf(buf, size, "%s messages/s, %s", rate,
			 s->arrival == ARRIVAL_POISSON ? "Poisson arrivals" : "evenly spaced");
}

void report_test_text(const struct test_spec *s, char *buf, size_t size)
{
	const char *plural = s->flows == 1 ? "" : "s";
	char arrival[96], mtu[32] = "";

	arrival_text(s, arrival, sizeof(arrival));
	if (s->mtu)
		snprintf(mtu, sizeof(mtu), ", MTU %u", s->mtu);
	if (s->kind == TEST_RR)
		snprintf(buf, size, "%u flow%s, %u B requests, %u B answers%s, %s", s->flows,
			 plural, s->req, s->rsp, mtu, arrival);
	else
		snprintf(buf, size, "%u flow%s of %u B messages%s%s, %s", s->flows, plural, s->size,
			 s->bidir     ? ", both ways"
			 : s->reverse ? ", the far end sends"
				      : "",
			 mtu, arrival);
}

void cpus_text(const cpu_set_t *cpus, char *buf, size_t size)
{
	size_t at = 0;

	if (!CPU_COUNT(cpus))
		snprintf(buf, size, "not pinned");
	for (int i = 0; i < CPU_SETSIZE; i++) {
		int last = i;

		if (!CPU_ISSET(i, cpus))
			continue;
		while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, cpus))
			last++;
		if (at < size)
			at += (size_t)snprintf(buf + at, size - at, last > i ? "%s%d-%d" : "%s%d",
					       at ? "," : "", i, last);
		i = last;
	}
}

/* CPUs of the device's interrupts, each once: "0,3"; "" if it has none. */
static void irq_text(const json_t *record, char *buf, size_t size)
{
	json_t *irqs = json_object_get(record, "irq_cpus"), *cpus;
	const char *key;
	size_t at = 0;

	buf[0] = '\0';
	json_object_foreach(irqs, key, cpus)
	{
		const char *list = json_string_value(cpus), *seen;

		(void)key;
		if (!list || at >= size)
			continue;
		seen = strstr(buf, list);
		if (seen && (seen == buf || seen[-1] == ',') &&
		    strchr(",", seen[strlen(list)])) /* also at its end */
			continue;
		at += (size_t)snprintf(buf + at, size - at, "%s%s", at ? "," : "", list);
	}
}

void placement_text(const struct bench_report *b, char *buf, size_t size)
{
	char here[64], there[64], irq[64];

	if (b->placement) {
		snprintf(buf, size, "%s", b->placement);
		return;
	}
	cpus_text(&b->spec->cpus, here, sizeof(here));
	cpus_text(&b->spec->peer_cpus, there, sizeof(there));
	irq_text(b->local, irq, sizeof(irq));
	snprintf(buf, size, "local %s%s, remote %s%s%s%s",
		 CPU_COUNT(&b->spec->cpus) ? "on CPU " : "", here,
		 CPU_COUNT(&b->spec->peer_cpus) ? "on CPU " : "", there,
		 irq[0] ? ", interrupts on CPU " : "", irq);
}

/* Decimal places that show a number down to the place of its digit at 10^exponent. */
static int places(int exponent)
{
	return exponent < 0 ? -exponent : 0;
}

static double rounded(double v, int exponent)
{
	double unit = pow(10, exponent);

	return exponent > 0 ? round(v / unit) * unit : v;
}

static int exponent_of(double v)
{
	return v > 0 ? (int)floor(log10(v)) : 0;
}

void number_text(double v, char *buf, size_t size)
{
	int e = exponent_of(fabs(v)) - 3;

	if (!isfinite(v))
		snprintf(buf, size, "-1");
	else if (e > 0)
		snprintf(buf, size, "%.0f", rounded(v, e));
	else
		snprintf(buf, size, "%.4g", v);
}

double latency_step(double us)
{
	return us / (2 * HIST_SUB);
}

void figure_text(struct figure v, double step, char *buf, size_t size)
{
	double finest = pow(10, exponent_of(fabs(v.mean)) - 4), dev;
	bool below;
	int e;

	if (!v.n) {
		snprintf(buf, size, "-1");
		return;
	}
	if (v.n < 2 || (v.sd <= 0 && step <= 0)) {
		number_text(v.mean, buf, size);
		if (v.n > 1 && v.mean != 0)
			snprintf(buf + strlen(buf), size - strlen(buf), " ± 0");
		return;
	}
	step = step > finest ? step : finest; /* more than five digits are no information */
	below = v.sd < step;
	dev = below ? step : v.sd;
	e = exponent_of(dev);
	if (round(dev / pow(10, e)) >= 10) /* 9.7 is 10 */
		e++;
	if (below) /* what is said to be above it must be */
		dev = ceil(dev / pow(10, e) - 1e-9) * pow(10, e);
	snprintf(buf, size, "%.*f ± %s%.*f", places(e), rounded(v.mean, e), below ? "<" : "",
		 places(e), rounded(dev, e));
}

uint32_t text_width(const char *text)
{
	uint32_t n = 0;

	for (; *text; text++)
		n += ((unsigned char)*text & 0xc0) != 0x80;
	return n;
}

static void put_cell(struct grid *g, const char *fmt, va_list ap)
{
	uint32_t row = g->rows - 1;

	if (!g->rows || g->cols >= GRID_COLS)
		return;
	vsnprintf(g->cell[row][g->cols++], GRID_CELL, fmt, ap);
}

void grid_row(struct grid *g, const char *first, ...)
{
	va_list ap;

	if (g->rows >= GRID_ROWS)
		return;
	g->title[g->rows++] = false;
	g->cols = 0;
	for (uint32_t c = 0; c < GRID_COLS; c++)
		g->cell[g->rows - 1][c][0] = '\0';
	va_start(ap, first);
	put_cell(g, first, ap);
	va_end(ap);
}

void grid_title(struct grid *g, const char *text)
{
	grid_row(g, "%s", text);
	g->title[g->rows - 1] = true;
}

void grid_add(struct grid *g, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	put_cell(g, fmt, ap);
	va_end(ap);
}

void grid_figure(struct grid *g, struct figure v, double step)
{
	char text[64];

	figure_text(v, step, text, sizeof(text));
	grid_add(g, "%s", text);
}

void grid_print(struct grid *g, FILE *f)
{
	uint32_t width[GRID_COLS] = {0};

	for (uint32_t r = 0; r < g->rows; r++) {
		for (uint32_t c = 0; c < GRID_COLS && !g->title[r]; c++) {
			uint32_t w = text_width(g->cell[r][c]);

			width[c] = w > width[c] ? w : width[c];
		}
	}
	for (uint32_t r = 0; r < g->rows; r++) {
		uint32_t gap = 0;

		fputs("  ", f);
		for (uint32_t c = 0; c < GRID_COLS; c++) {
			const char *text = g->cell[r][c];

			if (text[0]) /* blanks only between cells, none at the end of a line */
				fprintf(f, "%*s%s", (int)gap, "", text);
			if (g->title[r])
				break;
			gap = (text[0] ? 0 : gap) + width[c] - text_width(text) + 2;
		}
		fputc('\n', f);
	}
	g->rows = 0;
}

void wrap_start(struct wrap *w, FILE *f, const char *title)
{
	*w = (struct wrap){.f = f, .column = INDENT};
	fprintf(f, "  %-*s", INDENT - 2, title);
}

/* A new line when the next word goes past the end; a word longer than a line stays whole. */
static void wrap_word(struct wrap *w, const char *word, size_t len, bool blank)
{
	char one[512];
	uint32_t width;

	snprintf(one, sizeof(one), "%.*s", (int)len, word);
	width = text_width(one);
	if (w->column > INDENT && w->column + width + blank > LINE_MOST) {
		fprintf(w->f, "\n%*s", INDENT, "");
		w->column = INDENT;
		blank = false;
	}
	fprintf(w->f, "%s%s", blank ? " " : "", one);
	w->column += width + blank;
}

void wrap_item(struct wrap *w, const char *fmt, ...)
{
	bool blank = w->any, comma = w->any && !w->joined;
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (comma)
		fputc(',', w->f);
	w->column += comma;
	w->joined = false;
	for (const char *at = text; *at;) {
		size_t len = strcspn(at, " ");

		wrap_word(w, at, len, blank);
		at += len + strspn(at + len, " ");
		blank = true;
	}
	w->any = true;
}

void wrap_end(struct wrap *w)
{
	fputc('\n', w->f);
}
