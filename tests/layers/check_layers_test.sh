#!/usr/bin/env bash
# The fixture marks each line that breaks the rules with "// planted":
# ci/check_layers.sh must name exactly those, and fail.
set -euo pipefail

cd "$(dirname "$0")"
script=$PWD/../../ci/check_layers.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

status=0
"$script" fixture >"$work/output" || status=$?
grep -oE '^[^ :]+:[0-9]+' "$work/output" | sort >"$work/found"
(cd fixture && grep -rn '// planted' .) | sed -E 's,^\./([^:]+:[0-9]+):.*,\1,' |
  sort >"$work/planted"

if [[ $status != 1 ]]; then
  echo "exit code $status on a tree with violations; expected 1"
  exit 1
fi
if ! diff -u "$work/planted" "$work/found"; then
  echo "(- planted and not found, + found and not planted)"
  cat "$work/output"
  exit 1
fi

# Nothing to check is not a pass.
status=0
"$script" "$work" >/dev/null 2>&1 || status=$?
if [[ $status != 2 ]]; then
  echo "exit code $status on an empty tree; expected 2"
  exit 1
fi
echo "all $(wc -l <"$work/planted") planted violations found, no others"
