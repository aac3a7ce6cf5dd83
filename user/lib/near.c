/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/* The word that was meant: names of devices, knobs and rule words next to a misspelt one. */
#include <string.h>

#include "internal.h"

enum { WORD_MOST = 31 };

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* Edit distance where swapping two neighbours is one edit: "eht0" is one away from "eth0". */
static uint32_t distance(const char *a, const char *b)
{
	uint32_t row[3][WORD_MOST + 1];
	size_t la = strnlen(a, WORD_MOST), lb = strnlen(b, WORD_MOST);

	for (size_t j = 0; j <= lb; j++)
		row[0][j] = (uint32_t)j;
	for (size_t i = 1; i <= la; i++) {
		uint32_t *now = row[i % 3], *last = row[(i + 2) % 3];

		now[0] = (uint32_t)i;
		for (size_t j = 1; j <= lb; j++) {
			now[j] = least(least(last[j], now[j - 1]) + 1,
				       last[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				now[j] = least(now[j], row[(i + 1) % 3][j - 2] + 1);
		}
	}
	return row[la % 3][lb];
}

void xdpath_near_start(struct xdpath_near *n, const char *word)
{
	n->word = word;
	n->best = NULL;
	n->limit = 2 + (uint32_t)strnlen(word, WORD_MOST) / 4; /* farther is no typing error */
}

void xdpath_near_offer(struct xdpath_near *n, const char *candidate)
{
	uint32_t d = distance(n->word, candidate);

	if (d < n->limit && d < strnlen(candidate, WORD_MOST)) {
		n->limit = d;
		n->best = candidate;
	}
}
