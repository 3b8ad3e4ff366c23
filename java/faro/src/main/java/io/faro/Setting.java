package io.faro;

/**
 * Every setting of a session: what it does, its unit, and its default. A value that is malformed or out
 * of range is refused when the session is opened, by an error that names the range.
 */
public enum Setting {
  /** Name of the cluster; nodes with another name are refused. */
  CLUSTER_ID("cluster.id", "faro"),
  /** Number of this node, its place in cluster.nodes. */
  CLUSTER_NODE("cluster.node", "0"),
  /**
   * Addresses of all nodes, host:port or [ipv6]:port, separated by commas, in the order of their
   * numbers.
   */
  CLUSTER_NODES("cluster.nodes", ""),
  /** Workers per node: one number for all nodes, or one per node separated by commas. */
  CLUSTER_WORKERS("cluster.workers", "1"),
  /**
   * Address to listen on; empty: this node's own entry of cluster.nodes. Port 0 lets the system
   * choose.
   */
  CLUSTER_LISTEN("cluster.listen", ""),
  /**
   * File of the secret that all nodes of the cluster share, at least 32 bytes, for its owner only
   * (chmod 600); or put the secret itself into the environment variable FARO_SECRET. Empty: no
   * secret.
   */
  SECURITY_SECRET_FILE("security.secret_file", ""),
  /**
   * TLS 1.3 between nodes, each with a certificate: off, on, or control (control connections
   * alone: rows travel in the clear).
   */
  SECURITY_TLS("security.tls", "off"),
  /**
   * This node's certificate for TLS, PEM, followed by those between it and the authority; its
   * subjectAltName has the host by which cluster.nodes names this node. Certificate, key and
   * authority are read again when they change.
   */
  SECURITY_CERTIFICATE("security.certificate", ""),
  /**
   * Private key of that certificate, PEM, without a pass phrase, for its owner only (chmod 600).
   */
  SECURITY_KEY("security.key", ""),
  /**
   * Certificates of the authorities that sign the nodes' certificates, PEM; no others are trusted.
   */
  SECURITY_AUTHORITY("security.authority", ""),
  /**
   * 1: without a secret, listen also on addresses that other machines may reach; anyone who
   * reaches the port can then join. 0: only on loopback.
   */
  SECURITY_OPEN("security.open", "0"),
  /**
   * Transport of every link: auto (shm on one host, else verbs where both ends have it, else tcp),
   * shm, verbs or tcp.
   */
  TRANSPORT("transport", "auto"),
  /** Size of one ring; a power of two. A frame takes at most half of it. */
  RING_BYTES("ring.bytes", "32768"),
  /** Rings of a lane; the shuffles of a query spread over them by stage. */
  RING_PER_LANE("ring.per_lane", "2"),
  /**
   * Bytes pending in a ring before a transfer starts without a flush; at most half of ring.bytes,
   * which the default follows.
   */
  TRANSFER_THRESHOLD_BYTES("transfer.threshold_bytes", "16384"),
  /** Largest row; rows beyond a quarter ring travel as fragments. */
  ROW_LIMIT_BYTES("row.limit_bytes", "268435456"),
  /** Shuffles that one worker may have open at a time, over all its queries. */
  SHUFFLE_LIMIT("shuffle.limit", "64"),
  /**
   * Local address (IPv6 in brackets) that chooses the RDMA device, the one that owns it, with port
   * and GID; empty: that of this node in cluster.nodes.
   */
  VERBS_ADDRESS("verbs.address", ""),
  /**
   * Chooses the RDMA device by name: an RDMA device (mlx5_0, or mlx5_0:2 for its second port) or a
   * network interface (eth1), for its first IPv4 address.
   */
  VERBS_DEVICE("verbs.device", ""),
  /**
   * With an RDMA device in verbs.device: the GID whose address is used; empty: the first of RoCEv2
   * with an IPv4 address.
   */
  VERBS_GID_INDEX("verbs.gid_index", ""),
  /**
   * How a receiver learns of data: send (batched messages), immediate (with the data itself; not
   * on iWARP) or auto (immediate where both ends can).
   */
  VERBS_NOTIFY("verbs.notify", "auto"),
  /**
   * When a receiver learns of data: chained (posted together with the data) or paper (after the
   * write of the data has completed; by messages).
   */
  VERBS_ORDER("verbs.order", "chained"),
  /**
   * What shares a queue pair: link (all lanes between two nodes), worker (all lanes of a worker)
   * or lane (a lane and the lane back).
   */
  VERBS_QUEUE_PAIRS("verbs.queue_pairs", "link"),
  /**
   * Receives posted ahead per queue pair, each of 512 bytes; the peer can have that many messages
   * in flight.
   */
  VERBS_RECEIVES("verbs.receives", "64"),
  /** Work requests that a queue pair can have in flight, each with 512 bytes for a message. */
  VERBS_SEND_QUEUE("verbs.send_queue", "256"),
  /**
   * Writes and messages up to this size are copied into the work request, as far as the device
   * takes it; on iWARP at least 64.
   */
  VERBS_INLINE_BYTES("verbs.inline_bytes", "256"),
  /**
   * Traffic class of RDMA packets (the TOS byte, DSCP in its upper six bits); 0: the system's
   * default.
   */
  VERBS_TRAFFIC_CLASS("verbs.traffic_class", "0"),
  /** Service level of RDMA packets, 0 to 15; empty: what rdma_cm chooses. Not on iWARP. */
  VERBS_SERVICE_LEVEL("verbs.service_level", ""),
  /**
   * Path MTU, the bytes of rows and messages in one packet: 256, 512, 1024, 2048 or 4096, but not
   * more than the port has now; 0: what the port has. Not on iWARP.
   */
  VERBS_MTU("verbs.mtu", "0"),
  /**
   * Time for an acknowledgement, 4.096 us * 2^timeout, before a packet is sent again; 0: what
   * rdma_cm chooses. Not on iWARP.
   */
  VERBS_TIMEOUT("verbs.timeout", "18"),
  /** Times that a packet is sent again before its peer is lost. Not on iWARP. */
  VERBS_RETRY_COUNT("verbs.retry_count", "7"),
  /**
   * Times that a message is sent again if no receive is posted for it, which credits prevent; 7:
   * without limit. Not on iWARP.
   */
  VERBS_RNR_RETRY_COUNT("verbs.rnr_retry_count", "7"),
  /** Code of the time that such a message waits (12: 0.64 ms). Not on iWARP. */
  VERBS_MIN_RNR_TIMER("verbs.min_rnr_timer", "12"),
  /**
   * 1: the network thread polls all the time, at the cost of a processor; 0: it sleeps until there
   * is work.
   */
  VERBS_BUSY_POLL("verbs.busy_poll", "0"),
  /** 1: rings in huge pages, which must be available (vm.nr_hugepages). */
  VERBS_HUGE_PAGES("verbs.huge_pages", "0"),
  /** Path of libfaro_verbs.so; empty: next to libfaro or the program, or where the loader looks. */
  VERBS_MODULE("verbs.module", ""),
  /**
   * Most memory that the rings of this node may take at open; 0: what the machine's limits allow.
   */
  MEMORY_LIMIT_BYTES("memory.limit_bytes", "0"),
  /** Memory for spilled rows, per node; beyond it they go to a file. */
  OVERFLOW_MEMORY_BYTES("overflow.memory_bytes", "67108864"),
  /**
   * Size to which the overflow file of this node may grow; beyond it the query that uses most
   * fails.
   */
  OVERFLOW_FILE_BYTES("overflow.file_bytes", "8589934592"),
  /**
   * Most that one query may have spilled on this node, in memory and file together; beyond it that
   * query fails. 0: as much as the node has.
   */
  OVERFLOW_QUERY_LIMIT_BYTES("overflow.query_limit_bytes", "0"),
  /** Folder for the overflow file; the file has no name and vanishes with the process. */
  OVERFLOW_FOLDER("overflow.folder", "/tmp"),
  /** Time for connecting the whole cluster, including nodes that start late. */
  CONNECT_TIMEOUT_MS("connect.timeout_ms", "30000"),
  /** Time that close waits for peers and for calls still inside the session. */
  CLOSE_TIMEOUT_MS("close.timeout_ms", "5000"),
  /** A peer that is silent for this long is lost; heartbeats are sent four times as often. */
  LIVENESS_TIMEOUT_MS("liveness.timeout_ms", "10000"),
  /** Rows for a shuffle that no worker here opens within this time fail their query. */
  QUERY_UNOPENED_TIMEOUT_MS("query.unopened_timeout_ms", "60000"),
  /**
   * Folder for the file of this node's counters, which faro stat, top and explain read; removed at
   * close. Empty: no file.
   */
  COUNTERS_FOLDER("counters.folder", "/dev/shm"),
  /**
   * Loopback address, host:port, at which this node answers GET /metrics with its counters for
   * Prometheus; empty: nowhere. Port 0 lets the system choose, and the log says which.
   */
  METRICS_LISTEN("metrics.listen", ""),
  /**
   * Loops that hash and scatter rows sent many at a time: scalar, avx2, avx512, or auto (the
   * fastest one, found by a calibration once per row width and number of receivers); faro doctor
   * shows them.
   */
  KERNEL_SCATTER("kernel.scatter", "auto"),
  /** Times that a waiting worker yields the processor before it sleeps. */
  WAIT_YIELDS("wait.yields", "20"),
  /** Longest single sleep of a waiting worker; only a lost doorbell makes it matter. */
  WAIT_SLEEP_MS("wait.sleep_ms", "1000"),
  /**
   * Time without progress before a waiting worker spills unwanted rows; doubles within one wait,
   * at most 16 times as long.
   */
  DRAIN_DELAY_US("drain.delay_us", "1000");

  private final String key;
  private final String defaultValue;

  Setting(String key, String defaultValue) {
    this.key = key;
    this.defaultValue = defaultValue;
  }

  /** The name, as in a configuration file: {@code "ring.bytes"}. */
  public String key() {
    return key;
  }

  /** The value where nothing else is set, as text. */
  public String defaultValue() {
    return defaultValue;
  }
}
