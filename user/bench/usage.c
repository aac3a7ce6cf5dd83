/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * What a run cost its machine: one look at the start, one at the end, the difference. Called at
 * both ends of a measurement around each run; the parts are in usage_*.c.
 *
 * CPU time of our own threads is the scheduler's run time of the process (what schedstat tells,
 * with the threads that ended), not the tick's.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "usage_in.h"

#define IRQS_MAX 512U

struct look {
	uint64_t ns, raw_ns, ticks;
	struct usage_stat stat;
	double cpuidle[USAGE_CPUS_MAX];
	uint64_t soaked[USAGE_CPUS_MAX];
	double threads; /* the soaker's left out */
	uint64_t interrupts, rx, tx;
};

struct usage_meter {
	bool cpuidle, nohz, soak;
	struct usage_soaker *soaker;
	struct usage_perf *perf;
	uint32_t nirqs, irq[IRQS_MAX];
	struct look begin, end;
};

static double clock_seconds(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* The residency files stand there in some guests and never move; whoever sleeps sees them move. */
static bool cpuidle_moves(uint32_t cpus)
{
	double before[USAGE_CPUS_MAX], after[USAGE_CPUS_MAX];
	struct timespec nap = {.tv_nsec = 2000000};

	if (usage_cpuidle_read(before, cpus, ""))
		return false;
	nanosleep(&nap, NULL);
	usage_wake_cpus(cpus);
	if (usage_cpuidle_read(after, cpus, ""))
		return false;
	for (uint32_t i = 0; i < cpus; i++)
		if (after[i] > before[i])
			return true;
	return false;
}

static int take_look(struct usage_meter *m, struct look *l)
{
	double own = 0;
	int err;

	if (m->cpuidle)
		usage_wake_cpus(m->begin.stat.cpus);
	l->ns = xdpath_now_ns();
	if (m->cpuidle)
		usage_cpuidle_read(l->cpuidle, m->begin.stat.cpus, "");
	if (m->soaker)
		usage_soak_read(m->soaker, l->soaked, &own);
	err = usage_stat_read(&l->stat, "");
	l->threads = clock_seconds(CLOCK_PROCESS_CPUTIME_ID) - own;
	l->interrupts = usage_irq_count(m->irq, m->nirqs, "");
	usage_softirqs(&l->rx, &l->tx, "");
	l->raw_ns = (uint64_t)(clock_seconds(CLOCK_MONOTONIC_RAW) * 1e9);
	l->ticks = usage_ticks();
	return err;
}

static int choose_source(struct usage_meter *m, bool soak)
{
	uint32_t cpus = m->begin.stat.cpus;
	int err;

	m->nohz = usage_nohz("");
	m->cpuidle = !soak && cpuidle_moves(cpus);
	if (!soak && (m->cpuidle || m->nohz))
		return 0;
	err = usage_soak_begin(&m->soaker, m->begin.stat.here, cpus);
	m->soak = !err;
	return soak ? err : 0; /* unasked for: the tick's samples are left */
}

int usage_begin(struct usage_meter **out, const char *dev, bool soak)
{
	struct usage_meter *m = calloc(1, sizeof(*m));
	int err;

	*out = NULL;
	if (!m)
		return -ENOMEM;
	m->nirqs = usage_irqs(dev, m->irq, IRQS_MAX);
	err = usage_stat_read(&m->begin.stat, "");
	if (!err)
		err = choose_source(m, soak);
	if (!err) {
		m->perf = usage_perf_begin(m->begin.stat.cpus, m->begin.stat.here);
		err = m->perf ? take_look(m, &m->begin) : -ENOMEM;
	}
	if (err) {
		usage_end(m, NULL);
		return err;
	}
	usage_perf_start(m->perf);
	*out = m;
	return 0;
}

static double idle_of(const struct usage_meter *m, uint32_t cpu, double tick_hz)
{
	const struct look *a = &m->begin, *b = &m->end;

	if (m->soak)
		return (double)(b->soaked[cpu] - a->soaked[cpu]) / tick_hz;
	if (m->cpuidle)
		return b->cpuidle[cpu] - a->cpuidle[cpu];
	return b->stat.idle[cpu] - a->stat.idle[cpu];
}

static void fill_busy(const struct usage_meter *m, struct usage *u, double tick_hz)
{
	for (uint32_t i = 0; i < u->cpus; i++) {
		double busy = u->seconds - idle_of(m, i, tick_hz);

		if (!m->begin.stat.here[i] || !m->end.stat.here[i])
			continue;
		u->busy[i] = busy < 0 ? 0 : busy > u->seconds ? u->seconds : busy;
		u->busy_total += u->busy[i];
	}
}

static void fill(const struct usage_meter *m, struct usage *u)
{
	const struct look *a = &m->begin, *b = &m->end;
	double raw = (double)(b->raw_ns - a->raw_ns) / 1e9;
	double tick_hz = raw > 0 ? (double)(b->ticks - a->ticks) / raw : 0;

	u->source = m->soak	 ? USAGE_SOAKER
		    : m->cpuidle ? USAGE_CPUIDLE
		    : m->nohz	 ? USAGE_NOHZ
				 : USAGE_STAT;
	u->cpus = a->stat.cpus;
	u->online = b->stat.online;
	u->seconds = (double)(b->ns - a->ns) / 1e9;
	fill_busy(m, u, tick_hz);
	u->threads = b->threads - a->threads;
	u->user = b->stat.user - a->stat.user;
	u->system = b->stat.system - a->stat.system;
	u->softirq = b->stat.softirq - a->stat.softirq;
	u->irq = b->stat.irq - a->stat.irq;
	u->steal = b->stat.steal - a->stat.steal;
	u->tsc_hz = USAGE_HAVE_TSC ? tick_hz : 0;
	u->interrupts = m->nirqs ? b->interrupts - a->interrupts : UINT64_MAX;
	u->softirqs_rx = b->rx - a->rx;
	u->softirqs_tx = b->tx - a->tx;
}

void usage_end(struct usage_meter *m, struct usage *out)
{
	if (!m)
		return;
	if (out) {
		memset(out, 0, sizeof(*out));
		usage_perf_stop(m->perf);
		take_look(m, &m->end);
		fill(m, out);
	}
	usage_perf_end(m->perf, out);
	usage_soak_end(m->soaker);
	free(m);
}

const char *usage_source_name(enum usage_source s)
{
	switch (s) {
	case USAGE_CPUIDLE: return "cpuidle";
	case USAGE_SOAKER: return "soaker";
	case USAGE_STAT: return "stat";
	case USAGE_NOHZ: return "nohz";
	}
	return "unknown";
}

const char *usage_source_text(enum usage_source s)
{
	switch (s) {
	case USAGE_CPUIDLE: return "from the residency of idle states";
	case USAGE_SOAKER: return "what a soaker of the lowest class did not get";
	case USAGE_STAT: return "SAMPLED by the tick: not to be trusted at low load";
	case USAGE_NOHZ: return "from idle time as the kernel times it (steps of 10 ms)";
	}
	return "unknown";
}
