#!/usr/bin/env bash
# Enforces who may include whom, by the #include lines, and that no two headers
# name a type alike.
#
#   ci/check_layers.sh [ROOT]      ROOT: the tree to check, default this one
#
# Prints one line for each violation, file:line first, and exits 1 when there
# are any; 0 when there are none; 2 when there was nothing to check.
set -euo pipefail

root=${1:-$(dirname "$0")/..}
cd "$root"

# Files (the first row that matches decides) and the includes they may have.
# A pattern's * matches any text, / too. Rooms are sets of includes:
rooms='
@base        guard/base/*
@problem     guard/problem/*
@engine      guard/engine/*
@probe       guard/probe/*
@check       guard/check/*
@finding     guard/finding/*
@defect      guard/defect/*
@diagnosis   guard/diagnosis/*
@policy      guard/policy/policy.h guard/policy/runtime_policy.h
@policies    guard/policy/*
@runtime     guard/runtime/*
@report      guard/report/*
@model       guard/model/*
@pipeline    guard/pipeline.h
@adapter     adapters/adapter.h adapters/engines_folder.h
@formats     fmt/* nlohmann/* pugixml.hpp
@system      omp.h dlfcn.h fcntl.h pthread.h semaphore.h signal.h unistd.h sys/* *intrin.h
'
table='
guard/base/*               @base
guard/problem/*            @problem @base
guard/engine/*             @engine @problem @base
guard/finding/*            @finding @problem @base
guard/policy/policy.*      @policy @problem @base
guard/policy/*.cc          @policies @finding @problem @base yaml-cpp/*
guard/policy/*             @policies @finding @problem @base
guard/probe/*              @probe @engine @problem @base
guard/check/*              @check @finding @policy @probe @engine @problem @base
guard/defect/*             @defect @engine @problem @base
guard/diagnosis/*          @diagnosis @defect @finding @policy @probe @engine @problem @base
guard/model/*              @model @finding @problem @base
guard/report/*             @report @model @finding @problem @base
guard/runtime/*            @runtime @check @finding @policy @probe @engine @problem @base
guard/pipeline.*           @pipeline @runtime @check @diagnosis @defect @finding @policies @probe @engine @problem @base
adapters/engines_folder.*  @adapter @base
adapters/adapter.*         @adapter @engine @problem @base
adapters/defect/*          @own @adapter @defect @engine @problem @base
adapters/*/model*          @own @adapter @model @base
adapters/gtest/gtest.h     @own @engine @problem @base gtest/*
adapters/gtest/*           @own @pipeline @check @policies @report @finding @engine @problem @base
adapters/*/examples/*      @anything
adapters/*/live*           @own @adapter @runtime @policy @finding @engine @problem @base
adapters/*/model*          @own @adapter @model @base
adapters/prometheus/*      @own @runtime @policy @finding @engine @problem @base
adapters/*                 @own @adapter @engine @problem @base
ci/*                       @anything
tests/*                    @anything
bench/*                    @anything
'
# Besides its row,
#   any file may include the standard library: <vector>, <cstdint>, <stdint.h>;
#   a .cc file of guard/ may include @formats and @system;
#   a .cc file of an adapter may include @system and its engine's headers,
#     which is whatever is none of the names below;
#   <iostream> is for ci/, tests/ and bench/: the library never prints.
# So no header of guard/ or adapters/ shows a third party's, and these libraries
# stay where they are named above.
third_party='fmt/* nlohmann/* pugixml.hpp yaml-cpp/* CLI/* CLI11* gtest/* gmock/* benchmark/*'

c_standard=' assert.h errno.h float.h inttypes.h limits.h math.h stdarg.h stdbool.h stddef.h stdint.h stdio.h stdlib.h string.h '

declare -A room_patterns
while read -r name patterns; do
  if [[ -n $name ]]; then room_patterns[$name]=$patterns; fi
done <<<"$rooms"

# matches TEXT "PATTERN ..."
matches() {
  local pattern
  set -f
  for pattern in $2; do
    # shellcheck disable=SC2053  # the pattern is meant as one
    if [[ $1 == $pattern ]]; then
      set +f
      return 0
    fi
  done
  set +f
  return 1
}

# The patterns that FILE may include; fails when no row covers it.
allowed_for() {
  local file=$1 files names name result=""
  while read -r files names; do
    if [[ -z $files ]] || ! matches "$file" "$files"; then continue; fi
    set -f
    for name in $names; do
      case $name in
        @anything) result+=" *" ;;
        @own) result+=" ${file%/*}/*" ;;
        @*) result+=" ${room_patterns[$name]}" ;;
        *) result+=" $name" ;;
      esac
    done
    set +f
    echo "$result"
    return 0
  done <<<"$table"
  return 1
}

is_standard() {
  [[ $1 =~ ^[a-z_0-9]+$ || $c_standard == *" $1 "* ]]
}

violations=0
complain() {
  echo "$1: $2"
  violations=$((violations + 1))
}

# judge FILE LINE KIND INCLUDE "ALLOWED ..."; KIND is < or "
judge() {
  local file=$1 place=$1:$2 kind=$3 include=$4 allowed=$5
  if [[ $allowed == *" *" ]]; then return; fi
  if [[ $include == *..* ]]; then
    complain "$place" "may not include \"$include\": write the path from the root"
  elif [[ $include == iostream ]]; then
    complain "$place" "<iostream>: the library never prints"
  elif [[ $kind == '<' ]] && is_standard "$include"; then
    return
  elif matches "$include" "$allowed"; then
    return
  elif [[ $include == guard/* || $include == adapters/* || $include == ci/* ||
    $include == tests/* || $include == bench/* ]]; then
    complain "$place" "may not include \"$include\""
  elif [[ $file == *.h ]]; then
    complain "$place" "header includes $include, which is neither standard nor a header of this project by its path from the root"
  elif matches "$include" "${room_patterns[@system]}"; then
    return
  elif [[ $file == guard/* ]] && matches "$include" "${room_patterns[@formats]}"; then
    return
  elif [[ $file == adapters/*/* ]] && ! matches "$include" "$third_party"; then
    return
  else
    complain "$place" "may not include $include"
  fi
}

shopt -s globstar nullglob
files=({guard,adapters,ci,tests,bench}/**/*.{h,c,cc})
if ((${#files[@]} == 0)); then
  echo "no sources below $PWD" >&2
  exit 2
fi

include_line='^([^:]+):([0-9]+):[[:space:]]*#[[:space:]]*include[[:space:]]*([<"])([^>"]+)[>"]'
last=""
allowed=""
for file in "${files[@]}"; do
  if ! allowed_for "$file" >/dev/null; then
    complain "$file:1" "no row of the table in ci/check_layers.sh covers this file"
  fi
done
while IFS= read -r line; do
  if [[ $line =~ $include_line ]]; then
    file=${BASH_REMATCH[1]} number=${BASH_REMATCH[2]}
    kind=${BASH_REMATCH[3]} include=${BASH_REMATCH[4]}
  else  # such as #include MACRO
    file=${line%%:*} number=${line#*:} number=${number%%:*}
    kind='"' include="a name that is not written out"
  fi
  if [[ $file != "$last" ]]; then
    last=$file
    allowed=$(allowed_for "$file") || allowed=" *"  # complained about above
  fi
  judge "$file" "$number" "$kind" "$include" "$allowed"
done < <(grep -HnE '^[[:space:]]*#[[:space:]]*include' "${files[@]}" || true)

# Two types of one name in one namespace are one to the linker, which then runs
# the functions of either on both: memory is overwritten, and no tool but a
# sanitizer says so. Types that .cc files share with nobody lie in unnamed ones.
while IFS= read -r line; do
  complain "${line%% *}" "${line#* }"
done < <(awk '
  FNR == 1 { scope = ""; depth = 0 }
  /^(inline )?namespace [A-Za-z_:]+ \{/ {
    name = $0
    sub(/^(inline )?namespace /, "", name)
    sub(/ \{.*/, "", name)
    outer[depth++] = scope
    scope = scope "::" name
  }
  /^\}  \/\/ namespace/ { if (depth > 0) scope = outer[--depth] }
  /^(struct|class|enum class|enum) [A-Za-z_0-9:]+[^;(]*\{/ && scope != "" {
    name = $0
    sub(/^(struct|class|enum class|enum) /, "", name)
    sub(/[^A-Za-z_0-9:].*/, "", name)
    sub(/:$/, "", name)
    name = scope "::" name
    if (name in first && first[name] !~ "^" FILENAME ":")
      print FILENAME ":" FNR " " substr(name, 3) " is another type in " first[name]
    else
      first[name] = FILENAME ":" FNR
  }' {guard,adapters,ci,bench}/**/*.h)

if ((violations > 0)); then
  echo "layers: $violations violations in ${#files[@]} files"
  exit 1
fi
echo "layers: ${#files[@]} files keep the dependency direction"
