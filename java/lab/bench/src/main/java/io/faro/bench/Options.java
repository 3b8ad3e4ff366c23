package io.faro.bench;

import io.faro.Partition;
import java.net.InetSocketAddress;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;

/** The flags of one run, as {@code faro-lab bench two-stage} names them. */
public record Options(
    TwoStageJob job,
    Carrier carrier,
    String transport,
    RowsLevel level,
    int rounds,
    int warmup,
    List<String> hosts,
    int node,
    List<String> nodes) {

  /** {@code --name value --name value}. With {@code --nodes}, one node of a cluster. */
  static Options parse(List<String> arguments) {
    Map<String, String> flags = new TreeMap<>();
    for (int i = 0; i < arguments.size(); i += 2) {
      String name = arguments.get(i);
      if (!name.startsWith("--") || i + 1 == arguments.size()) {
        throw new IllegalArgumentException("not understood: " + name);
      }
      flags.put(name.substring(2), arguments.get(i + 1));
    }
    String nodeText = take(flags, "nodes", "");
    List<String> nodes = nodeText.isEmpty() ? List.of() : List.of(nodeText.split(","));
    int processes = Integer.parseInt(take(flags, "processes", "4"));
    int repetitions = Integer.parseInt(take(flags, "repetitions", "7"));
    String transport = take(flags, "transport", "auto");
    Options options =
        new Options(
            new TwoStageJob(
                nodes.isEmpty() ? processes : nodes.size(),
                Integer.parseInt(take(flags, "workers", "1")),
                Long.parseLong(take(flags, "rows", "5000000")),
                Partition.valueOf(take(flags, "hash", "finalizer").toUpperCase(Locale.ROOT))),
            Carrier.of(transport),
            transport,
            RowsLevel.valueOf(take(flags, "level", "many").toUpperCase(Locale.ROOT)),
            1 + repetitions,
            Integer.parseInt(take(flags, "warmup", "5")),
            List.of(take(flags, "hosts", "127.0.0.1").split(",")),
            Integer.parseInt(take(flags, "node", "0")),
            nodes);
    if (!flags.isEmpty()) {
      throw new IllegalArgumentException("unknown flags: " + flags.keySet());
    }
    return options;
  }

  private static String take(Map<String, String> flags, String name, String otherwise) {
    String value = flags.remove(name);
    return value == null ? otherwise : value;
  }

  /** The address of a node. */
  public InetSocketAddress address(int of) {
    String text = nodes.get(of);
    int colon = text.lastIndexOf(':');
    return new InetSocketAddress(
        text.substring(0, colon), Integer.parseInt(text.substring(colon + 1)));
  }
}
