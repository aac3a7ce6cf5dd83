// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
/* What the runner tells: TAP, and the table of docs/conformance.md. Called by main.c only. */
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#include <xdpath/xdpath.h>

#include "report.h"

/* The columns; where the mode does not matter one mark stands in the first. */
static const struct {
	enum conf_mode mode;
	const char *name;
} columns[REPORT_COLUMNS] = {{CONF_SKB, "SKB"},
			     {CONF_DRV, "DRV"},
			     {CONF_ZC, "ZC"},
			     {CONF_ANY, "ANY"}};

static uint32_t column_of(enum conf_mode m)
{
	for (uint32_t i = 0; i < REPORT_COLUMNS; i++)
		if (columns[i].mode == m)
			return i;
	return 0;
}

static const char *yes(bool b)
{
	return b ? "yes" : "no";
}

/* The probed facts, a line each, after prefix. */
static void tell_kernel(FILE *f, const char *prefix)
{
	const struct conf_kernel *k = &conf->k;
	const bool zc = conf->mode == CONF_ZC;

	fprintf(f, "%spackets of several fragments: %s, at most %u sent\n", prefix, yes(k->sg),
		k->frags);
	fprintf(f, "%sinvalid TX descriptors come back as completions: %s\n", prefix,
		yes(k->reclaims_invalid));
	fprintf(f, "%sso do the good fragments before a bad one: %s\n", prefix,
		k->sg ? yes(k->reclaims_lead) : "-");
	fprintf(f, "%sa bad fragment takes the rest of its packet with it: %s\n", prefix,
		k->sg ? yes(k->drains_contd) : "-");
	fprintf(f, "%sa completion keeps bit 0 of an odd address: %s\n", prefix,
		yes(k->odd_verbatim));
	if (!zc)
		fprintf(f,
			"%sthe TX consumer index shows an unfinished sendto()'s work only after "
			"the next: "
			"%s\n",
			prefix, yes(k->late_index));
	fprintf(f, "%sa descriptor of length 0 is invalid: %s\n", prefix, yes(k->zero_invalid));
	fprintf(f, "%san invalid descriptor ends the %s: %s\n", prefix,
		zc ? "driver's look into the ring" : "sendto()", yes(k->bad_ends_call));
	if (!zc)
		fprintf(f,
			"%sone sendto() handles %u descriptors (settable: %s), says EAGAIN for "
			"more: %s\n",
			prefix, k->tx_budget, yes(k->budget_settable), yes(k->again_when_more));
	if (!zc)
		fprintf(f, "%sframes shorter than 14 bytes are refused: %s\n", prefix,
			yes(k->short_refused));
	fprintf(f, "%slargest UMEM headroom: %u of 4096, %u of 2048\n", prefix, k->headroom_4k,
		k->headroom_2k);
	fprintf(f, "%sTX metadata: %s; software checksum: %s\n", prefix, yes(k->tx_metadata),
		yes(k->sw_csum));
	if (!zc)
		fprintf(f, "%sunaligned frames may cross 4 KiB pages (copied): %s\n", prefix,
			yes(k->unaligned_pages));
	fprintf(f, "%s2 MiB pages here: %s\n", prefix, yes(k->hugepages));
}

/* What the tests run on, in words. */
static void where(char *text, size_t size)
{
	struct xdpath_port p;

	if (!conf->nic)
		snprintf(text, size, "veth");
	else if (xdpath_port_query(&p, NET_B, NULL) == 0)
		snprintf(text, size, "%s", p.driver);
	else
		snprintf(text, size, "%s", NET_B);
}

void report_start(struct report *r, uint32_t tests, uint32_t modes)
{
	char date[32] = "", device[64];
	struct utsname u;
	time_t now = time(NULL);
	struct tm tm;

	uname(&u);
	where(device, sizeof(device));
	r->begin_ms = conf_now_ms();
	r->modes = modes;
	printf("TAP version 13\n1..%u\n# kernel %s %s, %s, seed %llu\n", tests, u.release,
	       u.machine, device, (unsigned long long)conf->seed);
	if (!r->markdown)
		return;
	if (gmtime_r(&now, &tm))
		strftime(date, sizeof(date), "%Y-%m-%d", &tm);
	fprintf(r->markdown, "## Linux %s (%s), %s, %s\n\n", u.release, u.machine, device, date);
}

void report_kernel(struct report *r, enum conf_mode mode)
{
	const char *name = columns[column_of(mode)].name;

	if (mode != CONF_ANY)
		printf("# %s:\n", name);
	tell_kernel(stdout, "# ");
	if (!r->markdown)
		return;
	if (mode != CONF_ANY)
		fprintf(r->markdown, "%s:\n\n", name);
	tell_kernel(r->markdown, "- ");
	fprintf(r->markdown, "\n");
}

static struct report_row *row_of(struct report *r, const struct conf_test *t)
{
	for (uint32_t i = 0; i < r->nrows; i++)
		if (r->row[i].t == t)
			return &r->row[i];
	if (r->nrows == REPORT_ROWS_MAX)
		return NULL;
	r->row[r->nrows].t = t;
	return &r->row[r->nrows++];
}

void report_verdict(struct report *r, const struct conf_test *t, enum conf_mode mode, int verdict,
		    uint64_t ms)
{
	uint32_t n = r->passed + r->failed + r->skipped + 1;
	struct report_row *row = row_of(r, t);
	const char *word = verdict == CONF_OK ? "pass" : verdict == CONF_SKIP ? "skip" : "FAIL";

	if (row) {
		row->verdict[column_of(mode)] = word;
		if (conf->text[0] && !strstr(row->note, conf->text))
			snprintf(row->note, sizeof(row->note), "%s", conf->text);
	}
	printf("%sok %u - %s %s", verdict == CONF_FAIL ? "not " : "", n,
	       columns[column_of(mode)].name, t->name);
	if (verdict == CONF_SKIP)
		printf(" # SKIP %s\n", conf->text);
	else
		printf(" # %llu ms%s%s\n", (unsigned long long)ms, conf->text[0] ? "; " : "",
		       conf->text);
	r->passed += verdict == CONF_OK;
	r->failed += verdict == CONF_FAIL;
	r->skipped += verdict == CONF_SKIP;
	fflush(stdout);
}

static void write_row(const struct report *r, struct report_row *row)
{
	const struct conf_test *t = row->t;
	const char *any = row->verdict[column_of(CONF_ANY)];

	for (char *c = row->note; *c; c++)
		if (*c == '|' || *c == '\n')
			*c = ' ';
	fprintf(r->markdown, t->row ? "| %d " : "| ", t->row);
	fprintf(r->markdown, "| %s ", t->name);
	for (uint32_t i = 0; i < REPORT_COLUMNS; i++) {
		if (!(r->modes & columns[i].mode))
			continue;
		fprintf(r->markdown, "| %s%s",
			any		  ? any
			: row->verdict[i] ? row->verdict[i]
					  : "",
			any || row->verdict[i] ? " " : "");
		any = any ? "" : NULL;
	}
	fprintf(r->markdown, "| %s%s%s%s |\n", t->what ? t->what : "", row->note[0] ? " (" : "",
		row->note, row->note[0] ? ")" : "");
}

static int write_table(struct report *r)
{
	uint32_t shown = 0;

	fprintf(r->markdown, "| row | test ");
	for (uint32_t i = 0; i < REPORT_COLUMNS; i++)
		if (r->modes & columns[i].mode) {
			fprintf(r->markdown, "| %s ", columns[i].name);
			shown++;
		}
	fprintf(r->markdown, "| what |\n|---|---|---|");
	while (shown--)
		fprintf(r->markdown, "---|");
	fprintf(r->markdown, "\n");
	for (uint32_t i = 0; i < r->nrows; i++)
		write_row(r, &r->row[i]);
	fprintf(r->markdown, "\n%u passed, %u failed, %u skipped.\n", r->passed, r->failed,
		r->skipped);
	return fclose(r->markdown) ? CONF_FAIL : CONF_OK;
}

int report_end(struct report *r)
{
	printf("# %llu ms\n", (unsigned long long)(conf_now_ms() - r->begin_ms));
	printf("%u passed, %u failed, %u skipped\n", r->passed, r->failed, r->skipped);
	if (r->markdown && write_table(r) != CONF_OK)
		return CONF_FAIL;
	return r->failed ? CONF_FAIL : CONF_OK;
}
