package io.faro.examples.flink;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.trino.tpch.TpchColumn;
import io.trino.tpch.TpchEntity;
import io.trino.tpch.TpchTable;
import java.io.BufferedWriter;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.stream.Collectors;

/**
 * The tables of TPC-H as files that Flink reads, a folder for each table with a file for each part. They are made once for each scale
 * factor.
 */
final class TpchTables {
  private static final int PARTS = 4; // a file is read by one task

  private final Path folder;
  private final double scale;

  TpchTables(Path parent, double scale) {
    folder = parent.resolve("tpch-" + scale);
    this.scale = scale;
  }

  boolean areThere() {
    return Files.exists(folder);
  }

  /** Writes all tables, unless they are there. */
  void write() throws IOException {
    if (areThere()) {
      return;
    }
    Path unfinished = Files.createTempDirectory(Files.createDirectories(folder.getParent()), "tpch-");
    for (TpchTable<?> table : TpchTable.getTables()) {
      Path files = Files.createDirectories(unfinished.resolve(table.getTableName()));
      // Their generators make no parts.
      int parts = table == TpchTable.NATION || table == TpchTable.REGION ? 1 : PARTS;
      for (int part = 1; part <= parts; part++) {
        write(table, part, parts, files.resolve(part + ".csv"));
      }
    }
    Files.move(unfinished, folder, StandardCopyOption.ATOMIC_MOVE);
  }

  private void write(TpchTable<?> table, int part, int parts, Path file) throws IOException {
    try (BufferedWriter writer = Files.newBufferedWriter(file, UTF_8)) {
      for (TpchEntity row : table.createGenerator(scale, part, parts)) {
        String line = row.toLine();
        writer.write(line, 0, line.length() - 1); // a bar ends it
        writer.write('\n');
      }
    } catch (UncheckedIOException failed) {
      throw failed.getCause();
    }
  }

  /** {@code CREATE TABLE} for one of them. */
  String statement(TpchTable<?> table) {
    String columns = table.getColumns().stream().map(TpchTables::column).collect(Collectors.joining(", "));
    return "CREATE TABLE " + table.getTableName() + " (" + columns + ") WITH ('connector' = 'filesystem', 'path' = '"
        + folder.resolve(table.getTableName()).toUri()
        + "', 'format' = 'csv', 'csv.field-delimiter' = '|', 'csv.disable-quote-character' = 'true')";
  }

  private static String column(TpchColumn<?> column) {
    String type =
        switch (column.getType().getBase()) {
          case IDENTIFIER -> "BIGINT";
          case INTEGER -> "INT";
          case DATE -> "DATE";
          case DOUBLE -> "DECIMAL(15, 2)";
          case VARCHAR -> "STRING";
        };
    return column.getColumnName() + " " + type;
  }
}
