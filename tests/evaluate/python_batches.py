"""Arrow batches between two processes of Python: what `peers/batches.py` runs, with pyarrow of an environment of its own."""

from contestant import Contestant, Result
from peer_rounds import printed
from programs import FARO_C, PYARROW, ROOT, Command, not_built, run

PROGRAM = ROOT / "tests/evaluate/peers/batches.py"


class PythonBatches(Contestant):
    expected_seconds = 4

    product = "pyarrow"

    def __init__(self, name: str, label: str, carrier: str, *flags: str):
        super().__init__(name, label)
        self.carrier, self.flags = carrier, flags

    def missing(self) -> str | None:
        return not_built("pyarrow", PYARROW) or not_built("faro_c", FARO_C)

    def version(self) -> str:
        return run(Command([PYARROW, "-c", "import pyarrow; print(pyarrow.__version__)"]), 20).strip()

    def command(self, workload: str, parameters: dict) -> Command:
        flags = [word for name in ("batches", "rows") for word in (f"--{name}", parameters[name])]
        return Command([PYARROW, "-B", PROGRAM, self.carrier, *flags, *self.flags, "--library", FARO_C])

    def read(self, workload: str, parameters: dict, output: str) -> Result:
        report = printed(output)
        names = ("seconds", "cpu_seconds", "bytes_per_second", "bytes_per_cpu_second")
        return Result({name: report[name] for name in names}, report["verified"], report["count"], str(report["checksum"]))
