/** From SQL to a plan with exchanges, by Calcite. */
package io.faro.sql.plan;
