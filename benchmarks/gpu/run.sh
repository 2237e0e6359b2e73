#!/usr/bin/env bash
# Checks and times Tigon on a machine with a GPU. It needs NVIDIA's driver, NVRTC and what `pack` has put together.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

usage() {
  cat <<'TEXT'
usage: run.sh pack BUILD FOLDER   put the built programs and the libraries that they need into FOLDER, with this script
       run.sh [OUT]               in such a folder, on a machine with a GPU: check, sanitize, time; 8 minutes at most

OUT (default: gpu-results) gets one text per part, table.txt and results.json. PyTorch, Triton and Liger are timed beside
it where Python can import them, compute-sanitizer runs where it is installed; what is missing is said and left out.
TEXT
}

# Everything but the system's own C and C++ libraries, which every machine has, and has newer.
pack() {
  local build=$1 folder=$2 program library
  mkdir -p "$folder/lib" || exit 1
  for program in "$build/tigon" "$build/benchmarks/tigon_gpu_benchmarks" "$build/libtigon_emulated_cuda.so"; do
    cp "$program" "$folder/" || exit 1
  done
  for library in $(ldd "$build/tigon" "$build/benchmarks/tigon_gpu_benchmarks" |
    awk '$3 ~ /^\// && $1 ~ /^lib(dnnl|fmt|gomp|OpenCL)/ { print $3 }' | sort -u); do
    cp -L "$library" "$folder/lib/" || exit 1
  done
  cp "$here/run.sh" "$here/peers.py" "$folder/" || exit 1
  du -sh "$folder"
}

end=$((SECONDS + 8 * 60))
# part NAME LIMIT COMMAND...: seconds after which it is ended.
part() {
  local name=$1 limit=$2 left=$((end - SECONDS)) status
  shift 2
  if ((left < 10)); then
    echo "$name: not run, no time is left" | tee -a "$out/summary.txt"
    return 1
  fi
  timeout --kill-after=5 $((limit < left ? limit : left)) "$@" >"$out/$name.txt" 2>&1
  status=$?
  echo "$name: status $status" | tee -a "$out/summary.txt"
  return "$status"
}

run() {
  out=${1:-gpu-results}
  mkdir -p "$out" || exit 1
  : >"$out/summary.txt"
  export LD_LIBRARY_PATH=$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  local tigon=$here/tigon op failed=0
  part device 20 nvidia-smi
  part doctor 20 "$tigon" doctor
  for op in $("$tigon" ops | awk 'NF && !/^`/ { print $1 }'); do
    part "check-$op" 30 "$tigon" check "$op" --device cuda --dtype bf16 || failed=1
    part "check-$op-gradient" 30 "$tigon" check "$op" --device cuda --dtype bf16 --gradient || failed=1
  done
  if command -v compute-sanitizer >/dev/null; then
    for op in rms_norm softmax cross_entropy; do
      part "memcheck-$op" 40 compute-sanitizer --error-exitcode 9 "$tigon" check "$op" --device cuda --dtype bf16 \
        --gradient || failed=1
    done
  else
    echo "compute-sanitizer is not installed: kernels were not checked by it" | tee -a "$out/summary.txt"
  fi
  part table 200 "$here/tigon_gpu_benchmarks" --json "$out/results.json" || failed=1
  if command -v python3 >/dev/null && [[ -f $out/results.json ]]; then
    part peers 150 python3 "$here/peers.py" "$out/results.json"
  fi
  cat "$out/table.txt"
  [[ -f $out/peers.txt ]] && cat "$out/peers.txt"
  return "$failed"
}

case ${1:-} in
  --help | -h) usage ;;
  pack) (($# == 3)) || { usage >&2; exit 2; }; pack "$2" "$3" ;;
  -*) usage >&2; exit 2 ;;
  *) run "$@" ;;
esac
