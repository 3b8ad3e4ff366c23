package io.faro.sql.plan;

import io.faro.sql.SqlException;
import io.faro.sql.tables.Table;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.calcite.adapter.enumerable.EnumerableRel;
import org.apache.calcite.adapter.java.JavaTypeFactory;
import org.apache.calcite.avatica.util.Casing;
import org.apache.calcite.config.CalciteConnectionConfig;
import org.apache.calcite.config.CalciteConnectionConfigImpl;
import org.apache.calcite.config.CalciteConnectionProperty;
import org.apache.calcite.jdbc.CalciteSchema;
import org.apache.calcite.jdbc.JavaTypeFactoryImpl;
import org.apache.calcite.plan.Contexts;
import org.apache.calcite.plan.ConventionTraitDef;
import org.apache.calcite.plan.RelOptCluster;
import org.apache.calcite.plan.RelOptRule;
import org.apache.calcite.plan.hep.HepMatchOrder;
import org.apache.calcite.plan.hep.HepPlanner;
import org.apache.calcite.plan.hep.HepProgram;
import org.apache.calcite.plan.hep.HepProgramBuilder;
import org.apache.calcite.plan.volcano.VolcanoPlanner;
import org.apache.calcite.prepare.CalciteCatalogReader;
import org.apache.calcite.rel.RelDistributionTraitDef;
import org.apache.calcite.rel.RelNode;
import org.apache.calcite.rel.RelRoot;
import org.apache.calcite.rel.metadata.JaninoRelMetadataProvider;
import org.apache.calcite.rel.metadata.RelMetadataQueryBase;
import org.apache.calcite.rel.rules.CoreRules;
import org.apache.calcite.rex.RexBuilder;
import org.apache.calcite.rex.RexUtil;
import org.apache.calcite.runtime.CalciteContextException;
import org.apache.calcite.sql.SqlNode;
import org.apache.calcite.sql.fun.SqlStdOperatorTable;
import org.apache.calcite.sql.parser.SqlParseException;
import org.apache.calcite.sql.parser.SqlParser;
import org.apache.calcite.sql.validate.SqlConformanceEnum;
import org.apache.calcite.sql.validate.SqlValidator;
import org.apache.calcite.sql.validate.SqlValidatorUtil;
import org.apache.calcite.sql2rel.RelDecorrelator;
import org.apache.calcite.sql2rel.RelFieldTrimmer;
import org.apache.calcite.sql2rel.SqlToRelConverter;
import org.apache.calcite.sql2rel.StandardConvertletTable;
import org.apache.calcite.tools.RelBuilder;

/** From SQL to a {@link Plan}. Threads: one at a time. */
public final class Planner {
  private static final List<RelOptRule> SUB_QUERIES =
      List.of(
          CoreRules.FILTER_SUB_QUERY_TO_CORRELATE,
          CoreRules.PROJECT_SUB_QUERY_TO_CORRELATE,
          CoreRules.JOIN_SUB_QUERY_TO_CORRELATE);
  private static final List<RelOptRule> PUSH_DOWN =
      List.of(
          CoreRules.FILTER_REDUCE_EXPRESSIONS,
          CoreRules.PROJECT_REDUCE_EXPRESSIONS,
          CoreRules.FILTER_INTO_JOIN,
          CoreRules.JOIN_CONDITION_PUSH,
          CoreRules.FILTER_PROJECT_TRANSPOSE,
          CoreRules.FILTER_AGGREGATE_TRANSPOSE,
          CoreRules.FILTER_MERGE,
          CoreRules.JOIN_PUSH_EXPRESSIONS,
          CoreRules.PROJECT_MERGE,
          CoreRules.PROJECT_REMOVE,
          CoreRules.AGGREGATE_PROJECT_MERGE,
          CoreRules.AGGREGATE_EXPAND_DISTINCT_AGGREGATES_TO_JOIN,
          CoreRules.AGGREGATE_REDUCE_FUNCTIONS,
          CoreRules.UNION_TO_DISTINCT);
  private static final List<RelOptRule> TO_MULTI_JOIN =
      List.of(
          CoreRules.JOIN_TO_MULTI_JOIN,
          CoreRules.PROJECT_MULTI_JOIN_MERGE,
          CoreRules.FILTER_MULTI_JOIN_MERGE);
  private static final List<RelOptRule> CALCS =
      List.of(CoreRules.FILTER_TO_CALC, CoreRules.PROJECT_TO_CALC, CoreRules.CALC_MERGE);

  private final Map<String, Table> tables;
  private final int broadcastCopies;
  private final Operators operators;

  /**
   * For these tables, by name, spread over all workers of a cluster.
   *
   * @param broadcastCopies how often a row of a broadcast travels: once for each node or, if it is sent to each worker
   *     by itself, for each of these
   * @param operators that group rows
   */
  public Planner(Map<String, Table> tables, int broadcastCopies, Operators operators) {
    this.tables = Map.copyOf(tables);
    this.broadcastCopies = broadcastCopies;
    this.operators = operators;
  }

  /**
   * Plans a query.
   *
   * @throws SqlException if it is no SQL, names what is not there, or needs what this engine has not
   */
  public Plan plan(String sql) {
    RelMetadataQueryBase.THREAD_PROVIDERS.set(JaninoRelMetadataProvider.of(JoinSizes.PROVIDER));
    try {
      RelRoot root = converted(parsed(sql));
      return new Plan(physical(logical(root.project())), root.validatedRowType, tables);
    } catch (SqlException e) {
      throw e;
    } catch (SqlParseException e) {
      throw new SqlException(firstLine(e), e);
    } catch (CalciteContextException e) {
      throw new SqlException(e.getMessage(), e);
    } catch (RuntimeException e) {
      throw new SqlException("this engine cannot plan it: " + firstLine(e), e);
    } finally {
      RelMetadataQueryBase.THREAD_PROVIDERS.remove();
    }
  }

  /** What follows are plans, or all words that could stand there. */
  private static String firstLine(Exception e) {
    return String.valueOf(e.getMessage()).lines().findFirst().orElse("");
  }

  private static SqlNode parsed(String sql) throws SqlParseException {
    SqlParser.Config config =
        SqlParser.config()
            .withCaseSensitive(false)
            .withUnquotedCasing(Casing.TO_LOWER)
            .withConformance(SqlConformanceEnum.LENIENT);
    return SqlParser.create(sql, config).parseQuery().accept(new TimestampCalls());
  }

  private RelRoot converted(SqlNode query) {
    JavaTypeFactory types = new JavaTypeFactoryImpl(new WideDecimals());
    CalciteSchema schema = CalciteSchema.createRootSchema(false, false);
    tables.forEach(schema::add);
    Properties properties = new Properties();
    properties.setProperty(CalciteConnectionProperty.CASE_SENSITIVE.camelName(), "false");
    CalciteConnectionConfig config = new CalciteConnectionConfigImpl(properties);
    CalciteCatalogReader catalog = new CalciteCatalogReader(schema, List.of(), types, config);
    SqlValidator validator =
        SqlValidatorUtil.newValidator(
            SqlStdOperatorTable.instance(),
            catalog,
            types,
            SqlValidator.Config.DEFAULT
                .withConformance(SqlConformanceEnum.LENIENT)
                .withIdentifierExpansion(true));
    // It plans nothing, but knows the traits that nodes can have.
    VolcanoPlanner traits = new VolcanoPlanner(Contexts.of(config));
    traits.addRelTraitDef(ConventionTraitDef.INSTANCE);
    traits.addRelTraitDef(RelDistributionTraitDef.INSTANCE);
    traits.setExecutor(RexUtil.EXECUTOR);
    RelOptCluster cluster = RelOptCluster.create(traits, new RexBuilder(types));
    cluster.setMetadataProvider(JoinSizes.PROVIDER);
    SqlToRelConverter converter =
        new SqlToRelConverter(
            (type, text, path, viewPath) -> {
              throw new SqlException("this engine has no views", null);
            },
            validator,
            catalog,
            cluster,
            StandardConvertletTable.INSTANCE,
            SqlToRelConverter.config().withExpand(false).withInSubQueryThreshold(Integer.MAX_VALUE));
    return converter.convertQuery(query, true, true);
  }

  private static RelNode logical(RelNode node) {
    RelBuilder builder = RelBuilder.proto(Contexts.empty()).create(node.getCluster(), null);
    node = apply(node, SUB_QUERIES, HepMatchOrder.BOTTOM_UP);
    node = RelDecorrelator.decorrelateQuery(node, builder);
    node = apply(node, PUSH_DOWN, HepMatchOrder.TOP_DOWN);
    node = new RelFieldTrimmer(null, builder).trim(node);
    node = apply(node, TO_MULTI_JOIN, HepMatchOrder.BOTTOM_UP);
    node = apply(node, List.of(CoreRules.MULTI_JOIN_OPTIMIZE), HepMatchOrder.BOTTOM_UP);
    node = apply(node, PUSH_DOWN, HepMatchOrder.TOP_DOWN);
    node = apply(node, List.of(new SmallerRightRule()), HepMatchOrder.BOTTOM_UP);
    node = new RelFieldTrimmer(null, builder).trim(node);
    node = apply(node, List.of(CoreRules.PROJECT_MERGE, CoreRules.PROJECT_REMOVE), HepMatchOrder.TOP_DOWN);
    return apply(node, CALCS, HepMatchOrder.BOTTOM_UP);
  }

  private EnumerableRel physical(RelNode node) {
    RelNode physical = apply(node, PhysicalRules.all(broadcastCopies, operators), HepMatchOrder.BOTTOM_UP);
    return PhysicalRules.gathered(physical);
  }

  private static RelNode apply(RelNode node, List<? extends RelOptRule> rules, HepMatchOrder order) {
    HepProgramBuilder program = HepProgram.builder().addMatchOrder(order);
    program.addRuleCollection(List.copyOf(rules));
    HepPlanner planner = new HepPlanner(program.build(), node.getCluster().getPlanner().getContext());
    planner.setExecutor(RexUtil.EXECUTOR);
    planner.setRoot(node);
    return planner.findBestExp();
  }
}
