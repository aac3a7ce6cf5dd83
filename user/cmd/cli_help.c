/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/* Help: made from the tables of verbs, options and knobs. */
#include <stdio.h>

#include "cli_options.h"

void help_all(void)
{
	printf("usage: xdpath VERB [DEV] [options]\n\n");
	for (size_t i = 0; i < V_COUNT; i++)
		printf("  %-16s %s\n", verbs[i].synopsis, verbs[i].text);
	printf("\n  help [VERB]      options and examples of a verb\n"
	       "  help knobs       the knobs for --set and --config\n\n"
	       "Exit codes: 0 done, 1 failed, 2 usage, 3 a required mode or feature is not to be "
	       "had.\n");
}

void help_verb(const struct verb *v)
{
	char left[40];

	printf("usage: xdpath %s [options]\n  %s\n\noptions:\n", v->synopsis, v->text);
	for (size_t i = 0; i < noptions; i++) {
		const struct option_def *o = &options[i];

		if (!(o->verbs & VERB(v->id)))
			continue;
		snprintf(left, sizeof(left), "%s%c%s--%s%s%s", o->letter ? "-" : "",
			 o->letter ? o->letter : ' ', o->letter ? ", " : "   ", o->name,
			 o->arg && o->arg[0] != '[' ? " " : "", o->arg ? o->arg : "");
		printf("  %-26s %s\n", left, o->text);
	}
	printf("\nexamples:\n  %s\n", v->examples);
}

void help_knobs(void)
{
	struct xdpath_knobs k;
	const struct xdpath_knob *t;
	char value[32];
	size_t n;

	xdpath_knobs_defaults(&k);
	t = xdpath_knob_table(&n);
	printf("%-18s %-8s %-8s %s\n", "KNOB", "DEFAULT", "UNIT", "MEANING");
	for (size_t i = 0; i < n; i++) {
		xdpath_knob_print(&k, &t[i], value, sizeof(value));
		printf("%-18s %-8s %-8s %s\n", t[i].name, value, t[i].unit, t[i].text);
	}
}
