package io.faro.sql.plan;

import io.faro.Aggregate.Function;
import io.faro.AggregationSpec;
import io.faro.Column;
import io.faro.ColumnType;
import io.faro.QueryId;
import java.lang.reflect.Method;
import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.IntStream;
import org.apache.calcite.adapter.enumerable.EnumerableConvention;
import org.apache.calcite.adapter.enumerable.EnumerableRelImplementor;
import org.apache.calcite.linq4j.Enumerable;
import org.apache.calcite.linq4j.tree.Types;
import org.apache.calcite.plan.RelTraitSet;
import org.apache.calcite.rel.RelNode;
import org.apache.calcite.rel.RelWriter;
import org.apache.calcite.rel.core.Aggregate;
import org.apache.calcite.rel.core.AggregateCall;
import org.apache.calcite.rel.type.RelDataType;
import org.apache.calcite.sql.SqlKind;
import org.apache.calcite.util.ImmutableBitSet;

/**
 * A GROUP BY that is a Faro aggregation: each worker adds its rows, and each group comes out at one worker. In the
 * generated program it is a call of {@link PlanContext#group}. What is added of a row are the columns of its group, then one for
 * each function that reads one.
 */
public final class GroupBy extends Aggregate implements Stage {
  private static final Method CALL =
      Types.lookupMethod(PlanContext.class, "group", int.class, Enumerable.class);

  private final int[] inputs; // numbers of the columns of the input that are added
  private final List<Column> columns; // of what is added
  private final List<io.faro.Aggregate> functions;
  private final Decimals decimals;
  private final Object[] none; // by column of a group: what stands for a null; null: that
  private int stage = -1;
  private int firstBelow;

  private GroupBy(
      RelTraitSet traits,
      RelNode input,
      ImmutableBitSet groups,
      List<AggregateCall> calls,
      List<io.faro.Aggregate> functions) {
    super(input.getCluster(), traits, List.of(), input, groups, List.of(groups), calls);
    this.functions = functions;
    inputs =
        IntStream.concat(
                groups.asList().stream().mapToInt(Integer::intValue),
                calls.stream().flatMap(call -> call.getArgList().stream()).mapToInt(Integer::intValue))
            .toArray();
    List<RelDataType> types = RowTypes.of(input);
    columns = IntStream.of(inputs).mapToObj(types::get).map(RowTypes::column).toList();
    decimals = new Decimals(columns);
    none = new Object[groups.cardinality() + calls.size()];
    for (int i = 0; i < calls.size(); i++) {
      if (calls.get(i).getAggregation().getKind() == SqlKind.SUM0) {
        none[groups.cardinality() + i] = zero(RowTypes.column(calls.get(i).getType()));
      }
    }
  }

  private static Object zero(Column column) {
    return switch (column.type()) {
      case LONG -> 0L;
      case DOUBLE -> 0.0;
      default -> BigDecimal.valueOf(0, column.scale());
    };
  }

  /** Groups the rows of {@code input} by at least one column; empty: Faro cannot compute all of the functions. */
  static Optional<RelNode> of(RelNode input, ImmutableBitSet groups, List<AggregateCall> calls) {
    List<io.faro.Aggregate> functions = new ArrayList<>();
    List<RelDataType> types = RowTypes.of(input);
    int column = groups.cardinality();
    for (AggregateCall call : calls) {
      Optional<io.faro.Aggregate> function = function(call, column);
      boolean isAdded = call.getArgList().stream().map(types::get).allMatch(RowTypes::travels);
      if (function.isEmpty() || !isAdded) { // a count may be of what cannot travel
        return Optional.empty();
      }
      functions.add(function.get());
      column += call.getArgList().size();
    }
    RelTraitSet traits = input.getCluster().traitSetOf(EnumerableConvention.INSTANCE);
    return Optional.of(new GroupBy(traits, input, groups, calls, functions));
  }

  /** {@code column}: where its argument stands in what is added. */
  private static Optional<io.faro.Aggregate> function(AggregateCall call, int column) {
    boolean isOfAllRows = !call.isDistinct() && call.distinctKeys == null && !call.hasFilter();
    if (!isOfAllRows || call.getArgList().size() > 1) {
      return Optional.empty();
    }
    return switch (call.getAggregation().getKind()) {
      case COUNT ->
          Optional.of(
              call.getArgList().isEmpty()
                  ? io.faro.Aggregate.countRows()
                  : io.faro.Aggregate.of(Function.COUNT, column));
      case SUM, SUM0 -> sum(call, column);
      case MIN -> Optional.of(io.faro.Aggregate.of(Function.MIN, column));
      case MAX -> Optional.of(io.faro.Aggregate.of(Function.MAX, column));
      case ANY_VALUE -> Optional.of(io.faro.Aggregate.of(Function.ANY, column));
      default -> Optional.empty();
    };
  }

  private static Optional<io.faro.Aggregate> sum(AggregateCall call, int column) {
    Column of = RowTypes.column(call.getType());
    Column sum = new Column(of.type(), true, of.scale(), of.precision()); // of no value it is null
    return switch (of.type()) {
      case LONG, DECIMAL_18, DECIMAL_38 -> Optional.of(io.faro.Aggregate.of(Function.SUM, column).as(sum));
      case DOUBLE -> Optional.of(io.faro.Aggregate.of(Function.SUM, column));
      default -> Optional.empty();
    };
  }

  @Override
  public Aggregate copy(
      RelTraitSet traits,
      RelNode input,
      ImmutableBitSet groups,
      List<ImmutableBitSet> sets,
      List<AggregateCall> calls) {
    GroupBy copy = new GroupBy(traits, input, groups, calls, functions);
    copy.setStage(stage, firstBelow);
    return copy;
  }

  @Override
  public int stage() {
    return stage;
  }

  @Override
  public int firstBelow() {
    return firstBelow;
  }

  @Override
  public void setStage(int number, int firstBelow) {
    stage = number;
    this.firstBelow = firstBelow;
  }

  @Override
  public RelWriter explainTerms(RelWriter writer) {
    return super.explainTerms(writer).itemIf("stage", stage, stage >= 0);
  }

  @Override
  public Result implement(EnumerableRelImplementor implementor, Prefer prefer) {
    return call(CALL, implementor);
  }

  /** The aggregation of this node in a query. */
  public AggregationSpec aggregation(QueryId query) {
    List<Integer> keys = IntStream.range(0, getGroupCount()).boxed().toList();
    return new AggregationSpec(query, stage, columns, keys, functions);
  }

  /** What is added of a row of the input. */
  public Object[] added(Object[] row) {
    Object[] added = new Object[inputs.length];
    for (int i = 0; i < inputs.length; i++) {
      added[i] = row[inputs[i]];
    }
    return decimals.fitting(added);
  }

  /** A group that has come out, as a row: the array itself. */
  public Object[] row(Object[] group) {
    for (int i = getGroupCount(); i < group.length; i++) {
      if (group[i] == null) {
        group[i] = none[i];
      }
    }
    return group;
  }
}
