/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * libFuzzer on the rule parser: any text is a rule or is refused in one line, and a rule is printed
 * so that it reads back as the same. Built by `make fuzz`.
 */
#include <netdb.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xdpath/rule.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* In place of the C library's: libpcap asks it for the hosts that a filter names. */
int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
		struct addrinfo **res)
{
	(void)node, (void)service, (void)hints, (void)res;
	return EAI_NONAME;
}

static void must(int holds, const char *what, const char *text)
{
	if (holds)
		return;
	fprintf(stderr, "%s: \"%s\"\n", what, text);
	abort();
}

static void reads_back(const struct xdpath_rule *r, const char *text)
{
	char canonical[XDPATH_RULE_TEXT_MAX], again[XDPATH_RULE_TEXT_MAX];
	struct xdpath_rule s;

	must(xdpath_rule_format(r, canonical, sizeof(canonical)) > 0, "is not printed", text);
	must(!xdpath_rule_parse(&s, canonical, NULL), "is printed as what is no rule", text);
	must(xdpath_rule_format(&s, again, sizeof(again)) > 0, "is not printed again", text);
	must(!strcmp(canonical, again), "reads back as another", text);
	must(xdpath_rule_specificity(r) == xdpath_rule_specificity(&s), "weighs another", text);
	must(r->prio == s.prio && r->fields == s.fields && r->action == s.action, "differs", text);
	xdpath_rule_clear(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct xdpath_diag d = {0};
	struct xdpath_rule r;
	char *text = malloc(size + 1); /* of this very size, so that a byte too far is seen */

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	if (xdpath_rule_parse(&r, text, &d)) {
		must(d.text[0] && !strchr(d.text, '\n'), "is refused without a line", text);
		must(!r.filter, "is refused with something left", text);
	} else {
		reads_back(&r, text);
		xdpath_rule_clear(&r);
	}
	free(text);
	return 0;
}
