/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/* Statistics of few, noisy, paired runs. No function allocates for itself what it cannot free. */
#ifndef BENCH_STATS_H
#define BENCH_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct interval {
	double lo, hi;
};

/* SplitMix64: every seed is a good one, neighbours too. */
static inline uint64_t stats_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

/* Below n (1 or more), each equally likely. */
static inline uint32_t stats_below(uint64_t *state, uint32_t n)
{
	return (uint32_t)(((stats_random(state) >> 32) * n) >> 32);
}

double stats_mean(const double *x, size_t n);
double stats_sd(const double *x, size_t n); /* of the sample (n - 1); 0 for n < 2 */
double stats_median(const double *x, size_t n);
/* Half width of the mean's interval at confidence `conf` (0..1) by Student's t; INFINITY for n < 2.
 */
double stats_half_width(const double *x, size_t n, double conf);
/* Bootstrap interval of the median; the same seed gives the same interval. Of a promised 95 % it
 * holds 92 to 95 from n = 8 on. Without ends (INFINITY) for n < 2. */
struct interval stats_median_interval(const double *x, size_t n, double conf, uint64_t seed);
/* Two-sided p that the paired differences d are symmetric about 0: sign-flip permutation, exact up
 * to n = 16, else 2^16 random ones. */
double stats_paired_p(const double *d, size_t n, uint64_t seed);
/* Every centre about which d may be symmetric, by that same test: those with p > alpha. So 0 is
 * outside just when stats_paired_p() with the same seed is at most alpha. An end is INFINITY where
 * n is too small for this alpha. */
struct interval stats_paired_interval(const double *d, size_t n, double alpha, uint64_t seed);
/* Holm's correction in place: p[i] becomes the adjusted one, order kept. */
void stats_holm(double *p, size_t n);
/*
 * Looking again and again is paid for: the level to use at look `k` (from 1) of at most `looks`, so
 * that all together stay at alpha (Lan-DeMets spending of O'Brien-Fleming's kind). They add up to
 * alpha, so it holds whatever the tests at the looks have in common, after Holm's correction too.
 */
double stats_spend(double alpha, uint32_t k, uint32_t looks);

#endif
