/** Benchmarks of Faro for Java. */
module io.faro.bench {
  requires transitive io.faro;
  requires io.faro.sockets;
  requires java.management;

  exports io.faro.bench;

  uses io.faro.bench.BackendProvider;
}
