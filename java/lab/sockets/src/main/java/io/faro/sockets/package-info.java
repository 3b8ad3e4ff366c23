/**
 * Workers that push rows to each other over Java NIO sockets: the baseline that Faro is compared with, in the two-stage
 * benchmark and in the SQL engine.
 *
 * <pre>
 *   SocketsMesh      of a node: connects, holds its workers
 *   SocketsWorker    a worker: polls what comes in, waits
 *     Peer           the way to another worker
 *       Connection   in another process: a socket and its two buffers
 *       LocalPeer    in this one: blocks of rows in a LocalLane
 *   SocketsQuery     what runs at a worker, with a StageRows for each of its stages: its user's
 * </pre>
 *
 * <p>As in the paper's sockets middleware there is a socket for each pair of workers of different processes, workers
 * do all input and output themselves, and all stages share the buffers. Other than there, one header goes in front of a
 * run of rows of a stage, and not of each row: that takes less.
 */
package io.faro.sockets;
