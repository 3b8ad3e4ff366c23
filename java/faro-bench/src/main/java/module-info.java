/** Benchmarks of Faro for Java. */
module io.faro.bench {
  requires io.faro;
  requires java.management;
}
