/** Faro for Java: shuffle queues for a distributed query engine. */
module io.faro {
  requires org.jctools.core;

  exports io.faro;
}
