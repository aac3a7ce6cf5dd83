/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/* The option table: cli.c parses by it, cli_help.c prints it. */
#ifndef XDPATH_CLI_OPTIONS_H
#define XDPATH_CLI_OPTIONS_H

#include "cli.h"

enum kind {
	K_FLAG,
	K_MODE,
	K_ATTACH,
	K_ACTIONS,
	K_QUEUES,
	K_U32,
	K_U64,
	K_SECONDS,
	K_CPUS,
	K_SET,
	K_CONFIG,
	K_STEER,
	K_RULE,
	K_RULES,
	K_TEXT,
	K_ENGINE,
	K_KNOB,
	K_VERBOSE
};

struct option_def {
	const char *name;
	char letter; /* 0 none */
	const char *arg;
	enum kind kind;
	size_t offset;
	unsigned int verbs;
	const char *text;
};

extern const struct option_def options[];
extern const size_t noptions;

void help_all(void);
void help_verb(const struct verb *v);
void help_knobs(void);
void help_rules(void);

#endif
