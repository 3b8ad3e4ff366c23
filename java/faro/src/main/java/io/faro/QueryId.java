package io.faro;

/**
 * Names a query over the life of a cluster; never recurs. Given out by {@link Session#beginQuery} on
 * one node and carried by the engine to the others together with the plan.
 *
 * @param counter counted by the issuer, from 1
 * @param incarnation of the issuer, drawn when its process joined
 * @param issuer node number
 */
public record QueryId(long counter, long incarnation, int issuer) {
  /** {@code "0:17"}: issuer and counter. */
  @Override
  public String toString() {
    return issuer + ":" + counter;
  }
}
