#!/usr/bin/env bash
# Who may include whom: include <- dsl <- loops <- schedule <- plan, loops <- lower <- llvm and cuda, runtime above
# them, ops on the public headers and the reference. Examples may look at every form that they print.
set -uo pipefail
root=$1

# folder | the folders its files may include from, by the first part of the path after the repository's root
rules='
include/tigon|tigon
dsl/reference|dsl tigon
dsl|dsl tigon
codegen/loops|codegen/loops dsl tigon
codegen/schedule|codegen/schedule codegen/loops dsl tigon
codegen/plan|codegen/plan codegen/schedule codegen/loops dsl tigon
codegen/lower|codegen/lower codegen/loops dsl tigon
codegen/llvm|codegen/llvm codegen/lower codegen/loops dsl tigon
codegen/cuda|codegen/cuda codegen/lower codegen/loops dsl tigon
runtime/emulator|runtime/emulator
runtime|runtime codegen dsl tigon
ops|ops dsl tigon
examples|runtime codegen dsl tigon
tools|tools ops runtime codegen dsl tigon
'

# check ROOT: prints file:line: "path" for each include that its folder's rule does not allow.
check() {
  local top=$1 folder allowed file line path
  find "$top" \( -name '*.cpp' -o -name '*.hpp' \) \
    \( -path "$top/include/*" -o -path "$top/dsl/*" -o -path "$top/codegen/*" -o -path "$top/runtime/*" -o \
    -path "$top/ops/*" -o -path "$top/examples/*" -o -path "$top/tools/*" \) -print0 | sort -z |
    xargs -0 grep -nH '^ *# *include "' | while IFS=: read -r file line path; do
    path=${path#*\"}
    path=${path%%\"*}
    # A plain name, or a path from the file's own folder, is the file's own neighbour.
    [[ $path != */* || -e $(dirname "$file")/$path ]] && continue
    while IFS='|' read -r folder allowed; do
      [[ -n $folder && ${file#"$top/"} == "$folder"/* ]] || continue
      for prefix in $allowed; do
        [[ $path == "$prefix"/* && ($prefix != dsl || $path != dsl/reference/* || $folder == dsl/reference ||
          $folder == ops || $folder == tools) ]] && continue 3
      done

      echo "${file#"$top/"}:$line: \"$path\""
      continue 2
    done <<<"$rules"
  done
}

sample=$(mktemp -d)
trap 'rm -rf "$sample"' EXIT
mkdir -p "$sample"/{include/tigon,dsl/reference,codegen/loops,runtime/emulator,examples}
echo '#include "dsl/graph.hpp"' >"$sample/include/tigon/bad.hpp"
printf '%s\n' '#include "tigon/axis.hpp"' '#include "graph.hpp"' '#include "dsl/reference/evaluate.hpp"' \
  >"$sample/dsl/bad.cpp"
echo '#include "dsl/reference/pull.hpp"' >"$sample/dsl/reference/good.cpp"
echo '#include "codegen/plan/plan.hpp"' >"$sample/codegen/loops/bad.cpp"
echo '#include "ops/registry.hpp"' >"$sample/examples/bad.cpp"
echo '#include "tigon/error.hpp"' >"$sample/runtime/emulator/bad.cpp"
expected='codegen/loops/bad.cpp:1: "codegen/plan/plan.hpp"
dsl/bad.cpp:3: "dsl/reference/evaluate.hpp"
examples/bad.cpp:1: "ops/registry.hpp"
include/tigon/bad.hpp:1: "dsl/graph.hpp"
runtime/emulator/bad.cpp:1: "tigon/error.hpp"'
found=$(check "$sample")
if [[ $found != "$expected" ]]; then
  printf 'the rule itself is broken; on its sample it found\n%s\ninstead of\n%s\n' "$found" "$expected"
  exit 1
fi

found=$(check "$root")
if [[ -n $found ]]; then
  printf 'includes that go upwards:\n%s\n' "$found"
  exit 1
fi
# Matrix products of an example are the compiler's business.
found=$(grep -rnE 'dnnl|cblas' "$root/examples" --include='*.cpp' --include='*.hpp')
[[ -z $found ]] || { printf 'examples that call a matmul library:\n%s\n' "$found"; exit 1; }
found=$(grep -rlE '# *include *[<"](oneapi/)?dnnl' "$root"/{dsl,ops,codegen,runtime,tools} --include='*.cpp' --include='*.hpp' |
  grep -v /runtime/)
[[ -z $found ]] || { printf 'oneDNN outside runtime/:\n%s\n' "$found"; exit 1; }
echo "every include goes downwards"
