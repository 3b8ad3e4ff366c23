package io.faro.sql.plan;

import java.lang.reflect.Method;
import org.apache.calcite.DataContext;
import org.apache.calcite.adapter.enumerable.EnumerableRel;
import org.apache.calcite.adapter.enumerable.EnumerableRelImplementor;
import org.apache.calcite.adapter.enumerable.JavaRowFormat;
import org.apache.calcite.adapter.enumerable.PhysType;
import org.apache.calcite.adapter.enumerable.PhysTypeImpl;
import org.apache.calcite.linq4j.tree.BlockBuilder;
import org.apache.calcite.linq4j.tree.Expression;
import org.apache.calcite.linq4j.tree.Expressions;

/** A node of a plan in which rows change workers. It takes a stage of the query, and has one input. */
public interface Stage extends EnumerableRel {
  /** The number of its stage in the query; -1: not known yet. */
  int stage();

  /** Stages from this one up to its own are those of the nodes below it. */
  int firstBelow();

  /** Called once, when the whole plan is known. */
  void setStage(int number, int firstBelow);

  /** What it is in the generated program: a call of this method of {@link PlanContext} with its stage and its rows. */
  default Result call(Method method, EnumerableRelImplementor implementor) {
    BlockBuilder block = new BlockBuilder();
    Result child = implementor.visitChild(this, 0, (EnumerableRel) getInput(0), Prefer.ARRAY);
    Expression rows = block.append("rows", child.block);
    Expression arrays = child.physType.convertTo(rows, JavaRowFormat.ARRAY);
    PhysType type = PhysTypeImpl.of(implementor.getTypeFactory(), getRowType(), JavaRowFormat.ARRAY);
    Expression context = Expressions.convert_(DataContext.ROOT, PlanContext.class);
    block.add(
        Expressions.return_(
            null, Expressions.call(context, method, Expressions.constant(stage()), arrays)));
    return implementor.result(type, block.toBlock());
  }
}
