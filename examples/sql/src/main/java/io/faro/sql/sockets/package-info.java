/**
 * What {@link io.faro.sql.exec.Carrier} is without Faro: Java NIO sockets, tuned as those of {@code java/lab/bench} are.
 * Here to compare with; an engine that uses Faro needs none of it.
 *
 * <pre>
 *   SocketsCarrier   of a node: connects, holds its workers
 *   SocketWorker     a worker: polls what comes in, waits
 *     Peer           the way to another worker
 *       Connection   in another process: a socket and its two buffers
 *       LocalPeer    in this one: blocks of rows in a LocalLane
 *   SocketShuffles   a query at a worker
 *     SocketShuffle  an exchange of it: the rows that have come, and who has ended
 * </pre>
 *
 * <p>As in the paper's sockets middleware there is a socket for each pair of workers of different processes, workers
 * do all input and output themselves, and all exchanges share the buffers.
 */
package io.faro.sql.sockets;
