/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * Counters of rules: places in a per-CPU map that outlives every set. They are never set back,
 * since packets may just be counting there; a rule remembers what stood at its place when it got
 * it. Called by steer.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "steer_count.h"

enum { PLACES = XDPATH_COUNT_PAGES * XDPATH_COUNT_PAGE };

/* What counters stand at now; pages are read when they are first asked for. */
struct steer_counts {
	int fd, cpus;
	struct xdpath_count_page *page; /* of each CPU */
	struct xdpath_rule_count sum[PLACES];
	bool read[XDPATH_COUNT_PAGES];
};

int xdpath_counts_open(struct steer_counts **out, int fd)
{
	struct steer_counts *c = calloc(1, sizeof(*c));

	*out = c;
	if (!c)
		return -ENOMEM;
	c->fd = fd;
	c->cpus = libbpf_num_possible_cpus();
	c->page = c->cpus > 0 ? calloc((size_t)c->cpus, sizeof(*c->page)) : NULL;
	if (c->page)
		return 0;
	*out = NULL;
	free(c);
	return -ENOMEM;
}

void xdpath_counts_close(struct steer_counts *c)
{
	if (!c)
		return;
	free(c->page);
	free(c);
}

int xdpath_counts_at(struct steer_counts *c, uint16_t place, struct xdpath_rule_count *out)
{
	uint32_t page = place / XDPATH_COUNT_PAGE;
	int err;

	if (place >= PLACES)
		return -EBADMSG;
	if (!c->read[page]) {
		err = bpf_map_lookup_elem(c->fd, &page, c->page);
		if (err)
			return err;
		for (int cpu = 0; cpu < c->cpus; cpu++)
			for (uint32_t i = 0; i < XDPATH_COUNT_PAGE; i++) {
				struct xdpath_rule_count *s = &c->sum[page * XDPATH_COUNT_PAGE + i];

				s->packets += c->page[cpu].count[i].packets;
				s->bytes += c->page[cpu].count[i].bytes;
			}
		c->read[page] = true;
	}
	*out = c->sum[place];
	return 0;
}

struct by_id {
	uint32_t id;
	struct steer_counter counter;
};

static int compare_ids(const void *a, const void *b)
{
	const struct by_id *x = a, *y = b;

	return (x->id > y->id) - (x->id < y->id);
}

int xdpath_counts_assign(struct steer_counts *c, const struct steer_source *old,
			 struct steer_source *now)
{
	struct by_id *had = calloc(old->rules.n + 1, sizeof(*had));
	bool *taken = calloc(PLACES, sizeof(*taken));
	uint16_t next = 0;
	int err = had && taken ? 0 : -ENOMEM;

	for (uint32_t i = 0; !err && i < old->rules.n; i++) {
		had[i] = (struct by_id){old->rules.rule[i].id, old->counter[i]};
		if (old->counter[i].place < PLACES)
			taken[old->counter[i].place] = true;
	}
	if (!err)
		qsort(had, old->rules.n, sizeof(*had), compare_ids);
	for (uint32_t i = 0; !err && i < now->rules.n; i++) {
		struct by_id key = {.id = now->rules.rule[i].id};
		struct by_id *h = bsearch(&key, had, old->rules.n, sizeof(key), compare_ids);

		if (h) {
			now->counter[i] = h->counter;
			continue;
		}
		while (taken[next]) /* there are twice as many as rules */
			next++;
		now->counter[i].place = next;
		err = xdpath_counts_at(c, next++, &now->counter[i].base);
	}
	free(had);
	free(taken);
	return err;
}
