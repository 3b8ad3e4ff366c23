/** Tables in memory, of which each worker has a part. */
package io.faro.sql.tables;
