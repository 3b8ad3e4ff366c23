package io.faro.sql.plan;

import io.faro.sql.SqlException;
import org.apache.calcite.sql.SqlCall;
import org.apache.calcite.sql.SqlLiteral;
import org.apache.calcite.sql.SqlNode;
import org.apache.calcite.sql.util.SqlShuttle;
import org.apache.calcite.util.TimestampString;

/**
 * Makes literals of {@code TIMESTAMP('2013-07-01 00:00:00.000')} and of {@code
 * TIMESTAMP('2013-07-01-00.00.00.000000')}: the way in which the paper's queries have them.
 */
final class TimestampCalls extends SqlShuttle {
  private static final int DATE_LENGTH = "2013-07-01".length();
  private static final int MILLISECONDS = 3; // digits

  @Override
  public SqlNode visit(SqlCall call) {
    if (!call.getOperator().getName().equalsIgnoreCase("TIMESTAMP")
        || call.operandCount() != 1
        || !(call.operand(0) instanceof SqlLiteral literal)) {
      return super.visit(call);
    }
    String text = literal.toValue();
    try {
      String date = text.substring(0, DATE_LENGTH);
      String[] time = text.substring(DATE_LENGTH + 1).split("[.:]", 4);
      TimestampString timestamp =
          new TimestampString(date + " " + time[0] + ":" + time[1] + ":" + time[2])
              .withFraction(time.length > 3 ? time[3].replaceFirst("0+$", "") : "")
              .round(MILLISECONDS);
      return SqlLiteral.createTimestamp(timestamp, MILLISECONDS, call.getParserPosition());
    } catch (IllegalArgumentException | IndexOutOfBoundsException e) {
      throw new SqlException("no timestamp: '" + text + "'", e);
    }
  }
}
