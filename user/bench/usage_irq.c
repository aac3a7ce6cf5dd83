/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * Interrupts of a device (/proc/interrupts) and the kernel's network softirqs (/proc/softirqs).
 * Called by usage.c and record.c.
 *
 * A device's interrupts are those of its bus address, by sysfs or by a name that carries it, and
 * those named after it. A device without a bus address (veth, bridge) has none: another
 * namespace's may have the same name.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xdpath/port.h>

#include "usage_in.h"

static void add(uint32_t *irq, uint32_t *n, uint32_t most, uint32_t number)
{
	for (uint32_t i = 0; i < *n; i++)
		if (irq[i] == number)
			return;
	if (*n < most)
		irq[(*n)++] = number;
}

/* Message-signalled ones: a file each, named by its number. */
static void add_msi(const char *bus, uint32_t *irq, uint32_t *n, uint32_t most, const char *root)
{
	struct dirent *e;
	char path[320];
	DIR *d;

	snprintf(path, sizeof(path), "%s/sys/bus/pci/devices/%s/msi_irqs", root, bus);
	d = opendir(path);
	while (d && (e = readdir(d)))
		if (isdigit((unsigned char)e->d_name[0]))
			add(irq, n, most, (uint32_t)strtoul(e->d_name, NULL, 10));
	if (d)
		closedir(d);
}

/* DEV as a whole word: "eth1" is in "eth1-rx-0" and "i40e-eth1-TxRx-3", not in "eth10". */
static bool has_word(const char *text, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = strstr(text, word); at; at = strstr(at + 1, word)) {
		bool begins = at == text || !isalnum((unsigned char)at[-1]);

		if (begins && !isalnum((unsigned char)at[len]))
			return true;
	}
	return false;
}

/* Opened, past the line that names the CPUs, whose number goes to *columns. */
static FILE *open_table(const char *root, const char *name, uint32_t *columns, char **line,
			size_t *size)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/proc/%s", root, name);
	f = fopen(path, "re");
	if (!f)
		return NULL;
	*columns = 0;
	if (getline(line, size, f) < 0) {
		fclose(f);
		return NULL;
	}
	for (const char *at = strstr(*line, "CPU"); at; at = strstr(at + 3, "CPU"))
		(*columns)++;
	return f;
}

/* Sum of a row's numbers; *rest is what stands behind them. */
static uint64_t row_sum(char *at, uint32_t columns, const char **rest)
{
	uint64_t sum = 0;
	char *end;

	for (uint32_t i = 0; i < columns; i++, at = end) {
		unsigned long long v = strtoull(at, &end, 10);

		if (end == at)
			break;
		sum += v;
	}
	*rest = at;
	return sum;
}

uint32_t usage_irqs_at(const char *dev, const char *bus, uint32_t *irq, uint32_t most,
		       const char *root)
{
	uint32_t n = 0, columns;
	const char *rest;
	size_t size = 0;
	char *line = NULL, *at;
	FILE *f;

	if (!bus[0] || strchr(bus, '/'))
		return 0;
	add_msi(bus, irq, &n, most, root);
	f = open_table(root, "interrupts", &columns, &line, &size);
	while (f && getline(&line, &size, f) > 0) {
		unsigned long number = strtoul(line, &at, 10);

		if (at == line || *at != ':')
			continue;
		row_sum(at + 1, columns, &rest);
		if (has_word(rest, dev) || strstr(rest, bus))
			add(irq, &n, most, (uint32_t)number);
	}
	if (f)
		fclose(f);
	free(line);
	return n;
}

uint32_t usage_irqs(const char *dev, uint32_t *irq, uint32_t most)
{
	struct xdpath_port p;

	if (!dev || xdpath_port_query(&p, dev, NULL))
		return 0;
	return usage_irqs_at(p.name, p.bus, irq, most, "");
}

uint64_t usage_irq_count(const uint32_t *irq, uint32_t n, const char *root)
{
	uint64_t sum = 0;
	uint32_t columns;
	const char *rest;
	size_t size = 0;
	char *line = NULL, *at;
	FILE *f = open_table(root, "interrupts", &columns, &line, &size);

	while (f && getline(&line, &size, f) > 0) {
		unsigned long number = strtoul(line, &at, 10);

		if (at == line || *at != ':')
			continue;
		for (uint32_t i = 0; i < n; i++)
			if (irq[i] == number)
				sum += row_sum(at + 1, columns, &rest);
	}
	if (f)
		fclose(f);
	free(line);
	return sum;
}

int usage_softirqs(uint64_t *rx, uint64_t *tx, const char *root)
{
	uint32_t columns;
	const char *rest;
	size_t size = 0;
	char *line = NULL;
	int found = 0;
	FILE *f = open_table(root, "softirqs", &columns, &line, &size);

	*rx = *tx = 0;
	while (f && getline(&line, &size, f) > 0) {
		char *colon = strchr(line, ':');

		if (!colon)
			continue;
		if (strstr(line, "NET_RX")) {
			*rx = row_sum(colon + 1, columns, &rest);
			found++;
		} else if (strstr(line, "NET_TX")) {
			*tx = row_sum(colon + 1, columns, &rest);
			found++;
		}
	}
	if (f)
		fclose(f);
	free(line);
	return found == 2 ? 0 : -ENOENT;
}
