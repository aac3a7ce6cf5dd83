/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * Rules from a file: one a line, `#` begins a comment. All of them or none; nothing is read further
 * than the first fault. Called by the command's -f and by applications.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rule_list.h"

enum { LINE_MOST = 4096 }; /* with its comment */

struct reading {
	FILE *f;
	const char *path;
	struct xdpath_diag *diag;
	struct xdpath_rules got; /* id: the line */
	uint32_t line;
	int err;
};

static int fail_line(const struct reading *in, uint32_t line, int err,
		     const struct xdpath_diag *why)
{
	return xdpath_fail(in->diag, why->reason, -err, "%.100s:%u: %.280s", in->path, line,
			   why->text);
}

/* A line into buf; false at the end, or with in->err. Read by hand: a line's length is bounded, no
 * byte may be 0. */
static bool read_line(struct reading *in, char *buf)
{
	struct xdpath_diag why = {.reason = XDPATH_R_OPTIONS};
	size_t n = 0;
	int c;

	buf[0] = '\0';
	in->line++;
	while ((c = getc_unlocked(in->f)) != EOF && c != '\n') {
		if (!c || n == LINE_MOST - 1) {
			snprintf(why.text, sizeof(why.text),
				 c ? "the line is too long; name a file of one rule a line"
				   : "holds a byte 0; name a file of text");
			in->err = fail_line(in, in->line, -EINVAL, &why);
			return false;
		}
		buf[n++] = (char)c;
	}
	if (c == EOF && ferror(in->f)) {
		in->err = xdpath_fail(in->diag, XDPATH_R_OPTIONS, EIO,
				      "%.100s: cannot be read (%s); name a file of one rule a line",
				      in->path, strerror(errno));
		return false;
	}
	while (n && (buf[n - 1] == '\r' || buf[n - 1] == ' ' || buf[n - 1] == '\t'))
		n--;
	buf[n] = '\0';
	return c != EOF || n;
}

/* A # outside of quotes, at a word's beginning. */
static void cut_comment(char *line)
{
	char quote = 0;

	for (char *c = line; *c; c++) {
		if (quote == '"' && *c == '\\' && c[1])
			c++;
		else if (quote)
			quote = *c == quote ? 0 : quote;
		else if (*c == '"' || *c == '\'')
			quote = *c;
		else if (*c == '#' && (c == line || c[-1] == ' ' || c[-1] == '\t'))
			*c = '\0';
		if (!*c)
			break;
	}
}

static int take_line(struct reading *in, char *line)
{
	struct xdpath_diag why = {0};
	struct xdpath_rule r;
	int err;

	cut_comment(line);
	if (!line[strspn(line, " \t")])
		return 0;
	err = xdpath_rule_parse(&r, line, &why);
	if (!err)
		err = xdpath_rules_reserve(&in->got, 1, &why);
	if (err) {
		xdpath_rule_clear(&r);
		return fail_line(in, in->line, err, &why);
	}
	r.id = in->line;
	in->got.rule[in->got.n++] = r;
	return 0;
}

int xdpath_rules_load(struct xdpath_rules *l, const char *path, struct xdpath_diag *diag)
{
	struct reading in = {.path = path, .diag = diag};
	struct xdpath_diag why = {0};
	char line[LINE_MOST];
	uint32_t at = UINT32_MAX;
	int err;

	in.f = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
	if (!in.f)
		return xdpath_fail(diag, XDPATH_R_OPTIONS, errno,
				   "%.100s: %s; name a file of one rule a line, or - for standard "
				   "input",
				   path, strerror(errno));
	while (!in.err && read_line(&in, line))
		in.err = take_line(&in, line);
	if (in.f != stdin)
		fclose(in.f);
	err = in.err;
	if (!err) {
		err = xdpath_rules_join(l, &in.got, &at, &why);
		if (err)
			fail_line(&in, at == UINT32_MAX ? in.line : in.got.rule[at].id, err, &why);
	}
	xdpath_rules_clear(&in.got);
	return err;
}
