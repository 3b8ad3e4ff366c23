#!/usr/bin/env python3
"""Runs test classes of Flink over Netty and over Faro by turns, and compares. tests/flink/README.md says what is compared.

Called by `./run flink-tests`, which builds what it takes.
"""
import argparse
import collections
import hashlib
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
REPEATS = 5
LIMIT_S = 600
SIDES = ("netty", "faro")
# What Flink's own build opens for its tests; children of a test get it, too.
OPENED = ("lang", "lang.invoke", "lang.reflect", "io", "math", "net", "nio", "text", "time", "util", "util.concurrent",
          "util.concurrent.atomic", "util.concurrent.locks")
MAIN = "io.faro.flink.conformance.TestClass"

# A line of the list: `clusters` is "two" if a MiniCluster of one TaskManager is to have two.
Listed = collections.namedtuple("Listed", "name clusters limit_s groups")


# What is wrong with a class over Faro; whether it may be by chance, so that it is run again.
Problem = collections.namedtuple("Problem", "text by_chance")


def read_list(path):
    """The classes of a list, each with the groups that stand beside it."""
    listed = []
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            words = line.split("#")[0].split()
            if not words:
                continue
            clusters, limit_s, groups = "one", LIMIT_S, set()
            for word in words[1:]:
                if word == "two":
                    clusters = word
                elif word.startswith("limit="):
                    limit_s = int(word[len("limit="):])
                elif word == "quick":
                    groups.add(word)
                else:
                    raise ValueError(f"{path}: what is '{word}'?")
            listed.append(Listed(words[0], clusters, limit_s, groups))
    if len({each.name for each in listed}) != len(listed):
        raise ValueError(f"{path}: a class is listed twice")
    return listed


def read_explained(path):
    """{(class, part of a test's name): reason}: differences that are not Faro's."""
    explained = {}
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            if line.strip() and not line.startswith("#"):
                name, test, reason = line.rstrip("\n").split(None, 2)
                explained[name, test] = reason
    return explained


def read_results(path):
    """{test: outcome}, {test: error}, and whether the class came to its end."""
    outcomes, errors, ended = {}, {}, False
    try:
        with open(path, encoding="utf-8") as lines:
            for line in lines:
                parts = line.rstrip("\n").split("\t")
                if parts == ["end"]:
                    ended = True
                elif len(parts) == 3:
                    outcomes[parts[1]] = parts[0]
                    if parts[0] == "failed":
                        errors[parts[1]] = parts[2]
    except FileNotFoundError:
        pass
    return outcomes, errors, ended


def read_counts(folder):
    """Sums of what the JVMs of a run have counted: RemoteExchanges.java has the layout."""
    sums = [0, 0, 0, 0]
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        names = []
    for name in names:
        with open(os.path.join(folder, name), "rb") as file:
            content = file.read()
        if len(content) == 32:
            sums = [each + more for each, more in zip(sums, struct.unpack("=4q", content))]
    return dict(zip(("netty_requests", "requests", "buffers", "bytes"), sums))


def count(run, outcome):
    return sum(each == outcome for each in run["outcomes"].values())


def failed(run):
    return {test for test, outcome in run["outcomes"].items() if outcome == "failed"}


def problems(netty, faro):
    """What is wrong with a class over Faro, beside Netty. Empty: nothing."""
    if not netty["outcomes"]:
        return [Problem(f"there are no tests over Netty: {netty['why']}", False)]
    found = []
    if netty["ended"] != faro["ended"]:
        side, run = ("Faro", faro) if netty["ended"] else ("Netty", netty)
        found.append(Problem(f"it does not end over {side}: {run['why']}", True))
    less = sorted(set(netty["outcomes"]) - set(faro["outcomes"]))
    if less:
        found.append(Problem(f"{len(less)} tests did not run over Faro: {less[0]}", not faro["ended"]))
    skipped = sorted(test for test, outcome in faro["outcomes"].items()
                     if outcome == "skipped" and netty["outcomes"].get(test) == "passed")
    if skipped:
        found.append(Problem(f"{len(skipped)} tests were skipped over Faro alone: {skipped[0]}", False))
    for test in sorted(failed(faro)):
        if netty["outcomes"].get(test) != "failed":
            found.append(Problem(f"fails over Faro: {test}: {faro['errors'].get(test, '')}", True))
    if netty["counts"]["netty_requests"] and not faro["counts"]["requests"]:
        found.append(Problem("exchanges are remote over Netty, but none was over Faro", False))
    if faro["counts"]["netty_requests"]:
        found.append(Problem(f"{faro['counts']['netty_requests']} requests were over Netty though Faro is the default", False))
    return found


def explanation(name, problem, explained):
    """The reason that the list of explained differences gives; None: there is none."""
    return next((reason for (of, part), reason in explained.items() if name.endswith("." + of) and part in problem), None)


def again(name, first, repeats):
    """What repeats say of tests that failed over Faro alone: (lines to report, whether it is a difference).

    A test that fails over Netty as often as over Faro is not one. Each of the runs counts, the first, too."""
    runs = [first] + repeats
    suspects = sorted(failed(first["faro"]) - failed(first["netty"]))
    lines, differs = [], False
    for test in suspects:
        times = {side: sum(test in failed(run[side]) for run in runs) for side in SIDES}
        differs = differs or times["faro"] > times["netty"]
        lines.append(f"failed over Netty {times['netty']} times of {len(runs)}, over Faro {times['faro']} times: {test}")
    times = {side: sum(not run[side]["ended"] for run in runs) for side in SIDES}
    if any(times.values()):
        differs = differs or times["faro"] > times["netty"]
        lines.append(f"did not end over Netty {times['netty']} times of {len(runs)}, over Faro {times['faro']} times: {name}")
    return lines, differs


class Runner:
    """Runs a class in a JVM of its own, in a process group that is ended with it."""

    def __init__(self, class_path, agent, folder):
        self.class_path, self.agent, self.folder = class_path, agent, folder
        self.process = None

    def run(self, listed, side, attempt):
        folder = os.path.join(self.folder, listed.name.rsplit(".", 1)[-1], f"{side}{attempt or ''}")
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(os.path.join(folder, "tmp"))
        results, counts = os.path.join(folder, "results"), os.path.join(folder, "counts")
        options = [f"-javaagent:{self.agent}={side},{listed.clusters},{counts}", f"-Djava.io.tmpdir={folder}/tmp",
                   f"-Dlog4j.configurationFile={HERE}/log4j2.properties"]
        options += [f"--add-opens=java.base/java.{name}=ALL-UNNAMED" for name in OPENED]
        command = ["java", "-Xmx1536m", "-XX:+UseG1GC", "-cp", self.class_path, MAIN, listed.name, results]
        begun = time.monotonic()
        with open(os.path.join(folder, "output.log"), "wb") as log:
            self.process = subprocess.Popen(
                command, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                env={**os.environ, "JAVA_TOOL_OPTIONS": " ".join(options)})
            why = self.wait(listed.limit_s)
        outcomes, errors, ended = read_results(results)
        shutil.rmtree(os.path.join(folder, "tmp"), ignore_errors=True)
        return {"outcomes": outcomes, "errors": errors, "ended": ended, "why": why, "counts": read_counts(counts),
                "seconds": round(time.monotonic() - begun)}

    def wait(self, limit_s):
        try:
            code = self.process.wait(limit_s)
            return f"exit code {code}"
        except subprocess.TimeoutExpired:
            os.kill(self.process.pid, signal.SIGQUIT)  # where its threads are, into output.log
            time.sleep(3)
            return f"it takes longer than {limit_s} s"
        finally:
            self.end()

    def end(self):
        """Ends what is left of the run: children of tests, too."""
        process, self.process = self.process, None
        if process is not None:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()


def compare(listed, runner, explained, repeats):
    """One class over both, and again if they differ."""
    first = {side: runner.run(listed, side, 0) for side in SIDES}
    found, texts = [], []
    for each in problems(first["netty"], first["faro"]):
        reason = explanation(listed.name, each.text, explained)
        texts.append(each.text if reason is None else f"{each.text} (explained: {reason})")
        found += [each] if reason is None else []
    more, differs = [], any(not each.by_chance for each in found)
    if any(each.by_chance for each in found):
        more = [{side: runner.run(listed, side, attempt) for side in SIDES} for attempt in range(1, repeats + 1)]
        lines, often = again(listed.name, first, more)
        texts, differs = texts + lines, differs or often
    return {"class": listed.name, "clusters": listed.clusters, **first, "problems": texts, "differs": differs,
            "repeats": more}


def verdict(result):
    """What a line says of a class: what is the same, and over how many requests; a class of which no test passes shows nothing."""
    if result["differs"]:
        return "DIFFERS"
    if result["problems"]:
        return "see below"
    if not count(result["faro"], "passed"):
        return "nothing: no test passes"
    requests = result["faro"]["counts"]["requests"]
    return f"same, {requests} request{'' if requests == 1 else 's'}"


def summary(results, version):
    """The last line of a run without differences."""
    requests = sum(result["faro"]["counts"]["requests"] for result in results)
    passed = sum(count(result["faro"], "passed") for result in results)
    shown = [result for result in results if count(result["faro"], "passed")]
    silent = [result["class"].rsplit(".", 1)[-1] for result in results if result not in shown]
    local = sum(not result["faro"]["counts"]["requests"] for result in shown)
    return (f"{len(shown)} classes of Flink {version}: {passed} tests pass over Faro as over Netty; "
            f"{requests} subpartitions were requested over Faro, by all classes but {local}"
            + (f"; no test passes of {', '.join(silent)}" if silent else ""))


def line_of(result):
    netty, faro = result["netty"], result["faro"]
    name = result["class"].rsplit(".", 1)[-1]
    tests = [f"{count(run, 'passed')}/{len(run['outcomes'])}" for run in (netty, faro)]
    return (f"{name:52} {tests[0]:>9} {tests[1]:>9} {netty['counts']['netty_requests']:10} {faro['counts']['requests']:10} "
            f"{faro['counts']['bytes'] / 1e6:9.1f} {netty['seconds']:5} {faro['seconds']:5}  "
            + verdict(result))


HEAD = (f"{'class (tests that passed / ran)':52} {'Netty':>9} {'Faro':>9} {'requests':>10} {'over Faro':>10} "
        f"{'MB':>9} {'s':>5} {'s':>5}")


def read_resumed(path, tested):
    """{class: result} of what has passed with the same build."""
    done = {}
    try:
        with open(path, encoding="utf-8") as lines:
            for line in lines:
                result = json.loads(line)
                if result["tested"] == tested and not result["differs"]:
                    done[result["class"]] = result
    except FileNotFoundError:
        pass
    return done


def digest(*paths):
    sum_of = hashlib.sha256()
    for path in paths:
        with open(path, "rb") as file:
            sum_of.update(file.read())
    return sum_of.hexdigest()[:16]


def chosen(listed, only, quick):
    """Those that the arguments name, by the last part of their names."""
    if quick:
        return [each for each in listed if "quick" in each.groups]
    if not only:
        return listed
    by_name = {each.name.rsplit(".", 1)[-1]: each for each in listed}
    unknown = [name for name in only if name not in by_name]
    if unknown:
        raise ValueError(f"not in the list: {', '.join(unknown)}")
    return [by_name[name] for name in only]


def main():
    parser = argparse.ArgumentParser(prog="./run flink-tests")
    parser.add_argument("--version", default="2.3.0", help="of Flink: a list beside this file")
    parser.add_argument("--only", default="", metavar="CLASS,...", help="these of the list")
    parser.add_argument("--quick", action="store_true", help="those that the list calls quick")
    parser.add_argument("--resume", metavar="FILE", help="results: goes on with the first class that has not passed there")
    parser.add_argument("--repeats", type=int, default=REPEATS, help="runs over both after a difference (%(default)s)")
    parser.add_argument("--list", action="store_true", help="print the classes")
    parser.add_argument("--class-path", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--agent", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--jar", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--folder", required=True, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    try:
        listed = read_list(os.path.join(HERE, f"classes-{arguments.version}"))
        listed = chosen(listed, [name for name in arguments.only.split(",") if name], arguments.quick)
    except ValueError as wrong:
        sys.exit(f"run: flink-tests: {wrong}")
    if arguments.list:
        print("\n".join(each.name for each in listed))
        return
    with open(arguments.class_path, encoding="utf-8") as file:
        class_path = ":".join([arguments.agent, arguments.jar, file.read().strip()])
    runner = Runner(class_path, arguments.agent, arguments.folder)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(128 + signal.SIGTERM))
    os.makedirs(arguments.folder, exist_ok=True)
    path = arguments.resume or os.path.join(arguments.folder, "results.jsonl")
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    tested = digest(arguments.jar)
    done = read_resumed(path, tested) if arguments.resume else {}
    explained = read_explained(os.path.join(HERE, "explained"))
    results = []
    print(HEAD)
    with open(path, "a" if arguments.resume else "w", encoding="utf-8") as file:
        for each in listed:
            result = done.get(each.name)
            if result is None:
                result = {"tested": tested, **compare(each, runner, explained, arguments.repeats)}
                file.write(json.dumps(result) + "\n")
                file.flush()
            results.append(result)
            print("\n".join([line_of(result)] + [f"    {problem}" for problem in result["problems"]]), flush=True)
    differing = [result["class"].rsplit(".", 1)[-1] for result in results if result["differs"]]
    requests = sum(result["faro"]["counts"]["requests"] for result in results)
    if not requests:
        sys.exit("run: flink-tests: no exchange went over Faro")
    if differing:
        sys.exit(f"run: flink-tests: {len(differing)} of {len(results)} classes of Flink {arguments.version} differ over Faro: "
                 f"{', '.join(differing)} (logs: {arguments.folder})")
    print(summary(results, arguments.version))


if __name__ == "__main__":
    main()
