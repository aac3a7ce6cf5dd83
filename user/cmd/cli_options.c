/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/* Which options there are, which verbs take them, where their values go. */
#include "cli_options.h"

#define RUNS   (VERB(V_FORWARD) | VERB(V_REFLECT) | VERB(V_SINK) | VERB(V_SOURCE))
#define ATTACH VERB(V_ATTACH)
#define DETACH VERB(V_DETACH)
#define ANY    (RUNS | VERB(V_PROBE) | ATTACH | DETACH | VERB(V_STATUS) | VERB(V_STEER))
#define AT(f)  offsetof(struct args, f)
#define SOURCE VERB(V_SOURCE)

const struct option_def options[] = {
	{"mode", 'm', "MODE", K_MODE, AT(mode), RUNS,
	 "auto, zero-copy, copy or generic; default auto"},
	{"mode", 'm', "MODE", K_ATTACH, AT(attach), ATTACH,
	 "auto, native or generic; default auto"},
	{"worst", 0, "MODE", K_MODE, AT(worst), RUNS, "lowest acceptable mode; below it exit 3"},
	{"queues", 'q', "LIST", K_QUEUES, 0, RUNS, "all (default), or 0-3,6"},
	{"workers", 0, "N", K_U32, AT(workers), RUNS,
	 "threads; default one for each queue up to the CPUs"},
	{"cpus", 0, "LIST", K_CPUS, 0, RUNS, "where the workers run"},
	{"set", 0, "KEY=VALUE", K_SET, 0, RUNS | VERB(V_PROBE), "a knob (`xdpath help knobs`)"},
	{"config", 0, "FILE", K_CONFIG, 0, RUNS | VERB(V_PROBE),
	 "knobs from a file of KEY = VALUE lines"},
	{"all", 0, "[=l2]", K_STEER, 0, VERB(V_REFLECT) | VERB(V_SINK) | VERB(V_FORWARD) | ATTACH,
	 "all but ARP, ND and ICMP to user space; l2: those too"},
	{"rule", 'r', "RULE", K_RULE, 0, ATTACH | (RUNS & ~SOURCE),
	 "a rule; may be given again (`xdpath help rules`)"},
	{"rules", 'f', "FILE", K_RULES, 0, ATTACH | (RUNS & ~SOURCE) | VERB(V_STEER),
	 "rules from a file, one a line; - is standard input"},
	{"beside", 0, NULL, K_FLAG, AT(beside), ATTACH | (RUNS & ~SOURCE),
	 "beside other XDP programs, through libxdp's dispatcher"},
	{"section", 's', "SECTION", K_TEXT, AT(section), ATTACH, "... FILE.o: the program of it"},
	{"prog-name", 'n', "NAME", K_TEXT, AT(prog_name), ATTACH, "... FILE.o: the program of it"},
	{"pin-path", 'p', "PIN", K_TEXT, AT(pin), ATTACH,
	 "pin program and maps in this folder of a bpffs"},
	{"prio", 'P', "PRIO", K_U32, AT(prio), ATTACH, "with --beside: order, lower first"},
	{"actions", 'A', "ACTION", K_ACTIONS, AT(actions), ATTACH,
	 "with --beside: after these the next program runs, like pass,drop"},
	{"force", 0, NULL, K_FLAG, AT(force), DETACH, "also a program that is not xdpath's"},
	{"id", 'i', "ID", K_U64, AT(prog_id), DETACH, "only the program of this id"},
	{"no-promisc", 0, NULL, K_FLAG, AT(no_promisc), VERB(V_FORWARD),
	 "do not make the devices promiscuous"},
	{"touch", 0, NULL, K_FLAG, AT(touch), VERB(V_SINK), "read every byte of each frame"},
	{"size", 0, "N|A-B|imix", K_TEXT, AT(size), SOURCE,
	 "bytes of a frame, without FCS; default 64"},
	{"rate", 0, "PPS|BPS", K_TEXT, AT(rate), SOURCE,
	 "100k (packets/s), 1Gbps; default as fast as it goes"},
	{"flows", 0, "N", K_U32, AT(flows), SOURCE, "different UDP source ports; default 1"},
	{"dst-mac", 0, "MAC", K_TEXT, AT(dst_mac), SOURCE, "destination MAC"},
	{"src", 0, "ADDR", K_TEXT, AT(src), SOURCE, "source address, IPv4 or IPv6"},
	{"dst", 0, "ADDR", K_TEXT, AT(dst), SOURCE, "destination address"},
	{"sport", 0, "PORT", K_TEXT, AT(sport), SOURCE, "UDP source port of the first flow"},
	{"dport", 0, "PORT", K_TEXT, AT(dport), SOURCE, "UDP destination port"},
	{"vlan", 0, "ID", K_TEXT, AT(vlan), SOURCE, "an 802.1Q tag"},
	{"engine", 0, "ENGINE", K_ENGINE, AT(engine), SOURCE,
	 "xsk (default), or live: the kernel's live frames"},
	{"duration", 0, "SEC", K_SECONDS, AT(duration), RUNS, "end by itself after so long"},
	{"count", 'c', "N", K_U64, AT(count), VERB(V_SINK) | SOURCE,
	 "end by itself after so many packets"},
	{"interval", 0, "SEC", K_SECONDS, AT(interval), RUNS,
	 "a report line each; 1 on a terminal"},
	{"try", 0, NULL, K_FLAG, AT(try_modes), VERB(V_PROBE), "really open each mode"},
	{"require", 0, "FEATURE", K_TEXT, AT(require), VERB(V_PROBE),
	 "exit 3 if it is not to be had"},
	{"json", 0, NULL, K_FLAG, AT(json), ANY, "one JSON document on standard output"},
	{"quiet", 0, NULL, K_FLAG, AT(quiet), RUNS, "no start line, no progress, no summary"},
	{"verbose", 'v', NULL, K_VERBOSE, AT(verbose), ANY, "say more"},
	{"help", 'h', NULL, K_FLAG, 0, ANY, "this text"},
};

const size_t noptions = sizeof(options) / sizeof(options[0]);
