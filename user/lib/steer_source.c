/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * Rules as they were written, in a map of pages: a head, then a record for each rule, a filter's
 * text behind its record. Called by steer.c. Such a map is written once and never changed.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "steer_source.h"

struct head {
	uint64_t generation;
	uint32_t n, next_id;
	uint64_t bytes; /* of all, the head included */
};

struct record {
	struct xdpath_rule rule; /* its filter is of no meaning here */
	struct steer_counter counter;
	uint32_t text; /* bytes of the filter's text behind it, padded to 8; 0 none */
};

static uint32_t text_room(const struct xdpath_rule *r)
{
	return r->filter ? ((uint32_t)strlen(r->filter) + 8) & ~7U : 0;
}

static uint64_t size_of(const struct steer_source *s)
{
	uint64_t bytes = sizeof(struct head) + (uint64_t)s->rules.n * sizeof(struct record);

	for (uint32_t i = 0; i < s->rules.n; i++)
		bytes += text_room(&s->rules.rule[i]);
	return bytes;
}

int xdpath_source_write(const struct steer_source *s)
{
	LIBBPF_OPTS(bpf_map_create_opts, o);
	struct head head = {s->generation, s->rules.n, s->rules.next_id, size_of(s)};
	uint64_t pages = (head.bytes + XDPATH_SOURCE_PAGE - 1) / XDPATH_SOURCE_PAGE;
	uint8_t *area, *at;
	int fd;

	o.map_flags = BPF_F_MMAPABLE | BPF_F_INNER_MAP;
	fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, XDPATH_MAP_SOURCE, 4, XDPATH_SOURCE_PAGE,
			    (uint32_t)pages, &o);
	if (fd < 0)
		return fd;
	area = mmap(NULL, pages * XDPATH_SOURCE_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (area == MAP_FAILED) {
		int err = -errno;

		close(fd);
		return err;
	}
	memcpy(area, &head, sizeof(head));
	at = area + sizeof(head);
	for (uint32_t i = 0; i < s->rules.n; i++) {
		struct record r = {s->rules.rule[i], s->counter[i], text_room(&s->rules.rule[i])};

		r.rule.filter = NULL;
		memcpy(at, &r, sizeof(r));
		at += sizeof(r);
		if (r.text)
			memcpy(at, s->rules.rule[i].filter, strlen(s->rules.rule[i].filter));
		at += r.text; /* the map came full of zeros */
	}
	munmap(area, pages * XDPATH_SOURCE_PAGE);
	return fd;
}

/* One record at *at, of at most `left` bytes. */
static int read_record(struct steer_source *s, const uint8_t **at, uint64_t left)
{
	struct xdpath_rule *rule = &s->rules.rule[s->rules.n];
	struct record r;

	if (left < sizeof(r))
		return -EBADMSG;
	memcpy(&r, *at, sizeof(r));
	*at += sizeof(r);
	if (r.text > left - sizeof(r))
		return -EBADMSG;
	*rule = r.rule;
	rule->filter = NULL;
	s->counter[s->rules.n++] = r.counter;
	if (r.text) {
		rule->filter = strndup((const char *)*at, r.text);
		*at += r.text;
	}
	return r.text && !rule->filter ? -ENOMEM : 0;
}

static int read_all(struct steer_source *out, const uint8_t *area, uint64_t size)
{
	const uint8_t *at = area + sizeof(struct head);
	struct head head;
	int err = 0;

	memcpy(&head, area, sizeof(head));
	if (head.bytes > size || head.n > XDPATH_RULES_MAX)
		return -EBADMSG;
	out->generation = head.generation;
	out->rules.next_id = head.next_id;
	out->rules.rule = calloc(head.n + 1, sizeof(*out->rules.rule));
	out->counter = calloc(head.n + 1, sizeof(*out->counter));
	if (!out->rules.rule || !out->counter)
		return -ENOMEM;
	out->rules.room = head.n + 1;
	for (uint32_t i = 0; !err && i < head.n; i++)
		err = read_record(out, &at, head.bytes - (uint64_t)(at - area));
	return err;
}

int xdpath_source_read(int fd, struct steer_source *out)
{
	struct bpf_map_info info = {0};
	uint32_t len = sizeof(info);
	uint64_t size;
	uint8_t *area;
	int err = bpf_obj_get_info_by_fd(fd, &info, &len);

	*out = (struct steer_source){0};
	if (err)
		return err;
	if (info.value_size != XDPATH_SOURCE_PAGE)
		return -EBADMSG;
	size = (uint64_t)info.max_entries * XDPATH_SOURCE_PAGE;
	area = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	if (area == MAP_FAILED)
		return -errno;
	err = read_all(out, area, size);
	munmap(area, size);
	if (err)
		xdpath_source_free(out);
	return err;
}

void xdpath_source_free(struct steer_source *s)
{
	xdpath_rules_clear(&s->rules);
	free(s->counter);
	*s = (struct steer_source){0};
}
