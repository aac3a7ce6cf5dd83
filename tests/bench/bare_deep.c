/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * bare with deep rings: 16384 frames are 5 ms at 3 Mpps, so that a host that halts a CPU for a
 * millisecond now and then does not decide who loses frames.
 */
#define N 16384U
#include "bare.c"
