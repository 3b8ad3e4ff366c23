/** A cluster of Apache Flink on this machine whose exchanges go over Faro, and SQL for it. */
package io.faro.examples.flink;
