/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/* The test and the knobs as JSON and back, and what of a test is not to be had at all. */
#include <errno.h>
#include <string.h>

#include "internal.h"
#include "record.h"
#include "session_end.h"
#include "wire.h"

#define SECONDS_MAX 86400.0
#define RATE_MAX    1e9

static const char *const engines[] = {"xsk", "udp", "packet"};

const char *spec_engine_name(enum test_engine e)
{
	return engines[e];
}

/* The far end's own choices only: our CPUs and times are none of its business. */
json_t *spec_to_json(const struct test_spec *s)
{
	json_t *cpus = json_array();

	for (int i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &s->peer_cpus))
			json_array_append_new(cpus, json_integer(i));
	return json_pack("{s:i, s:i, s:I, s:I, s:I, s:I, s:b, s:b, s:I, s:i, s:I, s:f, s:I, s:o}",
			 "kind", (int)s->kind, "engine", (int)s->engine, "flows",
			 (json_int_t)s->flows, "req", (json_int_t)s->req, "rsp", (json_int_t)s->rsp,
			 "size", (json_int_t)s->size, "reverse", (int)s->reverse, "bidir",
			 (int)s->bidir, "mtu", (json_int_t)s->mtu, "arrival", (int)s->arrival,
			 "burst", (json_int_t)s->burst, "rate", s->rate, "workers",
			 (json_int_t)s->peer_workers, "cpus", cpus);
}

static bool cpus_from_json(const json_t *list, cpu_set_t *out)
{
	CPU_ZERO(out);
	if (!json_is_array(list))
		return false;
	for (size_t i = 0; i < json_array_size(list); i++) {
		json_int_t cpu = json_is_integer(json_array_get(list, i))
					 ? json_integer_value(json_array_get(list, i))
					 : -1;

		if (cpu < 0 || cpu >= CPU_SETSIZE)
			return false;
		CPU_SET((size_t)cpu, out);
	}
	return true;
}

int spec_from_json(const json_t *o, struct test_spec *s)
{
	uint32_t kind, engine, arrival;

	memset(s, 0, sizeof(*s));
	if (!wire_u32(o, "kind", TEST_RR, TEST_STREAM, &kind) ||
	    !wire_u32(o, "engine", ENGINE_T_XSK, ENGINE_T_PACKET, &engine) ||
	    !wire_u32(o, "flows", 1, FLOWS_MAX, &s->flows) ||
	    !wire_u32(o, "req", 0, MSG_SIZE_MAX, &s->req) ||
	    !wire_u32(o, "rsp", 0, MSG_SIZE_MAX, &s->rsp) ||
	    !wire_u32(o, "size", 0, MSG_SIZE_MAX, &s->size) ||
	    !wire_flag(o, "reverse", &s->reverse) || !wire_flag(o, "bidir", &s->bidir) ||
	    !wire_u32(o, "mtu", 0, 65535, &s->mtu) ||
	    !wire_u32(o, "arrival", ARRIVAL_CLOSED, ARRIVAL_BURST, &arrival) ||
	    !wire_u32(o, "burst", 0, 1000000, &s->burst) ||
	    !wire_number(o, "rate", 0, RATE_MAX, &s->rate) ||
	    !wire_u32(o, "workers", 0, LANES_MAX, &s->workers) ||
	    !cpus_from_json(json_object_get(o, "cpus"), &s->cpus))
		return -EPROTO;
	s->kind = (enum test_kind)kind;
	s->engine = (enum test_engine)engine;
	s->arrival = (enum test_arrival)arrival;
	return spec_check(s, NULL) ? -EPROTO : 0;
}

json_t *knobs_to_json(const struct xdpath_knobs *k, bool all)
{
	struct xdpath_knobs def;
	json_t *o = json_object();
	char ours[64], theirs[64];
	size_t n;
	const struct xdpath_knob *table = xdpath_knob_table(&n);

	xdpath_knobs_defaults(&def);
	for (size_t i = 0; i < n; i++) {
		xdpath_knob_print(k, &table[i], ours, sizeof(ours));
		xdpath_knob_print(&def, &table[i], theirs, sizeof(theirs));
		if (all || strcmp(ours, theirs) != 0)
			json_object_set_new(o, table[i].name, json_string(ours));
	}
	return o;
}

int knobs_from_json(const json_t *o, struct xdpath_knobs *k, struct xdpath_diag *d)
{
	const char *key;
	json_t *v;

	json_object_foreach((json_t *)o, key, v)
	{
		int err = json_is_string(v) ? xdpath_knob_set(k, key, json_string_value(v), d)
					    : -EINVAL;
		if (err)
			return err;
	}
	return 0;
}

int spec_check(const struct test_spec *s, struct xdpath_diag *d)
{
	if (s->flows < 1 || s->flows > FLOWS_MAX)
		return xdpath_fail(d, XDPATH_R_OPTIONS, EINVAL,
				   "%u flows: give 1 to %u, a flow is a port (-n)", s->flows,
				   FLOWS_MAX);
	if (s->workers > LANES_MAX || s->peer_workers > LANES_MAX)
		return xdpath_fail(d, XDPATH_R_OPTIONS, EINVAL, "%u workers: give %u at most",
				   s->workers > s->peer_workers ? s->workers : s->peer_workers,
				   LANES_MAX);
	if (s->kind == TEST_RR &&
	    (s->req < 1 || s->rsp < 1 || s->req > MSG_SIZE_MAX || s->rsp > MSG_SIZE_MAX))
		return xdpath_fail(d, XDPATH_R_OPTIONS, EINVAL,
				   "%u,%u bytes: requests and answers have 1 to %u (-r REQ,RSP)",
				   s->req, s->rsp, MSG_SIZE_MAX);
	if (s->kind == TEST_STREAM && (s->size < 1 || s->size > MSG_SIZE_MAX))
		return xdpath_fail(d, XDPATH_R_OPTIONS, EINVAL,
				   "%u bytes: a message has 1 to %u (-m SIZE)", s->size,
				   MSG_SIZE_MAX);
	if (s->reverse && s->bidir)
		return xdpath_fail(d, XDPATH_R_OPTIONS, EINVAL,
				   "--reverse and --bidir: one way or both; give one of them");
	if (s->rate < 0 || s->rate > RATE_MAX)
		return xdpath_fail(d, XDPATH_R_OPTIONS, EINVAL,
				   "a rate of %g messages a second; give up to 1G", s->rate);
	if ((s->rate > 0) != (s->arrival != ARRIVAL_CLOSED))
		return xdpath_fail(d, XDPATH_R_OPTIONS, EINVAL,
				   "--arrival says how the messages of a --rate come; give both");
	if (s->seconds < 0 || s->seconds > SECONDS_MAX || s->warmup < 0 || s->warmup > SECONDS_MAX)
		return xdpath_fail(d, XDPATH_R_OPTIONS, EINVAL, "a run of %g s; give up to a day",
				   s->seconds);
	return 0;
}

int spec_mtu(const struct session_end *x, uint32_t device_mtu, uint32_t *mtu, struct xdpath_diag *d)
{
	uint32_t least = x->e.path.family == AF_INET6 ? 1280 : 576;

	*mtu = x->spec.mtu ? x->spec.mtu : device_mtu;
	if (*mtu > device_mtu)
		return xdpath_fail(d, XDPATH_R_MTU, EMSGSIZE,
				   "%s: datagrams of %u bytes: its MTU is %u; `ip link set %s mtu "
				   "%u` or a smaller --mtu",
				   x->dev, *mtu, device_mtu, x->dev, *mtu);
	if (*mtu < least)
		return xdpath_fail(d, XDPATH_R_MTU, EINVAL,
				   "%s: datagrams of %u bytes; give an MTU of %u or more", x->dev,
				   *mtu, least);
	return 0;
}
