package io.faro;

/**
 * Every setting of a session, with the names and defaults of the native table ({@code faro config}
 * prints it with units, ranges and help); a test compares the two.
 */
public enum Setting {
  /** Name of the cluster; nodes of another name are refused. */
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
  /** Transport of every link: auto (shm on one host, else tcp), shm or tcp. */
  TRANSPORT("transport", "auto"),
  /** Size of one ring; a power of two. A frame takes at most a quarter of it. */
  RING_BYTES("ring.bytes", "32768"),
  /** Rings of a lane; the shuffles of a query spread over them by stage. */
  RING_PER_LANE("ring.per_lane", "2"),
  /** Bytes pending in a ring before a transfer starts without a flush; at most half a ring. */
  TRANSFER_THRESHOLD_BYTES("transfer.threshold_bytes", "16384"),
  /** Largest row; rows beyond a quarter ring travel as fragments. */
  ROW_LIMIT_BYTES("row.limit_bytes", "268435456"),
  /** Shuffles that one worker may have open at a time, over all its queries. */
  SHUFFLE_LIMIT("shuffle.limit", "64"),
  /**
   * Most memory that the rings of this node may take at open; 0: what the machine's limits
   * allow.
   */
  MEMORY_LIMIT_BYTES("memory.limit_bytes", "0"),
  /** Memory for rows set aside, per node; beyond it they go to a file. */
  OVERFLOW_MEMORY_BYTES("overflow.memory_bytes", "67108864"),
  /**
   * Size to which the overflow file of this node may grow; beyond it the query that uses most
   * fails.
   */
  OVERFLOW_FILE_BYTES("overflow.file_bytes", "8589934592"),
  /** Folder for the overflow file; the file has no name and vanishes with the process. */
  OVERFLOW_FOLDER("overflow.folder", "/tmp"),
  /** Time for connecting the whole cluster, slow starters included. */
  CONNECT_TIMEOUT_MS("connect.timeout_ms", "30000"),
  /** Time that close waits for peers and for calls still inside the session. */
  CLOSE_TIMEOUT_MS("close.timeout_ms", "5000"),
  /** A peer that is silent for this long is lost; heartbeats are sent four times as often. */
  LIVENESS_TIMEOUT_MS("liveness.timeout_ms", "10000"),
  /** Rows for a shuffle that no worker here opens within this time fail their query. */
  QUERY_UNOPENED_TIMEOUT_MS("query.unopened_timeout_ms", "60000"),
  /** Times that a waiting worker yields the processor before it sleeps. */
  WAIT_YIELDS("wait.yields", "20"),
  /** Longest single sleep of a waiting worker; only a lost doorbell makes it matter. */
  WAIT_SLEEP_MS("wait.sleep_ms", "1000"),
  /**
   * Time without progress before a waiting worker sets unwanted rows aside; doubles within one
   * wait, at most 16 times as long.
   */
  DRAIN_PATIENCE_US("drain.patience_us", "1000");

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
