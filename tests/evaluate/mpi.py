"""Open MPI: a rank for each worker, all on this machine."""

import programs
from contestant import Contestant, Result
from peer_rounds import last_round, shape
from programs import PEERS, Command

PROGRAM = PEERS / "two_stage_mpi"


class Mpi(Contestant):
    """`form`: isend or alltoallv; `transport`: vader (shared memory) or tcp."""

    product = "Open MPI"

    def __init__(self, name: str, label: str, form: str, transport: str):
        super().__init__(name, label)
        self.form = form
        self.transport = transport
        self.expected_seconds = 2

    def missing(self) -> str | None:
        return programs.found("mpirun", "Debian package openmpi-bin") or programs.found(
            PROGRAM, "Debian package libopenmpi-dev"
        )

    def version(self) -> str:
        return programs.run(Command(["mpirun", "--version"]), 20).splitlines()[0]

    def command(self, workload: str, parameters: dict) -> Command:
        ranks = parameters["processes"] * parameters["workers"]
        words = ["mpirun", "--oversubscribe", "--bind-to", "none", "-np", ranks]
        words += ["--mca", "pml", "ob1", "--mca", "btl", f"self,{self.transport}"]
        words += [PROGRAM, "--form", self.form, "--rounds", 2]
        words += shape(parameters)
        # In containers and in CI everything is run by root.
        root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        return Command([str(word) for word in words], root)

    def read(self, workload: str, parameters: dict, output: str) -> Result:
        return last_round(output)
