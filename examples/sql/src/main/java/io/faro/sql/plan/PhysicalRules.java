package io.faro.sql.plan;

import static org.apache.calcite.rel.RelDistributions.BROADCAST_DISTRIBUTED;
import static org.apache.calcite.rel.RelDistributions.RANDOM_DISTRIBUTED;
import static org.apache.calcite.rel.RelDistributions.SINGLETON;

import io.faro.sql.SqlException;
import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.BiFunction;
import java.util.stream.IntStream;
import org.apache.calcite.adapter.enumerable.EnumerableAggregate;
import org.apache.calcite.adapter.enumerable.EnumerableCalc;
import org.apache.calcite.adapter.enumerable.EnumerableConvention;
import org.apache.calcite.adapter.enumerable.EnumerableHashJoin;
import org.apache.calcite.adapter.enumerable.EnumerableLimit;
import org.apache.calcite.adapter.enumerable.EnumerableNestedLoopJoin;
import org.apache.calcite.adapter.enumerable.EnumerableRel;
import org.apache.calcite.adapter.enumerable.EnumerableSort;
import org.apache.calcite.adapter.enumerable.EnumerableUnion;
import org.apache.calcite.adapter.enumerable.EnumerableValues;
import org.apache.calcite.plan.RelOptRule;
import org.apache.calcite.plan.RelOptRuleCall;
import org.apache.calcite.plan.RelTraitSet;
import org.apache.calcite.plan.hep.HepRelVertex;
import org.apache.calcite.rel.InvalidRelException;
import org.apache.calcite.rel.RelDistribution;
import org.apache.calcite.rel.RelDistributions;
import org.apache.calcite.rel.RelNode;
import org.apache.calcite.rel.core.Aggregate.Group;
import org.apache.calcite.rel.core.AggregateCall;
import org.apache.calcite.rel.core.JoinInfo;
import org.apache.calcite.rel.core.JoinRelType;
import org.apache.calcite.rel.core.Sort;
import org.apache.calcite.rel.logical.LogicalAggregate;
import org.apache.calcite.rel.logical.LogicalCalc;
import org.apache.calcite.rel.logical.LogicalJoin;
import org.apache.calcite.rel.logical.LogicalSort;
import org.apache.calcite.rel.logical.LogicalTableScan;
import org.apache.calcite.rel.logical.LogicalUnion;
import org.apache.calcite.rel.logical.LogicalValues;
import org.apache.calcite.rex.RexBuilder;
import org.apache.calcite.rex.RexInputRef;
import org.apache.calcite.rex.RexLiteral;
import org.apache.calcite.rex.RexNode;
import org.apache.calcite.rex.RexOver;
import org.apache.calcite.rex.RexProgram;
import org.apache.calcite.sql.SqlAggFunction;
import org.apache.calcite.sql.SqlKind;
import org.apache.calcite.sql.fun.SqlStdOperatorTable;
import org.apache.calcite.util.ImmutableBitSet;
import org.apache.calcite.util.ImmutableIntList;

/**
 * The rules that make a logical plan one that workers can run, from the leaves up: each operator looks at the
 * distribution of its inputs (a trait) and puts an {@link Exchange} where it needs another.
 *
 * <p>An operator whose distribution is SINGLETON runs everywhere, but only worker 0's rows count: an exchange
 * above it takes no others.
 */
final class PhysicalRules {
  private final int broadcastCopies;
  private final Operators operators;

  private PhysicalRules(int broadcastCopies, Operators operators) {
    this.broadcastCopies = broadcastCopies;
    this.operators = operators;
  }

  /** {@code broadcastCopies}: of each row of a broadcast, that travel. */
  static List<RelOptRule> all(int broadcastCopies, Operators operators) {
    PhysicalRules rules = new PhysicalRules(broadcastCopies, operators);
    return List.of(
        rule(LogicalTableScan.class, (scan, inputs) -> new PartitionScan(scan)),
        rule(LogicalValues.class, (values, inputs) -> values(values)),
        rule(LogicalCalc.class, (calc, inputs) -> calc(inputs.get(0), calc.getProgram())),
        rule(LogicalJoin.class, (join, inputs) -> rules.join(join, inputs.get(0), inputs.get(1))),
        rule(LogicalAggregate.class, (aggregate, inputs) -> rules.aggregate(aggregate, inputs.get(0))),
        rule(LogicalSort.class, (sort, inputs) -> sort(sort, inputs.get(0))),
        rule(LogicalUnion.class, PhysicalRules::union));
  }

  /** The rows of a whole physical plan, at worker 0. */
  static EnumerableRel gathered(RelNode root) {
    if (!(root instanceof EnumerableRel)) {
      throw new SqlException("this engine has no operator " + missing(root), null);
    }
    return (EnumerableRel) gather(root);
  }

  private static String missing(RelNode node) {
    for (RelNode input : node.getInputs()) {
      if (!(input instanceof EnumerableRel)) {
        return missing(input);
      }
    }
    return node.getRelTypeName();
  }

  /** Fires when all inputs are physical. */
  @SuppressWarnings("deprecation") // the other way to make a rule needs generated classes
  private static <T extends RelNode> RelOptRule rule(
      Class<T> type, BiFunction<T, List<RelNode>, RelNode> convert) {
    return new RelOptRule(RelOptRule.operand(type, RelOptRule.any()), "Faro" + type.getSimpleName()) {
      @Override
      public void onMatch(RelOptRuleCall call) {
        T node = type.cast(call.rel(0));
        List<RelNode> inputs = new ArrayList<>();
        for (RelNode input : node.getInputs()) {
          inputs.add(input instanceof HepRelVertex vertex ? vertex.getCurrentRel() : input);
        }
        if (inputs.stream().allMatch(EnumerableRel.class::isInstance)) {
          call.transformTo(convert.apply(node, inputs));
        }
      }
    };
  }

  private static RelNode values(LogicalValues values) {
    return distributed(
        EnumerableValues.create(values.getCluster(), values.getRowType(), values.getTuples()), SINGLETON);
  }

  private static RelNode calc(RelNode input, RexProgram program) {
    if (RexOver.containsOver(program)) {
      throw new SqlException("this engine has no window functions", null);
    }
    RelTraitSet traits =
        input
            .getCluster()
            .traitSetOf(EnumerableConvention.INSTANCE)
            .replace(through(Exchange.distributionOf(input), program));
    return new EnumerableCalc(input.getCluster(), traits, input, program);
  }

  /** Keys keep their place only where the program passes them on. */
  private static RelDistribution through(RelDistribution distribution, RexProgram program) {
    List<Integer> keys = new ArrayList<>();
    for (int key : distribution.getKeys()) {
      int place = -1;
      for (int i = 0; i < program.getProjectList().size() && place < 0; i++) {
        RexNode expression = program.expandLocalRef(program.getProjectList().get(i));
        place = expression instanceof RexInputRef ref && ref.getIndex() == key ? i : -1;
      }
      if (place < 0) {
        return RANDOM_DISTRIBUTED;
      }
      keys.add(place);
    }
    return keys.isEmpty() ? distribution : RelDistributions.hash(keys);
  }

  // ------------------------------------------------------------------------------------------- joins

  /** The right side is the one that is held: everywhere, or where the left rows with its keys are. */
  private RelNode join(LogicalJoin join, RelNode left, RelNode right) {
    JoinInfo info = join.analyzeCondition();
    JoinRelType type = join.getJoinType();
    if (!type.projectsRight()) { // Calcite reads their right side only if the left one has a row
      throw new SqlException("this engine has no join of type " + type, null);
    }
    if (info.leftKeys.isEmpty()) {
      return nestedLoop(join, left, right);
    }
    RelDistribution result;
    if (isSingleton(left) && isSingleton(right)) {
      result = SINGLETON;
    } else if (!type.generatesNullsOnLeft() && broadcastIsCheaper(left, right, info)) {
      right = Exchange.of(right, BROADCAST_DISTRIBUTED);
      left = isSingleton(left) ? scatter(left) : left;
      result = Exchange.distributionOf(left);
    } else {
      left = partition(left, info.leftKeys);
      right = partition(right, info.rightKeys);
      result = type.generatesNullsOnLeft() ? RANDOM_DISTRIBUTED : RelDistributions.hash(info.leftKeys);
    }
    return distributed(
        EnumerableHashJoin.create(left, right, join.getCondition(), join.getVariablesSet(), type), result);
  }

  /** Without keys to look up every left row meets every right row, which every worker keeps. */
  private static RelNode nestedLoop(LogicalJoin join, RelNode left, RelNode right) {
    if (join.getJoinType().generatesNullsOnLeft()) { // each right row must be known to have no partner anywhere
      left = gather(left);
      right = gather(right);
    } else {
      left = isSingleton(left) ? scatter(left) : left;
      right = Exchange.kept(right, BROADCAST_DISTRIBUTED);
    }
    return distributed(
        EnumerableNestedLoopJoin.create(
            left, right, join.getCondition(), join.getVariablesSet(), join.getJoinType()),
        Exchange.distributionOf(left));
  }

  /** Compares what would travel: all copies of the right side, or of both sides what lies wrongly. */
  private boolean broadcastIsCheaper(RelNode left, RelNode right, JoinInfo info) {
    double repartition =
        (liesBy(left, info.leftKeys) ? 0 : RowTypes.bytes(left))
            + (liesBy(right, info.rightKeys) ? 0 : RowTypes.bytes(right));
    return RowTypes.bytes(right) * broadcastCopies < repartition;
  }

  // -------------------------------------------------------------------------------------- aggregates

  private RelNode aggregate(LogicalAggregate aggregate, RelNode input) {
    if (aggregate.getGroupType() != Group.SIMPLE) {
      throw new SqlException("this engine has no GROUPING SETS, CUBE or ROLLUP", null);
    }
    ImmutableBitSet groups = aggregate.getGroupSet();
    if (isSingleton(input)) {
      return distributed(aggregate(input, groups, aggregate.getAggCallList()), SINGLETON);
    }
    List<Integer> keys = Exchange.distributionOf(input).getKeys();
    if (!keys.isEmpty() && groups.asSet().containsAll(keys)) { // a group lies at one worker already
      return distributed(
          aggregate(input, groups, aggregate.getAggCallList()),
          RelDistributions.hash(keys.stream().map(groups::indexOf).toList()));
    }
    if (operators == Operators.FARO && !groups.isEmpty()) { // else there is one state, whoever has it
      Optional<RelNode> grouped = GroupBy.of(input, groups, aggregate.getAggCallList());
      if (grouped.isPresent()) {
        return distributed(grouped.get(), RANDOM_DISTRIBUTED); // by another hash than exchanges have
      }
    }
    ImmutableIntList outputKeys = firstColumns(groups.cardinality());
    RelDistribution result = groups.isEmpty() ? SINGLETON : RelDistributions.hash(outputKeys);
    List<AggregateCall> last = new ArrayList<>();
    for (AggregateCall call : aggregate.getAggCallList()) {
      SqlAggFunction merge = mergeOf(call);
      if (merge == null) {
        RelNode moved = groups.isEmpty() ? gather(input) : partition(input, ImmutableIntList.copyOf(groups.asList()));
        return distributed(aggregate(moved, groups, aggregate.getAggCallList()), result);
      }
      last.add(
          AggregateCall.create(
              merge,
              false,
              List.of(groups.cardinality() + last.size()),
              -1,
              call.getType(),
              call.getName()));
    }
    RelNode partial = distributed(aggregate(input, groups, aggregate.getAggCallList()), RANDOM_DISTRIBUTED);
    RelNode moved = Exchange.of(partial, result);
    return distributed(aggregate(moved, ImmutableBitSet.of(outputKeys), last), result);
  }

  /** What makes a whole of the parts that workers computed; null: nothing does. */
  private static SqlAggFunction mergeOf(AggregateCall call) {
    if (call.isDistinct()) {
      return null;
    }
    return switch (call.getAggregation().getKind()) {
      case COUNT, SUM0 -> SqlStdOperatorTable.SUM0;
      case SUM, MIN, MAX -> call.getAggregation();
      default -> null;
    };
  }

  private static RelNode aggregate(RelNode input, ImmutableBitSet groups, List<AggregateCall> calls) {
    RelTraitSet traits = input.getCluster().traitSetOf(EnumerableConvention.INSTANCE);
    try {
      return new EnumerableAggregate(
          input.getCluster(), traits, input, groups, List.of(groups), calls);
    } catch (InvalidRelException e) {
      throw new SqlException("this engine cannot aggregate like that: " + e.getMessage(), e);
    }
  }

  // ---------------------------------------------------------------------------------------- the rest

  /** Sorted at worker 0; with a limit each worker sends no more than that of its own. */
  private static RelNode sort(Sort sort, RelNode input) {
    if (sort.fetch != null && !isSingleton(input)) {
      RexNode most = sort.offset == null ? sort.fetch : sum(sort, sort.offset, sort.fetch);
      input = distributed(EnumerableLimit.create(sorted(sort, input), null, most), RANDOM_DISTRIBUTED);
    }
    if (sort.offset == null && sort.fetch == null) {
      return sorted(sort, gather(input));
    }
    // Kept, for a limit would leave the rest of the exchange unread.
    RelNode all = isSingleton(input) ? input : Exchange.kept(input, SINGLETON);
    return distributed(EnumerableLimit.create(sorted(sort, all), sort.offset, sort.fetch), SINGLETON);
  }

  private static RelNode sorted(Sort sort, RelNode input) {
    return sort.getCollation().getFieldCollations().isEmpty()
        ? input
        : distributed(
            EnumerableSort.create(input, sort.getCollation(), null, null), Exchange.distributionOf(input));
  }

  private static RexNode sum(Sort sort, RexNode offset, RexNode fetch) {
    RexBuilder builder = sort.getCluster().getRexBuilder();
    return builder.makeExactLiteral(
        BigDecimal.valueOf((long) RexLiteral.intValue(offset) + RexLiteral.intValue(fetch)));
  }

  private static RelNode union(LogicalUnion union, List<RelNode> inputs) {
    if (!union.all) {
      throw new SqlException("this engine has no " + union.getRelTypeName() + " DISTINCT", null);
    }
    List<RelNode> scattered = inputs.stream().<RelNode>map(i -> isSingleton(i) ? scatter(i) : i).toList();
    RelTraitSet traits = union.getCluster().traitSetOf(EnumerableConvention.INSTANCE);
    return distributed(
        new EnumerableUnion(union.getCluster(), traits, scattered, true), RANDOM_DISTRIBUTED);
  }

  // --------------------------------------------------------------------------------- distributions

  private static boolean isSingleton(RelNode node) {
    return Exchange.distributionOf(node).getType() == RelDistribution.Type.SINGLETON;
  }

  private static boolean liesBy(RelNode node, ImmutableIntList keys) {
    return Exchange.distributionOf(node).equals(RelDistributions.hash(keys));
  }

  private static RelNode partition(RelNode node, ImmutableIntList keys) {
    return liesBy(node, keys) ? node : Exchange.of(node, RelDistributions.hash(keys));
  }

  private static RelNode gather(RelNode node) {
    return isSingleton(node) ? node : Exchange.of(node, SINGLETON);
  }

  /** Worker 0's rows, over all workers. */
  private static RelNode scatter(RelNode node) {
    return Exchange.of(node, RelDistributions.hash(firstColumns(node.getRowType().getFieldCount())));
  }

  private static ImmutableIntList firstColumns(int count) {
    return ImmutableIntList.copyOf(IntStream.range(0, count).boxed().toList());
  }

  private static RelNode distributed(RelNode node, RelDistribution distribution) {
    RelTraitSet traits =
        node.getCluster().traitSetOf(EnumerableConvention.INSTANCE).replace(distribution);
    return node.copy(traits, node.getInputs());
  }
}
