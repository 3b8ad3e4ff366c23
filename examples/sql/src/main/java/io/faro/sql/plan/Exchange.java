package io.faro.sql.plan;

import io.faro.Column;
import io.faro.Delivery;
import io.faro.ObjectShuffleSpec;
import io.faro.Partition;
import io.faro.QueryId;
import io.faro.RowCodec;
import io.faro.SchemaCodec;
import io.faro.ShuffleSpec;
import java.lang.reflect.Method;
import java.util.List;
import java.util.Locale;
import org.apache.calcite.adapter.enumerable.EnumerableConvention;
import org.apache.calcite.adapter.enumerable.EnumerableRelImplementor;
import org.apache.calcite.linq4j.Enumerable;
import org.apache.calcite.linq4j.tree.Types;
import org.apache.calcite.plan.RelTraitSet;
import org.apache.calcite.rel.RelDistribution;
import org.apache.calcite.rel.RelDistributionTraitDef;
import org.apache.calcite.rel.RelDistributions;
import org.apache.calcite.rel.RelNode;
import org.apache.calcite.rel.RelWriter;

/**
 * Where rows change workers: a Faro shuffle. Each worker sends what its input gives and goes on with what the
 * others sent it. In the generated program it is a call of {@link PlanContext#exchange}.
 */
public final class Exchange extends org.apache.calcite.rel.core.Exchange implements Stage {
  private static final Method CALL =
      Types.lookupMethod(PlanContext.class, "exchange", int.class, Enumerable.class);

  private final boolean isKept;
  private final RowCodec<Object[]> codec;
  private final Decimals decimals;
  private final RelDistribution.Type kind;
  private final Delivery delivery;
  private final int[] keys;
  private int stage = -1;
  private int firstBelow;

  private Exchange(RelTraitSet traits, RelNode input, RelDistribution distribution, boolean isKept) {
    super(input.getCluster(), traits, input, distribution);
    this.isKept = isKept;
    List<Column> columns = RowTypes.of(input).stream().map(RowTypes::column).toList();
    codec = new SchemaCodec(columns);
    decimals = new Decimals(columns);
    kind = distribution.getType();
    delivery = kind == RelDistribution.Type.BROADCAST_DISTRIBUTED ? Delivery.REPLICATE : Delivery.WORKER;
    keys = distribution.getKeys().stream().mapToInt(Integer::intValue).toArray();
  }

  /** The rows of {@code input}, distributed anew. */
  static Exchange of(RelNode input, RelDistribution distribution) {
    return of(input, distribution, false);
  }

  /** An exchange of the input that is {@linkplain #isKept kept}. */
  static Exchange kept(RelNode input, RelDistribution distribution) {
    return of(input, distribution, true);
  }

  private static Exchange of(RelNode input, RelDistribution distribution, boolean isKept) {
    RelTraitSet traits =
        input.getCluster().traitSetOf(EnumerableConvention.INSTANCE).replace(distribution);
    return new Exchange(traits, input, distribution, isKept);
  }

  @Override
  public Exchange copy(RelTraitSet traits, RelNode input, RelDistribution distribution) {
    Exchange copy = new Exchange(traits, input, distribution, isKept);
    copy.setStage(stage, firstBelow);
    return copy;
  }

  @Override
  public int stage() {
    return stage;
  }

  /** Each worker reads all rows before it runs the rest of the plan, which may read them never or many times. */
  public boolean isKept() {
    return isKept;
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
    return super.explainTerms(writer)
        .item("delivery", delivery.name().toLowerCase(Locale.ROOT))
        .itemIf("stage", stage, stage >= 0);
  }

  @Override
  public Result implement(EnumerableRelImplementor implementor, Prefer prefer) {
    return call(CALL, implementor);
  }

  /** The shuffle of this exchange in a query. */
  public ObjectShuffleSpec<Object[]> shuffle(QueryId query) {
    return ShuffleSpec.repartition(query, stage).withDelivery(delivery).withRowsOf(codec);
  }

  /** The row with decimals of their columns' scales. */
  public Object[] fitting(Object[] row) {
    return decimals.fitting(row);
  }

  /** Only worker 0's input counts. */
  public boolean isOfSingleton() {
    return distributionOf(getInput()).getType() == RelDistribution.Type.SINGLETON;
  }

  /** To which of that many a row goes. Calcite sorts the keys of a distribution: their order does not matter here. */
  public int receiverOf(Object[] row, int receivers) {
    if (kind != RelDistribution.Type.HASH_DISTRIBUTED) { // worker 0, or all workers, which are one receiver
      return 0;
    }
    long hash = 0;
    for (int key : keys) {
      hash += RowTypes.hash(row[key]);
    }
    return Partition.FINALIZER.receiverOf(hash, receivers);
  }

  /** The distribution that a plan node has; random unless somebody saw to another. */
  static RelDistribution distributionOf(RelNode node) {
    RelDistribution trait = node.getTraitSet().getTrait(RelDistributionTraitDef.INSTANCE);
    return trait == null ? RelDistributions.RANDOM_DISTRIBUTED : trait;
  }
}
