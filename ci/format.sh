#!/usr/bin/env bash
# Checks that every source file is formatted as .clang-format says.
#
#   ci/format.sh          exits 1 and names the places when one is not
#   ci/format.sh --fix    formats them
#
# Versions of clang-format differ: 14 is the one that counts.
set -euo pipefail

cd "$(dirname "$0")/.."
tool=clang-format
if command -v clang-format-14 >/dev/null; then tool=clang-format-14; fi

if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
  mapfile -t files < <(git ls-files --cached --others --exclude-standard \
    '*.cc' '*.c' '*.h' | sort -u)
else
  mapfile -t files < <(find guard adapters ci tests bench \
    -name '*.cc' -o -name '*.c' -o -name '*.h' | sort)
fi
# Files that were deleted but not committed are still in git's list.
present=()
for file in "${files[@]}"; do
  if [[ -f $file ]]; then present+=("$file"); fi
done
if ((${#present[@]} == 0)); then
  echo "format: no files found" >&2
  exit 2
fi

case ${1:-} in
  --fix)
    "$tool" -i "${present[@]}"
    echo "format: ${#present[@]} files formatted"
    ;;
  "")
    if ! "$tool" --dry-run -Werror "${present[@]}"; then
      echo "format: not as .clang-format says; ci/format.sh --fix changes it"
      exit 1
    fi
    echo "format: ${#present[@]} files are in form"
    ;;
  *)
    echo "usage: ci/format.sh [--fix]" >&2
    exit 2
    ;;
esac
