/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * The command line: options are taken by the table in cli_options.c. Values that only one verb
 * knows (sizes, rates, addresses) stay text here and are read by the verb.
 */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <glob.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli_options.h"

int fail(const char *verb, enum exit_code code, const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "xdpath%s%s: ", verb ? " " : "", verb ? verb : "");
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	return code;
}

int fail_diag(const char *verb, const struct xdpath_diag *d, int err)
{
	enum exit_code code = EXIT_FAILED;

	switch (d->reason) {
	case XDPATH_R_NO_NATIVE:
	case XDPATH_R_NO_ZEROCOPY:
	case XDPATH_R_NO_FRAGMENTS:
	case XDPATH_R_KERNEL: code = EXIT_MISSING; break;
	case XDPATH_R_OPTIONS: code = EXIT_USAGE; break;
	default: break;
	}
	return fail(verb, code, "%s", d->text[0] ? d->text : strerror(err < 0 ? -err : err));
}

#define OPTIONS_MAX 64 /* of one verb; the table has fewer in all */

/* ---- values --------------------------------------------------------------------------------- */

static int bad_value(const char *verb, const struct option_def *o, const char *value,
		     const char *cure)
{
	return fail(verb, EXIT_USAGE, "--%s: \"%.60s\" is not understood; %s", o->name, value,
		    cure);
}

static int read_mode(const char *verb, const struct option_def *o, const char *value,
		     enum xdpath_mode *out)
{
	for (int m = XDPATH_MODE_AUTO; m <= XDPATH_MODE_ZEROCOPY; m++)
		if (strcmp(value, xdpath_mode_name((enum xdpath_mode)m)) == 0) {
			*out = (enum xdpath_mode)m;
			return 0;
		}
	return bad_value(verb, o, value, "give auto, zero-copy, copy or generic");
}

static int read_attach(const char *verb, const struct option_def *o, const char *value,
		       enum xdpath_attach *out)
{
	if (strcmp(value, "auto") == 0)
		*out = XDPATH_ATTACH_NONE;
	else if (strcmp(value, "native") == 0)
		*out = XDPATH_ATTACH_NATIVE;
	else if (strcmp(value, "generic") == 0 || strcmp(value, "skb") == 0)
		*out = XDPATH_ATTACH_GENERIC;
	else
		return bad_value(verb, o, value, "give auto, native or generic");
	return 0;
}

/* "pass,drop" or XDP_PASS,XDP_DROP: a bit each, by its number in the kernel. */
static int read_actions(const char *verb, const struct option_def *o, const char *value,
			uint32_t *out)
{
	static const char *const name[] = {"aborted", "drop", "pass", "tx", "redirect"};
	const char *at = value;
	size_t n, i;

	for (*out = 0; *at; at += n + (at[n] == ',')) {
		n = strcspn(at, ",");
		if (n > 4 && strncasecmp(at, "XDP_", 4) == 0) {
			at += 4;
			n -= 4;
		}
		for (i = 0; i < 5; i++)
			if (strlen(name[i]) == n && strncasecmp(at, name[i], n) == 0)
				break;
		if (i == 5)
			break;
		*out |= 1U << i;
	}
	return *out && !*at
		       ? 0
		       : bad_value(verb, o, value, "give some of aborted,drop,pass,tx,redirect");
}

/* "0-3,6": calls add() for each number; false when it is not such a list or goes past `most`. */
static bool read_list(const char *s, unsigned long most, void (*add)(struct args *, unsigned int),
		      struct args *a)
{
	unsigned long from, to;
	char *end;

	for (;;) {
		if (!isdigit((unsigned char)*s))
			return false;
		from = to = strtoul(s, &end, 10);
		if (*end == '-') {
			s = end + 1;
			if (!isdigit((unsigned char)*s))
				return false;
			to = strtoul(s, &end, 10);
		}
		if (from > to || to > most)
			return false;
		for (; from <= to; from++)
			add(a, (unsigned int)from);
		if (!*end)
			return true;
		if (*end != ',')
			return false;
		s = end + 1;
	}
}

static void add_queue(struct args *a, unsigned int q)
{
	for (uint32_t i = 0; i < a->nqueues; i++)
		if (a->queues[i] == q)
			return;
	a->queues[a->nqueues++] = q;
}

static void add_cpu(struct args *a, unsigned int cpu)
{
	CPU_SET(cpu, &a->cpus);
	a->have_cpus = true;
}

static int read_cpus(const char *verb, const struct option_def *o, const char *value,
		     struct args *a)
{
	cpu_set_t may;

	CPU_ZERO(&a->cpus);
	if (!read_list(value, CPU_SETSIZE - 1, add_cpu, a))
		return bad_value(verb, o, value, "give a list like 0-3,6");
	sched_getaffinity(0, sizeof(may), &may);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &a->cpus) && !CPU_ISSET(cpu, &may))
			return fail(verb, EXIT_USAGE,
				    "--cpus: CPU %d is not there or not allowed; `taskset -p $$` "
				    "shows which are",
				    cpu);
	return 0;
}

static int read_number(const char *verb, const struct option_def *o, const char *value,
		       uint64_t most, uint64_t *out)
{
	char *end, cure[64];

	errno = 0;
	*out = strtoull(value, &end, 10);
	if (isdigit((unsigned char)value[0]) && !*end && !errno && *out && *out <= most)
		return 0;
	snprintf(cure, sizeof(cure), "give a whole number from 1 to %llu",
		 (unsigned long long)most);
	return bad_value(verb, o, value, cure);
}

static int read_seconds(const char *verb, const struct option_def *o, const char *value,
			double *out)
{
	char *end;

	*out = strtod(value, &end);
	if (!isdigit((unsigned char)value[0]) || *end || !(*out > 0) || *out > 1e8)
		return bad_value(verb, o, value, "give seconds, more than 0");
	return 0;
}

static int read_set(const char *verb, const char *value, struct args *a)
{
	struct xdpath_diag d = {0};
	const char *eq = strchr(value, '=');
	char key[64];

	if (!eq || eq == value || (size_t)(eq - value) >= sizeof(key))
		return fail(verb, EXIT_USAGE,
			    "--set: \"%.60s\" is no KEY=VALUE; write for example rx.batch=32",
			    value);
	snprintf(key, sizeof(key), "%.*s", (int)(eq - value), value);
	if (xdpath_knob_set(&a->knobs, key, eq + 1, &d))
		return fail(verb, EXIT_USAGE, "%s", d.text);
	return 0;
}

static int read_config(const char *verb, const char *path, struct args *a)
{
	struct xdpath_diag d = {0};

	if (xdpath_knobs_load(&a->knobs, path, &d))
		return fail(verb, EXIT_USAGE, "%s", d.text);
	return 0;
}

static int read_steer(const char *verb, const struct option_def *o, const char *value,
		      struct args *a)
{
	a->steer_given = true;
	a->steer = value ? XDPATH_STEER_L2 : XDPATH_STEER_ALL;
	if (value && strcmp(value, "l2") != 0)
		return bad_value(verb, o, value, "give --all or --all=l2");
	return 0;
}

static int read_rule(const char *verb, const char *value, struct args *a)
{
	struct xdpath_diag d = {0};
	struct xdpath_rule r;
	int err = xdpath_rule_parse(&r, value, &d);

	a->rules_given = true;
	if (!err)
		err = xdpath_rules_add(&a->rules, &r, &d);
	if (err)
		xdpath_rule_clear(&r);
	return err ? fail_diag(verb, &d, err) : 0;
}

static int read_rules(const char *verb, const char *path, struct args *a)
{
	struct xdpath_diag d = {0};
	int err = xdpath_rules_load(&a->rules, path, &d);

	a->rules_given = true;
	return err ? fail_diag(verb, &d, err) : 0;
}

static int read_knob(const char *verb, const char *value, struct args *a)
{
	if (a->tune.nknobs == TUNE_ARGS_KNOBS)
		return fail(verb, EXIT_USAGE, "--knob %.60s: one too many; give %d at most", value,
			    TUNE_ARGS_KNOBS);
	a->tune.knob[a->tune.nknobs++] = value;
	return 0;
}

static int read_engine(const char *verb, const struct option_def *o, const char *value,
		       struct args *a)
{
	if (strcmp(value, "xsk") == 0)
		a->engine = ENGINE_XSK;
	else if (strcmp(value, "live") == 0)
		a->engine = ENGINE_LIVE;
	else
		return bad_value(verb, o, value, "give xsk or live");
	return 0;
}

static int take_option(const char *verb, const struct option_def *o, const char *value,
		       struct args *a)
{
	void *at = (char *)a + o->offset;
	uint64_t n = 0;
	int err;

	switch (o->kind) {
	case K_FLAG: *(bool *)at = true; return 0;
	case K_VERBOSE: a->verbose++; return 0;
	case K_TEXT: *(const char **)at = value; return 0;
	case K_MODE: return read_mode(verb, o, value, at);
	case K_ATTACH: return read_attach(verb, o, value, at);
	case K_ACTIONS: return read_actions(verb, o, value, at);
	case K_SECONDS: return read_seconds(verb, o, value, at);
	case K_U64: return read_number(verb, o, value, UINT64_MAX / 2, at);
	case K_U32:
		err = read_number(verb, o, value, 65536, &n);
		*(uint32_t *)at = (uint32_t)n;
		return err;
	case K_QUEUES:
		a->nqueues = 0;
		if (strcmp(value, "all") == 0 || read_list(value, XDPATH_QUEUES - 1, add_queue, a))
			return 0;
		return bad_value(verb, o, value,
				 "give all, or a list of queues 0 to 255 like 0-3,6");
	case K_CPUS: return read_cpus(verb, o, value, a);
	case K_SET: return read_set(verb, value, a);
	case K_CONFIG: return read_config(verb, value, a);
	case K_STEER: return read_steer(verb, o, value, a);
	case K_RULE: return read_rule(verb, value, a);
	case K_RULES: return read_rules(verb, value, a);
	case K_ENGINE: return read_engine(verb, o, value, a);
	case K_KNOB: return read_knob(verb, value, a);
	}
	return 0;
}

static const struct verb *find_verb(const char *name)
{
	/* as xdp-loader says it */
	if (strcmp(name, "load") == 0)
		name = "attach";
	else if (strcmp(name, "unload") == 0)
		name = "detach";
	for (size_t i = 0; i < V_COUNT; i++)
		if (strcmp(verbs[i].name, name) == 0)
			return &verbs[i];
	return NULL;
}

static int no_verb(const char *name)
{
	return fail(
		NULL, EXIT_USAGE,
		"%.40s: no such verb; use one of probe, attach, detach, status, steer, forward, "
		"reflect, sink, source, serve, bench, tune (`xdpath help`)",
		name);
}

static int help(const char *topic)
{
	const struct verb *v = topic ? find_verb(topic) : NULL;

	if (v)
		help_verb(v);
	else if (topic && strcmp(topic, "knobs") == 0)
		help_knobs();
	else if (topic && strcmp(topic, "rules") == 0)
		help_rules();
	else if (topic)
		return no_verb(topic);
	else
		help_all();
	return EXIT_DONE;
}

/* ---- parsing -------------------------------------------------------------------------------- */

static int has_arg(const struct option_def *o)
{
	if (!o->arg)
		return no_argument;
	return o->arg[0] == '[' ? optional_argument : required_argument;
}

/* The verb's share of the table in getopt's form; the value returned is the index + 256. */
static void make_getopt(const struct verb *v, struct option *lo, char *letters)
{
	size_t n = 0;

	*letters++ = ':';
	for (size_t i = 0; i < noptions; i++) {
		if (!(options[i].verbs & VERB(v->id)))
			continue;
		lo[n++] =
			(struct option){options[i].name, has_arg(&options[i]), NULL, (int)i + 256};
		if (options[i].letter) {
			*letters++ = options[i].letter;
			if (options[i].arg)
				*letters++ = ':';
		}
	}
	*letters = '\0';
	lo[n] = (struct option){0};
}

static const struct option_def *by_getopt(const struct verb *v, int c)
{
	if (c >= 256)
		return &options[c - 256];
	for (size_t i = 0; i < noptions; i++)
		if (options[i].letter == c && (options[i].verbs & VERB(v->id)))
			return &options[i];
	return NULL;
}

static int load_etc(const char *verb, struct args *a)
{
	glob_t g = {0};
	int err = 0;

	if (access("/etc/xdpath.conf", F_OK) == 0)
		err = read_config(verb, "/etc/xdpath.conf", a);
	if (!err && glob("/etc/xdpath.d/*.conf", 0, NULL, &g) == 0)
		for (size_t i = 0; !err && i < g.gl_pathc; i++)
			err = read_config(verb, g.gl_pathv[i], a);
	globfree(&g);
	return err;
}

static int take_devices(const struct verb *v, int argc, char **argv, struct args *a)
{
	int given = argc - optind;

	if (v->max_dev == VERB_WORDS && given > 1) {
		a->words = argv + optind + 1;
		a->nwords = given - 1;
		given = 1;
	}
	if (given < v->min_dev)
		return fail(v->name, EXIT_USAGE,
			    "no device named; usage: xdpath %s (`ip link` lists devices)",
			    v->synopsis);
	if (given > v->max_dev)
		return fail(v->name, EXIT_USAGE, "%.40s: one argument too many; usage: xdpath %s",
			    argv[optind + v->max_dev], v->synopsis);
	for (a->ndev = 0; a->ndev < given; a->ndev++)
		a->dev[a->ndev] = argv[optind + a->ndev];
	return 0;
}

/* 0, an exit code, or -1 when help was asked for and given. */
static int parse(const struct verb *v, int argc, char **argv, struct args *a)
{
	struct option lo[OPTIONS_MAX + 1];
	char letters[2 * OPTIONS_MAX + 2];
	const struct option_def *o;
	int c, err;

	xdpath_knobs_defaults(&a->knobs);
	a->interval = -1;
	err = load_etc(v->name, a);
	make_getopt(v, lo, letters);
	optind = 0; /* from the start: tune has a second command line */
	opterr = 0;
	while (!err && (c = getopt_long(argc, argv, letters, lo, NULL)) != -1) {
		if (c == ':')
			return fail(v->name, EXIT_USAGE,
				    "%s: a value is missing; see `xdpath help %s`",
				    argv[optind - 1], v->name);
		if (c == '?')
			return fail(
				v->name, EXIT_USAGE,
				"%.60s: no such option, or not one of %s's; see `xdpath help %s`",
				argv[optind - 1], v->name, v->name);
		o = by_getopt(v, c);
		if (o && o->letter == 'h') {
			help_verb(v);
			return -1;
		}
		err = o ? take_option(v->name, o, optarg, a) : 0;
	}
	return err ? err : take_devices(v, argc, argv, a);
}

int cli_parse(int argc, char **argv, struct args *a)
{
	const struct verb *v = find_verb(argv[0]);

	return v ? parse(v, argc, argv, a) : no_verb(argv[0]);
}

int cli_main(int argc, char **argv)
{
	const struct verb *v;
	static struct args a;
	int err;

	if (argc < 2) {
		help_all();
		return EXIT_USAGE;
	}
	if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
		printf("xdpath %s\n", XDPATH_VERSION);
		return EXIT_DONE;
	}
	if (strcmp(argv[1], "help") == 0 || strcmp(argv[1], "-h") == 0 ||
	    strcmp(argv[1], "--help") == 0)
		return help(argv[2]);
	v = find_verb(argv[1]);
	if (!v)
		return no_verb(argv[1]);
	err = parse(v, argc - 1, argv + 1, &a);
	if (err)
		return err < 0 ? EXIT_DONE : err;
	return v->run(&a);
}
