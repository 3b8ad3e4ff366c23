package io.faro;

/**
 * All settings of a session, with their units and defaults. Opening a session with a malformed
 * value or one out of range throws {@link Code#CONFIG_INVALID}, with the valid range in the
 * message.
 */
public enum Setting {
  /** Name of the cluster. Nodes with a different name are rejected. */
  CLUSTER_ID("cluster.id", "faro"),
  /** Number of this node: its position in cluster.nodes, from 0. */
  CLUSTER_NODE("cluster.node", "0"),
  /**
   * Addresses of all nodes (host:port or [ipv6]:port), separated by commas, ordered by node number.
   * With cluster.node_limit, - stands for a number that no node has.
   */
  CLUSTER_NODES("cluster.nodes", ""),
  /**
   * 0: the nodes are those of cluster.nodes. Otherwise nodes can be added and removed while the
   * session is open, with numbers below this one; all have the same cluster.workers, and queries
   * are to be declared.
   */
  CLUSTER_NODE_LIMIT("cluster.node_limit", "0"),
  /** Workers per node: one number for all nodes, or one number per node, separated by commas. */
  CLUSTER_WORKERS("cluster.workers", "1"),
  /**
   * Address to listen on. Empty: this node's entry in cluster.nodes; for an endpoint 127.0.0.1:0.
   * With port 0 the system chooses a port.
   */
  CLUSTER_LISTEN("cluster.listen", ""),
  /**
   * File with the secret that all nodes of the cluster share: at least 32 bytes, readable by its
   * owner only (chmod 600), or root's and readable by a group (chmod 640). The environment variable
   * FARO_SECRET can hold the secret instead. Empty: no secret.
   */
  SECURITY_SECRET_FILE("security.secret_file", ""),
  /**
   * TLS 1.3 between nodes, with a certificate on each side: off, on, or control (control
   * connections only; rows are not encrypted).
   */
  SECURITY_TLS("security.tls", "off"),
  /**
   * TLS certificate of this node (PEM), followed by any intermediate certificates. Its
   * subjectAltName must contain the host by which cluster.nodes names this node. Changes to the
   * certificate, key and authority files are picked up at run time.
   */
  SECURITY_CERTIFICATE("security.certificate", ""),
  /**
   * Private key of that certificate (PEM, no pass phrase), readable by its owner only (chmod 600),
   * or root's and readable by a group (chmod 640).
   */
  SECURITY_KEY("security.key", ""),
  /**
   * Certificates (PEM) of the authorities that sign the nodes' certificates. No other authorities
   * are trusted. Not needed where security.peers names certificates.
   */
  SECURITY_AUTHORITY("security.authority", ""),
  /**
   * Whom a certificate admits: host (security.authority has signed it for the host at which the
   * peer listens), authority (security.authority has signed it), or fingerprints of certificates,
   * separated by commas (only these, whoever has signed them): SHA-256, 64 hexadecimal digits each,
   * or SHA-1, 40; SHA-256 is to be preferred.
   */
  SECURITY_PEERS("security.peers", "host"),
  /**
   * 1: without a secret, also listen on addresses that other machines can reach; anyone who reaches
   * the port can then join. 0: listen on loopback only.
   */
  SECURITY_OPEN("security.open", "0"),
  /**
   * Folder that processes of this host see which do not share a network namespace, such as
   * containers that mount it: then they share memory, too, if they are the same user of one user
   * namespace. At most 62 bytes. Empty: none.
   */
  SHM_FOLDER("shm.folder", ""),
  /**
   * Transport of every link: shm, verbs, tcp, or auto (shm within a host; otherwise verbs if both
   * ends support it; otherwise tcp).
   */
  TRANSPORT("transport", "auto"),
  /**
   * Size of a ring; a power of two. A frame takes at most half of it. Unless it is set, the rings
   * of a link with one lane each way (both nodes have one worker), and all rings with lane.ends =
   * node, have twice as much.
   */
  RING_BYTES("ring.bytes", "32768"),
  /** Number of rings per lane. The shuffles of a query are spread over them by stage. */
  RING_PER_LANE("ring.per_lane", "2"),
  /**
   * Where lanes end: workers (one lane from each worker to each worker), node (one to each node,
   * whose workers share what comes by it: rings take less by the number of workers of a node, but
   * rows that are sent to several workers of one node by turns go in small frames), or both (rows
   * for one worker go by the lanes to workers, all others by those to nodes).
   */
  LANE_ENDS("lane.ends", "workers"),
  /**
   * Pending bytes in a ring that start a transfer without a flush. At most half of ring.bytes; a
   * smaller ring lowers the default to that.
   */
  TRANSFER_THRESHOLD_BYTES("transfer.threshold_bytes", "16384"),
  /** Largest row. A row above a quarter of a ring is sent as fragments. */
  ROW_LIMIT_BYTES("row.limit_bytes", "268435456"),
  /** Number of shuffles that a worker can have open at a time, over all its queries. */
  SHUFFLE_LIMIT("shuffle.limit", "64"),
  /**
   * Local address (IPv6 in brackets) that selects the RDMA device, port and GID that own it. Empty:
   * the address at which others reach this node or endpoint.
   */
  VERBS_ADDRESS("verbs.address", ""),
  /**
   * Selects the RDMA device by name: an RDMA device (mlx5_0, or mlx5_0:2 for its second port) or a
   * network interface (eth1: its first IPv4 address).
   */
  VERBS_DEVICE("verbs.device", ""),
  /**
   * If verbs.device names an RDMA device: the index of the GID to use. Empty: the first RoCEv2 GID
   * with an IPv4 address.
   */
  VERBS_GID_INDEX("verbs.gid_index", ""),
  /**
   * How a receiver is notified of data: send (by batched messages), immediate (with the data
   * itself; not on iWARP), or auto (immediate if both ends support it).
   */
  VERBS_NOTIFY("verbs.notify", "auto"),
  /**
   * When a receiver is notified of data: chained (the notification is posted together with the
   * data) or paper (after the write has completed; by messages).
   */
  VERBS_ORDER("verbs.order", "chained"),
  /**
   * What shares a queue pair: link (all lanes between two nodes), worker (all lanes of a worker),
   * or lane (a lane and the lane in the opposite direction).
   */
  VERBS_QUEUE_PAIRS("verbs.queue_pairs", "link"),
  /**
   * Receive buffers posted per queue pair, 512 bytes each. The peer can have this many messages in
   * flight.
   */
  VERBS_RECEIVES("verbs.receives", "64"),
  /** Work requests that a queue pair can have in flight. Each has 512 bytes for a message. */
  VERBS_SEND_QUEUE("verbs.send_queue", "256"),
  /**
   * Writes and messages up to this size are copied into the work request, if the device supports
   * it. At least 64 on iWARP.
   */
  VERBS_INLINE_BYTES("verbs.inline_bytes", "256"),
  /**
   * Traffic class of RDMA packets (the TOS byte; its upper six bits are the DSCP). 0: the system
   * default.
   */
  VERBS_TRAFFIC_CLASS("verbs.traffic_class", "0"),
  /** Service level of RDMA packets, 0 to 15. Empty: chosen by rdma_cm. Not on iWARP. */
  VERBS_SERVICE_LEVEL("verbs.service_level", ""),
  /**
   * Path MTU, the payload of one packet in bytes: 256, 512, 1024, 2048 or 4096, but at most the
   * active MTU of the port. 0: the active MTU. Not on iWARP.
   */
  VERBS_MTU("verbs.mtu", "0"),
  /**
   * Time to wait for an acknowledgement before a packet is sent again: 4.096 us * 2^timeout. Unless
   * it is set, the longest with which a device gives up within liveness.timeout_ms. 0: chosen by
   * rdma_cm. Not on iWARP.
   */
  VERBS_TIMEOUT("verbs.timeout", "18"),
  /**
   * Number of times a packet is sent again before the connection is broken. Unless it is set, fewer
   * if verbs.timeout is set to more than an eighth of liveness.timeout_ms. Not on iWARP.
   */
  VERBS_RETRY_COUNT("verbs.retry_count", "7"),
  /**
   * Number of times a message is sent again if the peer has no receive buffer posted, which flow
   * control prevents. 7: without limit. Not on iWARP.
   */
  VERBS_RNR_RETRY_COUNT("verbs.rnr_retry_count", "7"),
  /** Code of the delay before such a message is sent again (12: 0.64 ms). Not on iWARP. */
  VERBS_MIN_RNR_TIMER("verbs.min_rnr_timer", "12"),
  /**
   * 1: the network thread polls continuously, which takes a whole processor. 0: it sleeps until
   * there is work.
   */
  VERBS_BUSY_POLL("verbs.busy_poll", "0"),
  /** 1: allocate rings in huge pages, which must be available (vm.nr_hugepages). */
  VERBS_HUGE_PAGES("verbs.huge_pages", "0"),
  /**
   * Path of libfaro_verbs.so. Empty: next to libfaro or the program, or in the search path of the
   * loader.
   */
  VERBS_MODULE("verbs.module", ""),
  /**
   * Who may send rows to whom over tcp, so that several nodes do not send to one at a time: off
   * (all, always), or phases (in turns, once there is enough to send). No effect over shared
   * memory, and with fewer than three nodes.
   */
  NETWORK_SCHEDULE("network.schedule", "off"),
  /**
   * With network.schedule = phases: after this much the turn passes to the next node. No more than
   * the rings to a node hold is sent at once.
   */
  NETWORK_TURN_BYTES("network.turn_bytes", "4194304"),
  /**
   * With network.schedule = phases: a node that has less than this to send, to all others together,
   * sends it without a turn. Unless it is set, a quarter of network.turn_bytes.
   */
  NETWORK_SCHEDULE_FROM("network.schedule_from", "1048576"),
  /**
   * With network.schedule = phases: a turn passes when nothing of it has moved for this long.
   */
  NETWORK_TURN_MS("network.turn_ms", "10"),
  /**
   * Most memory that this node may take for its rings, links and channels, all that it has for
   * these included. 0: the limits of the machine.
   */
  MEMORY_LIMIT_BYTES("memory.limit_bytes", "0"),
  /** Memory for spilled rows, per node. Rows beyond it go to the overflow file. */
  OVERFLOW_MEMORY_BYTES("overflow.memory_bytes", "67108864"),
  /**
   * Maximum size of this node's overflow file. When it is full, the query that uses most of it
   * fails.
   */
  OVERFLOW_FILE_BYTES("overflow.file_bytes", "8589934592"),
  /**
   * Most that one query may spill on this node, memory and file together; a query beyond it fails.
   * 0: no limit of its own.
   */
  OVERFLOW_QUERY_LIMIT_BYTES("overflow.query_limit_bytes", "0"),
  /** Folder of the overflow file. The file has no name and disappears with the process. */
  OVERFLOW_FOLDER("overflow.folder", "/tmp"),
  /**
   * Most memory that the operators of this node (aggregations, joins) take together, as they need
   * it. What they have beyond it is spilled through overflow.
   */
  OPERATOR_MEMORY_BYTES("operator.memory_bytes", "268435456"),
  /** Time limit for connecting the whole cluster, including nodes that start late. */
  CONNECT_TIMEOUT_MS("connect.timeout_ms", "30000"),
  /**
   * Whom open waits for: all (every node of cluster.nodes), or none (it returns at once, and nodes
   * are linked as they come; with cluster.node_limit, when they are needed).
   */
  CONNECT_WAIT_FOR("connect.wait_for", "all"),
  /** How long close waits for peers and for calls that are still inside the session. */
  CLOSE_TIMEOUT_MS("close.timeout_ms", "5000"),
  /**
   * A peer that is silent for this long is declared lost. Heartbeats are sent four times as often.
   */
  LIVENESS_TIMEOUT_MS("liveness.timeout_ms", "10000"),
  /**
   * How long a link whose connection has broken may take to be mended while both processes live;
   * until then queries wait. A peer whose process has died is lost at once. 0: a link whose
   * connection breaks is lost.
   */
  LINK_MEND_MS("link.mend_ms", "5000"),
  /**
   * With cluster.node_limit: a link that no query has needed for this long is let go, with its
   * memory, if both nodes agree; the next query has it made again. What the node with the lower
   * number has counts. 0: never.
   */
  LINK_IDLE_MS("link.idle_ms", "0"),
  /**
   * A query fails if rows arrive for a shuffle that no worker of this node opens within this time.
   */
  QUERY_UNOPENED_TIMEOUT_MS("query.unopened_timeout_ms", "60000"),
  /**
   * Folder of the file with the counters of this node or endpoint, which faro stat, top and explain
   * read. The file is removed at close. Empty: no file.
   */
  COUNTERS_FOLDER("counters.folder", "/dev/shm"),
  /**
   * Address (host:port) that serves the counters of this node or endpoint to Prometheus at GET
   * /metrics. One that other hosts reach needs metrics.token_file, or security.tls, with which it
   * is served by HTTPS. Empty: none. With port 0 the system chooses a port, which is logged.
   */
  METRICS_LISTEN("metrics.listen", ""),
  /**
   * File with the token that whoever reads metrics.listen has to show (Authorization: Bearer): at
   * least 32 bytes, readable by its owner only (chmod 600), or root's and readable by a group
   * (chmod 640). Empty: none, and on addresses that other hosts reach a certificate of
   * security.authority is asked for.
   */
  METRICS_TOKEN_FILE("metrics.token_file", ""),
  /**
   * Implementation of the loops that hash and scatter many rows at a time: scalar, avx2, avx512, or
   * auto (the fastest, measured once per row width and number of receivers). faro doctor shows
   * them.
   */
  KERNEL_SCATTER("kernel.scatter", "auto"),
  /**
   * CPUs on which the network thread runs, as taskset has them: 0-3,8. Those of the socket of a
   * network card are told by faro doctor. Empty: any that the process may use.
   */
  NETWORK_CPUS("network.cpus", ""),
  /**
   * Number of times a waiting worker, or poller of an endpoint, yields the processor before it
   * sleeps. A worker whose last wait was long yields at most twice.
   */
  WAIT_YIELDS("wait.yields", "20"),
  /** Longest sleep of a waiting worker. It matters only if a doorbell is lost. */
  WAIT_SLEEP_MS("wait.sleep_ms", "1000"),
  /**
   * Time without progress before a waiting worker spills rows that are not being received. Doubles
   * within a wait, up to 16 times as long. Where a program sends before it receives, it does not
   * count while memory is plenty; for the input of an operator whose output waits the longest
   * counts.
   */
  DRAIN_DELAY_US("drain.delay_us", "1000"),
  /**
   * A channel that carries no frame either way for this long is drained and closed, up to a quarter
   * of it later. 0: never.
   */
  CHANNEL_IDLE_MS("channel.idle_ms", "0"),
  /**
   * How many channels are to fit memory.limit_bytes at a time. Their rings are made so small, where
   * this side does not say how large: at least 4 KiB. 0: rings do not follow the limit.
   */
  CHANNEL_EXPECTED("channel.expected", "0");

  private final String key;
  private final String defaultValue;

  Setting(String key, String defaultValue) {
    this.key = key;
    this.defaultValue = defaultValue;
  }

  /** The name in a configuration file, for example {@code "ring.bytes"}. */
  public String key() {
    return key;
  }

  /** The default value as text. */
  public String defaultValue() {
    return defaultValue;
  }
}
