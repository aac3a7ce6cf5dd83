/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/* The command `xdpath`. The verbs stand in verbs.c, the options in cli.c. */
#include "cli.h"

int main(int argc, char **argv)
{
	return cli_main(argc, argv);
}
