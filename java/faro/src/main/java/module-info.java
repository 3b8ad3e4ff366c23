/** Faro for Java: shuffle queues for a distributed query engine. */
module io.faro {
  requires java.management;
  requires org.jctools.core;

  exports io.faro;
}
