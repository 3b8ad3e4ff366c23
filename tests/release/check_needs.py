#!/usr/bin/env python3
"""What do these libraries and programs need of the system they are loaded on?

  check_needs.py FILE...          prints the needs of each; fails if one needs more than a system of 2018 has
  check_needs.py --refuses TEXT FILE   fails unless the file is refused, with a reason that contains the text

Read from the files themselves, by readelf. Refused are: a symbol of a version of glibc newer than 2.28, any symbol of
libstdc++, of libgcc or of OpenSSL, a library that is not named below, a place of its own to look for libraries, a stack or
a segment that is writable and executable, relocations in code, and in libfaro_verbs.so a symbol that librdmacm or libibverbs of
RHEL 8.2 (rdma-core 26) lacks.
"""
import re
import subprocess
import sys
from pathlib import Path

GLIBC = (2, 28)
GLIBC_LIBRARIES = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1", "ld-linux-x86-64.so.2",
                   "ld-linux-aarch64.so.1"}
# Of these libfaro_verbs.so alone may need something, up to the versions that rdma-core 26 has.
RDMA = {"libibverbs.so.1": ("IBVERBS", (1, 7)), "librdmacm.so.1": ("RDMACM", (1, 2))}
# Names of OpenSSL without a version, as in a library that was linked without its versions.
OPENSSL = re.compile(r"^(SSL|EVP|CRYPTO|OPENSSL|BIO|X509|PEM|ERR|OSSL|HMAC|RAND|BN|RSA|EC)_")


def readelf(option, file):
    return subprocess.run(["readelf", "--wide", option, file], check=True, capture_output=True, text=True,
                          env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"}).stdout


def number(text):
    return tuple(int(part) for part in text.split("."))


class Needs:
    """The needs of one file."""

    def __init__(self, file):
        self.file = file
        dynamic = readelf("--dynamic", file)
        self.libraries = re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic)
        self.search_paths = re.findall(r"\((?:RUNPATH|RPATH)\).*\[(.*)\]", dynamic)
        self.relocates_code = "(TEXTREL)" in dynamic or re.search(r"\(FLAGS\).*TEXTREL", dynamic) is not None
        # (name, version or None) of each symbol that is taken from another file.
        self.symbols = []
        for line in readelf("--dyn-syms", file).splitlines():
            fields = line.split()
            if len(fields) < 8 or fields[6] != "UND" or not fields[0].endswith(":"):
                continue
            name, _, version = fields[7].partition("@")
            self.symbols.append((name, version.lstrip("@") or None))
        self.segments = re.findall(r"^  (LOAD|GNU_STACK) .* ([R ][W ][E ]) 0x", readelf("--program-headers", file),
                                   re.MULTILINE)

    def refusals(self):
        """Each as a sentence; none if it can be loaded."""
        rdma = RDMA if Path(self.file).name == "libfaro_verbs.so" else {}
        limits = dict([("GLIBC", GLIBC), *rdma.values()])
        for library in self.libraries:
            if library not in GLIBC_LIBRARIES and library not in rdma:
                yield f"it needs the library {library}"
        for path in self.search_paths:
            yield f"it looks for libraries in {path}"
        for name, version in self.symbols:
            if version is None:
                if OPENSSL.match(name):
                    yield f"it needs {name} of OpenSSL"
                continue
            family, _, release = version.rpartition("_")
            if family not in limits or not re.fullmatch(r"[0-9.]+", release):
                yield f"it needs {name} of {version}"
            elif number(release) > limits[family]:
                yield f"it needs {name} of {version}, newer than {'.'.join(map(str, limits[family]))}"
        if self.relocates_code:
            yield "its code is changed when it is loaded (TEXTREL)"
        if not any(kind == "GNU_STACK" for kind, _ in self.segments):
            yield "it does not say that its stack is not executable (GNU_STACK)"
        for kind, flags in self.segments:
            if "E" in flags and ("W" in flags or kind == "GNU_STACK"):
                yield f"it has a segment {kind} that is writable and executable"

    def summary(self):
        newest = {}
        for _, version in self.symbols:
            family, _, release = (version or "").rpartition("_")
            if re.fullmatch(r"[0-9.]+", release):
                newest[family] = max(newest.get(family, (0,)), number(release))
        versions = ", ".join(f"{family}_{'.'.join(map(str, release))}" for family, release in sorted(newest.items()))
        return f"{len(self.symbols)} symbols, at most {versions}; of {' '.join(self.libraries)}"


def main(arguments):
    if arguments[:1] == ["--refuses"] and len(arguments) == 3:
        text, file = arguments[1:]
        refusals = list(Needs(file).refusals())
        if not any(text in refusal for refusal in refusals):
            sys.exit(f"check_needs: {file} should be refused because '{text}'; it is, because {refusals}")
        print(f"{file}: refused, as it should be: {next(refusal for refusal in refusals if text in refusal)}")
        return
    if not arguments:
        sys.exit(__doc__)
    failed = False
    for file in arguments:
        needs = Needs(file)
        refusals = list(dict.fromkeys(needs.refusals()))
        print(f"{file}: {needs.summary()}")
        for refusal in refusals:
            print(f"  REFUSED: {refusal}")
        failed = failed or bool(refusals)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main(sys.argv[1:])
