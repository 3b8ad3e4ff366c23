# What every suite starts with. A suite is a script that runs in a guest, as root, in the project's folder.
set -euo pipefail

for part in check network rdma counters wire tools faro; do
  source "tests/softroce/lib/$part.sh"
done
# SUITE_BIN, SUITE_CLASS_PATH: what is tried, unless it is what was just built (../softroce).
readonly share=/run/share bin=${SUITE_BIN:-build/release/bin} tests=build/release/tests/bin
# or_quick <whole> <quick>: what a suite repeats, it repeats less often with ../softroce --quick.
or_quick() { [[ -z ${SUITE_QUICK:-} ]] && printf '%s\n' "$1" || printf '%s\n' "$2"; }
# A program that crashes leaves a core, for `stacks`.
ulimit -c unlimited
echo "$share/core.%p" >/proc/sys/kernel/core_pattern
LD_LIBRARY_PATH=$(realpath "$bin/../lib") && export LD_LIBRARY_PATH # where libfaro_verbs.so is looked for last
