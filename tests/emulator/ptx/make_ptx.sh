#!/usr/bin/env bash
# Compiles the test kernels beside it to the PTX that the tests read; needs nvcc of CUDA 13.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

# compile SOURCE OUTPUT ARCHITECTURE OPTION...
compile() {
  local source=$1 output=$2 architecture=$3
  shift 3
  nvcc -ptx -arch="$architecture" --fmad=false -lineinfo "$@" "$source" -o "$output"
  # The strings for debuggers are most of the text, and hold the path of the source.
  awk '/^\t\.section/ { skip = 1 } !skip { print } skip && /^\t}/ { skip = 0 }' "$output" |
    sed -E 's|^(\t\.file\t[0-9]+ ").*/([^/"]+)"|\1\2"|' >"$output.short"
  mv "$output.short" "$output"
}

for architecture in sm_90a sm_100a; do
  compile rows.cu "rows_$architecture.ptx" "$architecture"
  compile tile.cu "tile_$architecture.ptx" "$architecture"
  compile cluster.cu "cluster_$architecture.ptx" "$architecture"
  compile maths.cu "maths_$architecture.ptx" "$architecture"
done
compile maths.cu bug_no_fence.ptx sm_90a -DBUG_NO_FENCE
compile tile.cu tile_unpadded.ptx sm_90a -DPADDING=0
for bug in past_end misaligned no_sync_after_store no_sync_before_reuse too_many_partials no_sync_before_broadcast; do
  compile rows.cu "bug_$bug.ptx" sm_90a "-DBUG_${bug^^}"
done
for bug in wait_too_little no_trailing_sync; do compile tile.cu "bug_$bug.ptx" sm_90a "-DBUG_${bug^^}"; done
for bug in no_barrier_before_read no_barrier_before_exit; do
  compile cluster.cu "bug_$bug.ptx" sm_90a "-DBUG_${bug^^}"
done
