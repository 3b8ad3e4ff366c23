/** The shell: what is typed, and what comes of it. */
package io.faro.sql.shell;
