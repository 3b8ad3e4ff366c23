package io.faro;

import static org.junit.jupiter.api.Assertions.assertEquals;

/** Two endpoints with an open channel. */
final class ChannelPair implements AutoCloseable {
  final EndpointSide server;
  final EndpointSide client;
  final long atServer;
  final long atClient;

  ChannelPair(String transport, ChannelSpec spec) throws InterruptedException {
    server = new EndpointSide(transport, new EndpointSpec().withName("server"));
    client = new EndpointSide(transport, new EndpointSpec().withName("client"));
    atClient = client.connect(server, spec);
    assertEquals(atClient, client.expectOpened());
    atServer = server.expectOpened();
  }

  /** Sends until there is no room. Returns how many frames. */
  int fill(String text) {
    int sent = 0;
    while (client.send(atClient, text)) {
      sent++;
    }
    return sent;
  }

  @Override
  public void close() {
    client.close();
    server.close();
  }
}
