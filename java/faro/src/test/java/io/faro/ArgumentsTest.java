package io.faro;

import static io.faro.Checks.failsBy;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;

/** What is wrong is refused where it is said, by an error that names it. */
class ArgumentsTest {
  private static final QueryId QUERY = new QueryId(1, 2, 0);
  private static final int[] ALL = {};

  private static void refused(String named, Executable call) {
    failsBy(Code.INVALID_ARGUMENT, call, named);
  }

  private static void refusesNull(String named, Executable call) {
    assertEquals(named, assertThrows(NullPointerException.class, call).getMessage());
  }

  @Test
  void aDecimalHasNoMoreDigitsBehindThePointThanInAll() {
    refused("5 digits, 9 of them", () -> Column.decimal(5, 9, false));
    refused("5 digits, -1 of them", () -> Column.decimal(5, -1, false));
    refused("DECIMAL_18 with scale 19", () -> new Column(ColumnType.DECIMAL_18, false, 19));
    refused("DECIMAL_38 with scale 39", () -> new Column(ColumnType.DECIMAL_38, false, 39));
    refused("precision 19", () -> new Column(ColumnType.DECIMAL_18, false, 2, 19));
    refused("precision 1", () -> new Column(ColumnType.DECIMAL_18, false, 2, 1));
    refused("precision 1", () -> new Column(ColumnType.LONG, false, 0, 1));
    refused("39 digits", () -> Column.decimal(39, 0, false));
    assertEquals(18, Column.decimal(18, 18, true).scale());
  }

  @Test
  void aCodecNeedsBothOfItsFunctions() {
    refusesNull("writer", () -> RowCodecs.<Long>fixed(8, null, (from, at) -> from.getLong(at)));
    refusesNull("reader", () -> RowCodecs.<Long>fixed(8, (value, to) -> to.putLong(0, value), null));
  }

  @Test
  void aKeyNeedsAReceiver() {
    for (Partition partition : Partition.values()) {
      refused("-1 receivers", () -> partition.receiverOf(7, -1));
      refused("0 receivers", () -> partition.receiverOf(7, 0));
    }
  }

  @Test
  void aClusterHasAnAddressForEachNode() {
    assertThrows(NullPointerException.class, () -> SessionConfig.builder().cluster(0, null));
    assertThrows(
        NullPointerException.class, () -> SessionConfig.builder().cluster(0, Arrays.asList("a:1", null)));
    refusesNull("ring.bytes", () -> SessionConfig.builder().set(Setting.RING_BYTES, null));
    refusesNull("setting", () -> SessionConfig.builder().set(null, "1"));
  }

  @Test
  void aSpecIsCompleteAndNotNegative() {
    refusesNull("query", () -> new ShuffleSpec(null, 1, 8));
    refusesNull("senders", () -> new ShuffleSpec(QUERY, 1, 8, null, ALL));
    refusesNull("receivers", () -> new ShuffleSpec(QUERY, 1, 8, ALL, null));
    refused("stage = -1", () -> new ShuffleSpec(QUERY, -1, 8));
    refused("rowBytes = -1", () -> new ShuffleSpec(QUERY, 1, -1));
    refused("a worker of receivers = -3", () -> new ShuffleSpec(QUERY, 1, 8, ALL, new int[] {0, -3}));
  }

  @Test
  void specsOfTheSameWorkersAreEqual() {
    ShuffleSpec spec = new ShuffleSpec(QUERY, 1, 8, new int[] {0, 2}, ALL);
    ShuffleSpec same = new ShuffleSpec(QUERY, 1, 8, new int[] {0, 2}, ALL);
    assertEquals(spec, same);
    assertEquals(spec.hashCode(), same.hashCode());
    assertNotEquals(spec, new ShuffleSpec(QUERY, 1, 8, new int[] {0, 1}, ALL));
    assertEquals("stage 1 of query 0:1, rowBytes 8, senders [0, 2], receivers all", spec.toString());
  }

  @Test
  void aSpecSaysWhatItIsFor() {
    assertEquals(new ShuffleSpec(QUERY, 1, 0), ShuffleSpec.repartition(QUERY, 1));
    assertEquals(new ShuffleSpec(QUERY, 1, 0, new int[] {2}, ALL), ShuffleSpec.broadcast(QUERY, 1, 2));
    assertEquals(
        new ShuffleSpec(QUERY, 1, 8, ALL, new int[] {3}),
        ShuffleSpec.gather(QUERY, 1, 3).withRowsOf(RowCodecs.LONG).spec());
    assertEquals(
        new ShuffleSpec(QUERY, 1, 24, new int[] {0, 1}, new int[] {3, 2}),
        ShuffleSpec.repartition(QUERY, 1)
            .withReceivers(3, 2)
            .withSenders(0, 1)
            .withRowBytes(24));
    refused(
        "stage 1: rowBytes = 16, of the codec 8",
        () -> new ObjectShuffleSpec<>(new ShuffleSpec(QUERY, 1, 16), RowCodecs.LONG));
    refused("a worker of senders = -1", () -> ShuffleSpec.broadcast(QUERY, 1, -1));
    refused("rowBytes = -8", () -> ShuffleSpec.repartition(QUERY, 1).withRowBytes(-8));
  }

  @Test
  void aSpecDoesNotChangeWithTheArraysItWasMadeOf() {
    int[] senders = {0, 2};
    ShuffleSpec spec = new ShuffleSpec(QUERY, 1, 8, senders, ALL);
    senders[0] = 9;
    spec.senders()[1] = 9;
    assertArrayEquals(new int[] {0, 2}, spec.senders());
  }

  @Test
  void aSchemaHasColumns() {
    assertThrows(NullPointerException.class, () -> new SchemaCodec(Arrays.asList((Column) null)));
    refusesNull("type", () -> Column.of(null));
    assertEquals(List.of(), new SchemaCodec(List.of()).schema());
  }

  @Test
  void aTextThatNativeCodeReadsToItsEndHasNoNul() {
    refused("NUL", () -> Endpoint.open(SessionConfig.builder().build(), new EndpointSpec().withName("a\0b")));
    refused("NUL", () -> NodeChanges.add(0, 1, "127.0.0.1:7000\0"));
  }
}
