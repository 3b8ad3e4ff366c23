/** A process for each node of a cluster on this machine. */
package io.faro.sql.cluster;
