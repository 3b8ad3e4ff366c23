/** Runs test classes of Flink, with its default shuffle service replaced, and counts what goes over which. */
package io.faro.flink.conformance;
