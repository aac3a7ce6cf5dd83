/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/* Axes, lines and bars as SVG text. Called by the HTML reports; keeps nothing, allocates nothing.
 */
#include <math.h>
#include <string.h>

#include "svg.h"

#define WIDTH	 720.0
#define HEIGHT	 300.0
#define LEFT	 64.0
#define RIGHT	 16.0
#define TOP	 12.0
#define BOTTOM	 44.0
#define COLOURS	 6
#define LOG_LOW	 1e-12
#define DOTS_MAX 200 /* points with a tooltip; more only make the file large */

struct axis {
	double lo, hi; /* of log10 where log */
	bool log;
	double from, to; /* in the picture */
};

static const char style[] =
	":root{color-scheme:light dark;--page:#fff;--ink:#1c2126;--soft:#59636e;--line:#d5dae0;"
	"--box:#f5f7f9;--c0:#1f63b0;--c1:#b3470f;--c2:#1b7a43;--c3:#7d3c98;--c4:#8a6d00;"
	"--c5:#00727f}\n"
	"@media(prefers-color-scheme:dark){:root{--page:#14181d;--ink:#e4e8ec;--soft:#9aa5b1;"
	"--line:#343c46;--box:#1c2229;--c0:#6cb0ff;--c1:#ff9a5c;--c2:#6fd394;--c3:#d6a2f0;"
	"--c4:#e3c14f;--c5:#58cfdc}}\n"
	"body{font:15px/1.5 system-ui,sans-serif;background:var(--page);color:var(--ink);"
	"max-width:62rem;margin:0 auto;padding:1rem 1.2rem 3rem}\n"
	"h1{font-size:1.5rem;margin:.6rem 0}h2{font-size:1.15rem;margin:2rem 0 .4rem}"
	"p{margin:.3rem 0}.soft{color:var(--soft)}\n"
	"table{border-collapse:collapse;margin:.5rem 0;font-variant-numeric:tabular-nums}"
	"th,td{text-align:left;padding:.2rem 1rem .2rem 0;border-bottom:1px solid var(--line);"
	"vertical-align:top}th{font-weight:600}.scroll{overflow-x:auto}\n"
	"pre{background:var(--box);padding:.8rem;overflow-x:auto;font-size:12.5px;"
	"line-height:1.4}\n"
	"figure{margin:1rem 0;padding:.8rem;background:var(--box);border-radius:6px}"
	"figcaption{font-weight:600}figcaption span{display:block;font-weight:400;"
	"color:var(--soft)}\n"
	".key span{display:inline-block;margin:.2rem 1.2rem 0 0}.key svg{width:26px;height:10px;"
	"margin-right:.4rem;vertical-align:middle}\n"
	"svg.plot{width:100%;height:auto;font-size:12px}svg text{fill:var(--soft)}"
	".grid{stroke:var(--line);stroke-width:1}.axis{stroke:var(--soft);stroke-width:1}\n"
	".l{fill:none;stroke-width:2}.w{stroke:var(--ink);stroke-width:1.3}\n";

/* Besides by its colour a line is told by its dashes. */
static const char *const dashes[COLOURS] = {"", "7 3", "2 3", "9 3 2 3", "4 4", "12 4"};

void svg_style(FILE *f)
{
	fprintf(f, "<style>%s", style);
	for (int i = 0; i < COLOURS; i++)
		fprintf(f, ".s%d{stroke:var(--c%d);stroke-dasharray:%s}.f%d{fill:var(--c%d)}\n", i,
			i, dashes[i][0] ? dashes[i] : "none", i, i);
	fputs("</style>\n", f);
}

void svg_escape(FILE *f, const char *text)
{
	for (; *text; text++) {
		switch (*text) {
		case '&': fputs("&amp;", f); break;
		case '<': fputs("&lt;", f); break;
		case '>': fputs("&gt;", f); break;
		case '"': fputs("&quot;", f); break;
		case '\'': fputs("&#39;", f); break;
		case '\n': fputc('\n', f); break;
		default: fputc((unsigned char)*text < ' ' || *text == 0x7f ? '?' : *text, f); break;
		}
	}
}

static double scaled(const struct axis *a, double v)
{
	return a->log ? (v > LOG_LOW ? log10(v) : NAN) : v;
}

/* Where a value stands in the picture; NAN: nowhere. */
static double place(const struct axis *a, double v)
{
	double s = scaled(a, v);

	return a->from + (s - a->lo) / (a->hi - a->lo) * (a->to - a->from);
}

static void widen(struct axis *a, double v)
{
	double s = scaled(a, v);

	if (!isfinite(s))
		return;
	a->lo = s < a->lo ? s : a->lo;
	a->hi = s > a->hi ? s : a->hi;
}

/* A step of 1, 2 or 5 times a power of ten that cuts the span in about n. */
static double nice_step(double span, double n)
{
	double raw = span / n, unit = pow(10, floor(log10(raw)));

	return raw / unit > 5	? 10 * unit
	       : raw / unit > 2 ? 5 * unit
	       : raw / unit > 1 ? 2 * unit
				: unit;
}

/* Round ends; never empty. */
static void settle(struct axis *a, bool zero, bool whole)
{
	double step;

	if (a->lo > a->hi) {
		a->lo = 0;
		a->hi = 1;
	}
	if (zero && !a->log) {
		a->lo = a->lo > 0 ? 0 : a->lo;
		a->hi = a->hi < 0 ? 0 : a->hi;
	}
	if (a->hi - a->lo < 1e-9 * (fabs(a->hi) + 1)) {
		a->hi += a->hi ? fabs(a->hi) * 0.05 : 1;
		a->lo -= a->lo > 0 && !zero ? a->lo * 0.05 : 0;
	}
	if (whole) {
		a->lo -= 0.5;
		a->hi += 0.5;
		return;
	}
	if (a->log)
		return;
	step = nice_step(a->hi - a->lo, 5);
	a->lo = floor(a->lo / step + 1e-9) * step;
	a->hi = ceil(a->hi / step - 1e-9) * step;
}

/* "1.2 M": short enough for an axis. */
static void short_number(double v, char *buf, size_t size)
{
	static const char *const prefix[] = {"", "k", "M", "G", "T"};
	double a = fabs(v);
	size_t i = 0;

	while (a >= 9999.5 && i < 4) {
		a /= 1000;
		v /= 1000;
		i++;
	}
	snprintf(buf, size, "%.4g%s%s", fabs(v) < 1e-12 ? 0 : v, i ? " " : "", prefix[i]);
}

static void tick(FILE *f, const struct axis *a, bool x, double v)
{
	double at = place(a, v);
	char text[32];

	if (!isfinite(at) || at < fmin(a->from, a->to) - 0.5 || at > fmax(a->from, a->to) + 0.5)
		return;
	short_number(v, text, sizeof(text));
	if (x)
		fprintf(f,
			"<line class=grid x1=\"%.1f\" x2=\"%.1f\" y1=\"%.0f\" y2=\"%.0f\"/>"
			"<text x=\"%.1f\" y=\"%.0f\" text-anchor=\"middle\">%s</text>\n",
			at, at, TOP, HEIGHT - BOTTOM, at, HEIGHT - BOTTOM + 16, text);
	else
		fprintf(f,
			"<line class=grid x1=\"%.0f\" x2=\"%.0f\" y1=\"%.1f\" y2=\"%.1f\"/>"
			"<text x=\"%.0f\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n",
			LEFT, WIDTH - RIGHT, at, at, LEFT - 6, at + 4, text);
}

/* Every decade; where there are few, 2 and 5 times it too. */
static void log_ticks(FILE *f, const struct axis *a, bool x)
{
	bool fine = a->hi - a->lo < 3;
	int first = (int)floor(a->lo), last = (int)floor(a->hi);

	for (int d = first; d <= last; d++) {
		tick(f, a, x, pow(10, d));
		if (fine) {
			tick(f, a, x, 2 * pow(10, d));
			tick(f, a, x, 5 * pow(10, d));
		}
	}
}

static void ticks(FILE *f, const struct axis *a, bool x, bool whole)
{
	double step, first;
	int n;

	if (a->log) {
		log_ticks(f, a, x);
		return;
	}
	step = nice_step(a->hi - a->lo, x ? 8 : 5);
	if (whole && step < 1)
		step = 1;
	first = ceil(a->lo / step - 1e-9);
	n = (int)floor(a->hi / step + 1e-9 - first);
	for (int i = 0; i <= n; i++)
		tick(f, a, x, (first + i) * step);
}

static void labels(FILE *f, const struct svg_plot *p)
{
	fprintf(f, "<text x=\"%.0f\" y=\"%.0f\" text-anchor=\"middle\">",
		(LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8);
	svg_escape(f, p->x_label ? p->x_label : "");
	fprintf(f,
		"</text><text transform=\"translate(13 %.0f) rotate(-90)\" text-anchor=\"middle\">",
		(TOP + HEIGHT - BOTTOM) / 2);
	svg_escape(f, p->y_label ? p->y_label : "");
	fprintf(f, "</text>\n<line class=axis x1=\"%.0f\" x2=\"%.0f\" y1=\"%.0f\" y2=\"%.0f\"/>\n",
		LEFT, WIDTH - RIGHT, HEIGHT - BOTTOM, HEIGHT - BOTTOM);
}

static void key(FILE *f, const struct svg_plot *p, bool lines)
{
	if (p->nseries < 2 && lines && !p->series[0].name)
		return;
	fputs("<div class=key>", f);
	for (size_t i = 0; i < p->nseries; i++) {
		fputs("<span><svg viewBox=\"0 0 26 10\" aria-hidden=\"true\">", f);
		if (lines)
			fprintf(f, "<line class=\"l s%zu\" x1=\"0\" x2=\"26\" y1=\"5\" y2=\"5\"/>",
				i % COLOURS);
		else
			fprintf(f, "<rect class=f%zu width=\"26\" height=\"10\"/>", i % COLOURS);
		fputs("</svg>", f);
		svg_escape(f, p->series[i].name ? p->series[i].name : "");
		fputs("</span>", f);
	}
	fputs("</div>\n", f);
}

static void begin(FILE *f, const struct svg_plot *p, bool lines)
{
	fputs("<figure><figcaption>", f);
	svg_escape(f, p->title);
	if (p->desc) {
		fputs("<span>", f);
		svg_escape(f, p->desc);
		fputs("</span>", f);
	}
	fputs("</figcaption>\n", f);
	key(f, p, lines);
	fprintf(f, "<svg class=plot viewBox=\"0 0 %.0f %.0f\" role=\"img\"><title>", WIDTH, HEIGHT);
	svg_escape(f, p->title);
	fputs("</title><desc>", f);
	svg_escape(f, p->desc ? p->desc : p->title);
	fputs("</desc>\n", f);
}

static void end(FILE *f)
{
	fputs("</svg></figure>\n", f);
}

static void tooltip(FILE *f, const char *name, double x, const char *group, double y)
{
	fputs("<title>", f);
	if (name) {
		svg_escape(f, name);
		fputs(", ", f);
	}
	if (group)
		svg_escape(f, group);
	else
		fprintf(f, "%.6g", x);
	fprintf(f, ": %.6g</title>", y);
}

static void whisker(FILE *f, double x, double lo, double hi)
{
	if (!isfinite(lo) || !isfinite(hi))
		return;
	fprintf(f, "<path class=w fill=\"none\" d=\"M%.1f %.1fV%.1fM%.1f %.1fh8M%.1f %.1fh8\"/>\n",
		x, lo, hi, x - 4, lo, x - 4, hi);
}

/* Points closer than half a unit of the picture say nothing new. */
static void line_path(FILE *f, const struct svg_plot *p, const struct svg_series *s,
		      const struct axis *ax, const struct axis *ay, size_t colour)
{
	double last_x = -1e9, last_y = -1e9;
	bool pen = false;

	fprintf(f, "<path class=\"l s%zu\" d=\"", colour);
	for (size_t i = 0; i < s->n; i++) {
		double x = place(ax, s->x[i]), y = place(ay, s->y[i]);

		if (!isfinite(x) || !isfinite(y)) {
			pen = false;
			continue;
		}
		if (pen && i + 1 < s->n && fabs(x - last_x) < 0.5 && fabs(y - last_y) < 0.5)
			continue;
		if (pen && p->steps)
			fprintf(f, "H%.1f", x);
		fprintf(f, "%s%.1f %.1f", pen ? "L" : "M", x, y);
		last_x = x;
		last_y = y;
		pen = true;
	}
	fputs("\"/>\n", f);
}

static void line_points(FILE *f, const struct svg_plot *p, const struct svg_series *s,
			const struct axis *ax, const struct axis *ay, size_t colour)
{
	for (size_t i = 0; i < s->n && i < DOTS_MAX; i++) {
		double x = place(ax, s->x[i]), y = place(ay, s->y[i]);

		if (!isfinite(x) || !isfinite(y))
			continue;
		if (s->lo && s->hi)
			whisker(f, x, place(ay, s->lo[i]), place(ay, s->hi[i]));
		if (!p->points)
			continue;
		fprintf(f, "<circle class=f%zu cx=\"%.1f\" cy=\"%.1f\" r=\"3.2\">", colour, x, y);
		tooltip(f, s->name, s->x[i], NULL, s->y[i]);
		fputs("</circle>\n", f);
	}
}

static struct axis y_axis(const struct svg_plot *p, bool zero)
{
	struct axis a = {.lo = INFINITY, .hi = -INFINITY, .log = p->y_log};

	a.from = HEIGHT - BOTTOM;
	a.to = TOP;
	for (size_t i = 0; i < p->nseries; i++) {
		for (size_t j = 0; j < p->series[i].n; j++) {
			widen(&a, p->series[i].y[j]);
			if (p->series[i].lo && p->series[i].hi) {
				widen(&a, p->series[i].lo[j]);
				widen(&a, p->series[i].hi[j]);
			}
		}
	}
	settle(&a, zero, false);
	return a;
}

void svg_lines(FILE *f, const struct svg_plot *p)
{
	struct axis ax = {.lo = INFINITY, .hi = -INFINITY, .log = p->x_log};
	struct axis ay = y_axis(p, p->y_zero);

	ax.from = p->x_reverse ? WIDTH - RIGHT : LEFT;
	ax.to = p->x_reverse ? LEFT : WIDTH - RIGHT;
	for (size_t i = 0; i < p->nseries; i++)
		for (size_t j = 0; j < p->series[i].n; j++)
			widen(&ax, p->series[i].x[j]);
	settle(&ax, false, p->x_whole);
	begin(f, p, true);
	ticks(f, &ax, true, p->x_whole);
	ticks(f, &ay, false, false);
	labels(f, p);
	for (size_t i = 0; i < p->nseries; i++) {
		line_path(f, p, &p->series[i], &ax, &ay, i % COLOURS);
		line_points(f, p, &p->series[i], &ax, &ay, i % COLOURS);
	}
	end(f);
}

static void one_bar(FILE *f, const struct svg_plot *p, const struct axis *ay, size_t series,
		    size_t g, double x, double width)
{
	const struct svg_series *s = &p->series[series];
	double y = place(ay, s->y[g]), zero = ay->log ? ay->from : place(ay, 0);

	if (!isfinite(y))
		return;
	fprintf(f, "<rect class=f%zu x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\">",
		series % COLOURS, x, fmin(y, zero), width, fabs(zero - y));
	tooltip(f, s->name, 0, p->group ? p->group[g] : "", s->y[g]);
	fputs("</rect>\n", f);
	if (s->lo && s->hi)
		whisker(f, x + width / 2, place(ay, s->lo[g]), place(ay, s->hi[g]));
}

void svg_bars(FILE *f, const struct svg_plot *p)
{
	struct axis ay = y_axis(p, true);
	size_t groups = p->nseries ? p->series[0].n : 0;
	double room = groups ? (WIDTH - LEFT - RIGHT) / (double)groups : 0, width;

	if (p->y_log) { /* a bar of the least value is still seen */
		ay.lo = floor(ay.lo);
		ay.hi = ceil(ay.hi);
	}
	width = fmin(room * 0.75 / (double)(p->nseries ? p->nseries : 1), 60);
	begin(f, p, false);
	ticks(f, &ay, false, false);
	labels(f, p);
	for (size_t g = 0; g < groups; g++) {
		double middle = LEFT + ((double)g + 0.5) * room;

		for (size_t s = 0; s < p->nseries; s++)
			one_bar(f, p, &ay, s, g,
				middle + ((double)s - (double)p->nseries / 2) * width, width - 1);
		fprintf(f, "<text x=\"%.1f\" y=\"%.0f\" text-anchor=\"middle\">", middle,
			HEIGHT - BOTTOM + 16);
		svg_escape(f, p->group ? p->group[g] : "");
		fputs("</text>\n", f);
	}
	end(f);
}
