package io.faro;

import java.util.List;
import java.util.Objects;

/** Lists that callers give. */
final class Nulls {
  private Nulls() {}

  /**
   * A copy of the list.
   *
   * @throws NullPointerException that names the argument, or its element, that is null
   */
  static <T> List<T> none(List<T> list, String name) {
    Objects.requireNonNull(list, name);
    int i = 0;
    for (T each : list) {
      if (each == null) {
        throw new NullPointerException(name + "[" + i + "]");
      }
      i++;
    }
    return List.copyOf(list);
  }
}
