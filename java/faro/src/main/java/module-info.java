/** Faro for Java: shuffle queues for a distributed query engine. */
module io.faro {
  requires static java.logging; // LogOutput, where loggers are those of it
  requires java.management;
  requires jdk.unsupported; // NativeMemory, before Java 22

  exports io.faro;
}
