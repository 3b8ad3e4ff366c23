package io.faro.sql.tables;

import java.util.List;
import org.apache.calcite.rel.type.RelDataType;
import org.apache.calcite.rel.type.RelDataTypeFactory;
import org.apache.calcite.schema.Statistic;
import org.apache.calcite.schema.Statistics;
import org.apache.calcite.schema.impl.AbstractTable;
import org.apache.calcite.util.ImmutableBitSet;

/**
 * A table of which each worker of the cluster holds a horizontal part. Rows are as Calcite's Enumerable
 * convention has them: an {@code Object[]} with a {@code BigDecimal} for a decimal and an {@code Integer}, days
 * since 1970, for a date.
 */
public final class Table extends AbstractTable {
  private final List<Attribute> attributes;
  private final ImmutableBitSet key;
  private final double rowCount;
  private final Partitions parts;

  /** Makes the rows of one worker; called once per scan, on the worker's thread. */
  public interface Partitions {
    /** Part {@code part} of {@code parts}. */
    Iterable<Object[]> rows(int part, int parts);
  }

  /** {@code rowCount}: of all parts together, as the planner believes. {@code key}: columns, may be empty. */
  public Table(List<Attribute> attributes, ImmutableBitSet key, double rowCount, Partitions parts) {
    this.attributes = List.copyOf(attributes);
    this.key = key;
    this.rowCount = rowCount;
    this.parts = parts;
  }

  @Override
  public RelDataType getRowType(RelDataTypeFactory types) {
    RelDataTypeFactory.Builder builder = types.builder();
    attributes.forEach(attribute -> attribute.addTo(builder));
    return builder.build();
  }

  /** Its columns. */
  public List<Attribute> attributes() {
    return attributes;
  }

  @Override
  public Statistic getStatistic() {
    return Statistics.of(rowCount, key.isEmpty() ? List.of() : List.of(key));
  }

  /** Part {@code part} of {@code parts}. */
  public Iterable<Object[]> rows(int part, int parts) {
    return this.parts.rows(part, parts);
  }
}
