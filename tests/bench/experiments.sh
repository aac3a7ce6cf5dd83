#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
# The tables of the seeds on this machine, by the presets of `xdpath tune`, as Markdown on stdout.
# RUNS (3) of SECS (1) each; the seeds had 10 of 10. PRESETS="seeds-rr seeds-stream".
set -euo pipefail
xdpath=${B:-build}/xdpath
runs=${RUNS:-3} secs=${SECS:-1}

cat <<EOF
# Experiments

The tables of the seeds (two hosts in one machine, joined by a veth pair), as \`make experiments\`
made them: $runs runs of $secs s each. \`RUNS=10 SECS=10 make experiments\` runs them as long as the
seeds did; \`xdpath tune --preset NAME -- DEV PEER\` runs them between two machines.

$(date -u +%Y-%m-%d), Linux $(uname -r), $(nproc) CPUs ($(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1))
EOF
for preset in ${PRESETS:-seeds-rr seeds-stream}; do
	printf '\n## %s\n\n```\n' "$preset"
	"$xdpath" tune --preset "$preset" --lab --runs "$runs" --time "$secs" </dev/null
	printf '```\n'
done
