/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/* The verbs. One file each; the options are in cli.c. */
#include "cli.h"

const struct verb verbs[V_COUNT] = {
	{"probe", V_PROBE, "probe [DEV]",
	 "what kernel, driver, device and queue can do, and why not",
	 "xdpath probe\n  xdpath probe eth1 --try", 0, 1, cmd_probe},
	{"attach", V_ATTACH, "attach DEV [FILE.o]",
	 "load and keep the steering program, or one's own with an XSKMAP (also: load)",
	 "xdpath attach eth1 --all\n  xdpath attach eth1 mine.bpf.o -n my_prog --mode native", 1, 2,
	 cmd_attach},
	{"detach", V_DETACH, "detach DEV",
	 "undo, in whatever form and mode; also what a crash left (also: unload)",
	 "xdpath detach eth1\n  xdpath detach eth1 -i 42 --force", 1, 1, cmd_detach},
	{"status", V_STATUS, "status [DEV]", "programs, owners, modes and sockets, from the kernel",
	 "xdpath status\n  xdpath status eth1 --json", 0, 1, cmd_status},
	{"steer", V_STEER, "steer DEV add|del|list|flush|load",
	 "rules of the program that is attached, kept or of a running verb",
	 "xdpath steer eth1 add proto udp dport 53 action xsk\n"
	 "  xdpath steer eth1 load -f rules.txt",
	 1, VERB_WORDS, cmd_steer},
	{"forward", V_FORWARD, "forward A [B]",
	 "forward frames both ways through user space; one device hairpins",
	 "xdpath forward eth1 eth2\n  xdpath forward eth1 eth2 --mode zero-copy --set "
	 "poll.mode=spin",
	 1, 2, cmd_forward},
	{"reflect", V_REFLECT, "reflect DEV",
	 "send each frame back, MACs swapped; UDP and echo are answered",
	 "xdpath reflect eth1 --all=l2\n  xdpath reflect eth1 --all -q 0 --set poll.mode=spin", 1,
	 1, cmd_reflect},
	{"sink", V_SINK, "sink DEV", "count frames and release them",
	 "xdpath sink eth1 -r 'proto udp dport 53 action xsk'\n  xdpath sink eth1 --all -q 0 "
	 "--touch --duration 10 --json",
	 1, 1, cmd_sink},
	{"source", V_SOURCE, "source DEV", "generate UDP frames",
	 "xdpath source eth1 --dst-mac 02:00:00:00:00:02 --rate 100k -c 1000000\n"
	 "  xdpath source eth1 --engine live --size 60 --flows 16 --duration 5",
	 1, 1, cmd_source},
	{"serve", V_SERVE, "serve DEV", "the far end of a measurement",
	 "xdpath serve eth1\n  xdpath serve eth1 --port 5000 --duration 600", 1, 1, cmd_serve},
	{"bench", V_BENCH, "bench rr|stream DEV PEER (or --lab)",
	 "measure against a serve at the address PEER",
	 "xdpath bench rr eth1 192.0.2.1 -n 200 -r 1400,1\n"
	 "  xdpath bench stream --lab -n 60 -m 64 --engine udp",
	 1, VERB_WORDS, cmd_bench},
	{"tune", V_TUNE, "tune --knob KEY=V1,V2 ... -- bench rr|stream ...",
	 "which value of a knob wins here, and is it sure",
	 "xdpath tune --knob rx.batch=64,16,256 --lab -- bench rr -n 20\n"
	 "  xdpath tune --preset seeds-rr --lab",
	 0, VERB_WORDS, cmd_tune},
};
