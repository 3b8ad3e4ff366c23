package io.faro;

import java.util.List;
import java.util.concurrent.Callable;

/** Uses Faro in a class loader of its own. */
public final class LoaderProbe implements Callable<String> {
  private static final SessionConfig ALONE =
      SessionConfig.builder().cluster(0, List.of("127.0.0.1:0")).workers(1).build();

  /** A session whose counters are beans. */
  public static AutoCloseable openWithBeans() throws InterruptedException {
    Session session = Session.open(ALONE);
    session.registerBeans();
    return session;
  }

  /** A session and an endpoint, whose network threads run, and that nobody closes. */
  public static void openAndForget() throws InterruptedException {
    Session.open(ALONE).registerBeans();
    Endpoint.open(SessionConfig.builder().build());
  }

  /** Opens, uses and closes a session and an endpoint. */
  @Override
  public String call() throws Exception {
    SessionConfig config = SessionConfig.builder().set(Setting.TRANSPORT, "tcp").build();
    try (Endpoint server = Endpoint.open(config, new EndpointSpec().withAcceptor(request -> ChannelAcceptance.by(0)));
        Endpoint client = Endpoint.open(config)) {
      ChannelEvents events = new ChannelEvents(4);
      long channel = client.poller(0).connect(server.address(), new ChannelSpec().withRings(4096, 4096));
      while (client.poller(0).poll(events) == 0) {
        client.poller(0).await();
      }
      client.poller(0).outgoing(channel);
      if (events.kind(0) != ChannelEvents.Kind.OPENED || client.poller(0).failure(-1).code() != Code.CLOSED) {
        throw new AssertionError("no channel");
      }
    }
    try (Session session = Session.open(ALONE)) {
      session.registerBeans();
      session.listen(new SessionListener() {});
      Worker worker = session.workers().get(0);
      worker.whenReady(() -> true).toCompletableFuture().get();
      session.cancelQuery(session.beginQuery(), "a line for the log");
    }
    return Thread.currentThread().getName();
  }
}
