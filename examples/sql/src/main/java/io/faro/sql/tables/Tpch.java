package io.faro.sql.tables;

import static io.faro.sql.tables.Attribute.date;
import static io.faro.sql.tables.Attribute.decimal;
import static io.faro.sql.tables.Attribute.integer;
import static io.faro.sql.tables.Attribute.text;

import io.trino.tpch.CustomerGenerator;
import io.trino.tpch.Distributions;
import io.trino.tpch.LineItemGenerator;
import io.trino.tpch.NationGenerator;
import io.trino.tpch.OrderGenerator;
import io.trino.tpch.PartGenerator;
import io.trino.tpch.PartSupplierGenerator;
import io.trino.tpch.RegionGenerator;
import io.trino.tpch.SupplierGenerator;
import io.trino.tpch.TextPool;
import io.trino.tpch.TpchColumn;
import io.trino.tpch.TpchEntity;
import io.trino.tpch.TpchTable;
import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.calcite.util.ImmutableBitSet;

/**
 * The tables of TPC-H, generated: each worker makes its own part, and nobody else's.
 *
 * <p>Only the comments are not those of the benchmark: they are cut from 4 MiB of text rather than from 300, which
 * every process would have to make and hold.
 */
public final class Tpch {
  private static final Distributions WORDS = Distributions.getDefaultDistributions();
  private static final TextPool TEXTS = new TextPool(4 << 20, WORDS);

  private Tpch() {}

  /** All eight tables at a scale factor; 0.01 are 60 000 line items. */
  public static Map<String, Table> tables(double scale) {
    Map<String, Table> tables = new LinkedHashMap<>();
    for (TpchTable<?> table : TpchTable.getTables()) {
      tables.put(table.getTableName(), table(table, scale));
    }
    return tables;
  }

  private static <E extends TpchEntity> Table table(TpchTable<E> table, double scale) {
    List<TpchColumn<E>> columns = table.getColumns();
    List<Attribute> attributes = new ArrayList<>();
    columns.forEach(column -> attributes.add(attribute(column)));
    return new Table(
        attributes,
        key(table),
        rowCount(table, scale),
        new CachedPartitions((part, parts) -> make(table, columns, scale, part, parts)));
  }

  private static <E extends TpchEntity> List<Object[]> make(
      TpchTable<E> table, List<TpchColumn<E>> columns, double scale, int part, int parts) {
    List<Object[]> rows = new ArrayList<>();
    // Nations and regions are the first worker's: their generator makes no parts.
    boolean whole = table == TpchTable.NATION || table == TpchTable.REGION;
    if (whole && part > 0) {
      return rows;
    }
    for (TpchEntity entity : generator(table.getTableName(), scale, part + 1, parts)) {
      @SuppressWarnings("unchecked") // the generator is this table's
      E row = (E) entity;
      rows.add(columns.stream().map(column -> value(column, row)).toArray());
    }
    return rows;
  }

  private static Iterable<? extends TpchEntity> generator(String table, double scale, int part, int parts) {
    return switch (table) {
      case "customer" -> new CustomerGenerator(scale, part, parts, WORDS, TEXTS);
      case "orders" -> new OrderGenerator(scale, part, parts, WORDS, TEXTS);
      case "lineitem" -> new LineItemGenerator(scale, part, parts, WORDS, TEXTS);
      case "part" -> new PartGenerator(scale, part, parts, WORDS, TEXTS);
      case "partsupp" -> new PartSupplierGenerator(scale, part, parts, TEXTS);
      case "supplier" -> new SupplierGenerator(scale, part, parts, WORDS, TEXTS);
      case "nation" -> new NationGenerator(WORDS, TEXTS);
      case "region" -> new RegionGenerator(WORDS, TEXTS);
      default -> throw new AssertionError(table);
    };
  }

  private static Attribute attribute(TpchColumn<?> column) {
    String name = column.getColumnName();
    return switch (column.getType().getBase()) {
      case INTEGER, IDENTIFIER -> integer(name);
      case DOUBLE -> decimal(name, 15, 2);
      case DATE -> date(name);
      case VARCHAR -> text(name);
    };
  }

  private static <E extends TpchEntity> Object value(TpchColumn<E> column, E entity) {
    return switch (column.getType().getBase()) {
      case INTEGER -> column.getInteger(entity);
      case IDENTIFIER -> Math.toIntExact(column.getIdentifier(entity));
      case DOUBLE -> BigDecimal.valueOf(Math.round(column.getDouble(entity) * 100), 2);
      case DATE -> column.getDate(entity);
      case VARCHAR -> column.getString(entity);
    };
  }

  private static ImmutableBitSet key(TpchTable<?> table) {
    if (table == TpchTable.LINE_ITEM) {
      return ImmutableBitSet.of(0, 3);
    }
    return table == TpchTable.PART_SUPPLIER ? ImmutableBitSet.of(0, 1) : ImmutableBitSet.of(0);
  }

  private static double rowCount(TpchTable<?> table, double scale) {
    Map<TpchTable<?>, Integer> atScaleOne =
        Map.of(
            TpchTable.CUSTOMER, 150_000,
            TpchTable.ORDERS, 1_500_000,
            TpchTable.LINE_ITEM, 6_000_000,
            TpchTable.PART, 200_000,
            TpchTable.PART_SUPPLIER, 800_000,
            TpchTable.SUPPLIER, 10_000);
    return atScaleOne.containsKey(table) ? atScaleOne.get(table) * scale : table == TpchTable.NATION ? 25 : 5;
  }
}
