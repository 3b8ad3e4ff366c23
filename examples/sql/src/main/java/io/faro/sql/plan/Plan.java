package io.faro.sql.plan;

import io.faro.sql.tables.Table;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.calcite.adapter.enumerable.EnumerableInterpretable;
import org.apache.calcite.adapter.enumerable.EnumerableRel;
import org.apache.calcite.adapter.java.JavaTypeFactory;
import org.apache.calcite.linq4j.Enumerator;
import org.apache.calcite.plan.RelOptUtil;
import org.apache.calcite.rel.RelNode;
import org.apache.calcite.rel.type.RelDataType;
import org.apache.calcite.rel.type.RelDataTypeField;
import org.apache.calcite.runtime.Bindable;
import org.apache.calcite.sql.SqlExplainLevel;

/**
 * A query, planned: one program that every worker runs (single program, multiple data). The same SQL over the
 * same tables gives the same plan on every node, stages of exchanges included.
 */
public final class Plan {
  private final EnumerableRel root;
  private final RelDataType columns;
  private final Map<String, Table> tables;
  private final List<Stage> stages = new ArrayList<>();
  private final Bindable<?> program;

  Plan(EnumerableRel root, RelDataType columns, Map<String, Table> tables) {
    this.root = (EnumerableRel) tree(root);
    this.columns = columns;
    this.tables = tables;
    number(this.root);
    program =
        EnumerableInterpretable.toBindable(new HashMap<>(), null, this.root, EnumerableRel.Prefer.ARRAY);
  }

  // Calcite's planner has equal parts of a plan once: as each is run where it stands, each gets nodes of its own.
  private static RelNode tree(RelNode node) {
    return node.copy(node.getTraitSet(), node.getInputs().stream().map(Plan::tree).toList());
  }

  // Inputs first, left to right: the stages of the nodes below another one are those just before its own.
  private void number(RelNode node) {
    int first = stages.size();
    node.getInputs().forEach(this::number);
    if (node instanceof Stage stage) {
      stage.setStage(stages.size(), first);
      stages.add(stage);
    }
  }

  /**
   * Runs the query's part of one worker; the rows that come out count at worker 0 only.
   *
   * @throws RuntimeException of Faro if the query failed elsewhere, or what this worker's part throws
   */
  public List<Object[]> run(PlanContext context) {
    context.open();
    List<Object[]> all = new ArrayList<>();
    try (Enumerator<?> rows = program.bind(context).enumerator()) { // binding pulls what has one row
      while (rows.moveNext()) {
        all.add(rows.current() instanceof Object[] row ? row : new Object[] {rows.current()});
      }
    }
    context.complete();
    return all;
  }

  /** The tree of operators, with the stages. */
  public String explain() {
    return RelOptUtil.toString(root, SqlExplainLevel.EXPPLAN_ATTRIBUTES);
  }

  /** Names and types of the columns of the result. */
  public List<RelDataTypeField> columns() {
    return columns.getFieldList();
  }

  /** Where rows change workers, by stage. */
  public List<Stage> stages() {
    return stages;
  }

  /** Those of the stages that only move rows. */
  public List<Exchange> exchanges() {
    return stages.stream().filter(Exchange.class::isInstance).map(Exchange.class::cast).toList();
  }

  /** Those of the stages that group them, too. */
  public List<GroupBy> groupBys() {
    return stages.stream().filter(GroupBy.class::isInstance).map(GroupBy.class::cast).toList();
  }

  public Table table(String name) {
    return tables.get(name);
  }

  public JavaTypeFactory typeFactory() {
    return (JavaTypeFactory) root.getCluster().getTypeFactory();
  }
}
