# What `run` and the scripts that it calls share: installing, building, saying what is going on. Sourced, never called.
# It changes into the project's folder.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
readonly root=$PWD
readonly jobs=${JOBS:-$(nproc)}
readonly faro_jar=java/faro/target/faro-0.1.0.jar bench_jar=java/lab/bench/target/faro-bench-0.1.0.jar
readonly bench_path=$bench_jar:java/lab/sockets/target/faro-sockets-0.1.0.jar:$faro_jar
readonly sql_jar=examples/sql/target/faro-sql-0.1.0.jar
readonly jmh_path='java/lab/jmh/target/faro-jmh-0.1.0.jar:java/lab/jmh/target/lib/*'

# A report of a sanitizer without the calls that led there is hard to use.
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
# A thread that nobody waits for is joined by the next one that starts, or by whoever unloads the library (native/base/thread.cc):
# the last ones of a process are not.
export TSAN_OPTIONS=${TSAN_OPTIONS:-second_deadlock_stack=1 report_thread_leaks=0}

started=$SECONDS
step() { printf '\n==> [%d s] %s\n' $((SECONDS - started)) "$*"; }
fail() {
  printf 'run: %s\n' "$*" >&2
  exit 1
}

# Runs a command quietly; its output is shown only if it fails.
quietly() {
  local log
  log=$(mktemp)
  if ! "$@" >"$log" 2>&1; then
    cat "$log" >&2
    rm -f "$log"
    return 1
  fi
  rm -f "$log"
}

# packages <group>...: installs what is missing of these groups of packages.txt.
packages() {
  if ! command -v dpkg-query >/dev/null; then
    echo "run: this is not Debian; taking the packages of packages.txt as present" >&2
    return
  fi
  local group name purpose missing=()
  while read -r name purpose _; do
    [[ -z $name || $name == \#* ]] && continue
    for group in "$@"; do
      if [[ $purpose == "$group" ]] &&
        [[ " $(dpkg-query -W -f='${db:Status-Status} ' "$name" 2>/dev/null)" != *' installed '* ]]; then
        missing+=("$name")
      fi
    done
  done <packages.txt
  [[ ${#missing[@]} -eq 0 ]] && return

  local as_root=()
  if [[ $(id -u) -ne 0 ]]; then
    if ! command -v sudo >/dev/null || ! sudo -n true 2>/dev/null; then
      fail "packages are missing, and installing them needs root. Run this as root, then try again:
  apt-get install ${missing[*]}"
    fi
    as_root=(sudo -n)
  fi
  step "installing ${missing[*]}"
  quietly "${as_root[@]}" apt-get update || fail "apt-get update failed (missing: ${missing[*]})"
  quietly "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y --no-install-recommends "${missing[@]}" || fail "could not install: ${missing[*]}"
}

# listed <group>: the names that packages.txt has for it.
listed() { awk -v group="$1" '$1 !~ /^#/ && $2 == group { print $1 }' packages.txt; }

# What the preset aarch64 needs. Debian's arm64 packages are unpacked in build/, not installed.
foreign_packages() {
  packages build aarch64
  step "unpacking arm64 packages"
  quietly tests/aarch64/sysroot || fail "the arm64 packages could not be had"
}

# check_place <preset>: what CMake has made for a folder is of use only there.
check_place() {
  local place
  place=$(sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' "build/$1/CMakeCache.txt" 2>/dev/null) || return 0
  [[ -z $place || $place -ef $root ]] ||
    fail "build/$1 was made for $place, and this is $root. Was the checkout moved or copied? Then remove build/ and try again"
}

# configure_and_build <preset> [target...]
configure_and_build() {
  local preset=$1
  shift
  check_place "$preset"
  local launcher
  launcher=$(command -v ccache || true)
  quietly cmake --preset "$preset" -DCMAKE_CXX_COMPILER_LAUNCHER="$launcher" || fail "cmake --preset $preset failed"
  local targets=()
  [[ $# -gt 0 ]] && targets=(--target "$@")
  cmake --build "build/$preset" --parallel "$jobs" "${targets[@]}" || fail "the $preset build failed"
}

# It does not run for long enough to gain by the JVM's second compiler.
export MAVEN_OPTS=${MAVEN_OPTS:--XX:TieredStopAtLevel=1}
# Maven, quietly; without the network if everything it needs was downloaded before.
maven() {
  mvn -q -B -o -f java "$@" >/dev/null 2>&1 || mvn -q -B -f java "$@"
}
readonly no_tests=(-Dmaven.test.skip -Dmaven.javadoc.skip -Dmaven.source.skip)

# up_to_date <jar> <file or folder>...: the jar is there, and none of these is newer.
up_to_date() { [[ -e $1 && -z $(find "${@:2}" -newer "$1") ]]; }

# Packs java/faro and the benchmarks over the library of the release build. Where Maven cannot download its plug-ins, which
# it does once, what is in Java is left out.
java_jars() {
  up_to_date "$bench_jar" java/pom.xml java/{faro,lab/sockets,lab/bench}/{pom.xml,src} build/release/jni/linux-* && return
  step "building java"
  rm -f "$bench_jar"
  quietly maven package -pl faro,lab/sockets,lab/bench "${no_tests[@]}" || echo "run: java/ could not be built; its rows are left out" >&2
}

# The same beside the C++ build, as far as it goes without the library: Maven's downloads, and javac.
java_jars_ahead() {
  [[ -e $bench_jar ]] || (maven package -pl faro,lab/sockets,lab/bench "${no_tests[@]}" && rm -f "$bench_jar") >/dev/null 2>&1 &
}

# Packs examples/sql with what it stands on.
sql_jars() {
  up_to_date "$sql_jar" java/pom.xml java/{faro,lab/sockets}/{pom.xml,src} examples/sql/{pom.xml,src} build/release/jni/linux-* && return
  step "building examples/sql"
  rm -f "$sql_jar"
  quietly maven package -pl ../examples/sql -am "${no_tests[@]}"
}

# The major version of a java.
java_version() { "$1" -version 2>&1 | sed -n '1s/.*version "\([0-9]*\).*/\1/p'; }
