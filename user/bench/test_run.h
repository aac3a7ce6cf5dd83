/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * One end's half of a test: what its lanes share (read only while they run, but for the phase) and
 * what each lane has for itself. test_run.c has the frame, test_rr.c and test_stream.c the traffic;
 * session.c and serve.c set the phases.
 *
 * A flow is known by the client's port. Which lane its datagrams reach is the NIC's choice, so each
 * flow is claimed first: the client sends MSG_PROBE, the server's lane that gets it answers
 * MSG_ECHO, and the client's lane that gets that has the flow from then on. Nothing of a flow is
 * shared between lanes.
 *
 * Begin and end of a run are marked by a MSG_PROBE too, in the test's own path: control traffic
 * must not be among the frames that the interfaces count.
 */
#ifndef BENCH_TEST_RUN_H
#define BENCH_TEST_RUN_H

#include "arrival.h"
#include "engine.h"
#include "reassembly.h"
#include "ticks.h"

#define FLOWS_MAX	4096U
#define LANES_MAX	64U
#define WINDOW		64U /* open loop: messages of a flow on their way at most; a power of two */
#define MARK		0x80000000U
#define MARK_BEGIN(run) (MARK | (run) << 1)
#define MARK_END(run)	(MARK | (run) << 1 | 1U)

enum test_phase {
	PHASE_IDLE,  /* answer, send nothing of one's own */
	PHASE_CLAIM, /* client: ask for the flows that nobody has */
	PHASE_GO,    /* the run */
	PHASE_DRAIN, /* begin nothing new, finish what is on its way */
};

/* Since the lane began; only its own thread writes. */
struct test_count {
	uint64_t msgs_out, msgs_in;
	struct test_losses lost; /* timeouts, incomplete, reordered, late */
};

/* A request whose answer is not whole yet. Times in ticks. */
struct rr_slot {
	uint64_t due;  /* when it should have gone */
	uint64_t sent; /* when its first piece went, of this try */
	uint32_t seq;
	bool busy, queued; /* queued: not gone yet, wholly */
	struct pieces pieces;
};

/* A flow as the client has it; belongs to the lane that claimed it. */
struct client_flow {
	struct rr_slot *slot;	/* rr: window of them */
	uint32_t next_seq, out; /* out: busy slots */
	uint32_t at;		/* stream: bytes of the message next_seq that have gone */
	uint32_t claimed;	/* atomic: some lane of this end has it */
} __attribute__((aligned(XDPATH_CACHELINE)));

/* A message to send, or the rest of one. */
struct pending {
	uint32_t flow, seq, at;
};

/* Bounded: at most one entry for each message that may be out. Not shared. */
struct pending_queue {
	struct pending *e;
	uint32_t mask, head, tail;
};

/* What a flow's datagrams are put together in, at the end that receives. */
struct server_flow {
	struct reassembly r;
	uint32_t next_seq; /* stream: in order so far */
	bool begun;
};

struct test_end;

struct test_lane {
	struct test_end *t;
	enum test_phase phase;	      /* as seen last */
	uint32_t run;		      /* and the run's number */
	uint32_t *own, nown;	      /* flows claimed here */
	uint64_t has[FLOWS_MAX / 64]; /* the same, a bit each */
	uint32_t next_own;	      /* stream, open loop: whose turn it is */
	uint32_t credit;	      /* stream: messages that may begin */
	uint32_t outstanding;	      /* rr client: messages; written by the lane only */
	uint32_t turns;
	uint64_t look_at; /* ticks: when to look for what is overdue */
	uint64_t begin;	  /* ticks: this lane's start of the run */
	struct arrival arrival;
	double due; /* ticks since begin: the next arrival */
	struct pending_queue q;
	struct server_flow *in; /* one for each flow */
	uint32_t open;		/* incomplete messages in `in` */
	struct test_count n;
	struct hist latency, service;
} __attribute__((aligned(XDPATH_CACHELINE)));

struct test_end {
	const struct test_spec *spec;
	struct engine *e;
	bool is_server, sends, receives;
	uint16_t wire_id;   /* as it stands in the datagrams */
	struct cut out, in; /* how messages are cut that we send, and that we receive */
	uint32_t window;    /* rr: messages of a flow on their way at most */
	uint64_t seed;
	int event_fd; /* eventfd: a mark came, or was answered */
	struct test_lane *lane;
	struct client_flow *flow;
	/* written by the control thread while nothing runs, then published by the phase */
	uint64_t stop_at; /* ticks: a sender that ends by itself; 0 none */
	uint32_t phase __attribute__((aligned(XDPATH_CACHELINE)));
	uint32_t run;
	uint32_t mark;	    /* client: the mark to send, 0 none; taken by the lane that sends it */
	uint32_t expect;    /* server: the run whose beginning may be marked now */
	uint32_t mark_seen; /* the mark that came, or was answered, last */
};

/* The engine is open or about to be; the lanes' memory comes from here. 0 or -ENOMEM. */
int test_open(struct test_end **out, struct engine *e, const struct test_spec *spec, uint16_t id,
	      int event_fd);
void test_close(struct test_end *t);
/* The engine's `turn`; ctx is the struct test_end. */
uint32_t test_turn(void *ctx, struct lane *l);

/* Control thread. */
void test_set_phase(struct test_end *t, enum test_phase phase);
void test_send_mark(struct test_end *t, uint32_t mark);
/* Server: counters are taken, the run may begin. Its mark is not answered before. */
void test_expect_mark(struct test_end *t, uint32_t mark);
uint32_t test_mark_seen(const struct test_end *t);
uint32_t test_claimed(const struct test_end *t); /* flows, of all lanes */
bool test_is_drained(const struct test_end *t);
void test_counts(const struct test_end *t, struct test_count *sum);
void test_forget_times(struct test_end *t); /* empty the histograms; while idle */

/* Within the lanes. */
static inline bool test_owns(const struct test_lane *tl, uint32_t flow)
{
	return tl->has[flow / 64] >> (flow % 64) & 1;
}

static inline bool pending_any(const struct pending_queue *q)
{
	return q->head != q->tail;
}

static inline bool test_is_open_loop(const struct test_end *t)
{
	return t->spec->rate > 0;
}

/* Send from the queue what fits; returns datagrams. `kind` of all of them; `now`: a time stamp of
 * just now, 0: none was taken. */
uint32_t test_send_pending(struct test_end *t, struct lane *l, enum msg_kind kind, uint64_t now);
/* Whether the message was accepted into the lane's queue. */
bool pending_put(struct pending_queue *q, struct pending p);
/* Nothing to do before `at` (ticks): sleep until then at most. `now` as it was read last. */
void test_wake_at(struct lane *l, uint64_t now, uint64_t at);
/* Write a datagram's header. */
static inline void test_head(const struct test_end *t, struct tx_slot *s, uint32_t flow,
			     uint32_t seq, uint32_t kind_at, uint32_t len)
{
	msg_put(s->msg, msg_which(t->wire_id, flow, seq), msg_common(kind_at, len));
	s->flow = flow;
}

/* test_rr.c, test_stream.c: */
uint32_t rr_client_turn(struct test_end *t, struct lane *l);
uint32_t rr_server_turn(struct test_end *t, struct lane *l);
uint32_t stream_turn(struct test_end *t, struct lane *l);
/* test_run.c: a datagram that is not the test's own traffic: claims and marks. */
void test_other(struct test_end *t, struct lane *l, const struct rx_slot *s);
/* On a lane's change of phase. */
void rr_phase(struct test_end *t, struct lane *l);
void stream_phase(struct test_end *t, struct lane *l);
/* Give up what has been incomplete for too long, now and then. */
void test_expire(struct test_end *t, struct lane *l, struct test_lane *tl);

#endif
