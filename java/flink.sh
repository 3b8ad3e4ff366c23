# Building what runs beside Apache Flink. Sourced after cmake/building.sh.

readonly flink_jar=java/faro-flink/target/faro-flink-0.1.0.jar
readonly flink_conformance_jar=tests/flink/target/faro-flink-conformance-0.1.0.jar
readonly flink_example_jar=examples/flink/target/faro-flink-example-0.1.0.jar

readonly pyflink_folder=$root/build/flink/python # with PyFlink

# Packs java/faro-flink: what an operator puts into Flink's lib/, for every version of Flink.
flink_jar() {
  up_to_date "$flink_jar" java/pom.xml java/{faro,faro-flink}/{pom.xml,src} build/release/jni/linux-* && return
  step "building java/faro-flink"
  rm -f "$flink_jar"
  quietly maven package -Pflink -pl faro,faro-flink "${no_tests[@]}" || fail "java/faro-flink could not be built"
}

flink_conformance_jar() { flink_module_jar "$flink_conformance_jar" tests/flink; }
flink_example_jar() { flink_module_jar "$flink_example_jar" examples/flink; }

# What examples/flink/built runs.
flink_example() { flink_jar && flink_example_jar && flink_class_path examples 2.3.0; }

# flink_module_jar <jar> <folder>
flink_module_jar() {
  up_to_date "$1" java/pom.xml "$2"/{pom.xml,src} && return
  step "building $2"
  rm -f "$1"
  quietly maven package -Pflink -pl "../$2" "${no_tests[@]}" || fail "$2 could not be built"
}

# flink_class_path_file <tests or examples> <version>: where flink_class_path leaves what it has found.
flink_class_path_file() { echo "$root/build/flink/$1-$2.classpath"; }

# flink_class_path <tests or examples> <version>: has Maven download Flink's jars, once, and writes the class path.
flink_class_path() {
  local file pom=$1/flink/pom.xml
  file=$(flink_class_path_file "$1" "$2")
  [[ ! -e $file || $pom -nt $file ]] || ! flink_jars_are_there "$file" || return 0
  step "downloading the jars of Flink $2"
  mkdir -p "$(dirname "$file")"
  local versions=("-Dflink.version=$2")
  # Of 1.20 the tests were last published with this one; they need the older Mockito.
  [[ $2 != 1.20.* ]] || versions+=(-Dflink.tests.version=1.20.1 -Dmockito.version=3.4.6)
  quietly maven dependency:build-classpath -Pflink -pl "../$1/flink" "${versions[@]}" -Dmdep.includeScope=runtime \
    -Dmdep.outputFile="$file" || fail "the jars of Flink $2 could not be had"
}

# flink_jars_are_there <file>: those that it names.
flink_jars_are_there() {
  local jars
  IFS=: read -ra jars <"$1"
  ls "${jars[@]}" >/dev/null 2>&1
}

# Installs PyFlink from PyPI into an environment of its own, once.
pyflink() {
  local wanted
  wanted=$(listed flink-pypi)
  [[ $(cat "$pyflink_folder/version" 2>/dev/null) != "$wanted" ]] || return 0
  packages flink
  step "installing $wanted from PyPI into build/flink/python"
  rm -rf "$pyflink_folder"
  python3 -m venv "$pyflink_folder"
  quietly "$pyflink_folder/bin/python" -m pip install --disable-pip-version-check "$wanted" || fail "$wanted could not be installed"
  printf '%s\n' "$wanted" >"$pyflink_folder/version"
}

# Where PyFlink, if it is installed, has Flink's distribution: lib/, opt/, bin/, conf/.
pyflink_home() { compgen -G "$pyflink_folder/lib/python3*/site-packages/pyflink" || true; }
