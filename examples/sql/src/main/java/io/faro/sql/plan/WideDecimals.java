package io.faro.sql.plan;

import org.apache.calcite.rel.type.DelegatingTypeSystem;
import org.apache.calcite.rel.type.RelDataType;
import org.apache.calcite.rel.type.RelDataTypeFactory;
import org.apache.calcite.rel.type.RelDataTypeSystem;
import org.apache.calcite.sql.type.SqlTypeName;

/**
 * Decimals of up to 38 digits. A sum of decimals has all of them and a sum of integers is a long, so that the sum
 * of sums has the type of a sum.
 */
final class WideDecimals extends DelegatingTypeSystem {
  private static final int DIGITS = 38;

  WideDecimals() {
    super(RelDataTypeSystem.DEFAULT);
  }

  @Override
  public int getMaxPrecision(SqlTypeName type) {
    return type == SqlTypeName.DECIMAL ? DIGITS : super.getMaxPrecision(type);
  }

  @Override
  public int getMaxNumericPrecision() {
    return DIGITS;
  }

  @Override
  public int getMaxNumericScale() {
    return DIGITS;
  }

  @Override
  public RelDataType deriveAvgAggType(RelDataTypeFactory types, RelDataType argument) {
    return types.createTypeWithNullability(
        types.createSqlType(SqlTypeName.DOUBLE), argument.isNullable());
  }

  @Override
  public RelDataType deriveSumType(RelDataTypeFactory types, RelDataType argument) {
    RelDataType sum =
        switch (argument.getSqlTypeName()) {
          case DECIMAL -> types.createSqlType(SqlTypeName.DECIMAL, DIGITS, argument.getScale());
          case TINYINT, SMALLINT, INTEGER -> types.createSqlType(SqlTypeName.BIGINT);
          default -> argument;
        };
    return types.createTypeWithNullability(sum, argument.isNullable());
  }
}
