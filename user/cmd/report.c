/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * What a running datapath tells: the start line with the mode and why it is not better, progress,
 * and a summary whose numbers add up, as text or JSON. Reads counters, changes nothing.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "../bench/record.h"
#include "inspect.h"
#include "run.h"

static const char *mode_words(const struct run *r)
{
	enum xdpath_mode m = xdpath_datapath_mode(r->dp);

	if (m == XDPATH_MODE_ZEROCOPY)
		return "zero-copy (native XDP)";
	if (r->o.no_prog)
		return "copy (no XDP program needed)";
	return m == XDPATH_MODE_COPY ? "copy (native XDP)" : "copy (generic XDP)";
}

static uint32_t queues_of(const struct run *r, uint32_t port)
{
	const struct xdpath_worker *w;
	uint32_t n = 0;

	for (uint32_t i = 0; (w = xdpath_datapath_worker(r->dp, i)); i++)
		for (uint32_t j = 0; j < w->nsockets; j++)
			n += w->port[j] == port;
	return n;
}

void report_start(const struct run *r, FILE *f)
{
	const struct xdpath_port *p;
	const struct xdpath_prog *g;

	fprintf(f, "%s: ", r->verb);
	for (uint32_t i = 0; (p = xdpath_datapath_port(r->dp, i)); i++)
		fprintf(f, "%s%s (%u queue%s)", i ? " <-> " : "", p->name, queues_of(r, i),
			queues_of(r, i) == 1 ? "" : "s");
	fprintf(f, ", %u worker%s, mode %s", r->nworkers, r->nworkers == 1 ? "" : "s",
		mode_words(r));
	if (r->note)
		fprintf(f, ", %s", r->note);
	fputc('\n', f);
	if (r->diag.reason != XDPATH_R_NONE)
		fprintf(f, "  not better because: %s\n", r->diag.text);
	for (uint32_t i = 0; (p = xdpath_datapath_port(r->dp, i)); i++) {
		g = xdpath_datapath_prog(r->dp, i);
		if (g && xdpath_prog_joined(g))
			fprintf(f,
				"  %s: the xdpath program already attached (id %u) steers; its "
				"rules hold\n",
				p->name, xdpath_prog_id(g));
	}
	fflush(f);
}

void report_notices(const struct run *r)
{
	const struct xdpath_notice *n;
	uint32_t count;

	n = xdpath_datapath_notices(r->dp, &count);
	for (uint32_t i = 0; i < count; i++)
		fprintf(stderr, "xdpath %s: %s\n", r->verb, n[i].text);
}

static void add_socket(const struct xdpath_socket *s, struct port_totals *t)
{
	const struct xdpath_queue_counters *n = &s->q.n;
	struct xdpath_socket_stats st = {0};
	uint64_t no_frame;

	t->rx_packets += xdpath_counted(&n->rx_packets);
	t->rx_bytes += xdpath_counted(&n->rx_bytes);
	t->tx_packets += xdpath_counted(&n->tx_packets);
	t->tx_bytes += xdpath_counted(&n->tx_bytes);
	t->rx_refused += xdpath_counted(&n->rx_refused);
	t->desc_bad += xdpath_counted(&n->rx_bad);
	t->comp_bad += xdpath_counted(&n->comp_bad);
	t->tx_invalid += xdpath_counted(&n->tx_invalid);
	t->tx_too_big += xdpath_counted(&n->tx_too_big);
	t->tx_too_short += xdpath_counted(&n->tx_too_short);
	t->tx_device += xdpath_counted(&s->c.tx_dropped);
	t->tx_kicks += xdpath_counted(&s->c.tx_kicks);
	t->tx_again += xdpath_counted(&s->c.tx_again);
	t->rx_kicks += xdpath_counted(&s->c.rx_kicks);
	t->tx_stuck_kicks += xdpath_counted(&s->c.tx_stuck_kicks);
	if (s->q.rx.size)
		t->rx_unread += __atomic_load_n(s->q.rx.k_producer, __ATOMIC_RELAXED) -
				__atomic_load_n(s->q.rx.k_consumer, __ATOMIC_RELAXED);
	if (s->q.tx.size)
		t->tx_unsent += __atomic_load_n(s->q.tx.k_producer, __ATOMIC_RELAXED) -
				__atomic_load_n(s->q.tx.k_consumer, __ATOMIC_RELAXED);
	if (xdpath_socket_stats(s, &st))
		return;
	t->rx_ring_full += st.rx_ring_full;
	/* rx_dropped includes what was dropped for want of a frame; a look at an empty fill ring
	 * need not be a drop (zero-copy), so the smaller of the two is */
	no_frame = st.rx_fill_empty < st.rx_dropped ? st.rx_fill_empty : st.rx_dropped;
	/* too few frames for all fragments of a packet: only rx_dropped counts it. Nothing is too
	 * long where fragments are taken */
	if (s->multi_frag)
		no_frame = st.rx_dropped;
	t->rx_no_frame += no_frame;
	t->rx_too_long += st.rx_dropped - no_frame;
	t->tx_invalid_kernel += st.tx_invalid_descs;
}

void report_totals(const struct run *r, uint32_t port, struct port_totals *out)
{
	const struct xdpath_worker *w;

	memset(out, 0, sizeof(*out));
	for (uint32_t i = 0; (w = xdpath_datapath_worker(r->dp, i)); i++) {
		for (uint32_t j = 0; j < w->nsockets; j++)
			if (w->port[j] == port)
				add_socket(w->sockets[j], out);
		out->tx_stall += xdpath_counted(&r->app[i].tx_stall[port]);
	}
}

static void scaled(char *buf, size_t size, double v, const char *unit)
{
	const char *prefix[] = {"", "k", "M", "G", "T"};
	size_t i = 0;

	while (v >= 1000 && i < 4) {
		v /= 1000;
		i++;
	}
	snprintf(buf, size, "%.*f %s%s",
		 v < 10 && i	? 2
		 : v < 100 && i ? 1
				: 0,
		 v, prefix[i], unit);
}

/* Each drop reason with its text; one list for all outputs. */
struct drop {
	const char *key, *text;
	size_t offset;
	bool at_end; /* while running it is but what is on its way */
};

static const struct drop drops[] = {
	{"rx_ring_full", "RX ring full (user space too slow)",
	 offsetof(struct port_totals, rx_ring_full), false},
	{"rx_no_frame", "every frame posted was still unread (user space too slow)",
	 offsetof(struct port_totals, rx_no_frame), false},
	{"rx_too_long", "longer than a frame, and no fragments to be had",
	 offsetof(struct port_totals, rx_too_long), false},
	{"rx_refused", "a descriptor the frame ledger refuses",
	 offsetof(struct port_totals, rx_refused), false},
	{"rx_unread", "left in the RX ring at the end (fragments)",
	 offsetof(struct port_totals, rx_unread), true},
	{"tx_stall", "egress full longer than tx.stall_us", offsetof(struct port_totals, tx_stall),
	 false},
	{"tx_too_big", "above the egress MTU or its fragment limit",
	 offsetof(struct port_totals, tx_too_big), false},
	{"tx_too_short", "shorter than an Ethernet header",
	 offsetof(struct port_totals, tx_too_short), false},
	{"tx_invalid", "breaks the kernel's descriptor rules",
	 offsetof(struct port_totals, tx_invalid), false},
	{"tx_device", "dropped by the egress device", offsetof(struct port_totals, tx_device),
	 false},
	{"tx_unsent", "left in the TX ring at the end", offsetof(struct port_totals, tx_unsent),
	 true},
};

#define DROPS (sizeof(drops) / sizeof(drops[0]))

static uint64_t drop_of(const struct port_totals *t, size_t i)
{
	return *(const uint64_t *)(const void *)((const char *)t + drops[i].offset);
}

void report_progress(const struct run *r, double elapsed, double interval, struct port_totals *last,
		     FILE *f)
{
	char rx[24], tx[24], rxb[24], txb[24];
	const struct xdpath_port *p;

	fprintf(f, "%7.1fs", elapsed);
	for (uint32_t i = 0; (p = xdpath_datapath_port(r->dp, i)); i++) {
		struct port_totals t;

		report_totals(r, i, &t);
		scaled(rx, sizeof(rx), (double)(t.rx_packets - last[i].rx_packets) / interval,
		       "pps");
		scaled(tx, sizeof(tx), (double)(t.tx_packets - last[i].tx_packets) / interval,
		       "pps");
		scaled(rxb, sizeof(rxb), (double)(t.rx_bytes - last[i].rx_bytes) * 8 / interval,
		       "b/s");
		scaled(txb, sizeof(txb), (double)(t.tx_bytes - last[i].tx_bytes) * 8 / interval,
		       "b/s");
		fprintf(f, "  %s rx %s %s tx %s %s", p->name, rx, rxb, tx, txb);
		for (size_t d = 0; d < DROPS; d++)
			if (drop_of(&t, d) > drop_of(&last[i], d) && !drops[d].at_end)
				fprintf(f, " %s %llu", drops[d].key,
					(unsigned long long)(drop_of(&t, d) -
							     drop_of(&last[i], d)));
		last[i] = t;
	}
	fputc('\n', f);
	fflush(f);
}

/* Frames that are where no owner should have left them once all workers ended. */
static long long unaccounted(const struct xdpath_ledger *l)
{
	return (long long)l->total - l->free - l->fill - l->held - l->tx - l->rx;
}

static void summary_port(const struct run *r, uint32_t i, const struct port_totals *t, FILE *f)
{
	char rx[24], tx[24];

	scaled(rx, sizeof(rx), (double)t->rx_packets / r->seconds, "pps");
	scaled(tx, sizeof(tx), (double)t->tx_packets / r->seconds, "pps");
	fprintf(f, "  %-15s rx %12llu packets %14llu bytes  %s\n",
		xdpath_datapath_port(r->dp, i)->name, (unsigned long long)t->rx_packets,
		(unsigned long long)t->rx_bytes, rx);
	fprintf(f, "  %-15s tx %12llu packets %14llu bytes  %s\n", "",
		(unsigned long long)t->tx_packets, (unsigned long long)t->tx_bytes, tx);
	for (size_t d = 0; d < DROPS; d++)
		if (drop_of(t, d))
			fprintf(f, "  %-15s dropped %7llu %s: %s\n", "",
				(unsigned long long)drop_of(t, d), drops[d].key, drops[d].text);
	fprintf(f, "  %-15s system calls: %llu TX kicks (%llu wanted another), %llu RX kicks\n", "",
		(unsigned long long)t->tx_kicks, (unsigned long long)t->tx_again,
		(unsigned long long)t->rx_kicks);
	if (t->tx_stuck_kicks)
		fprintf(f, "  %-15s TX stood still: %llu kicks because nothing was completed\n", "",
			(unsigned long long)t->tx_stuck_kicks);
}

void report_summary(const struct run *r, FILE *f)
{
	struct xdpath_ledger l;
	const struct xdpath_worker *w;
	uint64_t sleeps = 0;

	fprintf(f, "%s: %.2f s, mode %s\n", r->verb, r->seconds, mode_words(r));
	for (uint32_t i = 0; xdpath_datapath_port(r->dp, i); i++) {
		struct port_totals t;

		report_totals(r, i, &t);
		summary_port(r, i, &t, f);
	}
	for (uint32_t i = 0; (w = xdpath_datapath_worker(r->dp, i)); i++)
		sleeps += w->poller.sleeps;
	xdpath_datapath_audit(r->dp, &l);
	fprintf(f,
		"  frames          %u: free %u, fill %u, app %u, held %u, tx %u, unaccounted "
		"%lld%s; slept %llu times\n",
		l.total, l.free, l.fill, l.rx, l.held, l.tx, unaccounted(&l),
		l.wrong ? ", WRONG MOVES" : "", (unsigned long long)sleeps);
	fflush(f);
}

static json_t *json_u64(uint64_t v)
{
	return json_integer((json_int_t)v);
}

static json_t *json_port(const struct run *r, uint32_t i)
{
	const struct xdpath_prog *g = xdpath_datapath_prog(r->dp, i);
	struct xdpath_verdict_count v[XDPATH_V_COUNT] = {0};
	json_t *o = json_object(), *d = json_object(), *s = json_object();
	struct port_totals t;

	report_totals(r, i, &t);
	json_object_set_new(o, "name", json_string(xdpath_datapath_port(r->dp, i)->name));
	json_object_set_new(o, "queues", json_integer(queues_of(r, i)));
	json_object_set_new(o, "rx_packets", json_u64(t.rx_packets));
	json_object_set_new(o, "rx_bytes", json_u64(t.rx_bytes));
	json_object_set_new(o, "tx_packets", json_u64(t.tx_packets));
	json_object_set_new(o, "tx_bytes", json_u64(t.tx_bytes));
	for (size_t k = 0; k < DROPS; k++)
		json_object_set_new(d, drops[k].key, json_u64(drop_of(&t, k)));
	json_object_set_new(o, "drops", d);
	json_object_set_new(s, "tx_kicks", json_u64(t.tx_kicks));
	json_object_set_new(s, "tx_again", json_u64(t.tx_again));
	json_object_set_new(s, "rx_kicks", json_u64(t.rx_kicks));
	json_object_set_new(s, "tx_stuck_kicks", json_u64(t.tx_stuck_kicks));
	json_object_set_new(o, "system_calls", s);
	json_object_set_new(o, "descriptors_bad", json_u64(t.desc_bad));
	json_object_set_new(o, "completions_bad", json_u64(t.comp_bad));
	json_object_set_new(o, "tx_invalid_kernel", json_u64(t.tx_invalid_kernel));
	if (g && xdpath_prog_counters(g, v) == 0) {
		json_t *p = json_object();

		for (int k = 0; k < XDPATH_V_COUNT; k++)
			json_object_set_new(p, verdict_key[k], json_u64(v[k].packets));
		json_object_set_new(o, "program_packets", p);
	}
	return o;
}

static json_t *json_attempts(const struct run *r)
{
	const struct xdpath_attempt *a;
	json_t *list = json_array();
	uint32_t n;

	a = xdpath_datapath_attempts(r->dp, &n);
	for (uint32_t i = 0; i < n; i++) {
		json_t *o = json_object();

		json_object_set_new(o, "mode", json_string(xdpath_mode_name(a[i].mode)));
		json_object_set_new(o, "obtained", json_boolean(a[i].err == 0));
		json_object_set_new(o, "errno", json_integer(a[i].err));
		json_object_set_new(o, "reason", json_string(a[i].text));
		json_array_append_new(list, o);
	}
	return list;
}

static json_t *json_notices(const struct run *r)
{
	const struct xdpath_notice *n;
	json_t *list = json_array();
	uint32_t count;

	n = xdpath_datapath_notices(r->dp, &count);
	for (uint32_t i = 0; i < count; i++)
		json_array_append_new(list, json_pack("{s:s, s:s, s:s}", "key", n[i].key, "port",
						      xdpath_datapath_port(r->dp, n[i].port)->name,
						      "text", n[i].text));
	return list;
}

static json_t *json_frames(const struct run *r)
{
	struct xdpath_ledger l;
	json_t *o = json_object();

	xdpath_datapath_audit(r->dp, &l);
	json_object_set_new(o, "total", json_integer(l.total));
	json_object_set_new(o, "free", json_integer(l.free));
	json_object_set_new(o, "fill", json_integer(l.fill));
	json_object_set_new(o, "rx", json_integer(l.rx));
	json_object_set_new(o, "held", json_integer(l.held));
	json_object_set_new(o, "tx", json_integer(l.tx));
	json_object_set_new(o, "completed", json_integer(l.completed));
	json_object_set_new(o, "unaccounted", json_integer(unaccounted(&l)));
	json_object_set_new(o, "wrong_moves", json_u64(l.wrong));
	json_object_set_new(o, "frame_bytes",
			    json_integer(xdpath_umem_frame_size(xdpath_datapath_umem(r->dp))));
	json_object_set_new(o, "page_bytes",
			    json_integer(xdpath_umem_page_size(xdpath_datapath_umem(r->dp))));
	return o;
}

static json_t *json_workers(const struct run *r)
{
	const struct xdpath_worker *w;
	json_t *list = json_array();

	for (uint32_t i = 0; (w = xdpath_datapath_worker(r->dp, i)); i++) {
		json_t *o = json_object();

		json_object_set_new(o, "passes", json_u64(w->rounds));
		json_object_set_new(o, "sleeps", json_u64(w->poller.sleeps));
		json_object_set_new(o, "wakes_empty", json_u64(w->poller.wakes_empty));
		json_array_append_new(list, o);
	}
	return list;
}

int report_json(const struct run *r)
{
	json_t *o = json_object(), *ports = json_array();

	json_object_set_new(o, "verb", json_string(r->verb));
	if (r->engine)
		json_object_set_new(o, "engine", json_string(r->engine));
	json_object_set_new(o, "mode", json_string(xdpath_mode_name(xdpath_datapath_mode(r->dp))));
	json_object_set_new(o, "attempts", json_attempts(r));
	json_object_set_new(o, "notices", json_notices(r));
	json_object_set_new(o, "seconds", json_real(r->seconds));
	for (uint32_t i = 0; xdpath_datapath_port(r->dp, i); i++)
		json_array_append_new(ports, json_port(r, i));
	json_object_set_new(o, "ports", ports);
	json_object_set_new(o, "workers", json_workers(r));
	json_object_set_new(o, "frames", json_frames(r));
	json_object_set_new(o, "knobs", knobs_to_json(&r->a->knobs, true));
	return json_out(r->verb, o);
}
