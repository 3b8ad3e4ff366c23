# What the scripts of this folder share: where things are. To be sourced.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
readonly root
readonly tools=$root/build/release-tools # what both processors are built with
readonly files=$root/build/release-files # what is released
readonly glibc=2.28                      # the oldest that it runs with: RHEL 8, Debian 10
readonly jobs=${RELEASE_JOBS:-$(nproc)}

# The one date in all that is made: of the POM, in which it stands for whoever builds it again.
release_date=$(sed -n 's:.*<project.build.outputTimestamp>\(.*\)</.*:\1:p' "$root/java/pom.xml")
SOURCE_DATE_EPOCH=$(date -u -d "$release_date" +%s)
readonly release_date
export SOURCE_DATE_EPOCH LC_ALL=C TZ=UTC

fail() {
  printf 'release: %s\n' "$*" >&2
  exit 1
}

started=$SECONDS
step() { printf '\n==> [%d s] %s\n' $((SECONDS - started)) "$*"; }

# logged <file> <command...>: its output goes there, and is shown from the end if it fails.
logged() {
  local log=$1
  shift
  mkdir -p "$(dirname "$log")"
  "$@" >"$log" 2>&1 || {
    tail -n 40 "$log" >&2
    fail "$1 failed; all it said: $log"
  }
}

# listed <group>: the names that packages.txt has for it.
listed() { awk -v group="$1" '$2 == group { print $1 }' "$root/packages.txt"; }

# The processor as Debian calls it.
debian_name() {
  case $1 in
    x86_64) echo amd64 ;;
    aarch64) echo arm64 ;;
    *) fail "no processor '$1': x86_64 or aarch64" ;;
  esac
}

# apt_apart <folder> <architecture> <apt-get or apt-cache> [argument...]: as if called on a machine of
# its own, on which nothing is installed, with this machine's sources or those in <folder>/sources.list.d. Needs
# no root and changes nothing outside the folder.
apt_apart() {
  local folder=$1 architecture=$2
  shift 2
  mkdir -p "$folder"/{lists,archives}/partial
  : >>"$folder/status"
  local sources=()
  [[ ! -d $folder/sources.list.d ]] ||
    sources=(-o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$folder/sources.list.d")
  "$1" -q -o APT::Architecture="$architecture" -o APT::Architectures="$architecture" -o APT::Sandbox::User=root \
    -o Dir::State="$folder" -o Dir::State::status="$folder/status" -o Dir::Cache="$folder" -o Debug::NoLocking=1 \
    "${sources[@]}" "${@:2}"
}
