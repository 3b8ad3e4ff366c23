package io.faro.bench;

import io.faro.LinkMetrics;
import io.faro.QueryId;
import io.faro.Session;
import io.faro.SessionConfig;
import io.faro.Setting;
import java.io.IOException;
import java.util.List;
import java.util.stream.Collectors;

/** What a node opens once and uses in every round. */
public interface Backend extends AutoCloseable {
  /** Connects to all other nodes, which do the same. */
  void open() throws IOException, InterruptedException;

  RoundWorker worker(int localIndex);

  QueryId newQuery();

  /** The transport to each other node; empty if it is not one of Faro's. */
  List<String> transports();

  @Override
  void close() throws IOException;

  /** Faro, over any of its transports. */
  static Backend faro(Options options) {
    return new Backend() {
      private Session session;

      @Override
      public void open() throws InterruptedException {
        session =
            Session.open(
                SessionConfig.builder()
                    .environment()
                    .cluster(options.node(), options.nodes())
                    .workers(options.job().workersPerProcess())
                    .set(Setting.TRANSPORT, options.carrier().toString())
                    .build());
      }

      @Override
      public RoundWorker worker(int localIndex) {
        return new FaroWorker(options.job(), options.level(), session.workers().get(localIndex));
      }

      @Override
      public QueryId newQuery() {
        return session.beginQuery();
      }

      @Override
      public List<String> transports() {
        return session.metrics().links().stream()
            .filter(link -> link.node() != options.node())
            .map(LinkMetrics::transport)
            .collect(Collectors.toList());
      }

      @Override
      public void close() {
        if (session != null) {
          session.close();
        }
      }
    };
  }
}
