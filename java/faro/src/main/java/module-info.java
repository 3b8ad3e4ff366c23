/** Faro for Java: shuffle queues for a distributed query engine. */
module io.faro {
  exports io.faro;
}
