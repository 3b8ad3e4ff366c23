/** Runs the network benchmarks that Flink publishes, and says what they cost. */
package io.faro.flink.benchmark;
