#!/usr/bin/env bash
# The C++ shown in README.md is, line by line, part of tests/package/consumer/focal_loss.hpp, which the package test builds and runs.
set -uo pipefail
root=$1

# blocks FILE: the C++ blocks of a page.
blocks() { sed -n '/^```cpp$/,/^```$/p' "$1" | grep -v '^```'; }
# between FILE: the lines between the marks that the page shows.
between() { sed -n '/^\/\/ \[README\]$/,/^\/\/ \[README end\]$/p' "$1" | grep -v '^// \[README'; }

shown=$(blocks "$root/README.md")
built=$(between "$root/tests/package/consumer/focal_loss.hpp")
[[ -n $shown && -n $built ]] || { echo "no C++ block in README.md, or no marked lines in the example"; exit 1; }
[[ $(wc -l <<<"$shown") -le 40 ]] || { echo "the README's example has grown past 40 lines"; exit 1; }
if ! diff <(echo "$shown") <(echo "$built"); then
  echo "README.md (<) and tests/package/consumer/focal_loss.hpp (>) differ"
  exit 1
fi
# Every relative link leads somewhere.
status=0
for page in README.md CONTRIBUTING.md; do
  while read -r link; do
    [[ -e $root/$link ]] || { echo "$page links to $link, which does not exist"; status=1; }
  done < <(sed '/^```/,/^```$/d' "$root/$page" | grep -oE '\]\([^)#:]+\)' | sed 's/^](\(.*\))$/\1/')
done
exit $status
