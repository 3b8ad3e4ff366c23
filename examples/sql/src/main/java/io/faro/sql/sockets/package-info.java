/**
 * What {@link io.faro.sql.exec.Carrier} is without Faro: the sockets of {@code java/lab/sockets}, which the two-stage
 * benchmark compares with, too. Here to compare with; an engine that uses Faro needs none of it.
 *
 * <pre>
 *   SocketsCarrier   of a node: its sockets
 *   SocketShuffles   a query at a worker
 *     SocketShuffle  an exchange of it: the rows that have come, and who has ended
 * </pre>
 */
package io.faro.sql.sockets;
