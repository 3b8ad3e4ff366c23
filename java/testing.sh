# The tests of java/ and examples/sql, with what the JVM says. Sourced after tests/levels/testing.sh.

# Where the Java tests leave what they say. Surefire writes what a JVM prints by itself into *.dumpstream.
java_reports() { find java examples/sql -path '*/target/surefire-reports' -type d; }

# Maven's downloads, and javac, beside the C++ build: nothing of it needs the library.
java_ahead() { (maven test-compile -pl faro) >/dev/null 2>&1 & }

# java_tests <title> <Maven's arguments...>
java_tests() { maven_tests "$1" "$1: building or testing failed" mvn -q -B -f java "${@:2}"; }

# maven_tests <title> <failure> <command...>: a JVM goes on after what -Xcheck:jni has found; here it is a failure.
maven_tests() {
  local title=$1 failure=$2 reports complaints
  shift 2
  mapfile -t reports < <(java_reports)
  rm -rf "${reports[@]}"
  mkdir -p build
  "$@" >build/java_tests.log 2>&1 || {
    cat build/java_tests.log >&2
    fail "$failure ({java/**,examples/sql}/target/surefire-reports)"
  }
  mapfile -t reports < <(java_reports)
  complaints=$(grep -rhE -A 12 '(WARNING|FATAL ERROR) in native method|JNI local refs: ' build/java_tests.log "${reports[@]}" |
    sed -n "/^\(# Created at .*\|--\|\)$/d; s/^Corrupted channel .* Stream '\(.*\)'\.$/\1/; p" | head -n 40) || true
  [[ -z $complaints ]] || fail "-Xcheck:jni found (build/java_tests.log, {java/**,examples/sql}/target/surefire-reports):
$complaints"
  java_summary "$title" "${reports[@]}"
}

# java_summary <title> <folder...>: what the last maven_tests ran.
java_summary() {
  local title=$1 passed skipped
  shift
  read -r passed skipped < <(grep -rh '^Tests run: ' "$@" --include='*.txt' | tr -cd '0-9 \n' |
    awk '{ run += $1; skipped += $4 } END { print run - skipped, skipped + 0 }')
  if ((skipped > 0)); then
    printf '\nSkipped because (number of tests, reason):\n%s\n' "$(grep -rhoE '<skipped.*' "$@" --include='TEST-*.xml' |
      sed 's/.*message="\([^"]*\)".*/\1/; s/.*TestAbortedException: //; s/^<skipped.*/no reason is given/; s/^Assumption failed: //' |
      sort | uniq -c | sort -rn)"
  fi
  summarise "$title" "$passed tests passed, $skipped skipped; those of java/ with -Xcheck:jni"
}

# The newest java that is installed, if it is newer than the one in the path; else nothing.
newer_java() {
  local newest
  newest=$(command -v java)
  local candidate found=$newest
  for candidate in /usr/lib/jvm/*/bin/java; do
    if [[ -x $candidate ]] && (($(java_version "$candidate") > $(java_version "$found"))); then found=$candidate; fi
  done
  [[ $found == "$newest" ]] || echo "$found"
}

# All Java tests over the library of the release build, on the JDK that builds them; those of java/faro on the newest that is
# installed, too.
# The first run downloads Maven's plug-ins; later ones need no network.
all_java_tests() {
  java_tests "java $(java_version "$(command -v java)")" package
  quietly timeout 120 java -Djmh.ignoreLock=true -cp "$jmh_path" org.openjdk.jmh.Main -foe true -f 0 -wi 0 -i 1 -r 10ms ||
    fail "java: a benchmark of ./run jmh fails"

  local newer
  newer=$(newer_java)
  if [[ -n $newer ]]; then
    step "testing java with $newer"
    java_tests "java $(java_version "$newer")" test -pl faro -Dfaro.test.jvm="$newer" \
      -Dfaro.test.flags=--enable-native-access=ALL-UNNAMED
  fi
}

# The tests of java/faro again, in a JVM in which AddressSanitizer watches the native side. The JVM uses SIGSEGV itself,
# and frees nothing when it ends. Left out is what AddressSanitizer takes away: NativeLibraryTest and ClassLoaderTest look at
# libraries that are unpacked from the jar, one for each class loader, and ResidentTest at the bytes that are resident.
java_asan_tests() {
  local library
  library=$(echo "$root"/build/asan/jni/*/libfaro_jni.so)
  [[ -e $library ]] || fail "java: $library is missing"
  maven_tests "java asan" "java: tests failed under AddressSanitizer" \
    env ASAN_OPTIONS=handle_segv=0:detect_leaks=0 LD_PRELOAD="$(g++ -print-file-name=libasan.so)" \
    JAVA_TOOL_OPTIONS="-Dfaro.native.library=$library" \
    mvn -q -B -o -f java -pl faro surefire:test -Dtest='!NativeLibraryTest,!ClassLoaderTest,!ResidentTest'
}
