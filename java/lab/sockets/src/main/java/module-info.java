/** The sockets that Faro for Java is compared with. */
module io.faro.sockets {
  requires transitive io.faro;

  exports io.faro.sockets;
}
