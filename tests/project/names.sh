#!/usr/bin/env bash
# No identifier and no literal in codegen/ or runtime/ names an op of the catalogue or an axis of a user's: what they
# know is nodes, levels and monoids, so that an op written by a user is treated like ours. Prose in comments is free.
set -uo pipefail
root=$1

# Words that only a particular model or loss has; the catalogue's own names are added from its headers.
words="logit logits vocab vocabulary token tokens hidden_size softmax rms_norm layer_norm attention cross_entropy nll
embedding embeddings rope rotary swiglu geglu adamw lora moe dpo grpo kl_div jsd label_smoothing perplexity"

# scan WORDS FILE...: prints file:line: word for each, with comments blanked and strings kept.
scan() {
  local list=$1
  shift
  awk -v list="$list" '
    BEGIN { count = split(list, word, /[ \n]+/) }
    FNR == 1 { in_comment = 0; in_raw = 0 }
    {
      text = $0; kept = ""; quote = ""
      for (i = 1; i <= length(text); ++i) {
        c = substr(text, i, 1); two = substr(text, i, 2)
        if (in_comment) { if (two == "*/") { in_comment = 0; ++i } }
        else if (in_raw) { kept = kept c; if (two == ")\"") { in_raw = 0; kept = kept "\""; ++i } }
        else if (quote != "") {
          kept = kept c
          if (c == "\\") { ++i; kept = kept " " } else if (c == quote) quote = ""
        }
        else if (two == "//") break
        else if (two == "/*") { in_comment = 1; ++i }
        else if (substr(text, i, 3) == "R\"(") { in_raw = 1; kept = kept " "; i += 2 }
        else if (c == "\"") { quote = c; kept = kept c }
        # An apostrophe opens a character unless it separates digits.
        else if (c == "\x27" && substr(text, i - 1, 1) !~ /[0-9A-Fa-f]/) { quote = c; kept = kept c }
        else kept = kept c
      }
      # CamelCase to snake_case, then every name between underscores of its own.
      names = split(kept, name, /[^A-Za-z0-9_]+/)
      for (n = 1; n <= names; ++n) {
        if (name[n] == "") continue
        snake = ""
        for (i = 1; i <= length(name[n]); ++i) {
          c = substr(name[n], i, 1)
          if (c ~ /[A-Z]/ && i > 1 && substr(name[n], i - 1, 1) ~ /[a-z0-9]/) snake = snake "_"
          snake = snake tolower(c)
        }
        snake = "_" snake "_"
        for (w = 1; w <= count; ++w) {
          if (word[w] == "") continue
          joined = word[w]; gsub(/_/, "", joined)
          if (index(snake, "_" word[w] "_") || index(snake, "_" joined "_")) {
            print FILENAME ":" FNR ": " name[n] " (" word[w] ")"
          }
        }
      }
    }' "$@"
}

catalogue=$(find "$root/include/tigon/ops" -name '*.hpp' ! -name all.hpp ! -name support.hpp -printf '%f\n' |
  sed 's/\.hpp$//')
# shellcheck disable=SC2086  # both are split into words
words=$(printf "%s\n" $words $catalogue | sort -u)

# The rule must be able to fail, and to tell names from prose and from words that contain one.
sample=$(mktemp)
trap 'rm -f "$sample"' EXIT
cat >"$sample" <<'SAMPLE'
int property = 1'000;  // softmax may be spoken of here
/* and vocab
   here */ int RmsNormPlan = 0;
const char* a = "over the vocab"; char b = '"'; int token_count;
auto c = R"(a " logits
softmax)"; int attentive, ropes;
SAMPLE
expected=$(printf '%s\n' 3:RmsNormPlan 4:vocab 4:token_count 5:logits 6:softmax)
found=$(scan "$words" "$sample" | sed 's/^[^:]*:\([0-9]*\): \([^ ]*\).*/\1:\2/')
if [[ $found != "$expected" ]]; then
  printf 'the rule itself is broken; on its sample it found\n%s\ninstead of\n%s\n' "$found" "$expected"
  exit 1
fi

mapfile -t files < <(find "$root/codegen" "$root/runtime" \( -name '*.cpp' -o -name '*.hpp' \) | sort)
[[ ${#files[@]} -ge 20 ]] || { echo "only ${#files[@]} files found under $root"; exit 1; }
found=$(scan "$words" "${files[@]}")
if [[ -n $found ]]; then
  printf 'names of ops or of users'"'"' axes in code that must not know them:\n%s\n' "$found"
  exit 1
fi
echo "${#files[@]} files name no op"
