/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/* Between raw.c and raw_io.c. */
#ifndef CONF_RAW_IO_H
#define CONF_RAW_IO_H

#include "raw.h"

void raw_set_ops(struct end *e);

#endif
