package io.faro.sql.plan;

import io.faro.Column;
import io.faro.ColumnType;
import io.faro.sql.SqlException;
import java.math.BigDecimal;
import java.util.List;
import org.apache.calcite.rel.RelNode;
import org.apache.calcite.rel.metadata.RelMetadataQuery;
import org.apache.calcite.rel.type.RelDataType;
import org.apache.calcite.rel.type.RelDataTypeField;
import org.apache.calcite.sql.type.SqlTypeName;

/** What rows of a SQL type are on the wire. */
final class RowTypes {
  private static final int TEXT_BYTES = 24; // believed of strings

  private RowTypes() {}

  /** The types of a row's fields. */
  static List<RelDataType> of(RelNode node) {
    return node.getRowType().getFieldList().stream().map(RelDataTypeField::getType).toList();
  }

  /**
   * How a column travels; dates and times as the numbers that they are in rows already.
   *
   * @throws SqlException if it cannot
   */
  static Column column(RelDataType type) {
    if (type.getSqlTypeName() == SqlTypeName.DECIMAL) {
      return Column.decimal(type.getPrecision(), type.getScale(), type.isNullable());
    }
    ColumnType column = onTheWire(type);
    if (column == null) {
      throw new SqlException("rows with a column of type " + type + " cannot be shuffled", null);
    }
    return new Column(column, type.isNullable());
  }

  /** Whether a column of this type can travel. */
  static boolean travels(RelDataType type) {
    return type.getSqlTypeName() == SqlTypeName.DECIMAL || onTheWire(type) != null;
  }

  // For all but decimals; null: it cannot travel.
  private static ColumnType onTheWire(RelDataType type) {
    return switch (type.getSqlTypeName()) {
      case BOOLEAN -> ColumnType.BOOLEAN;
      case TINYINT -> ColumnType.BYTE;
      case SMALLINT -> ColumnType.SHORT;
      case INTEGER, DATE, TIME -> ColumnType.INT;
      case BIGINT, TIMESTAMP -> ColumnType.LONG;
      case REAL -> ColumnType.FLOAT;
      case FLOAT, DOUBLE -> ColumnType.DOUBLE;
      case CHAR, VARCHAR -> ColumnType.STRING;
      default -> null;
    };
  }

  /** Bytes that all rows of a node together take on the wire, as the planner believes. */
  static double bytes(RelNode node) {
    RelMetadataQuery metadata = node.getCluster().getMetadataQuery();
    int width = of(node).stream().mapToInt(RowTypes::width).sum();
    return metadata.getRowCount(node) * Math.max(1, width);
  }

  private static int width(RelDataType type) {
    int bytes = column(type).type().bytes();
    return bytes == 0 ? TEXT_BYTES : bytes;
  }

  /** Equal values have equal hashes, whatever their scale or width. Well mixed: hashes can be added up. */
  static long hash(Object value) {
    if (value == null) {
      return 0;
    }
    if (value instanceof BigDecimal decimal) {
      return mix(decimal.stripTrailingZeros().hashCode());
    }
    return mix(value instanceof Long number ? number : value.hashCode()); // an Integer is its own hash
  }

  // The finalizer of MurmurHash3.
  private static long mix(long hash) {
    hash = (hash ^ hash >>> 33) * 0xff51afd7ed558ccdL;
    hash = (hash ^ hash >>> 33) * 0xc4ceb9fe1a85ec53L;
    return hash ^ hash >>> 33;
  }
}
