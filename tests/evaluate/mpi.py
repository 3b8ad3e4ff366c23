"""Open MPI: a rank for each worker, all on this machine."""

from peer_rounds import Peer, shape
from programs import PEERS, Command

PROGRAM = PEERS / "two_stage_mpi"


class Mpi(Peer):
    """`form`: isend or alltoallv; `transport`: vader (shared memory) or tcp."""

    product = "Open MPI"
    needs = {"mpirun": "Debian package openmpi-bin", PROGRAM: "Debian package libopenmpi-dev"}
    version_command = ("mpirun", "--version")
    expected_seconds = 2

    def __init__(self, name: str, label: str, form: str, transport: str):
        super().__init__(name, label)
        self.form = form
        self.transport = transport

    def command(self, workload: str, parameters: dict) -> Command:
        ranks = parameters["processes"] * parameters["workers"]
        words = ["mpirun", "--oversubscribe", "--bind-to", "none", "-np", ranks]
        words += ["--mca", "pml", "ob1", "--mca", "btl", f"self,{self.transport}"]
        words += [PROGRAM, "--form", self.form, "--rounds", 2, *shape(parameters)]
        # In containers and in CI everything is run by root.
        return Command(words, {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"})
