package io.faro.sql.tables;

import io.faro.sql.SqlException;
import java.io.IOException;
import java.io.Reader;
import java.io.UncheckedIOException;
import java.math.BigDecimal;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.apache.calcite.util.ImmutableBitSet;
import org.apache.commons.csv.CSVFormat;
import org.apache.commons.csv.CSVRecord;
import org.apache.commons.csv.QuoteMode;

/**
 * Tables from files {@code <table>.csv} of a folder that all nodes see. The first line of each has for every
 * column its name and SQL type, as in {@code id integer not null,"price decimal(15,2)",day date}; an empty
 * field without quotes is null. Worker i of n has row i, i + n and so on.
 */
public final class CsvTables {
  private static final String SUFFIX = ".csv";
  private static final CSVFormat FORMAT =
      CSVFormat.DEFAULT.builder().setNullString("").setQuoteMode(QuoteMode.ALL_NON_NULL).build();

  private CsvTables() {}

  /**
   * By name.
   *
   * @throws SqlException if there are none, or what they begin with is not understood
   */
  public static Map<String, Table> of(Path folder) {
    Map<String, Table> tables = new TreeMap<>();
    try (Stream<Path> files = Files.list(folder)) {
      files
          .filter(file -> file.toString().endsWith(SUFFIX))
          .forEach(file -> tables.put(file.getFileName().toString().replace(SUFFIX, ""), table(file)));
    } catch (IOException e) {
      throw new SqlException("the folder of tables cannot be read: " + e, e);
    }
    if (tables.isEmpty()) {
      throw new SqlException("there is no file of a table in " + folder, null);
    }
    return tables;
  }

  private static Table table(Path file) {
    try (Reader reader = Files.newBufferedReader(file);
        Stream<String> lines = Files.lines(file)) {
      List<Attribute> attributes = new ArrayList<>();
      FORMAT.parse(reader).iterator().next().forEach(column -> attributes.add(Attribute.parse(column)));
      return new Table(
          attributes,
          ImmutableBitSet.of(),
          lines.count(),
          new CachedPartitions((part, parts) -> rows(file, attributes, part, parts)));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static List<Object[]> rows(Path file, List<Attribute> attributes, int part, int parts) {
    List<Object[]> rows = new ArrayList<>();
    try (Reader reader = Files.newBufferedReader(file)) {
      for (CSVRecord line : FORMAT.parse(reader)) {
        long number = line.getRecordNumber() - 2; // the first is 1, and has the names
        if (number >= 0 && number % parts == part) {
          rows.add(row(file, line, attributes));
        }
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return rows;
  }

  private static Object[] row(Path file, CSVRecord line, List<Attribute> attributes) {
    Object[] row = new Object[attributes.size()];
    for (int i = 0; i < row.length; i++) {
      Attribute attribute = attributes.get(i);
      try {
        row[i] = value(attribute, line.get(i));
      } catch (RuntimeException e) {
        String where = file.getFileName() + ", row " + line.getRecordNumber() + ", " + attribute.name();
        throw new SqlException(where + ": " + e.getMessage(), e);
      }
    }
    return row;
  }

  private static Object value(Attribute attribute, String text) {
    if (text == null) {
      if (!attribute.nullable()) {
        throw new IllegalArgumentException("null");
      }
      return null;
    }
    return switch (attribute.type()) {
      case BOOLEAN -> Boolean.valueOf(text);
      case INTEGER -> Integer.valueOf(text);
      case BIGINT -> Long.valueOf(text);
      case DOUBLE -> Double.valueOf(text);
      case DECIMAL -> new BigDecimal(text).setScale(attribute.scale());
      case DATE -> (int) LocalDate.parse(text).toEpochDay();
      case TIMESTAMP -> LocalDateTime.parse(text.replace(' ', 'T')).toInstant(ZoneOffset.UTC).toEpochMilli();
      default -> text;
    };
  }
}
