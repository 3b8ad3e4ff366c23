/** A plan at the workers of one node, and its exchanges over Faro. */
package io.faro.sql.exec;
