package io.faro.sql.tables;

import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** Partitions that are made when they are first asked for, and cached. Threads: any. */
final class CachedPartitions implements Table.Partitions {
  private record Key(int part, int parts) {}

  private final Table.Partitions made;
  private final Map<Key, Iterable<Object[]>> kept = new ConcurrentHashMap<>();

  CachedPartitions(Table.Partitions made) {
    this.made = made;
  }

  @Override
  public Iterable<Object[]> rows(int part, int parts) {
    return kept.computeIfAbsent(new Key(part, parts), key -> made.rows(part, parts));
  }
}
