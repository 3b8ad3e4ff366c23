#!/usr/bin/env python3
"""What others have made of what is released: their licences, and a bill of materials (CycloneDX 1.6).

  materials.py licenses SYSROOT TOOLS FOLDER      writes FOLDER/<name>.txt for each of them
  materials.py bom SYSROOT TOOLS NAME VERSION OUTPUT  writes the bill of the archive NAME
  materials.py merge BOM MORE                     adds the components of MORE to BOM, which Maven has written, in place

All texts and versions are taken from what was built with: Debian's packages as they are unpacked in the sysroot, each with its
`copyright`, and zig's folder.
"""
import json
import os
import re
import sys
import uuid
from datetime import datetime, timezone
from pathlib import Path

# Debian's short names of licences where SPDX has another, or the text of which is Debian's alone.
SPDX = {"Expat": "MIT", "MIT": "MIT", "Apache-2.0": "Apache-2.0", "BSD-2-clause": "BSD-2-Clause", "BSD-2-Clause": "BSD-2-Clause",
        "BSD-3-clause": "BSD-3-Clause", "BSD-3-Clause": "BSD-3-Clause", "BSL-1.0": "BSL-1.0"}

# Of zig, what ends in a program: name, the files that say under which terms, SPDX expression.
ZIG_PARTS = [
    ("libc++", ["lib/libcxx/LICENSE.TXT"], "Apache-2.0 WITH LLVM-exception"),
    ("libc++abi", ["lib/libcxxabi/LICENSE.TXT"], "Apache-2.0 WITH LLVM-exception"),
    ("libunwind", ["lib/libunwind/LICENSE.TXT"], "Apache-2.0 WITH LLVM-exception"),
    ("zig-compiler-rt", ["LICENSE"], "MIT"),
    ("glibc-startup-files", ["lib/libc/glibc/LICENSES"], None),  # an exception of their own
]


class Component:
    """One piece of others' work: its name and version, a package URL, its licence, and the text of that."""

    def __init__(self, name, version, purl, license_choice, text):
        self.name, self.version, self.purl, self.license_choice, self.text = name, version, purl, license_choice, text

    def as_json(self):
        result = {"type": "library", "bom-ref": self.purl, "name": self.name, "version": self.version, "purl": self.purl}
        if self.license_choice:
            result["licenses"] = [self.license_choice]
        return result


def debian_license(copyright_text):
    """The licence of a package's files, by the first `License:` of the copyright file that has one."""
    match = re.search(r"^License: *(\S.*)$", copyright_text, re.MULTILINE)
    if not match:
        return None
    name = match[1].strip()
    return {"license": {"id": SPDX[name]} if name in SPDX else {"name": name}}


def debian_packages(sysroot):
    """(package, version, source package) of each one unpacked there."""
    for paragraph in (sysroot / "packages").read_text().strip().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in paragraph.splitlines())
        yield fields["Package"], fields["Version"], fields.get("Source", fields["Package"]).split(" ")[0]


def components(sysroot, tools):
    """One for each source package, in the order of their names, then the parts of zig and of libgcc."""
    found = {}
    for package, version, source in debian_packages(sysroot):
        text = (sysroot / "usr/share/doc" / package / "copyright").read_text()
        if source not in found:
            found[source] = Component(source, version, f"pkg:deb/debian/{source}@{version.replace('+', '%2B')}?arch=source",
                                      debian_license(text), text)
    result = [found[source] for source in sorted(found)]
    zig, zig_version = tools / "zig/ziglang", (tools / "zig/version").read_text().strip().split("==")[1]
    for name, files, expression in ZIG_PARTS:
        text = "\n".join((zig / file).read_text() for file in files)
        result.append(Component(name, f"of zig {zig_version}", f"pkg:pypi/ziglang@{zig_version}#{name}",
                                {"expression": expression} if expression else {"license": {"name": "see its text"}}, text))
    if "x86_64" in sysroot.name:
        version = (tools / "libgcc/version").read_text().strip()
        result.append(Component("libgcc", version, f"pkg:deb/debian/gcc@{version}?arch=source",
                                {"expression": "GPL-3.0-or-later WITH GCC-exception-3.1"},
                                (tools / "libgcc/copyright").read_text()))
    return result


def bom(name, version, parts):
    timestamp = datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    identity = json.dumps([name, version, timestamp, [part.purl for part in parts]])
    reference = f"pkg:generic/{name}@{version}"
    return {
        "bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1,
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, identity)}",
        "metadata": {"timestamp": timestamp,
                     "component": {"type": "application", "bom-ref": reference, "name": name, "version": version,
                                   "licenses": [{"license": {"id": "Apache-2.0"}}]}},
        "components": [part.as_json() for part in parts],
        "dependencies": [{"ref": reference, "dependsOn": [part.purl for part in parts]}]
                        + [{"ref": part.purl} for part in parts],
    }


def merge(bill, more):
    """Every native component becomes one of the jar, too."""
    known = {component["bom-ref"] for component in bill["components"]}
    added = [component for component in more["components"] if component["bom-ref"] not in known]
    bill["components"] += added
    references = [component["bom-ref"] for component in added]
    main = bill["metadata"]["component"]["bom-ref"]
    next(each for each in bill["dependencies"] if each["ref"] == main).setdefault("dependsOn", []).extend(references)
    bill["dependencies"] += [{"ref": reference} for reference in references]


def write(path, bill):
    Path(path).write_text(json.dumps(bill, indent=2) + "\n")


def main(command, *arguments):
    if command == "licenses":
        sysroot, tools, folder = map(Path, arguments)
        folder.mkdir(parents=True, exist_ok=True)
        for part in components(sysroot, tools):
            (folder / f"{part.name}.txt").write_text(f"{part.name} {part.version}\n\n{part.text}")
    elif command == "bom":
        sysroot, tools, name, version, output = arguments
        write(output, bom(name, version, components(Path(sysroot), Path(tools))))
    elif command == "merge":
        target, source = arguments
        bill = json.loads(Path(target).read_text())
        merge(bill, json.loads(Path(source).read_text()))
        write(target, bill)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(*sys.argv[1:])
