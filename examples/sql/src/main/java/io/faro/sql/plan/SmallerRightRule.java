package io.faro.sql.plan;

import org.apache.calcite.plan.RelOptRule;
import org.apache.calcite.plan.RelOptRuleCall;
import org.apache.calcite.rel.RelNode;
import org.apache.calcite.rel.core.Join;
import org.apache.calcite.rel.core.JoinRelType;
import org.apache.calcite.rel.logical.LogicalJoin;
import org.apache.calcite.rel.rules.JoinCommuteRule;

/** Swaps the sides of inner joins where the right one, which is kept in memory, would be the larger one. */
final class SmallerRightRule extends RelOptRule {
  @SuppressWarnings("deprecation") // the other way to make a rule needs generated classes
  SmallerRightRule() {
    super(operand(LogicalJoin.class, any()), "FaroSmallerRight");
  }

  @Override
  public void onMatch(RelOptRuleCall call) {
    Join join = call.rel(0);
    if (join.getJoinType() != JoinRelType.INNER
        || RowTypes.bytes(join.getLeft()) >= RowTypes.bytes(join.getRight())) {
      return;
    }
    RelNode swapped = JoinCommuteRule.swap(join, false, call.builder());
    if (swapped != null) {
      call.transformTo(swapped);
    }
  }
}
