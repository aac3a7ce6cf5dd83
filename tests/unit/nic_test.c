/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * What the library finds out about NICs that are not in this machine, and what probe makes of it:
 * the whole way from the question to the printed word, over answers that are constructed (nics.h,
 * nic_kernel.h).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "../../user/cmd/probe.h" /* declares a function fail(), which is a macro of cmocka's */
#include "nic_kernel.h"

#include <cmocka.h>

/* A kernel that has everything, and the NIC of this test as its eth7. */
static void plug_in(struct probe *pr, void **state)
{
	memset(&machine, 0, sizeof(machine));
	machine.nic = *state;
	machine.up = true;
	memset(pr, 0, sizeof(*pr));
	for (int i = 0; i < XDPATH_K_COUNT; i++)
		pr->kernel.point[i] = 1;
}

static void look(struct probe *pr)
{
	struct xdpath_diag d;

	assert_int_equal(inspect_port(&pr->in, NIC_NAME, &d), 0);
	xdpath_nic_query(&pr->nic, &pr->in.port);
	probe_judge(pr);
}

/* What the call wrote to a stream, and what it returned. */
static char out[8192];

static int written(FILE *stream, int (*call)(const struct probe *, const char *),
		   const struct probe *pr, const char *arg)
{
	FILE *tmp = tmpfile();
	int fd = fileno(stream), keep, ret;
	size_t n;

	assert_non_null(tmp);
	fflush(stream);
	keep = dup(fd);
	dup2(fileno(tmp), fd);
	ret = call(pr, arg);
	fflush(stream);
	dup2(keep, fd);
	close(keep);
	rewind(tmp);
	n = fread(out, 1, sizeof(out) - 1, tmp);
	out[n] = '\0';
	fclose(tmp);
	return ret;
}

static int call_show(const struct probe *pr, const char *arg)
{
	(void)arg;
	show_device(pr);
	return 0;
}

static int call_require(const struct probe *pr, const char *list)
{
	return probe_require(list, pr, true);
}

/* Is "  LABEL   TEXT" one of the lines shown? */
static bool shown(const char *label, const char *text)
{
	char line[512];

	snprintf(line, sizeof(line), "\n  %-23s %s\n", label, text);
	return strstr(out, line) != NULL;
}

static const char *against(const struct probe *pr, enum xdpath_mode mode)
{
	for (int i = 0; i < MODES; i++)
		if (pr->view[i].mode == mode)
			return pr->view[i].against;
	return "no such mode";
}

static bool listed(const char *list, const char *name)
{
	char word[64];

	snprintf(word, sizeof(word), " %s ", name);
	return strstr(list, word) != NULL;
}

/* ---- each NIC on a kernel of today ------------------------------------------------------------
 */

static void facts(void **state)
{
	const struct nic *n = *state;
	struct xdpath_diag d;
	struct xdpath_port p;
	struct probe pr;

	plug_in(&pr, state);
	assert_int_equal(xdpath_port_query(&p, NIC_NAME, &d), 0);
	assert_string_equal(p.name, NIC_NAME);
	assert_int_equal(p.ifindex, NIC_IFINDEX);
	assert_string_equal(p.driver, n->driver);
	assert_string_equal(p.bus, n->bus);
	assert_string_equal(p.kind, "");
	assert_int_equal(p.peer_ifindex, 0);
	assert_int_equal(p.rx_queues, n->queues);
	assert_int_equal(p.tx_queues, n->queues);
	assert_true(p.rings_known);
	assert_int_equal(p.ring_rx, n->ring);
	assert_int_equal(p.ring_tx_max, n->rings_max);
	assert_true(p.rxvlan);
	assert_int_equal(p.lro, n->lro);
	assert_true(p.features_known);
	assert_int_equal(p.xdp_features, n->xdp);
	assert_int_equal(p.zc_max_segs, n->segs);
	assert_int_equal(p.rx_metadata, n->rxmd);
	assert_int_equal(p.xsk_features, n->xskf);
	assert_int_equal(xdpath_port_query(&p, "eth8", &d), -ENODEV);
	assert_int_equal(d.reason, XDPATH_R_NO_DEVICE);
}

static void judgement(void **state)
{
	const struct nic *n = *state;
	struct probe pr;

	plug_in(&pr, state);
	look(&pr);
	assert_int_equal(probe_best(&pr), n->best);
	assert_string_equal(against(&pr, XDPATH_MODE_ZEROCOPY), n->zero_copy);
	assert_string_equal(against(&pr, XDPATH_MODE_COPY), n->copy);
	assert_string_equal(against(&pr, XDPATH_MODE_GENERIC), "");
}

static void text(void **state)
{
	const struct nic *n = *state;
	const char *const why[] = {n->zero_copy, n->copy};
	const char *const mode[] = {"zero-copy", "copy"};
	char line[400];
	struct probe pr;

	plug_in(&pr, state);
	look(&pr);
	written(stdout, call_show, &pr, NULL);
	snprintf(line, sizeof(line), "%u RX, %u TX", n->queues, n->queues);
	assert_true(shown("queues", line));
	snprintf(line, sizeof(line), "RX %u of at most %u, TX %u of at most %u slots", n->ring,
		 n->rings_max, n->ring, n->rings_max);
	assert_true(shown("NIC rings", line));
	assert_true(shown("LRO", n->lro ? "on" : "off"));
	snprintf(line, sizeof(line), "of at most %u fragment%s", n->segs, n->segs == 1 ? "" : "s");
	assert_int_equal(shown("zero-copy packets", line), n->segs > 0);
	for (size_t i = 0; i < nfeatures; i++) {
		const struct feature *f = &features[i];

		snprintf(line, sizeof(line), "%-10s %s",
			 listed(n->features, f->name) ? "yes" : "no", f->text);
		assert_int_equal(shown(f->name, line), f->source != F_KERNEL);
	}
	assert_true(shown("queues taken", "none"));
	assert_true(shown("best mode", xdpath_mode_name(n->best)));
	for (int i = 0; i < 2; i++) {
		snprintf(line, sizeof(line), "%s%s", why[i][0] ? "no: " : "",
			 why[i][0] ? why[i] : "nothing speaks against it");
		assert_true(shown(mode[i], line));
	}
	assert_true(shown("generic", "nothing speaks against it"));
}

/* Queues it could have, interrupt delay, NAPIs, faults: what is not told is said to be so. */
static void details(void **state)
{
	static const char *const shared[] = {
		"one for both ways of a queue",
		"one for each way: busy-poll of RX does not move TX",
		"TX's not told: busy-poll of RX may not move TX",
	};
	const struct nic *n = *state;
	char line[200];
	struct probe pr;

	plug_in(&pr, state);
	look(&pr);
	written(stdout, call_show, &pr, NULL);
	snprintf(line, sizeof(line), "combined %u of at most %u", n->queues, n->most);
	assert_true(shown("channels", n->channels ? line : "not told by the driver"));
	snprintf(line, sizeof(line), "RX %u us or 0 frames, TX %u us or 0 frames", n->rx_usecs,
		 n->rx_usecs);
	assert_true(shown("interrupt delay", n->rx_usecs ? line : "not told by the driver"));
	snprintf(line, sizeof(line), "%u; deferral is set for each (netlink)", napi_count());
	assert_true(shown("NAPIs", line));
	assert_true(shown("NAPI of RX and TX", shared[n->napis]));
	assert_int_equal(strstr(out, "\n  known fault ") != NULL, n->faults > 0);
	machine.no_napi_set = true;
	look(&pr);
	written(stdout, call_show, &pr, NULL);
	snprintf(line, sizeof(line), "%u; deferral is set for the device (sysfs)", napi_count());
	assert_true(shown("NAPIs", line));
	machine.no_queue_get = true;
	look(&pr);
	written(stdout, call_show, &pr, NULL);
	assert_true(shown("NAPIs", "not known: this kernel does not list them; deferral is set for "
				   "the device"));
}

static void details_in_json(void **state)
{
	const struct nic *n = *state;
	json_t *o, *v;
	struct probe pr;

	plug_in(&pr, state);
	look(&pr);
	o = json_device(&pr);
	v = json_object_get(o, "channels");
	assert_int_equal(json_is_null(v), !n->channels);
	if (n->channels) {
		assert_int_equal(json_integer_value(json_object_get(v, "combined")), n->queues);
		assert_int_equal(json_integer_value(json_object_get(v, "combined_max")), n->most);
	}
	v = json_object_get(o, "interrupt_delay");
	assert_int_equal(json_is_null(v), !n->rx_usecs);
	if (n->rx_usecs)
		assert_int_equal(json_integer_value(json_object_get(v, "rx_usecs")), n->rx_usecs);
	v = json_object_get(o, "napi");
	assert_int_equal(json_integer_value(json_object_get(v, "count")), napi_count());
	assert_true(json_is_true(json_object_get(v, "settings_each")));
	v = json_object_get(v, "rx_tx_shared");
	assert_true(n->napis == NAPI_RX ? json_is_null(v)
					: json_is_true(v) == (n->napis == NAPI_SHARED));
	v = json_object_get(o, "quirks");
	assert_int_equal(json_array_size(v), n->faults);
	for (size_t i = 0; i < n->faults; i++)
		assert_non_null(json_object_get(json_array_get(v, i), "verify"));
	json_decref(o);
}

static void json(void **state)
{
	const struct nic *n = *state;
	const char *const why[] = {n->zero_copy, n->copy, ""};
	json_t *o, *f, *modes;
	struct probe pr;

	plug_in(&pr, state);
	look(&pr);
	o = json_device(&pr);
	assert_string_equal(json_string_value(json_object_get(o, "driver")), n->driver);
	assert_int_equal(json_integer_value(json_object_get(o, "rx_queues")), n->queues);
	assert_string_equal(json_string_value(json_object_get(o, "best_mode")),
			    xdpath_mode_name(n->best));
	f = json_object_get(o, "features");
	for (size_t i = 0; i < nfeatures; i++) {
		json_t *v = json_object_get(f, features[i].name);

		if (features[i].source == F_KERNEL)
			assert_null(v);
		else
			assert_true(listed(n->features, features[i].name) ? json_is_true(v)
									  : json_is_false(v));
	}
	modes = json_object_get(o, "modes");
	assert_int_equal(json_array_size(modes), MODES);
	for (size_t i = 0; i < MODES; i++) {
		const json_t *m = json_array_get(modes, i);
		const char *reason = json_string_value(json_object_get(m, "reason"));

		assert_string_equal(reason ? reason : "", why[i]);
		assert_int_equal(json_is_true(json_object_get(m, "expected")), !why[i][0]);
		assert_true(json_is_null(json_object_get(m, "obtained")));
	}
	json_decref(o);
}

static void required(void **state)
{
	const struct nic *n = *state;
	char line[200];
	struct probe pr;

	plug_in(&pr, state);
	look(&pr);
	for (size_t i = 0; i < nfeatures; i++) {
		const char *name = features[i].name;
		bool have = features[i].source == F_KERNEL || listed(n->features, name);

		assert_int_equal(written(stderr, call_require, &pr, name),
				 have ? EXIT_DONE : EXIT_MISSING);
		snprintf(line, sizeof(line),
			 "xdpath probe: " NIC_NAME
			 ": %s is required and not there; `xdpath probe " NIC_NAME
			 "` lists what is\n",
			 name);
		assert_string_equal(out, have ? "" : line);
	}
	/* The first that is missing is named. */
	assert_int_equal(written(stderr, call_require, &pr, "af-xdp,offload,launch-time"),
			 EXIT_MISSING);
	assert_non_null(strstr(out, ": offload is required"));
}

/* ---- other kernels ----------------------------------------------------------------------------
 */

/* Before 6.3 no kernel tells the features: nothing is taken for granted, nothing ruled out. */
static void features_not_told(void **state)
{
	struct probe pr;

	plug_in(&pr, state);
	machine.no_netdev = true;
	look(&pr);
	assert_int_equal(machine.asked, 0);
	assert_int_equal(pr.in.port.rx_queues, machine.nic->queues);
	assert_int_equal(probe_best(&pr), XDPATH_MODE_ZEROCOPY);
	written(stdout, call_show, &pr, NULL);
	assert_true(
		shown("best mode", "zero-copy (the kernel tells no features: --try finds out)"));
	assert_true(shown("native", "not known  XDP in the driver"));
	assert_int_equal(written(stderr, call_require, &pr, "af-xdp,native"), EXIT_MISSING);
	assert_non_null(strstr(out, "native is required and this kernel does not tell"));
}

/* From 6.3 to 6.5 without the number of fragments: one. */
static void fragments_not_told(void **state)
{
	struct probe pr;

	plug_in(&pr, state);
	machine.no_segs = true;
	pr.kernel.point[XDPATH_K_MULTI_BUFFER] = 0;
	look(&pr);
	assert_int_equal(pr.in.port.zc_max_segs, machine.nic->segs ? 1 : 0);
	assert_int_equal(probe_best(&pr), machine.nic->best);
	assert_int_equal(written(stderr, call_require, &pr, "multi-buffer"), EXIT_MISSING);
	assert_int_equal(written(stderr, call_require, &pr, "zero-copy-multi-buffer"),
			 EXIT_MISSING);
}

/* The driver's channels, else the queues that the core lists, else the most there can be. */
static void queues_from_the_next_best(void **state)
{
	const struct nic *n = *state;
	struct xdpath_port p;
	struct probe pr;

	plug_in(&pr, state);
	machine.no_channels = true;
	assert_int_equal(xdpath_port_query(&p, NIC_NAME, NULL), 0);
	assert_int_equal(p.rx_queues, n->queues);
	assert_int_equal(p.tx_queues, n->queues);
	machine.no_queue_get = true;
	assert_int_equal(xdpath_port_query(&p, NIC_NAME, NULL), 0);
	assert_int_equal(p.rx_queues, n->most);
	assert_int_equal(p.tx_queues, n->most);
}

static void no_af_xdp(void **state)
{
	struct probe pr;

	plug_in(&pr, state);
	pr.kernel.point[XDPATH_K_AF_XDP] = 0;
	look(&pr);
	assert_int_equal(probe_best(&pr), XDPATH_MODE_AUTO);
	assert_string_equal(against(&pr, XDPATH_MODE_GENERIC),
			    "no AF_XDP socket is to be had: the kernel is built without");
}

/* ---- other states of the NIC ------------------------------------------------------------------
 */

static void set_down(void **state)
{
	char best[64];
	struct probe pr;

	plug_in(&pr, state);
	machine.up = false;
	look(&pr);
	written(stdout, call_show, &pr, NULL);
	snprintf(best, sizeof(best), "%s, once the interface is up",
		 xdpath_mode_name(machine.nic->best));
	assert_true(shown("best mode", best));
	assert_true(shown("link", "set down"));
}

/* Some drivers send redirected frames only once a program is attached; and who is there first bars
 * every mode, unless it is ours. */
static void foreign_program(void **state)
{
	static const char why[] =
		"the XDP program without a name (id 4242, native) is attached and not xdpath's";
	bool native, sends;
	struct probe pr;

	plug_in(&pr, state);
	native = machine.nic->xdp & XDPATH_XDP_ACT_BASIC;
	sends = native; /* of these NICs each that has native XDP */
	machine.native_id = 4242;
	look(&pr);
	assert_int_equal(pr.in.nprogs, 1);
	assert_int_equal(written(stderr, call_require, &pr, "transmit,transmit-multi-buffer"),
			 sends ? EXIT_DONE : EXIT_MISSING);
	assert_int_equal(probe_best(&pr), XDPATH_MODE_AUTO);
	assert_string_equal(against(&pr, XDPATH_MODE_GENERIC), why);
	assert_string_equal(against(&pr, XDPATH_MODE_COPY), native ? why : machine.nic->copy);
	written(stdout, call_show, &pr, NULL);
	assert_true(shown("best mode", "none"));
}

static void queues_taken(void **state)
{
	const char *why;
	struct probe pr;

	plug_in(&pr, state);
	why = machine.nic->queues == 1
		      ? "the one queue is taken, queue 0 by a program that is not xdpath's"
		      : "all queues are taken, queue 0 by a program that is not xdpath's";
	machine.taken = machine.nic->queues;
	look(&pr);
	assert_int_equal(pr.in.ntaken, machine.nic->queues);
	assert_int_equal(probe_best(&pr), XDPATH_MODE_AUTO);
	assert_string_equal(against(&pr, XDPATH_MODE_GENERIC), why);
	if (machine.nic->queues == 1)
		return;
	machine.taken--; /* one is free: it can be had, and which are not is told */
	look(&pr);
	assert_int_equal(probe_best(&pr), machine.nic->best);
	written(stdout, call_show, &pr, NULL);
	assert_non_null(strstr(out, ", a program that is not xdpath's\n"));
}

static void holders_not_told(void **state)
{
	struct probe pr;

	plug_in(&pr, state);
	machine.no_queue_get = machine.no_sock_diag = true;
	machine.taken = 1; /* and nobody can say so */
	look(&pr);
	assert_int_equal(pr.in.ntaken, 0);
	assert_int_equal(probe_best(&pr), machine.nic->best);
	written(stdout, call_show, &pr, NULL);
	assert_true(shown("queues taken", "not known: this kernel does not list them"));
}

/* By version, as a warning: each from where it began to before where it was repaired. */
static void kernels_with_known_faults(void **state)
{
	static const struct {
		const char *release, *keys;
	} k[] = {
		{"4.17.0", ""},
		{"6.1.0-37-amd64", "copy-completion-early "},
		{"6.12.117+deb13-amd64", "copy-completion-early "},
		{"6.13", "busy-poll-copy copy-completion-early "},
		{"6.14.11", "busy-poll-copy copy-completion-early "},
		{"6.15.0", "copy-completion-early "},
		{"6.16.12", "copy-completion-early copy-completion-crash "},
		{"6.17.3", "copy-completion-crash "},
		{"6.18.44", ""},
		{"7.3.4+deb13-amd64", ""},
		{"next", ""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(k) / sizeof(k[0]); i++) {
		const struct known_fault *f = NULL;
		char keys[200] = "";
		size_t at = 0;

		while ((f = known_next(f, k[i].release)))
			at += (size_t)snprintf(keys + at, sizeof(keys) - at, "%s ", f->key);
		assert_string_equal(keys, k[i].keys);
	}
}

#define OF(i, f)                                                                      \
	{                                                                             \
		.name = #i ": " #f, .test_func = f, .initial_state = (void *)&nics[i] \
	}
#define EACH(i)                                                                                    \
	OF(i, facts), OF(i, judgement), OF(i, text), OF(i, details), OF(i, details_in_json),       \
		OF(i, json), OF(i, required), OF(i, features_not_told), OF(i, fragments_not_told), \
		OF(i, queues_from_the_next_best), OF(i, no_af_xdp), OF(i, set_down),               \
		OF(i, foreign_program), OF(i, queues_taken), OF(i, holders_not_told)

int main(void)
{
	const struct CMUnitTest tests[] = {
		EACH(R8169),  EACH(IXGBE),
		EACH(BNX2X),  EACH(I40E),
		EACH(MLX5),   EACH(IGB),
		EACH(VIRTIO), cmocka_unit_test(kernels_with_known_faults)};

	return cmocka_run_group_tests_name("nic", tests, NULL, NULL);
}
