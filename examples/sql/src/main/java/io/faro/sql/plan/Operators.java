package io.faro.sql.plan;

/** Whose operators group rows. */
public enum Operators {
  /** Faro's, where they have the types and functions: groups lie outside the heap, and are spilled. */
  FARO,
  /** Calcite's: groups lie in the heap. */
  CALCITE
}
