#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# docs/cuda.md shows the example of a captured pipeline as tests/cuda/graph_turn.h has it, which
# CUDA_a_captured_pipeline_runs_1000_times_with_other_buffers runs.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 2
shown=$(awk '/^```c$/ { on = 1; next } /^```$/ { on = 0 } on' docs/cuda.md)
run=$(sed -n '\|^/\* example \*/$|,\|^/\* end of the example \*/$|p' tests/cuda/graph_turn.h |
	sed '1d;$d')
[ -n "$run" ] || { echo "FAIL tests/cuda/graph_turn.h has no example between its marks"; exit 1; }
diff -u <(echo "$run") <(echo "$shown") || {
	echo "FAIL the example of docs/cuda.md is not that of tests/cuda/graph_turn.h"
	exit 1
}
