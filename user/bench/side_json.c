/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * One end's account of a run as JSON, and back. The session carries it between the ends, the report
 * prints it: the names are stable, units stand in them.
 *
 * What comes back was written by another host: types and ranges are checked, and control
 * characters are taken out of its texts, since they end on a terminal.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "record.h"

enum kind { COUNT, REAL, TEXT };

struct field {
	const char *key;
	enum kind kind;
	size_t offset, size; /* size: of a TEXT */
};

#define COUNT_OF(type, key, member)                   \
	{                                             \
		key, COUNT, offsetof(type, member), 0 \
	}
#define REAL_OF(type, key, member)                   \
	{                                            \
		key, REAL, offsetof(type, member), 0 \
	}
#define TEXT_OF(type, key, member)                                             \
	{                                                                      \
		key, TEXT, offsetof(type, member), sizeof(((type *)0)->member) \
	}
#define N(table) (sizeof(table) / sizeof((table)[0]))

static const struct field side_fields[] = {
	TEXT_OF(struct test_side, "host", host),
	TEXT_OF(struct test_side, "device", dev),
	TEXT_OF(struct test_side, "driver", driver),
	TEXT_OF(struct test_side, "mode", mode),
	TEXT_OF(struct test_side, "mode_why", mode_why),
	REAL_OF(struct test_side, "seconds", seconds),
	COUNT_OF(struct test_side, "messages_out", msgs_out),
	COUNT_OF(struct test_side, "messages_in", msgs_in),
	COUNT_OF(struct test_side, "packets_out", packets_out),
	COUNT_OF(struct test_side, "bytes_out", bytes_out),
	COUNT_OF(struct test_side, "packets_in", packets_in),
	COUNT_OF(struct test_side, "bytes_in", bytes_in),
	COUNT_OF(struct test_side, "payload_bytes_out", payload_out),
	COUNT_OF(struct test_side, "payload_bytes_in", payload_in),
	COUNT_OF(struct test_side, "interface_packets_out", if_packets_out),
	COUNT_OF(struct test_side, "interface_bytes_out", if_bytes_out),
	COUNT_OF(struct test_side, "interface_packets_in", if_packets_in),
	COUNT_OF(struct test_side, "interface_bytes_in", if_bytes_in),
	COUNT_OF(struct test_side, "tx_kicks", tx_kicks),
	COUNT_OF(struct test_side, "rx_kicks", rx_kicks),
	COUNT_OF(struct test_side, "sleeps", sleeps),
	COUNT_OF(struct test_side, "system_calls", syscalls),
	COUNT_OF(struct test_side, "send_buffer_bytes", sock_send),
	COUNT_OF(struct test_side, "receive_buffer_bytes", sock_recv),
};

static const struct field loss_fields[] = {
	COUNT_OF(struct test_losses, "timeouts", timeouts),
	COUNT_OF(struct test_losses, "incomplete", incomplete),
	COUNT_OF(struct test_losses, "reordered", reordered),
	COUNT_OF(struct test_losses, "late", late),
	COUNT_OF(struct test_losses, "rx_ring_full", rx_ring_full),
	COUNT_OF(struct test_losses, "rx_no_frame", rx_no_frame),
	COUNT_OF(struct test_losses, "rx_other", rx_other),
	COUNT_OF(struct test_losses, "tx_dropped", tx_dropped),
};

static const struct field usage_fields[] = {
	REAL_OF(struct usage, "seconds", seconds),
	REAL_OF(struct usage, "busy_seconds_total", busy_total),
	REAL_OF(struct usage, "threads_seconds", threads),
	REAL_OF(struct usage, "tsc_hz", tsc_hz),
	COUNT_OF(struct usage, "net_rx_softirqs", softirqs_rx),
	COUNT_OF(struct usage, "net_tx_softirqs", softirqs_tx),
};

static const struct field sampled_fields[] = {
	REAL_OF(struct usage, "user_seconds", user),
	REAL_OF(struct usage, "system_seconds", system),
	REAL_OF(struct usage, "softirq_seconds", softirq),
	REAL_OF(struct usage, "irq_seconds", irq),
	REAL_OF(struct usage, "steal_seconds", steal),
};

static json_t *text_to_json(const char *text)
{
	json_t *j = json_string(text);

	return j ? j : json_string("?"); /* not UTF-8 */
}

static json_t *count_to_json(uint64_t n)
{
	return json_integer(n > INT64_MAX ? INT64_MAX : (json_int_t)n);
}

static json_t *fields_to_json(const struct field *f, size_t n, const void *from)
{
	json_t *o = json_object();

	for (size_t i = 0; i < n; i++) {
		const char *at = (const char *)from + f[i].offset;
		uint64_t count;
		double real;

		switch (f[i].kind) {
		case COUNT:
			memcpy(&count, at, sizeof(count));
			json_object_set_new(o, f[i].key, count_to_json(count));
			break;
		case REAL:
			memcpy(&real, at, sizeof(real));
			json_object_set_new(o, f[i].key, json_real(isfinite(real) ? real : 0));
			break;
		case TEXT: json_object_set_new(o, f[i].key, text_to_json(at)); break;
		}
	}
	return o;
}

static int text_from_json(const json_t *j, char *out, size_t size)
{
	const char *text = json_string_value(j);
	size_t i;

	if (!text)
		return -EINVAL;
	for (i = 0; i + 1 < size && text[i]; i++)
		out[i] = (unsigned char)text[i] < ' ' || text[i] == 0x7f ? '?' : text[i];
	/* no half character at the end, should it have been cut */
	while (text[i] && i && ((unsigned char)text[i] & 0xc0) == 0x80)
		i--;
	out[i] = '\0';
	return 0;
}

static int count_from_json(const json_t *j, uint64_t *out)
{
	if (!json_is_integer(j) || json_integer_value(j) < 0)
		return -EINVAL;
	*out = (uint64_t)json_integer_value(j);
	return 0;
}

static int real_from_json(const json_t *j, double *out)
{
	double v = json_number_value(j);

	if (!json_is_number(j) || !isfinite(v) || v < 0)
		return -EINVAL;
	*out = v;
	return 0;
}

static int fields_from_json(const struct field *f, size_t n, const json_t *j, void *to)
{
	int err = 0;

	for (size_t i = 0; i < n && !err; i++) {
		const json_t *v = json_object_get(j, f[i].key);
		char *at = (char *)to + f[i].offset;
		uint64_t count = 0;
		double real = 0;

		switch (f[i].kind) {
		case COUNT:
			err = count_from_json(v, &count);
			memcpy(at, &count, sizeof(count));
			break;
		case REAL:
			err = real_from_json(v, &real);
			memcpy(at, &real, sizeof(real));
			break;
		case TEXT: err = text_from_json(v, at, f[i].size); break;
		}
	}
	return err;
}

static json_t *counters_to_json(const struct usage *u)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < u->counters && i < USAGE_COUNTERS_MAX; i++) {
		const struct usage_counter *c = &u->counter[i];
		json_t *o = json_object();

		json_object_set_new(o, "name", text_to_json(c->name));
		json_object_set_new(o, "value",
				    c->supported ? count_to_json(c->value) : json_null());
		if (!c->supported)
			json_object_set_new(o, "value_why", text_to_json(c->why));
		json_object_set_new(o, "counted_share", json_real(c->share));
		json_object_set_new(o, "scope", json_string(c->machine ? "machine" : "threads"));
		json_array_append_new(list, o);
	}
	return list;
}

json_t *usage_to_json(const struct usage *u)
{
	json_t *o = fields_to_json(usage_fields, N(usage_fields), u), *busy = json_array();

	json_object_set_new(o, "source", json_string(usage_source_name(u->source)));
	json_object_set_new(o, "cpus", json_integer(u->cpus));
	json_object_set_new(o, "cpus_online", json_integer(u->online));
	for (uint32_t i = 0; i < u->cpus && i < USAGE_CPUS_MAX; i++)
		json_array_append_new(busy, json_real(u->busy[i]));
	json_object_set_new(o, "busy_seconds", busy);
	json_object_set_new(o, "sampled", fields_to_json(sampled_fields, N(sampled_fields), u));
	json_object_set_new(o, "interrupts",
			    u->interrupts == UINT64_MAX ? json_null()
							: count_to_json(u->interrupts));
	json_object_set_new(o, "counters", counters_to_json(u));
	return o;
}

static int counter_from_json(const json_t *j, struct usage_counter *c)
{
	const json_t *value = json_object_get(j, "value");
	const char *scope = json_string_value(json_object_get(j, "scope"));

	if (text_from_json(json_object_get(j, "name"), c->name, sizeof(c->name)) ||
	    real_from_json(json_object_get(j, "counted_share"), &c->share) || c->share > 1 ||
	    !scope)
		return -EINVAL;
	c->machine = strcmp(scope, "machine") == 0;
	c->supported = json_is_integer(value);
	if (c->supported)
		return count_from_json(value, &c->value);
	return text_from_json(json_object_get(j, "value_why"), c->why, sizeof(c->why));
}

static int source_from_json(const json_t *j, enum usage_source *out)
{
	static const enum usage_source all[] = {USAGE_CPUIDLE, USAGE_SOAKER, USAGE_STAT,
						USAGE_NOHZ};
	const char *name = json_string_value(j);

	for (size_t i = 0; name && i < N(all); i++) {
		if (strcmp(name, usage_source_name(all[i])) == 0) {
			*out = all[i];
			return 0;
		}
	}
	return -EINVAL;
}

static int arrays_from_json(const json_t *j, struct usage *u)
{
	const json_t *busy = json_object_get(j, "busy_seconds");
	const json_t *counters = json_object_get(j, "counters");
	const json_t *irqs = json_object_get(j, "interrupts");
	int err = 0;

	if (!json_is_array(busy) || json_array_size(busy) > USAGE_CPUS_MAX ||
	    !json_is_array(counters) || json_array_size(counters) > USAGE_COUNTERS_MAX)
		return -EINVAL;
	u->cpus = (uint32_t)json_array_size(busy);
	for (uint32_t i = 0; i < u->cpus && !err; i++)
		err = real_from_json(json_array_get(busy, i), &u->busy[i]);
	u->counters = (uint32_t)json_array_size(counters);
	for (uint32_t i = 0; i < u->counters && !err; i++)
		err = counter_from_json(json_array_get(counters, i), &u->counter[i]);
	if (json_is_null(irqs))
		u->interrupts = UINT64_MAX;
	else if (!err)
		err = count_from_json(irqs, &u->interrupts);
	return err;
}

int usage_from_json(const json_t *j, struct usage *u)
{
	uint64_t online = 0;
	int err;

	memset(u, 0, sizeof(*u));
	err = fields_from_json(usage_fields, N(usage_fields), j, u);
	if (!err)
		err = fields_from_json(sampled_fields, N(sampled_fields),
				       json_object_get(j, "sampled"), u);
	if (!err)
		err = source_from_json(json_object_get(j, "source"), &u->source);
	if (!err)
		err = arrays_from_json(j, u);
	if (!err)
		err = count_from_json(json_object_get(j, "cpus_online"), &online);
	if (!err && online > u->cpus)
		err = -EINVAL;
	u->online = err ? 0 : (uint32_t)online;
	return err;
}

json_t *side_to_json(const struct test_side *s)
{
	json_t *o = fields_to_json(side_fields, N(side_fields), s);

	json_object_set_new(o, "losses", fields_to_json(loss_fields, N(loss_fields), &s->lost));
	json_object_set_new(o, "usage", usage_to_json(&s->usage));
	return o;
}

int side_from_json(const json_t *j, struct test_side *s)
{
	int err;

	memset(s, 0, sizeof(*s));
	err = fields_from_json(side_fields, N(side_fields), j, s);
	if (!err)
		err = fields_from_json(loss_fields, N(loss_fields), json_object_get(j, "losses"),
				       &s->lost);
	if (!err)
		err = usage_from_json(json_object_get(j, "usage"), &s->usage);
	return err;
}
