#!/usr/bin/env bash
# Makes the Debian package of a finished build, and uses it.
#
#   ci/deb_test.sh BUILD_DIR          unpacked in a folder of its own
#   ci/deb_test.sh BUILD_DIR --root   installed by apt in a clean root, which
#                                     debootstrap makes: root and a network;
#                                     DEBIAN_MIRROR, if set, is its mirror
set -euo pipefail

if (($# < 1)) || [[ ! -f $1/CPackConfig.cmake ]]; then
  echo "usage: ci/deb_test.sh BUILD_DIR [--root] (one that is configured)" >&2
  exit 2
fi
build=$(cd "$1" && pwd)
clean_root=${2:-}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

quietly() {
  if ! "$@" >"$work/log" 2>&1; then
    cat "$work/log"
    echo "deb: failed: $*"
    exit 1
  fi
}
fail() {
  echo "deb: $*"
  exit 1
}

echo "deb: cpack"
quietly cpack -G DEB --config "$build/CPackConfig.cmake" -B "$work/packages"
package=$(find "$work/packages" -maxdepth 1 -name 'attnguard_*.deb')
[[ -f $package ]] || fail "there is no attnguard_*.deb"
depends=$(dpkg-deb -f "$package" Depends)
echo "deb: $(basename "$package"), $(($(stat -c %s "$package") / 1024)) KiB, needs $depends"
[[ $depends == *libc6* ]] || fail "it does not say what it needs"
[[ $depends != *torch* ]] || fail "it needs LibTorch"

# used COMMAND ...: a correct and a wrong engine, run with it in front.
used() {
  "$@" attnguard --version >/dev/null || fail "the command does not start"
  local code=0
  "$@" attnguard check --engine builtin:tiled --jobs 2 --problem \
    'seq_len=9 head_dim=16' --problem 'seq_len=17 head_dim=16' >"$work/log" ||
    fail "a correct engine: $(cat "$work/log")"
  "$@" attnguard check --engine builtin:wrong_axis --problem \
    'seq_len=5 head_dim=16 mask=causal_top_left' >"$work/log" || code=$?
  ((code == 1)) || fail "a wrong engine: exit code $code"
}

if [[ $clean_root == --root ]]; then
  echo "deb: a clean root"
  quietly debootstrap --variant=minbase bookworm "$work/root" \
    ${DEBIAN_MIRROR:+"$DEBIAN_MIRROR"}
  cp "$package" "$work/root/tmp/attnguard.deb"
  quietly chroot "$work/root" apt-get install -y --no-install-recommends \
    /tmp/attnguard.deb
  quietly mount -t proc proc "$work/root/proc"
  trap 'umount "$work/root/proc"; rm -rf "$work"' EXIT
  used chroot "$work/root"
else
  dpkg-deb -x "$package" "$work/root"
  missing=$(ldd "$work/root/usr/bin/attnguard" | grep 'not found' || true)
  [[ -z $missing ]] || fail "libraries are missing: $missing"
  used env PATH="$work/root/usr/bin:$PATH"
  for page in man/man1/attnguard.1 bash-completion/completions/attnguard \
    zsh/site-functions/_attnguard fish/vendor_completions.d/attnguard.fish; do
    [[ -s $work/root/usr/share/$page ]] || fail "there is no $page"
  done
  [[ -f $work/root/usr/lib/cmake/attnguard/attnguardConfig.cmake ]] ||
    fail "there is no CMake package"
fi
echo "deb: it works"
