package io.faro;

import static io.faro.Checks.failsBy;
import static io.faro.Checks.failure;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The shape of what rows are sent and received by. */
@Timeout(20)
class ApiTest {
  private static final List<Class<?>> SENDERS =
      List.of(ShuffleSender.class, LongSender.class, MemorySender.class, RowWriter.class, ObjectSender.class);
  private static final List<Class<?>> RECEIVERS = List.of(ShuffleReceiver.class, ObjectReceiver.class, MergingReceiver.class);

  private static Stream<Method> methods(List<Class<?>> classes) {
    return classes.stream()
        .flatMap(each -> Arrays.stream(each.getDeclaredMethods()))
        .filter(method -> Modifier.isPublic(method.getModifiers()) && !method.isSynthetic());
  }

  private static Stream<Method> all() {
    return Stream.concat(
        methods(SENDERS), Stream.concat(methods(RECEIVERS), methods(List.of(Worker.class, QueryScope.class, Session.class, Shuffle.class, ObjectShuffle.class))));
  }

  @Test
  void aResultThatSaysWhetherRowsWentIsAnnotatedForStaticAnalysis() {
    Set<String> dropped =
        all()
            .filter(method -> method.getReturnType() == Outcome.class)
            .filter(method -> !method.getName().equals("stoppedBy"))
            .filter(method -> !method.isAnnotationPresent(CheckReturnValue.class))
            .map(Method::toString)
            .collect(Collectors.toCollection(TreeSet::new));
    assertEquals(Set.of(), dropped);
    assertTrue(
        methods(SENDERS)
            .filter(method -> Set.of("sendAll", "sendRows", "put").contains(method.getName()))
            .allMatch(method -> method.isAnnotationPresent(CheckReturnValue.class)));
  }

  @Test
  void eachCallThatWaitsHasAFormThatSaysHowLong() throws Exception {
    Set<String> without = new TreeSet<>();
    for (Method method : (Iterable<Method>) all()::iterator) {
      boolean waits = List.of(method.getExceptionTypes()).contains(InterruptedException.class);
      if (!waits || Modifier.isStatic(method.getModifiers())) {
        continue; // Session.open has a setting for it
      }
      Class<?>[] types = Arrays.copyOf(method.getParameterTypes(), method.getParameterCount() + 1);
      types[types.length - 1] = Wait.class;
      try {
        method.getDeclaringClass().getDeclaredMethod(method.getName(), types);
      } catch (NoSuchMethodException none) {
        without.add(method.toString());
      }
    }
    assertEquals(Set.of(), without);
    assertEquals(Set.of(), all().map(Method::getName).filter(name -> name.startsWith("try")).collect(Collectors.toSet()));
  }

  @Test
  void oneVerbSaysOneThing() {
    Set<String> verbs =
        methods(SENDERS)
            .filter(method -> method.getReturnType() == Outcome.class || method.isAnnotationPresent(CheckReturnValue.class))
            .map(Method::getName)
            .filter(name -> !Set.of("stoppedBy", "finish").contains(name))
            .collect(Collectors.toCollection(TreeSet::new));
    assertEquals(Set.of("broadcast", "claim", "multicast", "put", "send", "sendAll", "sendParts", "sendRows"), verbs);
  }

  @Test
  void aWorkerIsAskedOnlyForTheSideThatItHas() throws Exception {
    try (Cluster cluster = new Cluster("auto", 1, 2)) {
      QueryId query = cluster.beginQuery();
      ShuffleSpec spec = new ShuffleSpec(query, 3, 8, new int[] {0}, new int[] {1});
      Shuffle sending = cluster.worker(0).openShuffle(spec);
      Shuffle receiving = cluster.worker(1).openShuffle(spec);
      assertTrue(sending.isSender() && !sending.isReceiver());
      assertTrue(receiving.isReceiver() && !receiving.isSender());
      assertSame(sending.sender(), sending.sender());
      assertSame(receiving.receiver(), receiving.receiver());
      failsBy(Code.WRONG_STATE, receiving::sender, "worker 1 is no sender of stage 3");
      failsBy(Code.WRONG_STATE, sending::receiver, "worker 0 is no receiver of stage 3");
      receiving.close();
      sending.close();
      failsBy(Code.CLOSED, sending::sender);
    }
  }

  @Test
  void aShuffleTellsThatItsQueryHasFailed() throws Exception {
    try (Cluster cluster = new Cluster("auto", 1, 1);
        Shuffle shuffle = cluster.openShuffle(8)) {
      shuffle.checkQuery();
      cluster.session(0).cancelQuery(shuffle.spec().query(), "not wanted");
      FaroException failed = failsBy(Code.QUERY_CANCELLED, shuffle::checkQuery, "not wanted");
      assertFalse(failed.category() == Category.OPERATION);
    }
  }

  @Test
  void aReceiverIsNamedOnceAndExists() throws Exception {
    try (Cluster cluster = new Cluster("auto", 1, 2);
        Shuffle shuffle = cluster.openShuffle(0)) {
      ShuffleSender sender = shuffle.sender();
      byte[] row = new byte[4];
      for (int[] receivers : List.of(new int[] {1, 1}, new int[] {0, 2}, new int[] {-1}, new int[0])) {
        FaroException refused = failure(() -> sender.multicast(receivers, row, 0, 4, Wait.NONE));
        assertEquals(Code.INVALID_ARGUMENT, refused.code(), Arrays.toString(receivers));
      }
      for (int receiver : new int[] {-1, 2}) {
        failsBy(Code.INVALID_ARGUMENT, () -> sender.send(receiver, row, 0, 4, Wait.NONE));
      }
      Batch batch = shuffle.receiver().newBatch();
      for (int from : new int[] {-1, 2}) {
        failsBy(Code.INVALID_ARGUMENT, () -> shuffle.receiver().receiveFrom(from, batch, Wait.NONE));
      }
    }
  }
}
