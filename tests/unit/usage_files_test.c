/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/* What the kernel's files tell of CPUs, idle states, interrupts and softirqs: machines that are not
 * at hand, given as files. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../user/bench/usage_in.h"

static char root[256];

static void put(const char *path, const char *text)
{
	char full[600];
	FILE *f;

	snprintf(full, sizeof(full), "%s/%s", root, path);
	for (char *at = strchr(full + strlen(root) + 1, '/'); at; at = strchr(at + 1, '/')) {
		*at = '\0';
		mkdir(full, 0700);
		*at = '/';
	}
	f = fopen(full, "we");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static int make_root(void **state)
{
	const char *tmp = getenv("XDPATH_TEST_TMP");

	(void)state;
	snprintf(root, sizeof(root), "%s/usage-XXXXXX", tmp ? tmp : "/var/tmp");
	return mkdtemp(root) ? 0 : -1;
}

static int drop_root(void **state)
{
	char cmd[300];

	(void)state;
	snprintf(cmd, sizeof(cmd), "rm -rf '%s'", root);
	return system(cmd); /* NOLINT(concurrency-mt-unsafe) */
}

static void idle_states_are_summed(void **state)
{
	double idle[4] = {-1, -1, -1, -1};

	(void)state;
	assert_int_equal(usage_cpuidle_read(idle, 4, root), -ENOENT);
	put("sys/devices/system/cpu/cpu0/cpuidle/state0/time", "1500000\n");
	put("sys/devices/system/cpu/cpu0/cpuidle/state1/time", "2000000\n");
	put("sys/devices/system/cpu/cpu2/cpuidle/state0/time", "250000\n");
	assert_int_equal(usage_cpuidle_read(idle, 4, root), 0);
	assert_float_equal(idle[0], 3.5, 1e-9);
	assert_float_equal(idle[1], 0, 1e-9);
	assert_float_equal(idle[2], 0.25, 1e-9);
}

static void stat_is_read(void **state)
{
	double hz = (double)sysconf(_SC_CLK_TCK);
	struct usage_stat s;

	(void)state;
	assert_int_equal(usage_stat_read(&s, root), -ENOENT);
	put("proc/stat", "cpu  10 20 30 400 50 6 7 8 0 0\ncpu0 5 10 15 200 25 3 4 4 0 0\n"
			 "cpu3 5 10 15 200 5 3 3 4 0 0\nintr 12 0\n");
	assert_int_equal(usage_stat_read(&s, root), 0);
	assert_int_equal(s.cpus, 4);
	assert_int_equal(s.online, 2);
	assert_true(s.here[0] && !s.here[1] && s.here[3]);
	assert_float_equal(s.user * hz, 30, 1e-6);
	assert_float_equal(s.softirq * hz, 7, 1e-6);
	assert_float_equal(s.steal * hz, 8, 1e-6);
	assert_float_equal(s.idle[0] * hz, 225, 1e-6);
	assert_float_equal(s.idle[3] * hz, 205, 1e-6);
	put("proc/stat", "nonsense\n");
	assert_int_equal(usage_stat_read(&s, root), -ENODATA);
}

static void tickless_is_the_kernels_own_word(void **state)
{
	(void)state;
	assert_false(usage_nohz(root));
	put("proc/timer_list", "cpu: 0\n  .nohz           : 0\n  .idle_calls : 5\n");
	assert_false(usage_nohz(root));
	put("proc/timer_list", "cpu: 0\n  .nohz           : 1\n");
	assert_true(usage_nohz(root));
	put("proc/timer_list", "cpu: 0\n  .nohz_mode      : 2\n");
	assert_true(usage_nohz(root));
	put("proc/timer_list", " #0: <0>, tick_nohz_handler, S:01\n  .nohz_mode      : 0\n");
	assert_false(usage_nohz(root));
}

static void interrupts_of_a_device(void **state)
{
	uint32_t irq[8];

	(void)state;
	put("proc/interrupts",
	    "           CPU0       CPU1\n"
	    " 24:          1          2  PCI-MSI 1 edge  eth1\n"
	    " 25:         10         20  PCI-MSI 2 edge  eth1-TxRx-0\n"
	    " 26:        100        200  PCI-MSI 3 edge  eth10-TxRx-0\n"
	    " 27:       1000       2000  PCI-MSIX-0000:00:05.0 1-edge  virtio2-input.0\n"
	    " 29:     100000     200000  PCI-MSI 6 edge  veth1-rx\n"
	    " 28:      10000      20000  PCI-MSI 5 edge  other\n"
	    "LOC:    7000000    7000000  Local timer interrupts\n"
	    "ERR:          0\n");
	put("sys/bus/pci/devices/0000:00:05.0/msi_irqs/28", "msix\n");
	assert_int_equal(usage_irqs_at("eth1", "0000:00:09.0", irq, 8, root), 2);
	assert_int_equal(usage_irq_count(irq, 2, root), 33);
	assert_int_equal(usage_irqs_at("eth5", "0000:00:05.0", irq, 8, root), 2);
	assert_int_equal(usage_irq_count(irq, 2, root), 33000);
	assert_int_equal(usage_irqs_at("eth1", "", irq, 8, root), 0); /* virtual: not ours */
	assert_int_equal(usage_irqs_at("eth1", "0000:00:09.0", irq, 1, root), 1);
}

static void softirq_table(void **state)
{
	uint64_t rx, tx;

	(void)state;
	put("proc/softirqs", "                    CPU0       CPU1       CPU2\n"
			     "      NET_TX:          5          6          7\n"
			     "      NET_RX:    1000000 4294967296         1\n");
	assert_int_equal(usage_softirqs(&rx, &tx, root), 0);
	assert_int_equal(rx, 4295967297);
	assert_int_equal(tx, 18);
	put("proc/softirqs", "CPU0\n");
	assert_int_equal(usage_softirqs(&rx, &tx, root), -ENOENT);
}

#define WITH_ROOT(f) cmocka_unit_test_setup_teardown(f, make_root, drop_root)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_ROOT(idle_states_are_summed),
		WITH_ROOT(stat_is_read),
		WITH_ROOT(tickless_is_the_kernels_own_word),
		WITH_ROOT(interrupts_of_a_device),
		WITH_ROOT(softirq_table),
	};

	return cmocka_run_group_tests_name("usage_files", tests, NULL, NULL);
}
