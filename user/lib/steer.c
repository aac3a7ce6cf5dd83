/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * Rules into an attached steering program and back. Called by the command and by applications.
 *
 * The program finds its set through one pointer (xdpath_rules): replacing that replaces all rules
 * between two packets. The same rules as they were written stand in xdpath_source, in the slot that
 * the set names. Nothing is kept in this process. That writers take turns is the callers' matter
 * (steer_change.c).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "prog_find.h"
#include "steer_count.h"
#include "steer_image.h"

enum {
	TRIES = 100,	      /* at a set that is replaced while it is read */
	RING_BYTES = 4 << 20, /* for copies of frames */
};

/* The program and its maps. */
struct steering {
	int prog_fd;
	struct xdpath_maps m;
	uint32_t slot; /* of xdpath_rules, which the program reads */
};

static int fail(struct xdpath_diag *d, uint32_t id, int err)
{
	switch (err) {
	case ENOENT:
		return xdpath_fail(d, XDPATH_R_PROG_CONFLICT, err,
				   "rules of program %u: it is gone or not xdpath's; `xdpath "
				   "status` shows what is attached",
				   id);
	case EPROTO:
		return xdpath_fail(d, XDPATH_R_PROG_CONFLICT, err,
				   "rules of program %u: its map layout is not %d; detach it and "
				   "attach this version's",
				   id, XDPATH_LAYOUT);
	case EPERM:
	case EACCES:
		return xdpath_fail(d, XDPATH_R_PERMISSION, EPERM,
				   "rules of program %u: not permitted; run as root", id);
	case ENOMEM:
		return xdpath_fail(d, XDPATH_R_MEMORY, err,
				   "rules of program %u: no memory; free some", id);
	case ENOEXEC:
		return xdpath_fail(
			d, XDPATH_R_OPTIONS, err,
			"rules of program %u: its filters are others; put these rules in "
			"with xdpath_steer_put(), which replaces it",
			id);
	default:
		return xdpath_fail(d, XDPATH_R_REFUSED, err, "rules of program %u: %s; try again",
				   id, strerror(err));
	}
}

/* ---- the program ---- */

static void release(struct steering *s)
{
	xdpath_maps_close(&s->m);
	if (s->prog_fd >= 0)
		close(s->prog_fd);
}

/* The id of the map in a slot, 0 if it is empty. */
static uint32_t map_in(int outer, uint32_t slot)
{
	uint32_t id;

	return bpf_map_lookup_elem(outer, &slot, &id) ? 0 : id;
}

static int find(struct steering *s, uint32_t prog_id)
{
	int err, slot;

	*s = (struct steering){.prog_fd = bpf_prog_get_fd_by_id(prog_id)};
	for (int i = 0; i < MAP_COUNT; i++)
		s->m.fd[i] = -1;
	if (s->prog_fd < 0)
		return s->prog_fd;
	err = xdpath_maps_open(&s->m, s->prog_fd);
	if (!err && (!s->m.ours || s->m.own))
		err = -ENOENT;
	if (!err && !s->m.layout_ok)
		err = -EPROTO;
	slot = err ? err : xdpath_steer_slot(s->prog_fd);
	/* Where the kernel does not show it (hardened JIT): the slot in use. */
	if (slot == -ENOENT && !err)
		slot = !map_in(s->m.fd[MAP_RULES], 0) && map_in(s->m.fd[MAP_RULES], 1);
	if (slot < 0)
		release(s);
	else
		s->slot = (uint32_t)slot;
	return slot < 0 ? slot : 0;
}

/* ---- reading ---- */

/* The set's words about itself; everything else in it is for the program. */
struct set_head {
	uint32_t source;
	uint64_t generation;
};

static int read_head(uint32_t map_id, struct set_head *out)
{
	int fd = bpf_map_get_fd_by_id(map_id), err = 0;
	const struct xdpath_set *set;

	*out = (struct set_head){0};
	if (fd < 0)
		return fd;
	set = mmap(NULL, sizeof(*set), PROT_READ, MAP_SHARED, fd, 0);
	if (set == MAP_FAILED) {
		err = -errno;
	} else {
		*out = (struct set_head){set->source, set->generation};
		munmap((void *)set, sizeof(*set));
	}
	close(fd);
	return err;
}

/* The rules in a slot as they were written; none if it is empty. -EAGAIN: replaced meanwhile. */
static int read_slot(const struct steering *s, uint32_t slot, struct steer_source *out)
{
	uint32_t id = map_in(s->m.fd[MAP_RULES], slot);
	struct set_head head;
	int fd, err;

	*out = (struct steer_source){0};
	if (!id)
		return 0;
	err = read_head(id, &head);
	if (err)
		return err == -ENOENT ? -EAGAIN : err;
	fd = bpf_map_get_fd_by_id(map_in(s->m.fd[MAP_SOURCE], head.source));
	if (fd < 0)
		return fd == -ENOENT || fd == -EINVAL ? -EAGAIN : fd;
	err = xdpath_source_read(fd, out);
	close(fd);
	if (!err && out->generation != head.generation) {
		xdpath_source_free(out);
		err = -EAGAIN;
	}
	return err;
}

int xdpath_steer_get(uint32_t prog_id, struct xdpath_rules *out, struct xdpath_rule_count **count)
{
	struct steer_source src = {0};
	struct steer_counts *c = NULL;
	struct steering s;
	int err = find(&s, prog_id);

	*out = (struct xdpath_rules){0};
	if (count)
		*count = NULL;
	if (err)
		return err;
	err = -EAGAIN;
	for (int i = 0; err == -EAGAIN && i < TRIES; i++)
		err = read_slot(&s, s.slot, &src);
	if (!err && count) {
		*count = calloc(src.rules.n + 1, sizeof(**count));
		err = *count ? xdpath_counts_open(&c, s.m.fd[MAP_COUNTS]) : -ENOMEM;
		for (uint32_t i = 0; !err && i < src.rules.n; i++) {
			struct xdpath_rule_count *to = &(*count)[i];

			err = xdpath_counts_at(c, src.counter[i].place, to);
			to->packets -= src.counter[i].base.packets;
			to->bytes -= src.counter[i].base.bytes;
		}
		xdpath_counts_close(c);
	}
	release(&s);
	if (!err) {
		*out = src.rules;
		src.rules = (struct xdpath_rules){0};
	} else if (count) {
		free(*count);
		*count = NULL;
	}
	xdpath_source_free(&src);
	return err;
}

/* ---- writing ---- */

/* The first mirror rule brings a ring buffer. */
static int provide_ring(const struct steering *s, const struct xdpath_rules *rules)
{
	uint32_t zero = 0;
	bool mirrors = false;
	int fd, err;

	for (uint32_t i = 0; i < rules->n; i++)
		mirrors |= rules->rule[i].action == XDPATH_RA_MIRROR;
	if (!mirrors || map_in(s->m.fd[MAP_MIRROR], 0))
		return 0;
	fd = bpf_map_create(BPF_MAP_TYPE_RINGBUF, XDPATH_MAP_MIRROR, 0, 0, RING_BYTES, NULL);
	if (fd < 0)
		return fd;
	err = bpf_map_update_elem(s->m.fd[MAP_MIRROR], &zero, &fd, BPF_ANY);
	close(fd);
	return err;
}

/* A slot of xdpath_source that no set names. */
static int free_source(const struct steering *s, uint32_t *out)
{
	bool used[XDPATH_SOURCE_SLOTS] = {false};

	for (uint32_t slot = 0; slot < XDPATH_SET_SLOTS; slot++) {
		uint32_t id = map_in(s->m.fd[MAP_RULES], slot);
		struct set_head head = {0};
		int err = id ? read_head(id, &head) : 0;

		if (err)
			return err;
		if (id && head.source < XDPATH_SOURCE_SLOTS)
			used[head.source] = true;
	}
	*out = 0;
	while (used[*out]) /* there are more than sets */
		++*out;
	return 0;
}

static int put_source(const struct steering *s, const struct steer_source *src, uint32_t slot)
{
	int fd = xdpath_source_write(src), err;

	if (fd < 0)
		return fd;
	err = bpf_map_update_elem(s->m.fd[MAP_SOURCE], &slot, &fd, BPF_ANY);
	close(fd);
	return err;
}

/* A map that holds the set. The descriptor, or -errno; *told: diag has been filled. */
static int make_set(const struct steer_source *src, uint32_t source, struct xdpath_diag *diag,
		    bool *told)
{
	LIBBPF_OPTS(bpf_map_create_opts, o);
	uint16_t *place = calloc(src->rules.n + 1, sizeof(*place));
	struct xdpath_set *set;
	int fd, err;

	if (!place)
		return -ENOMEM;
	o.map_flags = BPF_F_MMAPABLE;
	fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, XDPATH_MAP_RULES, 4, sizeof(*set), 1, &o);
	set = fd < 0 ? MAP_FAILED
		     : mmap(NULL, sizeof(*set), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	err = fd < 0 ? fd : set == MAP_FAILED ? -errno : 0;
	for (uint32_t i = 0; i < src->rules.n; i++)
		place[i] = src->counter[i].place;
	if (!err) {
		err = xdpath_ruleset_build(set, &src->rules, place, diag);
		*told = err != 0;
		set->source = source;
		set->generation = src->generation;
		munmap(set, sizeof(*set));
	}
	free(place);
	if (err && fd >= 0)
		close(fd);
	return err ? err : fd;
}

static int put(const struct steering *s, uint32_t slot, const struct xdpath_rules *rules,
	       struct xdpath_diag *diag, bool *told)
{
	struct steer_source old, now = {.rules = *rules, .generation = xdpath_now_ns()};
	struct steer_counts *c = NULL;
	uint32_t source;
	int fd, err = read_slot(s, s->slot, &old);

	if (err)
		return err;
	now.counter = calloc(rules->n + 1, sizeof(*now.counter));
	err = now.counter ? xdpath_counts_open(&c, s->m.fd[MAP_COUNTS]) : -ENOMEM;
	if (!err)
		err = xdpath_counts_assign(c, &old, &now);
	if (!err)
		err = provide_ring(s, rules);
	if (!err)
		err = free_source(s, &source);
	if (!err) {
		fd = make_set(&now, source, diag, told);
		err = fd < 0 ? fd : put_source(s, &now, source);
		if (!err)
			err = bpf_map_update_elem(s->m.fd[MAP_RULES], &slot, &fd, BPF_ANY);
		if (fd >= 0)
			close(fd);
	}
	xdpath_counts_close(c);
	xdpath_source_free(&old);
	free(now.counter);
	return err;
}

/* Without rules the program is to look no further than at an empty slot. */
static int clear(const struct steering *s, uint32_t slot)
{
	int err = bpf_map_delete_elem(s->m.fd[MAP_RULES], &slot);

	return err == -ENOENT ? 0 : err;
}

/* ---- with filters ---- */

/*
 * No packet is in the old program any more once the kernel has waited for those that were in it; an
 * update of a map of maps waits. Only then the old set may go.
 */
static void retire(const struct steering *s, uint32_t used)
{
	int fd = bpf_map_get_fd_by_id(map_in(s->m.fd[MAP_RULES], used));

	if (fd >= 0 && !bpf_map_update_elem(s->m.fd[MAP_RULES], &used, &fd, BPF_ANY))
		clear(s, !used);
	if (fd >= 0)
		close(fd);
}

static int replace(const struct steering *s, int ifindex, uint32_t *prog_id,
		   const struct xdpath_rules *rules, struct xdpath_diag *diag, bool *told)
{
	struct xdpath_replace_opts o = XDPATH_OPTS_INIT(struct xdpath_replace_opts);
	uint32_t slot = !s->slot, id = *prog_id;
	void *image;
	size_t size;
	int err = xdpath_steer_image(rules, slot, &image, &size, diag);

	*told = err != 0;
	if (err)
		return err;
	o.image = image;
	o.size = size;
	o.diag = diag;
	err = put(s, slot, rules, diag, told);
	if (!err) {
		err = xdpath_prog_replace(ifindex, id, &o, prog_id);
		*told = err != 0;
		if (err) {
			*prog_id = id;
			clear(s, slot);
		} else {
			retire(s, slot);
		}
	}
	free(image);
	return err;
}

/* Whether the rules need another program: 1, 0, or -errno. */
static int filters_differ(const struct steering *s, const struct xdpath_rules *rules)
{
	struct steer_source old;
	int differ = read_slot(s, s->slot, &old);

	if (differ)
		return differ;
	differ = xdpath_filters_differ(&old.rules, rules);
	xdpath_source_free(&old);
	return differ;
}

/* ifindex 0: the program must stay. */
static int set(int ifindex, uint32_t *prog_id, const struct xdpath_rules *rules,
	       struct xdpath_diag *diag)
{
	struct steering s;
	bool told = false;
	int err = find(&s, *prog_id), differ;

	if (err)
		return fail(diag, *prog_id, -err);
	differ = filters_differ(&s, rules);
	if (differ < 0)
		err = differ;
	else if (!rules->n)
		err = clear(&s, s.slot);
	else if (!differ)
		err = put(&s, s.slot, rules, diag, &told);
	else if (ifindex)
		err = replace(&s, ifindex, prog_id, rules, diag, &told);
	else
		err = -ENOEXEC;
	release(&s);
	return err && !told ? fail(diag, *prog_id, -err) : err;
}

int xdpath_steer_set(uint32_t prog_id, const struct xdpath_rules *rules, struct xdpath_diag *diag)
{
	return set(0, &prog_id, rules, diag);
}

int xdpath_steer_put(int ifindex, uint32_t *prog_id, const struct xdpath_rules *rules,
		     struct xdpath_diag *diag)
{
	return set(ifindex, prog_id, rules, diag);
}

int xdpath_steer_begin(uint32_t prog_id, const struct xdpath_rules *rules, struct xdpath_diag *diag)
{
	struct steering s;
	bool told = false;
	int err = find(&s, prog_id);

	if (err)
		return fail(diag, prog_id, -err);
	err = put(&s, s.slot, rules, diag, &told);
	release(&s);
	return err && !told ? fail(diag, prog_id, -err) : err;
}
