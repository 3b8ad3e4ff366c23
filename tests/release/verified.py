#!/usr/bin/env python3
"""verified.py TRANSPORTS FILE...: each is what the two-stage benchmark of C++ (--json) or of Java says; every result in it is
verified, and rows went between nodes over each of these transports (shm,tcp) and no other. Prints them."""
import json
import sys

wanted = set(sys.argv[1].split(","))
for file in sys.argv[2:]:
    with open(file) as opened:
        said = json.load(opened)
    results = [result for contest in said["contests"] for result in contest["results"]] if "contests" in said else [said]
    if not results or not all(result["verified"] for result in results):
        sys.exit(f"{file}: not verified")
    seen = set()
    for result in results:
        seen.update(result["transports"] if "transports" in result else
                    [link["transport"] for node in result["nodes"] for link in node["links"] if link["transport"] != "local"])
    if seen != wanted:
        sys.exit(f"{file}: over {' '.join(sorted(seen)) or 'nothing'}, not over {' '.join(sorted(wanted))}")
    print(f"{file.rsplit('/', 1)[-1]}: verified, over {' '.join(sorted(seen))}")
