package io.faro;

/** Changes of the nodes of a session; {@link Session} says what they do. */
final class NodeChanges {
  private NodeChanges() {}

  static void check(int node, int nodeCount) {
    if (node < 0 || node >= nodeCount) {
      throw new FaroException(
          Code.INVALID_ARGUMENT, "node " + node + " does not exist (0 … " + (nodeCount - 1) + ")");
    }
  }

  static void add(long session, int node, String address) {
    FaroException.checked(add(session, node, Utf8.whole("the address of a node", address)));
  }

  static native int drain(long session, int node);

  static native int remove(long session, int node);

  private static native int add(long session, int node, byte[] address);
}
