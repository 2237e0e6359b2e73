#!/usr/bin/env bash
# Every C++ file opens with a comment that says its job and stays under 600 lines; nothing is left for later in a note.
set -uo pipefail
root=$1
later='TO''DO|FIX''ME'

check() {
  local top=$1
  find "$top"/{include,dsl,ops,codegen,runtime,tools,tests,examples,benchmarks} -not -path '*/golden/*' \
    \( -name '*.cpp' -o -name '*.hpp' \) 2>/dev/null | sort | xargs awk '
      FNR == 1 && $0 !~ /^\/\/ .+/ { print FILENAME ":1: does not open with a comment" }
      FNR == 601 { print FILENAME ":601: longer than 600 lines" }
      /[ \t]$/ { print FILENAME ":" FNR ": blank at the end of the line" }'
  find "$top" -not -path "$top/build*" -not -path "$top/.git/*" -type f \
    \( -name '*.cpp' -o -name '*.hpp' -o -name '*.inc' -o -name '*.md' -o -name '*.cmake' -o -name '*.in' -o \
    -name 'CMakeLists.txt' -o -name '*.sh' -o -name '*.py' -o -name demo -o -name check -o -name run \) -print0 |
    sort -z | xargs -0 grep -nHwE "$later"
}

sample=$(mktemp -d)
trap 'rm -rf "$sample"' EXIT
mkdir "$sample/dsl"
printf '#pragma once\nint x; \n// TO%s: more\n' DO >"$sample/dsl/bad.hpp"
{ echo '// A long file.'; yes ';' | head -n 600; } >"$sample/dsl/long.cpp"
printf '// A good file: mkstemp("/tmp/XXXXXX"), TO%sS\n' DO >"$sample/dsl/good.cpp"
found=$(check "$sample" | sed "s|^$sample/dsl/\([^:]*:[0-9]*\):.*|\1|" | xargs)
if [[ $found != "bad.hpp:1 bad.hpp:2 long.cpp:601 bad.hpp:3" ]]; then
  echo "the rule itself is broken; on its sample it found: $found"
  exit 1
fi

found=$(check "$root")
if [[ -n $found ]]; then
  printf '%s\n' "$found"
  exit 1
fi
echo "every file is in order"
