package io.faro.sql.plan;

import java.util.List;
import org.apache.calcite.DataContext;
import org.apache.calcite.adapter.enumerable.EnumerableConvention;
import org.apache.calcite.adapter.enumerable.EnumerableRel;
import org.apache.calcite.adapter.enumerable.EnumerableRelImplementor;
import org.apache.calcite.adapter.enumerable.JavaRowFormat;
import org.apache.calcite.adapter.enumerable.PhysTypeImpl;
import org.apache.calcite.linq4j.tree.Blocks;
import org.apache.calcite.linq4j.tree.Expression;
import org.apache.calcite.linq4j.tree.Expressions;
import org.apache.calcite.plan.RelTraitSet;
import org.apache.calcite.rel.RelDistributions;
import org.apache.calcite.rel.RelNode;
import org.apache.calcite.rel.core.TableScan;

/** Each worker reads its own part of the table. */
final class PartitionScan extends TableScan implements EnumerableRel {
  PartitionScan(TableScan scan) {
    super(
        scan.getCluster(),
        scan.getCluster()
            .traitSetOf(EnumerableConvention.INSTANCE)
            .replace(RelDistributions.RANDOM_DISTRIBUTED),
        List.of(),
        scan.getTable());
  }

  @Override
  public RelNode copy(RelTraitSet traits, List<RelNode> inputs) {
    return this;
  }

  @Override
  public Result implement(EnumerableRelImplementor implementor, Prefer prefer) {
    List<String> path = getTable().getQualifiedName();
    Expression context = Expressions.convert_(DataContext.ROOT, PlanContext.class);
    return implementor.result(
        PhysTypeImpl.of(implementor.getTypeFactory(), getRowType(), JavaRowFormat.ARRAY, false),
        Blocks.toBlock(
            Expressions.call(context, "scan", Expressions.constant(path.get(path.size() - 1)))));
  }
}
