// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
/* What the runner tells: TAP, and the table of docs/conformance.md. Called by main.c only. */
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#include "report.h"

static const char *mode_name(enum conf_mode m)
{
	return m == CONF_SKB ? "SKB" : m == CONF_DRV ? "DRV" : "ANY";
}

static const char *yes(bool b)
{
	return b ? "yes" : "no";
}

/* The probed facts, a line each, after prefix. */
static void tell_kernel(FILE *f, const char *prefix)
{
	const struct conf_kernel *k = &conf->k;

	fprintf(f, "%spackets of several fragments: %s, at most %u sent\n", prefix, yes(k->sg),
		k->frags);
	fprintf(f, "%sinvalid TX descriptors come back as completions: %s\n", prefix,
		yes(k->reclaims_invalid));
	fprintf(f, "%sa bad fragment takes the rest of its packet with it: %s\n", prefix,
		k->sg ? yes(k->drains_contd) : "-");
	fprintf(f, "%sa completion keeps bit 0 of an odd address: %s\n", prefix,
		yes(k->odd_verbatim));
	fprintf(f,
		"%sthe TX consumer index shows an unfinished sendto()'s work only after the next: "
		"%s\n",
		prefix, yes(k->late_index));
	fprintf(f, "%sa descriptor of length 0 is invalid: %s\n", prefix, yes(k->zero_invalid));
	fprintf(f, "%san invalid descriptor ends the sendto(): %s\n", prefix,
		yes(k->bad_ends_call));
	fprintf(f,
		"%sone sendto() handles %u descriptors (settable: %s), says EAGAIN for more: %s\n",
		prefix, k->tx_budget, yes(k->budget_settable), yes(k->again_when_more));
	fprintf(f, "%sframes shorter than 14 bytes are refused: %s\n", prefix,
		yes(k->short_refused));
	fprintf(f, "%slargest UMEM headroom: %u of 4096, %u of 2048\n", prefix, k->headroom_4k,
		k->headroom_2k);
	fprintf(f, "%sTX metadata: %s; software checksum: %s\n", prefix, yes(k->tx_metadata),
		yes(k->sw_csum));
	fprintf(f, "%sunaligned frames may cross 4 KiB pages (copied): %s; 2 MiB pages here: %s\n",
		prefix, yes(k->unaligned_pages), yes(k->hugepages));
}

void report_start(struct report *r, uint32_t tests)
{
	struct utsname u;
	char date[32] = "";
	time_t now = time(NULL);
	struct tm tm;

	uname(&u);
	r->begin_ms = conf_now_ms();
	printf("TAP version 13\n# kernel %s %s, seed %llu\n", u.release, u.machine,
	       (unsigned long long)conf->seed);
	tell_kernel(stdout, "# ");
	printf("1..%u\n", tests);
	if (!r->markdown)
		return;
	if (gmtime_r(&now, &tm))
		strftime(date, sizeof(date), "%Y-%m-%d", &tm);
	fprintf(r->markdown, "## Linux %s (%s), veth, %s\n\n", u.release, u.machine, date);
	tell_kernel(r->markdown, "- ");
	fprintf(r->markdown, "\n| row | test | SKB | DRV | what |\n|---|---|---|---|---|\n");
}

static void flush_row(struct report *r)
{
	const struct conf_test *t = r->row;

	if (!r->markdown || !t)
		return;
	for (char *c = r->note; *c; c++)
		if (*c == '|' || *c == '\n')
			*c = ' ';
	fprintf(r->markdown, t->row ? "| %d " : "| ", t->row);
	if (t->modes & CONF_ANY)
		fprintf(r->markdown, "| %s | %s | | ", t->name, r->verdict[2]);
	else
		fprintf(r->markdown, "| %s | %s | %s | ", t->name, r->verdict[0], r->verdict[1]);
	fprintf(r->markdown, "%s%s%s%s |\n", t->what ? t->what : "", r->note[0] ? " (" : "",
		r->note, r->note[0] ? ")" : "");
}

void report_begin(struct report *r, const struct conf_test *t)
{
	flush_row(r);
	r->row = t;
	r->note[0] = '\0';
	memset(r->verdict, 0, sizeof(r->verdict));
}

void report_verdict(struct report *r, const struct conf_test *t, enum conf_mode mode, int verdict,
		    uint64_t ms)
{
	uint32_t n = r->passed + r->failed + r->skipped + 1;
	const char *word = verdict == CONF_OK ? "pass" : verdict == CONF_SKIP ? "skip" : "FAIL";

	snprintf(r->verdict[mode == CONF_ANY ? 2 : mode - 1], sizeof(r->verdict[0]), "%s", word);
	if (conf->text[0] && !strstr(r->note, conf->text))
		snprintf(r->note, sizeof(r->note), "%s", conf->text);
	printf("%sok %u - %s %s", verdict == CONF_FAIL ? "not " : "", n, mode_name(mode), t->name);
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

int report_end(struct report *r)
{
	flush_row(r);
	printf("# %llu ms\n", (unsigned long long)(conf_now_ms() - r->begin_ms));
	printf("%u passed, %u failed, %u skipped\n", r->passed, r->failed, r->skipped);
	if (r->markdown) {
		fprintf(r->markdown, "\n%u passed, %u failed, %u skipped.\n", r->passed, r->failed,
			r->skipped);
		if (fclose(r->markdown))
			return CONF_FAIL;
	}
	return r->failed ? CONF_FAIL : CONF_OK;
}
