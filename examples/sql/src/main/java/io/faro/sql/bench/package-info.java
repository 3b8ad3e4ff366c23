/** Queries measured, over Faro and over sockets. */
package io.faro.sql.bench;
