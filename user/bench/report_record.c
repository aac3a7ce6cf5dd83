/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/* Who took part, what was lost, and the conditions, as text. Called by report_text.c. */
#include <string.h>

#include "report_in.h"

static const char *const end_name[] = {"local", "remote"};

static void text_end(const struct bench_report *b, FILE *f, enum end e)
{
	const struct test_side *s = side_of(b->run, e);
	char cpus[64];
	struct wrap w;

	wrap_start(&w, f, end_name[e]);
	wrap_item(&w, "%s", s->host[0] ? s->host : "-");
	wrap_item(&w, "%s (%s)", s->dev[0] ? s->dev : "-",
		  s->driver[0] ? s->driver : "driver not told");
	wrap_item(&w, "mode %s", s->mode[0] ? s->mode : "-");
	cpus_text(e == LOCAL ? &b->spec->cpus : &b->spec->peer_cpus, cpus, sizeof(cpus));
	wrap_item(&w, strcmp(cpus, "not pinned") == 0 ? "%s" : "on CPU %s", cpus);
	if (s->mode_why[0])
		wrap_item(&w, "not better because: %s", s->mode_why);
	wrap_end(&w);
}

void text_ends(const struct bench_report *b, FILE *f)
{
	if (!b->nruns)
		return;
	text_end(b, f, LOCAL);
	text_end(b, f, REMOTE);
	if (same_machine(b))
		fprintf(f,
			"%*sboth ends share one machine: what is told of the machine stands "
			"once\n",
			INDENT, "");
}

void text_losses(const struct bench_report *b, FILE *f)
{
	struct grid g = {0};

	grid_row(&g, "lost");
	grid_add(&g, "local");
	grid_add(&g, "remote");
	grid_add(&g, "packets unless said otherwise, all runs");
	for (size_t i = 0; i < report_nlosses; i++) {
		uint64_t here = loss_sum(b, LOCAL, &report_losses[i]);
		uint64_t there = loss_sum(b, REMOTE, &report_losses[i]);

		if (!here && !there)
			continue;
		grid_row(&g, "%s", report_losses[i].key);
		grid_add(&g, "%llu", (unsigned long long)here);
		grid_add(&g, "%llu", (unsigned long long)there);
		grid_add(&g, "%s", report_losses[i].text);
	}
	if (g.rows > 1)
		grid_print(&g, f);
	else
		fprintf(f, "  %-*snothing, at neither end\n", INDENT - 2, "lost");
}

/* A value in a few characters: objects as "a 1 b 2", empty texts as "none". */
static void short_value(const json_t *v, char *buf, size_t size)
{
	const char *key;
	json_t *one;
	size_t at = 0, i;

	buf[0] = '\0';
	switch (json_typeof(v)) {
	case JSON_STRING:
		snprintf(buf, size, "%s", json_string_length(v) ? json_string_value(v) : "none");
		break;
	case JSON_INTEGER: snprintf(buf, size, "%lld", (long long)json_integer_value(v)); break;
	case JSON_REAL: number_text(json_real_value(v), buf, size); break;
	case JSON_TRUE: snprintf(buf, size, "yes"); break;
	case JSON_FALSE: snprintf(buf, size, "no"); break;
	case JSON_NULL: snprintf(buf, size, "not known"); break;
	case JSON_OBJECT:
		json_object_foreach((json_t *)v, key, one)
		{
			char text[128];

			short_value(one, text, sizeof(text));
			if (at < size)
				at += (size_t)snprintf(buf + at, size - at, "%s%s %s",
						       at ? " " : "", key, text);
		}
		break;
	case JSON_ARRAY:
		json_array_foreach(v, i, one)
		{
			char text[128];

			short_value(one, text, sizeof(text));
			if (at < size)
				at += (size_t)snprintf(buf + at, size - at, "%s%s", at ? " " : "",
						       text);
		}
		break;
	}
	/* another host's words end on this terminal */
	for (char *c = buf; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
}

/* Nothing set on any queue: {"rx-0": "", "rx-1": 0}. */
static bool all_off(const json_t *v)
{
	const char *key;
	json_t *one;

	if (!json_is_object(v))
		return false;
	json_object_foreach((json_t *)v, key, one) if (json_string_length(one) ||
						       json_integer_value(one)) return false;
	return true;
}

/* What is printed, in this order; `unit` follows the value. */
static const struct {
	const char *key, *text, *unit;
} shown[] = {
	{"version", "xdpath", ""},
	{"date", "", ""},
	{"kernel", "Linux", ""},
	{"cpu_model", "", ""},
	{"cpus", "", " CPUs"},
	{"virtual_machine", "virtual machine", ""},
	{"clocksource", "clock", ""},
	{"governor", "governor", ""},
	{"driver", "driver", ""},
	{"mtu_bytes", "MTU", ""},
	{"queues", "queues", ""},
	{"rings", "rings", ""},
	{"coalescing", "coalescing", ""},
	{"irq_cpus", "IRQ on CPU", ""},
	{"rps", "RPS", ""},
	{"rfs", "RFS", ""},
	{"xps", "XPS", ""},
	{"tcp_autocorking", "autocorking", ""},
	{"netfilter_rules", "netfilter rules", ""},
	{"tracked_connections", "tracked connections", ""},
	{"other_load_cpus", "other load before", " CPUs"},
	{"steal_percent_since_boot", "steal since boot", " %"},
};

/* Of one end, or of the second what the first end has. */
static void text_unknown(const json_t *record, const json_t *before, struct wrap *w)
{
	char list[512];
	size_t at = 0;

	list[0] = '\0';
	for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++) {
		const json_t *v = json_object_get(record, shown[i].key);
		const json_t *other = json_object_get(before, shown[i].key);

		if ((v && !json_is_null(v)) || (before && (!other || json_is_null(other))))
			continue;
		if (at < sizeof(list))
			at += (size_t)snprintf(list + at, sizeof(list) - at, "%s%s", at ? ", " : "",
					       shown[i].text[0] ? shown[i].text : shown[i].key);
	}
	if (at)
		wrap_item(w, "not known or not there: %s (--json says why)", list);
}

/* Knobs that are not at their default. */
static void text_knobs(const json_t *record, struct wrap *w)
{
	const json_t *set = json_object_get(record, "knobs");
	struct xdpath_knobs defaults;
	const struct xdpath_knob *table;
	uint32_t others = 0;
	size_t n;

	if (!json_is_object(set))
		return;
	xdpath_knobs_defaults(&defaults);
	table = xdpath_knob_table(&n);
	for (size_t i = 0; i < n; i++) {
		const json_t *v = json_object_get(set, table[i].name);
		char usual[64], is[64];

		if (!v)
			continue;
		xdpath_knob_print(&defaults, &table[i], usual, sizeof(usual));
		short_value(v, is, sizeof(is));
		if (strcmp(usual, is) == 0)
			others++;
		else
			wrap_item(w, "%s = %s", table[i].name, is);
	}
	wrap_item(w, "%u knob%s at %s default%s", others, others == 1 ? "" : "s",
		  others == 1 ? "its" : "their", others == 1 ? "" : "s");
}

/* What the other end has told already is left out. */
static bool told(const json_t *before, const char *key, const json_t *v)
{
	return before && json_equal(json_object_get(before, key), v);
}

static void text_offloads(const json_t *record, const json_t *before, FILE *f)
{
	const json_t *list = json_object_get(record, "offloads");
	struct wrap w;
	json_t *one;
	size_t i;

	if (!json_is_array(list) || told(before, "offloads", list))
		return;
	wrap_start(&w, f, "  offloads");
	json_array_foreach(list, i, one)
	{
		char name[64];

		short_value(one, name, sizeof(name));
		w.joined = true;
		wrap_item(&w, "%s", name);
	}
	wrap_end(&w);
}

static void text_condition(const struct bench_report *b, FILE *f, enum end e)
{
	const json_t *record = record_of(b, e);
	const json_t *before = e == REMOTE && json_is_object(b->local) ? b->local : NULL;
	const char *but = before ? "but " : "";
	char value[512];
	struct wrap w;

	wrap_start(&w, f, end_name[e]);
	if (before)
		wrap_item(&w, "as the local end");
	for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++) {
		const json_t *v = json_object_get(record, shown[i].key);

		if (!v || json_is_null(v) || told(before, shown[i].key, v))
			continue;
		if (all_off(v))
			snprintf(value, sizeof(value), "off");
		else
			short_value(v, value, sizeof(value));
		wrap_item(&w, "%s%s%s%s%s", but, shown[i].text, shown[i].text[0] ? " " : "", value,
			  shown[i].unit);
		but = "";
	}
	text_unknown(record, before, &w);
	if (!told(before, "knobs", json_object_get(record, "knobs")))
		text_knobs(record, &w);
	wrap_end(&w);
	text_offloads(record, before, f);
}

void text_conditions(const struct bench_report *b, FILE *f)
{
	fprintf(f, "  conditions\n");
	for (int e = LOCAL; e <= REMOTE; e++) {
		if (json_is_object(record_of(b, (enum end)e)))
			text_condition(b, f, (enum end)e);
		else
			fprintf(f, "  %-*snot told by that end\n", INDENT - 2, end_name[e]);
	}
}
