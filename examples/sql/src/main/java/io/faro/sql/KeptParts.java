package io.faro.sql;

import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** Parts that are made when they are first asked for, and kept. Threads: any. */
final class KeptParts implements Table.Parts {
  private record Key(int part, int parts) {}

  private final Table.Parts made;
  private final Map<Key, Iterable<Object[]>> kept = new ConcurrentHashMap<>();

  KeptParts(Table.Parts made) {
    this.made = made;
  }

  @Override
  public Iterable<Object[]> rows(int part, int parts) {
    return kept.computeIfAbsent(new Key(part, parts), key -> made.rows(part, parts));
  }
}
