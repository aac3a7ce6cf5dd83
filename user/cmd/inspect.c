// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
/*
 * A port with its programs and the holders of its queues: gathered, and shown as text and JSON.
 * Called by probe and status. Reads only.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "inspect.h"

const char *const verdict_key[XDPATH_V_COUNT] = {"xsk",	 "no_socket", "kept",	 "pass",
						 "drop", "tx",	      "redirect"};
static const char *const verdict_text[XDPATH_V_COUNT] = {
	"to sockets",
	"no socket on the queue: to the kernel",
	"ARP, ND, ICMP or not understood: to the kernel",
	"not asked for: to the kernel",
	"dropped by a rule",
	"sent back by a rule",
	"to another interface by a rule"};

static void look_at(struct inspect *in, int i)
{
	const struct xdpath_prog_info *g = &in->prog[i];
	struct inspect_owner *w = &in->owner[i];
	struct xdpath_rules rules = {0};

	*w = (struct inspect_owner){0};
	if (g->link_id)
		w->nholders = xdpath_link_holders(g->link_id, w->holder, INSPECT_HOLDERS);
	in->state_err[i] = g->is_xdpath ? xdpath_prog_read(g->id, &in->state[i]) : -ENOENT;
	if (in->state_err[i])
		return;
	w->rules = xdpath_steer_get(g->id, &rules, NULL);
	if (!w->rules)
		w->rules = (int)rules.n;
	xdpath_rules_clear(&rules);
}

int inspect_port(struct inspect *in, const char *name, struct xdpath_diag *diag)
{
	int err = xdpath_port_query(&in->port, name, diag);

	if (err)
		return err;
	in->nprogs = xdpath_prog_query(in->port.ifindex, in->prog);
	for (int i = 0; i < in->nprogs; i++)
		look_at(in, i);
	in->nqueues = xdpath_port_queues(&in->port);
	if (in->nqueues > XDPATH_QUEUES)
		in->nqueues = XDPATH_QUEUES;
	in->ntaken = 0;
	in->holder_err = 0;
	for (uint32_t q = 0; q < in->nqueues; q++) {
		err = xdpath_queue_holder(&in->port, q, &in->holder[q]);
		if (err)
			in->holder_err = err;
		in->ntaken += in->holder[q].taken;
	}
	return 0;
}

void row(const char *label, const char *fmt, ...)
{
	va_list ap;

	printf("  %-23s ", label);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
}

static const char *steer_name(enum xdpath_steer s)
{
	switch (s) {
	case XDPATH_STEER_NONE: return "none";
	case XDPATH_STEER_ALL: return "all";
	case XDPATH_STEER_L2: return "l2";
	}
	return "unknown";
}

static const char *steer_text(enum xdpath_steer s)
{
	switch (s) {
	case XDPATH_STEER_NONE: return "the kernel keeps everything";
	case XDPATH_STEER_ALL: return "all but ARP, ND and ICMP to user space (--all)";
	case XDPATH_STEER_L2: return "everything to user space (--all=l2)";
	}
	return "not known to this version";
}

/* Without privilege the kernel tells the id and nothing else. */
static bool unseen(const struct xdpath_prog_info *g)
{
	return !g->is_xdpath && !g->name[0] && geteuid() != 0;
}

/* "run, by link 7"; what is not ours has no form, and unseen it may be held by anything. */
static const char *form_text(const struct xdpath_prog_info *g, char *buf, size_t size)
{
	if (unseen(g))
		return "by what only root may see";
	if (g->link_id)
		snprintf(buf, size, "%sby link %u", g->is_xdpath ? "run, " : "", g->link_id);
	else if (g->dispatcher_id)
		snprintf(buf, size, "%sin dispatcher %u", g->is_xdpath ? "beside, " : "",
			 g->dispatcher_id);
	else
		snprintf(buf, size, "%sby netlink", g->is_xdpath ? "kept, " : "");
	return buf;
}

/* Who has a program in his hands, and who loaded ours. */
static void print_owner(const struct xdpath_prog_info *g, const struct inspect_owner *w,
			const char *dev)
{
	char held[160] = "stays until it is detached", cure[96];
	size_t n = 0;

	for (int i = 0; i < w->nholders && n < sizeof(held); i++)
		n += (size_t)snprintf(held + n, sizeof(held) - n, "%s %d (%s)",
				      n ? ", pid" : "held by pid", w->holder[i].pid,
				      w->holder[i].comm);
	if (g->link_id && !w->nholders)
		snprintf(held, sizeof(held), "held by a process or pin not to be seen from here");
	if (unseen(g)) {
		row("", "whose it is, only root may see");
	} else if (!g->is_xdpath) {
		xdpath_prog_cure(g, dev, cure, sizeof(cure));
		row("", "not xdpath's; %s; to remove it: %s", held, cure);
	} else if (!g->layout_ok) {
		row("", "xdpath's, of layout %u, this is %u; %s", g->layout, XDPATH_LAYOUT, held);
	} else if (g->owner_pid) {
		row("", "xdpath's, loaded by pid %u; %s", g->owner_pid, held);
	} else {
		row("", "xdpath's; %s", held);
	}
}

static void print_steering(const struct inspect *in, int i)
{
	const struct xdpath_prog_state *s = &in->state[i];
	const struct inspect_owner *w = &in->owner[i];

	if (in->prog[i].own) {
		row("steering", "its own: it decides itself what goes to its XSKMAP");
		return;
	}
	if (in->state_err[i]) {
		if (in->prog[i].is_xdpath)
			row("steering", "unknown: %s", strerror(-in->state_err[i]));
		return;
	}
	if (w->rules < 0)
		row("rules", "unknown: %s", strerror(-w->rules));
	else if (w->rules)
		row("rules", "%d (`xdpath steer %s list`); for the rest:", w->rules, in->port.name);
	row("steering", "%s", steer_text(s->steer));
	for (int v = 0; v < XDPATH_V_COUNT; v++)
		row(v ? "" : "verdicts", "%12llu packets %15llu bytes  %s",
		    (unsigned long long)s->verdict[v].packets,
		    (unsigned long long)s->verdict[v].bytes, verdict_text[v]);
}

void print_programs(const struct inspect *in)
{
	char form[48];

	if (in->nprogs < 0)
		row("program", "unknown: %s", strerror(-in->nprogs));
	if (in->nprogs == 0)
		row("program", "none");
	for (int i = 0; i < in->nprogs; i++) {
		const struct xdpath_prog_info *g = &in->prog[i];

		row("program", "%s, id %u, %s, %s", g->name[0] ? g->name : "(no name)", g->id,
		    xdpath_attach_name(g->attach), form_text(g, form, sizeof(form)));
		print_owner(g, &in->owner[i], in->port.name);
		print_steering(in, i);
	}
}

const char *holder_text(const struct xdpath_holder *h, char *buf, size_t size)
{
	if (h->pid)
		snprintf(buf, size, "pid %d (%s), %s", h->pid, h->comm,
			 h->by_lease ? "by its lease" : "by its socket");
	else
		snprintf(buf, size, "a program that is not xdpath's");
	return buf;
}

static bool same_holder(const struct xdpath_holder *a, const struct xdpath_holder *b)
{
	return b->taken && a->pid == b->pid && a->by_lease == b->by_lease;
}

void print_queues(const struct inspect *in)
{
	char who[80], range[24];

	if (in->holder_err && !in->ntaken)
		row("queues taken", "not known: %s",
		    in->port.flags & IFF_UP ? "this kernel does not list them"
					    : "the interface is down");
	else if (!in->ntaken)
		row("queues taken", "none");
	for (uint32_t q = 0, end; q < in->nqueues; q = end) {
		end = q + 1;
		if (!in->holder[q].taken)
			continue;
		while (end < in->nqueues && same_holder(&in->holder[q], &in->holder[end]))
			end++;
		snprintf(range, sizeof(range), end - q > 1 ? "%u-%u" : "%u", q, end - 1);
		row(end - q > 1 ? "queues taken" : "queue taken", "%s, %s", range,
		    holder_text(&in->holder[q], who, sizeof(who)));
	}
}

json_t *json_text(const char *s)
{
	json_t *j = json_string(s);
	char plain[256];
	size_t n = 0;

	if (j)
		return j;
	for (; n < sizeof(plain) - 1 && s[n]; n++)
		plain[n] = s[n] < ' ' || s[n] > '~' ? '?' : s[n];
	plain[n] = '\0';
	return json_string(plain);
}

static json_t *json_state(const struct xdpath_prog_state *s, int rules)
{
	json_t *o = json_object(), *counts = json_object();

	for (int v = 0; v < XDPATH_V_COUNT; v++)
		json_object_set_new(counts, verdict_key[v],
				    json_pack("{s:I, s:I}", "packets",
					      (json_int_t)s->verdict[v].packets, "bytes",
					      (json_int_t)s->verdict[v].bytes));
	json_object_set_new(o, "mode", json_string(steer_name(s->steer)));
	json_object_set_new(o, "rules", rules < 0 ? json_null() : json_integer(rules));
	json_object_set_new(o, "verdicts", counts);
	return o;
}

static json_t *json_or_null(uint32_t n)
{
	return n ? json_integer(n) : json_null();
}

static json_t *json_holders(const struct inspect_owner *w)
{
	json_t *list = json_array();

	for (int i = 0; i < w->nholders; i++)
		json_array_append_new(list, json_pack("{s:i, s:o}", "pid", w->holder[i].pid,
						      "command", json_text(w->holder[i].comm)));
	return list;
}

static json_t *json_program(const struct inspect *in, int i)
{
	const struct xdpath_prog_info *g = &in->prog[i];
	char cure[96];
	json_t *o = json_object();

	xdpath_prog_cure(g, in->port.name, cure, sizeof(cure));
	json_object_set_new(o, "name", json_text(g->name));
	json_object_set_new(o, "id", json_integer(g->id));
	json_object_set_new(o, "attach", json_string(xdpath_attach_name(g->attach)));
	json_object_set_new(o, "form",
			    !g->is_xdpath ? json_null()
					  : json_string(g->link_id	   ? "run"
							: g->dispatcher_id ? "beside"
									   : "kept"));
	json_object_set_new(o, "link_id", json_or_null(g->link_id));
	json_object_set_new(o, "dispatcher_id", json_or_null(g->dispatcher_id));
	json_object_set_new(o, "holders", json_holders(&in->owner[i]));
	json_object_set_new(o, "xdpath", json_boolean(g->is_xdpath));
	json_object_set_new(o, "own", json_boolean(g->own));
	json_object_set_new(o, "layout", g->is_xdpath ? json_integer(g->layout) : json_null());
	json_object_set_new(o, "owner_pid", json_or_null(g->owner_pid));
	json_object_set_new(o, "remove", g->is_xdpath ? json_null() : json_text(cure));
	json_object_set_new(o, "steering",
			    in->state_err[i] ? json_null()
					     : json_state(&in->state[i], in->owner[i].rules));
	return o;
}

json_t *json_programs(const struct inspect *in)
{
	json_t *list = json_array();

	if (in->nprogs < 0) {
		json_decref(list);
		return json_null();
	}
	for (int i = 0; i < in->nprogs; i++)
		json_array_append_new(list, json_program(in, i));
	return list;
}

json_t *json_queues(const struct inspect *in)
{
	json_t *list = json_array();

	if (in->holder_err && !in->ntaken) {
		json_decref(list);
		return json_null();
	}
	for (uint32_t q = 0; q < in->nqueues; q++) {
		const struct xdpath_holder *h = &in->holder[q];
		json_t *o;

		if (!h->taken)
			continue;
		o = json_object();
		json_object_set_new(o, "queue", json_integer(q));
		json_object_set_new(o, "pid", h->pid ? json_integer(h->pid) : json_null());
		json_object_set_new(o, "command", h->pid ? json_text(h->comm) : json_null());
		json_object_set_new(o, "by_lease", json_boolean(h->by_lease));
		json_array_append_new(list, o);
	}
	return list;
}

int json_out(const char *verb, json_t *doc)
{
	int err = json_dumpf(doc, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(6));

	json_decref(doc);
	if (err || putchar('\n') == EOF || fflush(stdout) == EOF)
		return fail(verb, EXIT_FAILED,
			    "standard output: could not be written; see that "
			    "there is room where it goes");
	return EXIT_DONE;
}
